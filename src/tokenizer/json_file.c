#include "tokenizer/json_file.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "formats/json.h"

enum { MAX_BYTES = 64 << 20 };

ls_status ls_json_file_read(json_t **out, const char *path, ls_error *error)
{
    LS_TRY(ls_json_load(out, path, MAX_BYTES, error));
    if (json_is_object(*out)) return LS_OK;
    ls_json_free(*out);
    *out = NULL;
    return ls_fail(error, LS_INVALID, "%s: holds no object {...}", path);
}

const json_t *ls_json_node_find(const ls_json_node *node, const char *key)
{
    const json_t *value = json_object_get(node->value, key);
    return json_is_null(value) ? NULL : value;
}

ls_status ls_json_node_fail(const ls_json_node *node, const char *key, ls_error *error,
                            ls_status code, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return ls_fail(error, code, "%s: key '%s%s%s': %s", node->path, node->at, *node->at ? "." : "",
                   key, text);
}

static ls_status find_typed(const ls_json_node *node, const char *key, json_type type,
                            const char *wanted, const json_t **out, ls_error *error)
{
    *out = json_object_get(node->value, key);
    if (!*out)
        return ls_json_node_fail(node, key, error, LS_INVALID, "is missing, %s is needed", wanted);
    if (json_typeof(*out) != type)
        return ls_json_node_fail(node, key, error, LS_INVALID, "is not %s", wanted);
    return LS_OK;
}

ls_status ls_json_node_object(const ls_json_node *node, const char *key, ls_json_node *out,
                              ls_error *error)
{
    const json_t *value;
    LS_TRY(find_typed(node, key, JSON_OBJECT, "an object", &value, error));
    *out = (ls_json_node){.value = value, .path = node->path};
    snprintf(out->at, sizeof out->at, "%.79s%s%.79s", node->at, *node->at ? "." : "", key);
    return LS_OK;
}

ls_status ls_json_node_array(const ls_json_node *node, const char *key, const json_t **out,
                             ls_error *error)
{
    return find_typed(node, key, JSON_ARRAY, "an array", out, error);
}

ls_status ls_json_node_text(const ls_json_node *node, const char *key, const char **out,
                            ls_error *error)
{
    const json_t *value;
    LS_TRY(find_typed(node, key, JSON_STRING, "text", &value, error));
    *out = json_string_value(value);
    return LS_OK;
}

ls_status ls_json_node_bool(const ls_json_node *node, const char *key, bool *out, ls_error *error)
{
    const json_t *value = json_object_get(node->value, key);
    if (!json_is_boolean(value))
        return ls_json_node_fail(node, key, error, LS_INVALID, "%s, true or false is needed",
                                 value ? "is of another type" : "is missing");
    *out = json_is_true(value);
    return LS_OK;
}

ls_status ls_json_node_integer(const ls_json_node *node, const char *key, json_int_t low,
                               json_int_t high, json_int_t *out, ls_error *error)
{
    const json_t *value;
    LS_TRY(find_typed(node, key, JSON_INTEGER, "an integer", &value, error));
    *out = json_integer_value(value);
    if (*out < low || *out > high)
        return ls_json_node_fail(node, key, error, LS_INVALID, "is %lld, not in %lld .. %lld",
                                 (long long)*out, (long long)low, (long long)high);
    return LS_OK;
}

ls_status ls_json_node_element(const ls_json_node *node, const char *key, const json_t *array,
                               size_t index, ls_json_node *out, ls_error *error)
{
    const json_t *value = json_array_get(array, index);
    if (!json_is_object(value))
        return ls_json_node_fail(node, key, error, LS_INVALID, "element %zu is not an object",
                                 index);
    *out = (ls_json_node){.value = value, .path = node->path};
    snprintf(out->at, sizeof out->at, "%.60s%s%.60s[%zu]", node->at, *node->at ? "." : "", key,
             index);
    return LS_OK;
}

#include "tokenizer/json_file.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/files.h"

enum { MAX_BYTES = 64 << 20, MAX_DEPTH = 64 };

/* jansson descends by recursion, up to 2,048 levels: refuse before it does. */
static ls_status check_depth(const char *bytes, size_t count, const char *path, ls_error *error)
{
    int depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < count; i++) {
        char byte = bytes[i];
        if (in_string) {
            if (byte == '\\')
                i++;
            else if (byte == '"')
                in_string = false;
        } else if (byte == '"') {
            in_string = true;
        } else if (byte == '[' || byte == '{') {
            if (++depth > MAX_DEPTH)
                return ls_fail(error, LS_INVALID,
                               "%s: byte %zu: arrays and objects nest deeper than %d", path, i,
                               MAX_DEPTH);
        } else if (byte == ']' || byte == '}') {
            depth--;
        }
    }
    return LS_OK;
}

ls_status ls_json_file_read(json_t **out, const char *path, ls_error *error)
{
    char *bytes = NULL;
    size_t count = 0;
    json_error_t problem = {0};
    ls_status status;
    *out = NULL;
    LS_TRY(ls_file_read(&bytes, &count, path, MAX_BYTES, error));
    LS_TRY_GOTO(status, check_depth(bytes, count, path, error), done);
    *out = json_loadb(bytes, count, JSON_REJECT_DUPLICATES, &problem);
    if (!*out && json_error_code(&problem) == json_error_out_of_memory) {
        status = ls_fail(error, LS_NO_MEMORY, "out of memory reading %s", path);
    } else if (!*out) {
        status = ls_fail(error, LS_INVALID, "%s: line %d, column %d: %s", path, problem.line,
                         problem.column, problem.text);
    } else if (!json_is_object(*out)) {
        json_decref(*out);
        *out = NULL;
        status = ls_fail(error, LS_INVALID, "%s: holds no object {...}", path);
    }
done:
    ls_free(bytes);
    return status;
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

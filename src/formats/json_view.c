/* Typed access to a document, with errors that name file and key. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "formats/json.h"
#include "formats/utf8.h"

const char *ls_json_type_name(const json_t *value)
{
    if (!value) return "nothing";
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "text";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a number with a fraction or exponent";
    case JSON_TRUE:
        return "true";
    case JSON_FALSE:
        return "false";
    case JSON_NULL:
        return "null";
    }
    return "an unknown value";
}

ls_status ls_json_view_init(ls_json_view *view, const json_t *root, const char *file,
                            ls_error *error)
{
    *view = (ls_json_view){.object = root, .file = file};
    if (json_is_object(root)) return LS_OK;
    return ls_fail(error, LS_INVALID, "%s: holds %s, an object {...} is needed", file,
                   ls_json_type_name(root));
}

/* "a.b" + "c" -> "a.b.c", cut at a character's border if it is too long. */
static void join_keys(char *into, size_t bytes, const char *at, const char *key)
{
    int length = snprintf(into, bytes, "%s%s%s", at, *at ? "." : "", key);
    if (length >= 0 && (size_t)length >= bytes) into[ls_utf8_valid_prefix(into, bytes - 1)] = '\0';
}

ls_status ls_json_fail(const ls_json_view *view, const char *key, ls_error *error, ls_status code,
                       const char *format, ...)
{
    char what[512], full[320];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof what) what[ls_utf8_valid_prefix(what, sizeof what - 1)] = '\0';
    join_keys(full, sizeof full, view->at, key);
    return ls_fail(error, code, "%s: key '%s': %s", view->file, full, what);
}

const json_t *ls_json_find(const ls_json_view *view, const char *key)
{
    const json_t *value = view->object ? json_object_get(view->object, key) : NULL;
    return json_is_null(value) ? NULL : value;
}

/* *value NULL with LS_OK: optional and not there. */
static ls_status find(const ls_json_view *view, const char *key, ls_json_need need,
                      const json_t **value, ls_error *error)
{
    *value = ls_json_find(view, key);
    if (*value || need == LS_JSON_OPTIONAL) return LS_OK;
    bool null = view->object && json_object_get(view->object, key);
    return ls_json_fail(view, key, error, LS_INVALID, "%s, but it is needed",
                        null ? "is null" : "is missing");
}

static ls_status fail_type(const ls_json_view *view, const char *key, const json_t *value,
                           const char *wanted, ls_error *error)
{
    return ls_json_fail(view, key, error, LS_INVALID, "is %s, %s is needed",
                        ls_json_type_name(value), wanted);
}

ls_status ls_json_get_integer(const ls_json_view *view, const char *key, ls_json_need need,
                              int64_t low, int64_t high, int64_t *out, ls_error *error)
{
    const json_t *value;
    LS_TRY(find(view, key, need, &value, error));
    if (!value) return LS_OK;
    if (!json_is_integer(value)) return fail_type(view, key, value, "an integer", error);
    int64_t integer = json_integer_value(value);
    if (integer < low || integer > high)
        return ls_json_fail(view, key, error, LS_INVALID, "is %lld, must be from %lld to %lld",
                            (long long)integer, (long long)low, (long long)high);
    *out = integer;
    return LS_OK;
}

ls_status ls_json_get_number(const ls_json_view *view, const char *key, ls_json_need need,
                             double low, double high, double *out, ls_error *error)
{
    const json_t *value;
    LS_TRY(find(view, key, need, &value, error));
    if (!value) return LS_OK;
    if (!json_is_number(value)) return fail_type(view, key, value, "a number", error);
    double number = json_number_value(value);
    if (!(number >= low && number <= high))
        return ls_json_fail(view, key, error, LS_INVALID, "is %g, must be from %g to %g", number,
                            low, high);
    *out = number;
    return LS_OK;
}

ls_status ls_json_get_bool(const ls_json_view *view, const char *key, ls_json_need need, bool *out,
                           ls_error *error)
{
    const json_t *value;
    LS_TRY(find(view, key, need, &value, error));
    if (!value) return LS_OK;
    if (!json_is_boolean(value)) return fail_type(view, key, value, "true or false", error);
    *out = json_is_true(value);
    return LS_OK;
}

ls_status ls_json_get_string(const ls_json_view *view, const char *key, ls_json_need need,
                             const char **out, ls_error *error)
{
    const json_t *value;
    LS_TRY(find(view, key, need, &value, error));
    if (!value) return LS_OK;
    if (!json_is_string(value)) return fail_type(view, key, value, "text", error);
    *out = json_string_value(value);
    return LS_OK;
}

ls_status ls_json_get_object(const ls_json_view *view, const char *key, ls_json_need need,
                             ls_json_view *out, ls_error *error)
{
    const json_t *value;
    ls_json_view child = {.file = view->file};
    LS_TRY(find(view, key, need, &value, error));
    if (value && !json_is_object(value)) return fail_type(view, key, value, "an object", error);
    child.object = value;
    join_keys(child.at, sizeof child.at, view->at, key);
    *out = child;
    return LS_OK;
}

ls_status ls_json_get_array(const ls_json_view *view, const char *key, ls_json_need need,
                            const json_t **out, ls_error *error)
{
    const json_t *value;
    LS_TRY(find(view, key, need, &value, error));
    if (!value) return LS_OK;
    if (!json_is_array(value)) return fail_type(view, key, value, "an array", error);
    *out = value;
    return LS_OK;
}

ls_status ls_json_get_element(const ls_json_view *view, const char *key, const json_t *array,
                              size_t index, ls_json_view *out, ls_error *error)
{
    const json_t *value = json_array_get(array, index);
    char name[128];
    snprintf(name, sizeof name, "%.90s[%zu]", key, index);
    if (!json_is_object(value)) return fail_type(view, name, value, "an object", error);
    *out = (ls_json_view){.object = value, .file = view->file};
    join_keys(out->at, sizeof out->at, view->at, name);
    return LS_OK;
}

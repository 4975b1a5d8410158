/* Writing documents. jansson's own writer gives 0.1 as 0.10000000000000001: right, but no text that
 * a person wants to find in a config.json that came in with 0.1. */
#include <string.h>

#include "base/files.h"
#include "base/numbers.h"
#include "base/text.h"
#include "formats/json.h"

/* A real stays a real when it is read again. */
static ls_status print_real(ls_text *text, double value, ls_error *error)
{
    char digits[LS_NUMBER_BYTES];
    bool integer = strpbrk(ls_number_print(digits, value), ".e") == NULL;
    return ls_text_print(text, error, "%s%s", digits, integer ? ".0" : "");
}

static ls_status print_line_start(ls_text *text, int depth, ls_error *error)
{
    return ls_text_print(text, error, "\n%*s", 2 * depth, "");
}

static ls_status print_value(ls_text *text, const json_t *value, int depth, ls_error *error);

static ls_status print_object(ls_text *text, const json_t *object, int depth, ls_error *error)
{
    const char *key;
    json_t *child;
    bool first = true;
    LS_TRY(ls_text_append(text, "{", 1, error));
    json_object_foreach((json_t *)object, key, child)
    {
        if (!first) LS_TRY(ls_text_append(text, ",", 1, error));
        first = false;
        LS_TRY(print_line_start(text, depth + 1, error));
        LS_TRY(ls_text_json_string(text, key, error));
        LS_TRY(ls_text_append(text, ": ", 2, error));
        LS_TRY(print_value(text, child, depth + 1, error));
    }
    if (!first) LS_TRY(print_line_start(text, depth, error));
    return ls_text_append(text, "}", 1, error);
}

static ls_status print_array(ls_text *text, const json_t *array, int depth, ls_error *error)
{
    LS_TRY(ls_text_append(text, "[", 1, error));
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (i) LS_TRY(ls_text_append(text, ",", 1, error));
        LS_TRY(print_line_start(text, depth + 1, error));
        LS_TRY(print_value(text, json_array_get(array, i), depth + 1, error));
    }
    if (json_array_size(array)) LS_TRY(print_line_start(text, depth, error));
    return ls_text_append(text, "]", 1, error);
}

static ls_status print_value(ls_text *text, const json_t *value, int depth, ls_error *error)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return print_object(text, value, depth, error);
    case JSON_ARRAY:
        return print_array(text, value, depth, error);
    case JSON_STRING:
        return ls_text_json_string(text, json_string_value(value), error);
    case JSON_INTEGER:
        return ls_text_print(text, error, "%lld", (long long)json_integer_value(value));
    case JSON_REAL:
        return print_real(text, json_real_value(value), error);
    case JSON_TRUE:
        return ls_text_append(text, "true", 4, error);
    case JSON_FALSE:
        return ls_text_append(text, "false", 5, error);
    case JSON_NULL:
        break;
    }
    return ls_text_append(text, "null", 4, error);
}

ls_status ls_json_print(const json_t *value, ls_text *text, ls_error *error)
{
    LS_TRY(print_value(text, value, 0, error));
    return ls_text_append(text, "\n", 1, error);
}

ls_status ls_json_write(const json_t *value, const char *path, ls_error *error)
{
    ls_text text = {0};
    ls_status status = ls_json_print(value, &text, error);
    if (status == LS_OK) status = ls_file_write(path, text.data, text.length, error);
    ls_text_deinit(&text);
    return status;
}

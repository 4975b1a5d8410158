#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

ls_status ls_text_append(ls_text *text, const void *bytes, size_t length, ls_error *error)
{
    LS_TRY(LS_GROW(text->data, text->capacity, text->length + length + 1, "text", error));
    if (length) memcpy(text->data + text->length, bytes, length);
    text->length += length;
    text->data[text->length] = '\0';
    return LS_OK;
}

ls_status ls_text_print(ls_text *text, ls_error *error, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    ls_status status = length < 0 ? ls_fail(error, LS_INTERNAL, "text cannot be formatted")
                                  : LS_GROW(text->data, text->capacity,
                                            text->length + (size_t)length + 1, "text", error);
    if (status == LS_OK) {
        vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    va_end(again);
    return status;
}

ls_status ls_text_json_string(ls_text *text, const char *value, ls_error *error)
{
    LS_TRY(ls_text_append(text, "\"", 1, error));
    for (const char *at = value; *at; at++) {
        unsigned char byte = (unsigned char)*at;
        if (byte == '"' || byte == '\\') {
            char escaped[2] = {'\\', *at};
            LS_TRY(ls_text_append(text, escaped, 2, error));
        } else if (byte == '\n') {
            LS_TRY(ls_text_append(text, "\\n", 2, error));
        } else if (byte < 0x20 || byte == 0x7f) {
            LS_TRY(ls_text_print(text, error, "\\u%04x", byte));
        } else {
            LS_TRY(ls_text_append(text, at, 1, error));
        }
    }
    return ls_text_append(text, "\"", 1, error);
}

void ls_text_clear(ls_text *text)
{
    text->length = 0;
    if (text->data) text->data[0] = '\0';
}

void ls_text_deinit(ls_text *text)
{
    ls_free(text->data);
    *text = (ls_text){0};
}

/* A growing UTF-8 text, for JSON lines, tables and messages. All zero is an empty one. */
#ifndef LS_BASE_TEXT_H
#define LS_BASE_TEXT_H

#include <stddef.h>

#include "base/status.h"

typedef struct ls_text {
    char *data; /* NUL-terminated once anything was added; NULL while empty */
    size_t length, capacity;
} ls_text;

ls_status ls_text_append(ls_text *text, const void *bytes, size_t length,
                         ls_error *error) LS_MUST_CHECK;
ls_status ls_text_print(ls_text *text, ls_error *error, const char *format, ...)
    LS_PRINTF(3, 4) LS_MUST_CHECK;
/* A JSON string with its quotes; invalid UTF-8 must have been refused before. */
ls_status ls_text_json_string(ls_text *text, const char *value, ls_error *error) LS_MUST_CHECK;
void ls_text_clear(ls_text *text); /* keeps the capacity */
void ls_text_deinit(ls_text *text);

#endif

/* The one UTF-8 check of formats/. */
#ifndef LS_FORMATS_UTF8_H
#define LS_FORMATS_UTF8_H

#include <stddef.h>

#include "base/text.h"

/* Bytes before the first that is not part of valid UTF-8 (overlong forms, surrogates and values
 * over U+10FFFF are not valid); `count` if all is well. */
size_t ls_utf8_valid_prefix(const char *bytes, size_t count);

/* Append a JSON string with its quotes, or null; '?' stands for each byte that is not UTF-8, as a
 * path may have. */
ls_status ls_utf8_json(ls_text *text, const char *value, ls_error *error) LS_MUST_CHECK;

#endif

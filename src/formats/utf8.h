/* The one UTF-8 check of formats/. */
#ifndef LS_FORMATS_UTF8_H
#define LS_FORMATS_UTF8_H

#include <stddef.h>

/* Bytes before the first that is not part of valid UTF-8 (overlong forms, surrogates and values
 * over U+10FFFF are not valid); `count` if all is well. */
size_t ls_utf8_valid_prefix(const char *bytes, size_t count);

#endif

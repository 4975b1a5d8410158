/* JSON as people write it by hand, made strict: comments and commas before a closing bracket. */
#ifndef LS_FORMATS_RELAXED_JSON_H
#define LS_FORMATS_RELAXED_JSON_H

#include <stddef.h>

#include "base/status.h"

/* Blank out, in place, comments ("//" and "#" to the line's end, and block comments) and commas
 * with nothing but a closing bracket after them. Bytes keep their places, so that the lines of
 * later errors are those of the file. A comment that does not end is LS_INVALID. */
ls_status ls_json_relax(char *bytes, size_t count, const char *name, ls_error *error) LS_MUST_CHECK;

/* The line, from 1, on which the key "a.b.c" stands in a relaxed document that could be parsed; 0
 * if it is not found (or is written with escapes). */
int ls_json_line_of(const char *bytes, size_t count, const char *path);

#endif

/* Strict JSON over jansson: whole input, UTF-8, no duplicate keys, limited depth and size.
 *
 * jansson is told to take its memory from base/alloc.h, so that JSON is counted and limited like
 * everything else. Objects keep the order of their keys. Free what is parsed with ls_json_free. */
#ifndef LS_FORMATS_JSON_H
#define LS_FORMATS_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/status.h"
#include "base/text.h"

/* Arrays and objects inside one another; deeper input is refused before it is parsed. */
enum { LS_JSON_MAX_DEPTH = 64 };

/* `bytes` is an object or an array and nothing else but white space (a UTF-8 byte order mark before
 * it is accepted). `name` (a file's path, or "FILE:LINE") opens every error text, which has the
 * line and column where known. Refused as LS_INVALID: bad UTF-8, NUL bytes, \u0000, unpaired
 * surrogate escapes, duplicate keys, integers outside int64, numbers outside double, NaN and
 * Infinity. */
ls_status ls_json_parse(json_t **out, const char *bytes, size_t count, const char *name,
                        ls_error *error) LS_MUST_CHECK;

/* A file of at most `cap` bytes, as above. */
ls_status ls_json_load(json_t **out, const char *path, size_t cap, ls_error *error) LS_MUST_CHECK;

void ls_json_free(json_t *value); /* NULL is allowed */

/* A new empty object or array in which to build; LS_NO_MEMORY when it cannot be had. jansson's own
 * json_object_set_new and so on may then be used; their results must be checked. */
ls_status ls_json_new_object(json_t **out, ls_error *error) LS_MUST_CHECK;

/* As ls_json_write, behind what `text` has. */
ls_status ls_json_print(const json_t *value, ls_text *text, ls_error *error) LS_MUST_CHECK;
/* Write a document to a file, two spaces an indent and a final newline, atomically. */
ls_status ls_json_write(const json_t *value, const char *path, ls_error *error) LS_MUST_CHECK;

/* An object inside a document, with what error texts need: "FILE: key 'a.b': ...". */
typedef struct ls_json_view {
    const json_t *object; /* NULL: as an empty object */
    const char *file;     /* borrowed */
    char at[160];         /* "" for the root, else "a.b" */
} ls_json_view;

/* The root of a document. Fails with LS_INVALID if it is not an object. */
ls_status ls_json_view_init(ls_json_view *view, const json_t *root, const char *file,
                            ls_error *error) LS_MUST_CHECK;

/* Getters. An OPTIONAL key that is absent or null leaves *out as it is (the caller's default); a
 * REQUIRED one that is absent or null, and any value of another type or outside the range, is
 * LS_INVALID. A getter accepts no other type: "3" and 3.0 are no integers, 1 is no boolean; a
 * number may be an integer. Text is borrowed from the document. */
typedef enum ls_json_need { LS_JSON_OPTIONAL, LS_JSON_REQUIRED } ls_json_need;
ls_status ls_json_get_integer(const ls_json_view *view, const char *key, ls_json_need need,
                              int64_t low, int64_t high, int64_t *out,
                              ls_error *error) LS_MUST_CHECK;
ls_status ls_json_get_number(const ls_json_view *view, const char *key, ls_json_need need,
                             double low, double high, double *out, ls_error *error) LS_MUST_CHECK;
ls_status ls_json_get_bool(const ls_json_view *view, const char *key, ls_json_need need, bool *out,
                           ls_error *error) LS_MUST_CHECK;
ls_status ls_json_get_string(const ls_json_view *view, const char *key, ls_json_need need,
                             const char **out, ls_error *error) LS_MUST_CHECK;
/* An OPTIONAL object that is absent gives a view in which every key is absent. */
ls_status ls_json_get_object(const ls_json_view *view, const char *key, ls_json_need need,
                             ls_json_view *out, ls_error *error) LS_MUST_CHECK;
ls_status ls_json_get_array(const ls_json_view *view, const char *key, ls_json_need need,
                            const json_t **out, ls_error *error) LS_MUST_CHECK;

/* An element of the array at `key`, named "a.b[i]"; LS_INVALID unless it is an object. */
ls_status ls_json_get_element(const ls_json_view *view, const char *key, const json_t *array,
                              size_t index, ls_json_view *out, ls_error *error) LS_MUST_CHECK;

/* The value at a key, or NULL when absent or null. */
const json_t *ls_json_find(const ls_json_view *view, const char *key);

/* Fail with "FILE: key 'a.b': " before the formatted text. */
ls_status ls_json_fail(const ls_json_view *view, const char *key, ls_error *error, ls_status code,
                       const char *format, ...) LS_PRINTF(5, 6);

/* "an object", "a string", ...: for error texts. NULL is "nothing". */
const char *ls_json_type_name(const json_t *value);

#endif

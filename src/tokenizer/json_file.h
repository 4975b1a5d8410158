/* The little JSON reading that the tokenizer's files need: strict, capped in size and depth. */
#ifndef LS_TOKENIZER_JSON_FILE_H
#define LS_TOKENIZER_JSON_FILE_H

#include <stdbool.h>

#include <jansson.h>

#include "base/status.h"

/* An object in a file, with what errors need: "PATH: key 'a.b': ...". */
typedef struct ls_json_node {
    const json_t *value; /* an object */
    const char *path;    /* borrowed */
    char at[160];        /* "" for the root, else "a.b" */
} ls_json_node;

/* A file of at most 64 MiB that holds one object; repeated keys, bad UTF-8 and nesting deeper than
 * 64 are LS_INVALID. Free *out with json_decref. */
ls_status ls_json_file_read(json_t **out, const char *path, ls_error *error) LS_MUST_CHECK;

/* The value at a key, NULL where it is absent or null. */
const json_t *ls_json_node_find(const ls_json_node *node, const char *key);

/* Required values: absent, null or of another type is LS_INVALID. Text is borrowed. */
ls_status ls_json_node_object(const ls_json_node *node, const char *key, ls_json_node *out,
                              ls_error *error) LS_MUST_CHECK;
ls_status ls_json_node_array(const ls_json_node *node, const char *key, const json_t **out,
                             ls_error *error) LS_MUST_CHECK;
ls_status ls_json_node_text(const ls_json_node *node, const char *key, const char **out,
                            ls_error *error) LS_MUST_CHECK;
ls_status ls_json_node_bool(const ls_json_node *node, const char *key, bool *out,
                            ls_error *error) LS_MUST_CHECK;
ls_status ls_json_node_integer(const ls_json_node *node, const char *key, json_int_t low,
                               json_int_t high, json_int_t *out, ls_error *error) LS_MUST_CHECK;

/* Fail with "PATH: key 'a.b': " before the text. */
ls_status ls_json_node_fail(const ls_json_node *node, const char *key, ls_error *error,
                            ls_status code, const char *format, ...) LS_PRINTF(5, 6);

/* The node of an array's element, named "a.b[i]"; LS_INVALID unless it is an object. */
ls_status ls_json_node_element(const ls_json_node *node, const char *key, const json_t *array,
                               size_t index, ls_json_node *out, ls_error *error) LS_MUST_CHECK;

#endif

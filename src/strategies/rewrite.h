/* How strategies put ops between those that they find. */
#ifndef LS_STRATEGIES_REWRITE_H
#define LS_STRATEGIES_REWRITE_H

#include <stddef.h>

#include "program/program.h"

typedef struct ls_insertion {
    int32_t before; /* the op of the old list that it stands in front of; op_count: at the end */
    ls_op op;
} ls_insertion;

/* What is to be put in. All zero but for the program is an empty one. */
typedef struct ls_rewrite {
    ls_program *program;
    ls_insertion *insertions;
    int32_t insertion_count;
    size_t insertion_capacity;
    ls_bucket *buckets; /* those that the program has do not count */
    int32_t bucket_count;
    size_t bucket_capacity;
} ls_rewrite;

/* A new bucket of `count` values (copied), what becomes of them (NULL: changed in place) and the
 * bytes of one copy of them. *bucket becomes its index in the program. */
ls_status ls_rewrite_bucket(ls_rewrite *rewrite, const ls_value_id *values,
                            const ls_value_id *results, int32_t count, int64_t bytes,
                            int32_t *bucket, ls_error *error) LS_MUST_CHECK;

/* Put in a collective of a bucket, named printf-style. Those in front of the same op stand in the
 * order of the calls. */
ls_status ls_rewrite_insert(ls_rewrite *rewrite, int32_t before, ls_op op, int32_t bucket,
                            ls_error *error, const char *name, ...) LS_PRINTF(6, 7) LS_MUST_CHECK;

/* Give the program its new list of ops. */
ls_status ls_rewrite_finish(ls_rewrite *rewrite, ls_error *error) LS_MUST_CHECK;
void ls_rewrite_deinit(ls_rewrite *rewrite);

/* Bytes of a value without its slots: of a gradient, one partial sum. */
int64_t ls_rewrite_bytes(const ls_program *program, ls_value_id value);

#endif

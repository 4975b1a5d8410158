/* Which rows of an embedding table a step touches, and in which order each row's gradient is
 * added over the step's passes (see base/leaf_schedule.h and comm/tree.h). */
#ifndef LS_DATA_ROW_SCHEDULE_H
#define LS_DATA_ROW_SCHEDULE_H

#include <stddef.h>

#include "base/leaf_schedule.h"
#include "base/status.h"
#include "comm/tree.h"

/* Built once per step for one table, then asked for each pass in turn. All memory is taken when it
 * is made, for steps of up to `token_capacity` tokens of `table_rows` rows. */
typedef struct ls_row_scheduler ls_row_scheduler;
ls_status ls_row_scheduler_new(ls_row_scheduler **out, int64_t table_rows, int64_t token_capacity,
                               ls_error *error) LS_MUST_CHECK;
void ls_row_scheduler_free(ls_row_scheduler *scheduler);

/* Start a step: the batch's tokens in order, each with its table row and its leaf (non-decreasing).
 * Afterwards `touched` lists the distinct table rows of the whole batch, ascending, the same on all
 * ranks: gradient row i belongs to table row touched[i]. */
void ls_row_scheduler_start(ls_row_scheduler *scheduler, int64_t tokens, const int32_t *table_row,
                            const int32_t *leaf);
/* Sums begin afresh: the passes from now on cover the rank's own tokens, [own_begin, own_end),
 * which are those of its leaves, `range`. */
void ls_row_scheduler_own(ls_row_scheduler *scheduler, ls_tree_range range, int64_t own_begin,
                          int64_t own_end);
int32_t ls_row_scheduler_touched(const ls_row_scheduler *scheduler, const int32_t **touched);

/* present[i * roots + r] = 1 where a token of root r's leaves has gradient row i, else 0;
 * root_of_leaf says which root each leaf lies below. */
void ls_row_scheduler_presence(const ls_row_scheduler *scheduler, const int32_t *root_of_leaf,
                               int roots, uint8_t *present);

/* The gradient row of each of the batch's tokens. */
const int32_t *ls_row_scheduler_rows(const ls_row_scheduler *scheduler);

/* in_pass[i] = 1 where one of the tokens [begin, end) has gradient row i, else 0. */
void ls_row_scheduler_in_pass(const ls_row_scheduler *scheduler, int64_t begin, int64_t end,
                              uint8_t *in_pass);

/* The schedule of the next pass, which covers the rank's tokens up to `token_end`, an index into
 * the batch's tokens (those of the schedule count from the pass's first one). Borrowed until the
 * next call. */
ls_row_schedule ls_row_scheduler_pass(ls_row_scheduler *scheduler, int64_t token_end);

#endif

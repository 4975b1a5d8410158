/* A batch of leaves cut into passes at any rows, and the sum it must give: the perfect binary tree
 * over leaf indices, walked by a plain recursion that knows no stack. */
#ifndef LS_TESTS_LEAF_PASSES_H
#define LS_TESTS_LEAF_PASSES_H

#include "base/leaf_schedule.h"

enum { MAX_LEAVES = 64, MAX_PASSES = 64, MAX_BATCH_ROWS = 512 };

typedef struct leaf_pass {
    ls_leaf_schedule schedule;
    int32_t first_row; /* of the batch; rows of the schedule count from it */
    int32_t offsets[MAX_LEAVES + 1];
    uint8_t merges[MAX_LEAVES];
} leaf_pass;

typedef struct leaf_passes {
    int count;
    leaf_pass pass[MAX_PASSES];
} leaf_passes;

/* Passes of the batch whose leaf i has leaf_rows[i] > 0 rows; a new pass begins at each of the rows
 * in `cuts`, ascending, inside the batch. */
void leaf_passes_init(leaf_passes *passes, const int32_t *leaf_rows, int leaves,
                      const int32_t *cuts, int cut_count);

/* The same for a table of `table_rows` rows, of which batch row t touches ids[t]; pass `index`
 * only. The sum of table row r lies in gradient row r. Free with row_pass_deinit. */
typedef struct row_pass {
    ls_row_schedule schedule;
    int32_t *gradient_row, *piece_begin, *token_begin, *tokens;
    uint8_t *merges, *depth, *resume, *leave_open;
} row_pass;

void row_pass_init(row_pass *pass, const leaf_passes *passes, int index, const int32_t *leaf_rows,
                   int leaves, const int32_t *ids, int32_t table_rows);
void row_pass_deinit(row_pass *pass);

/* The chain of one leaf: out[e] over the rows begin .. end - 1 of the batch; false when no row of
 * the leaf counts. */
typedef bool leaf_chain(const void *context, float *out, int64_t begin, int64_t end);

/* out[0 .. columns - 1] by the tree; false when no leaf counts. */
bool leaf_tree_sum(float *out, int64_t columns, const int32_t *leaf_rows, int leaves,
                   leaf_chain *chain, const void *context);

#endif

/* Dropout masks, LS_LANES Philox blocks at a time; equal to base/random.h word for word. */
#ifndef LS_KERNELS_DROPOUT_FACTORS_H
#define LS_KERNELS_DROPOUT_FACTORS_H

#include "kernels/kernels.h"
#include "kernels/vector.h"

/* Some elements of some rows of a mask, and where their factors go. */
typedef struct ls_mask_part {
    int64_t row, rows;    /* row .. row + rows - 1 */
    int64_t first, count; /* elements first .. first + count - 1 of each */
    int64_t stride;       /* floats between rows of the result, at least count */
} ls_mask_part;

/* What each element is multiplied by: 0 or 1 / (1 - probability), where the probability is not 0.
 * `to` is [rows][stride]; what a row has beyond `count` becomes such a factor too, or stays. */
void ls_dropout_factors__ref(float *to, const ls_dropout *dropout, const ls_mask_part *part);
void ls_dropout_factors__avx2(float *to, const ls_dropout *dropout, const ls_mask_part *part);
void ls_dropout_factors__avx512(float *to, const ls_dropout *dropout, const ls_mask_part *part);

#endif

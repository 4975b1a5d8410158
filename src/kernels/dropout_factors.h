/* Dropout masks, LS_LANES Philox blocks at a time; equal to base/random.h word for word. */
#ifndef LS_KERNELS_DROPOUT_FACTORS_H
#define LS_KERNELS_DROPOUT_FACTORS_H

#include "kernels/kernels.h"
#include "kernels/vector.h"

/* What the elements first .. first + count - 1 of mask row `row` are multiplied by: 0 or
 * 1 / (1 - probability). Needs probability > 0; no alignment of `first` or `to` is asked for. */
void ls_dropout_factors__ref(float *to, const ls_dropout *dropout, int64_t row, int64_t first,
                             int64_t count);
void ls_dropout_factors__avx2(float *to, const ls_dropout *dropout, int64_t row, int64_t first,
                              int64_t count);
void ls_dropout_factors__avx512(float *to, const ls_dropout *dropout, int64_t row, int64_t first,
                                int64_t count);

#endif

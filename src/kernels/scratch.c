/* How much scratch memory the kernels of this set need. */
#include "kernels/scratch.h"

#include "kernels/functions.h"

size_t LS_KERNEL(scratch_bytes)(const ls_kernel_limits *limits)
{
    size_t gemm = sizeof(gemm_scratch);
    size_t weight_gradient = (size_t)(STACK_FLOATS + KEPT_FLOATS + right_floats(limits->rows) +
                                      left_floats(limits->rows)) *
                             sizeof(float);
    int64_t length = limits->sequence_length;
    size_t attention = gemm + (size_t)(2 * QUERY_BLOCK * round_up(length, 16) +
                                       MASK_ROWS * round_up(length, MASK_GROUP)) *
                                  sizeof(float);
    size_t most = gemm > weight_gradient ? gemm : weight_gradient;
    return CACHE_LINE + (most > attention ? most : attention);
}

/* Times one matrix product of a training step on a device, as the executor runs it. */
#ifndef LS_ENGINE_PRODUCT_BENCH_H
#define LS_ENGINE_PRODUCT_BENCH_H

#include "devices/device.h"

typedef struct ls_product {
    ls_op_kind kind; /* LS_OP_LINEAR, LS_OP_LINEAR_INPUT_GRADIENT, LS_OP_WEIGHT_GRADIENT */
    int64_t tokens, features, depth; /* T, N, K of x [T][K] and weight [N][K] */
    int64_t leaf_tokens;             /* weight gradients: tokens of a leaf of the summation tree */
} ls_product;

/* Median FLOP/s over repetitions that take about `seconds` in all, at least five. */
ls_status ls_product_bench(ls_device *device, const ls_product *product, double seconds,
                           double *flops_per_second, ls_error *error) LS_MUST_CHECK;

#endif

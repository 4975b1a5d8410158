/* The kernel table: every numeric loop of the CPU device, one table per instruction set.
 *
 * A kernel takes pointers and sizes, works on one thread on the range it is given, takes scratch
 * memory as an argument, allocates nothing and cannot fail. Every table gives the same bits for
 * fp32; the result for a row or an output element never depends on the range it was computed in.
 * Matrices are row-major; `*_stride` counts elements between rows. Shapes use
 * T tokens, S sequences, H hidden size, N output features, K input features. */
#ifndef LS_KERNELS_KERNELS_H
#define LS_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/activation.h"
#include "base/leaf_schedule.h"
#include "base/random.h"
#include "base/status.h"

/* Dropout mask of rows: row r, element e is kept when
 * ls_uniform(philox(key, {samples[r], site, positions[r], e / 4}).word[e % 4]) >= probability,
 * and scaled by 1 / (1 - probability). probability 0: everything is kept, nothing is drawn. */
typedef struct ls_dropout {
    float probability;
    ls_philox_key key;
    uint32_t site;
    const uint32_t *samples;  /* [rows] sample id of each row */
    const int32_t *positions; /* [rows] position inside the sample; NULL: 0 */
} ls_dropout;

/* How large the pieces of operands are that products keep in the near caches: of no result, only of
 * its time. */
typedef struct ls_cache_blocks {
    int64_t depth, floats;   /* gemm: most of a packed block of B */
    int64_t rows_in_place;   /* gemm: for at most so many rows of A a B with columns side by */
    int64_t floats_in_place; /* side, of at most so many floats, is read where it lies */
    int32_t tokens;          /* weight_gradient: most of a block, if a piece is not longer */
    int32_t columns;         /* weight_gradient: of a group of tiles, over several blocks */
} ls_cache_blocks;

/* C[m][n] = activation(chain), chain = start, then fma(A(m,k), B(k,n), chain) for k = 0, 1, ...
 * in that order; start = bias[n], or C[m][n] with `accumulate`, or 0. One rounding a step: the bits
 * of an element depend on its own row and column only. With `slope` activation'(chain) is stored
 * there, which the backward pass multiplies by; with `factor` C[m][n] = chain * factor[m][n]. */
typedef struct ls_gemm {
    int64_t rows, columns, depth; /* M, N, K; any may be 0 */
    const float *a;
    int64_t a_row, a_depth; /* A(m,k) = a[m * a_row + k * a_depth] */
    const float *b;
    int64_t b_depth, b_column; /* B(k,n) = b[k * b_depth + n * b_column]; one of them is 1 */
    float *c;
    int64_t c_row;     /* C[m][n] = c[m * c_row + n] */
    bool accumulate;   /* not together with bias or activation */
    const float *bias; /* [N] or NULL */
    ls_activation activation;
    float *slope;                  /* as c, same stride; NULL: not wanted */
    const float *factor;           /* as c, same stride; NULL: 1; not together with an activation */
    const ls_cache_blocks *blocks; /* NULL: the largest that scratch memory has room for */
} ls_gemm;

/* G[n][k] = sum over rows t of left[t][n] * right[t][k], in the order of `schedule`: inside a
 * piece one chain of fma over t, then the stack of partial sums. slot s of G lies at
 * slots + s * slot_stride, [columns_left][columns_right] with row stride `gradient_row`. */
typedef struct ls_weight_gradient {
    const float *left; /* dY [T][*] */
    int64_t left_stride;
    const float *right; /* X [T][*] */
    int64_t right_stride;
    int64_t left_begin, left_end; /* the output rows n to compute */
    int64_t right_count;          /* output columns k: all */
    float *slots;
    int64_t slot_stride, gradient_row;
    const ls_leaf_schedule *schedule;
    const ls_cache_blocks *blocks; /* NULL: the largest that scratch memory has room for */
} ls_weight_gradient;

/* G[e] = sum over rows t of values[t][e], chains of plain additions from 0, same order; columns
 * begin .. end-1. */
typedef struct ls_column_sums {
    const float *values;
    int64_t stride;
    int64_t begin, end;
    float *slots;
    int64_t slot_stride;
    const ls_leaf_schedule *schedule;
} ls_column_sums;

/* dgamma[e] = sum_t dout[t][e] * (x[t][e] - mean[t]) * inverse_deviation[t], chains of fma;
 * dbeta[e] = sum_t dout[t][e], of additions; same order. All of [T][H] contiguous. */
typedef struct ls_layer_norm_sums {
    const float *output_gradient, *input, *mean, *inverse_deviation;
    int64_t hidden, begin, end; /* columns begin .. end-1 */
    float *gamma_slots, *beta_slots;
    int64_t slot_stride;
    const ls_leaf_schedule *schedule;
} ls_layer_norm_sums;

typedef struct ls_attention {
    const float *query;       /* [T][heads * head_size], or [S][...] with first_query_only */
    const float *key, *value; /* [T][heads * head_size] */
    float *context;           /* as query */
    float *softmax;           /* [query rows][heads][2]: row maximum and 1 / sum, for backward */
    const int32_t *offsets;   /* [S + 1] first token of each sequence */
    int64_t heads, head_size;
    float scale;           /* scores are multiplied by it: 1 / sqrt(head_size) */
    bool first_query_only; /* one query row a sequence: that of its first token */
    int64_t max_positions; /* element index of a mask draw = head * max_positions + key */
    ls_dropout dropout;    /* rows are query rows */
    /* backward only; gradients of key and value are written whole, that of query too */
    const float *context_gradient;
    float *query_gradient, *key_gradient, *value_gradient;
} ls_attention;

/* Softmax cross-entropy over [S][classes] logits, one row a sample. */
typedef struct ls_classifier_loss {
    const float *logits;
    const int32_t *labels; /* [S] 0 .. classes-1 */
    int64_t classes;
    float *loss;            /* [S] -log p(label) */
    float *probabilities;   /* [S][classes] or NULL */
    float *logits_gradient; /* [S][classes] (p - onehot) * scale, or NULL */
    float scale;            /* 1 / true batch count */
} ls_classifier_loss;

/* AdamW as Loshchilov and Hutter 2019 (decoupled decay), in PyTorch's order of operations:
 * p -= lr * decay * p; m += (1 - b1) (g - m); v = b2 v + (1 - b2) g g;
 * p -= (lr / c1) * m / (sqrt(v) / sqrt(c2) + epsilon), with g = gradient * clip_factor.
 * With `l2` Adam as Kingma and Ba 2015: the decay is part of the gradient, g += decay * p, and the
 * first line is left out. Without moments (NULL; not with `l2`, and epsilon not 0) they and the
 * gradient are zeros, and stay so: of the formula only the first line is left. */
typedef struct ls_adamw {
    float *parameter, *first_moment, *second_moment;
    const float *gradient; /* NULL: zero everywhere */
    int64_t count;
    float beta1, beta2, epsilon, weight_decay;
    float learning_rate;
    float correction1;      /* 1 - beta1^step, of the floats beta1 and beta2, as 1 - beta is */
    float correction2_root; /* sqrt(1 - beta2^step) */
    float clip_factor;
    bool l2;
} ls_adamw;

/* Sizes that bound scratch memory. */
typedef struct ls_kernel_limits {
    int64_t depth; /* largest K of a gemm */
    int64_t rows;  /* largest T */
    int64_t sequence_length, head_size;
} ls_kernel_limits;

typedef struct ls_kernels {
    const char *name; /* "ref", "avx2", "avx512" */
    int lanes;
    int64_t gemm_row_tile, gemm_column_tile; /* ranges should be cut at multiples of these */
    const ls_cache_blocks *blocks;           /* for gemm and weight_gradient on this processor */
    size_t (*scratch_bytes)(const ls_kernel_limits *limits); /* for one thread, any kernel */

    void (*gemm)(const ls_gemm *g, void *scratch);
    void (*weight_gradient)(const ls_weight_gradient *g, void *scratch);
    void (*column_sums)(const ls_column_sums *g);
    void (*layer_norm_sums)(const ls_layer_norm_sums *g);
    void (*attention_forward)(const ls_attention *a, int64_t sequence, int64_t head, void *scratch);
    void (*attention_backward)(const ls_attention *a, int64_t sequence, int64_t head,
                               void *scratch);

    /* Rows [begin, end) of [*][hidden] matrices. */
    /* sum = (word[ids[t]] + position[positions[t]]) + type[types[t]]; type may be NULL */
    void (*embedding_sum)(float *sum, const float *word, const float *position, const float *type,
                          const int32_t *ids, const int32_t *positions, const int32_t *types,
                          int64_t hidden, int64_t begin, int64_t end);
    /* sum = residual + dropout(branch), in one rounding: fma(branch, 0 or 1 / (1 - p), residual) */
    void (*residual_dropout)(float *sum, const float *residual, const float *branch, int64_t hidden,
                             const ls_dropout *dropout, int64_t begin, int64_t end);
    /* to = dropout(from); in place when to == from */
    void (*dropout)(float *to, const float *from, int64_t hidden, const ls_dropout *dropout,
                    int64_t begin, int64_t end);
    /* Mean, then variance of the centred row, 16 lanes and the fixed tree; biased variance.
     * out = (x - mean) * inverse_deviation * gamma + beta (Ba et al. 2016). */
    void (*layer_norm)(float *out, float *mean, float *inverse_deviation, const float *input,
                       const float *gamma, const float *beta, float epsilon, int64_t hidden,
                       int64_t begin, int64_t end);
    void (*layer_norm_backward)(float *input_gradient, const float *output_gradient,
                                const float *input, const float *mean,
                                const float *inverse_deviation, const float *gamma, int64_t hidden,
                                int64_t begin, int64_t end);
    /* rows of the classifier loss */
    void (*classifier_loss)(const ls_classifier_loss *loss, int64_t begin, int64_t end);
    void (*gather_rows)(float *to, const float *from, const int32_t *rows, int64_t hidden,
                        int64_t begin, int64_t end); /* to[i] = from[rows[i]] */
    void (*add_rows)(float *to, const float *from, const int32_t *rows, int64_t hidden,
                     int64_t begin, int64_t end); /* to[rows[i]] += from[i]; rows distinct */
    /* rows [begin, end) of the schedule: gradient slot rows of [*][hidden] */
    void (*embedding_gradient)(float *slots, int64_t slot_stride, const float *output_gradient,
                               int64_t hidden, const ls_row_schedule *schedule, int64_t begin,
                               int64_t end);

    /* [rows][columns] matrices, all with the same `stride`; results may be an operand's bytes.
     * out = activation(in), slope = activation'(in); slope may be NULL */
    void (*activation)(ls_activation kind, float *out, float *slope, const float *in,
                       int64_t stride, int64_t rows, int64_t columns);
    void (*multiply)(float *out, const float *a, const float *b, int64_t stride, int64_t rows,
                     int64_t columns); /* out = a * b */

    /* Flat arrays. */
    void (*adamw)(const ls_adamw *update);
    /* blocks[i] = sum of squares in double of values[1024 i .. 1024 i + 1023] (the last one may be
     * short): 16 lanes, then the fixed tree. i in [begin, end). */
    void (*squared_sums)(double *blocks, const float *values, int64_t count, int64_t begin,
                         int64_t end);
    /* The same for a table [*][hidden] of which only `rows` (ascending, `count` of them) are not
     * zero; values [count][hidden]; equal to the bit to squared_sums over the whole table. */
    void (*squared_sums_rows)(double *blocks, const float *values, const int32_t *rows,
                              int64_t count, int64_t hidden, int64_t begin, int64_t end);
    void (*ordered_sum)(const ls_ordered_sum *sum);
} ls_kernels;

/* The table for this machine: the best that CPUID and XCR0 allow, or the one that the environment
 * variable LOCKSTEP_ISA names (ref, avx2, avx512); one that the machine lacks is refused. */
ls_status ls_kernels_choose(const ls_kernels **out, ls_error *error) LS_MUST_CHECK;
/* By name, for tests and benchmarks: NULL where this machine lacks the set or the name is unknown.
 */
const ls_kernels *ls_kernels_named(const char *name);

#endif

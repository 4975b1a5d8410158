/* Dropout, residual with dropout, activations: one pass over memory each. */
#include <string.h>

#include "kernels/activation.h"
#include "kernels/dropout_factors.h"
#include "kernels/functions.h"

enum { ROWS = 4, CHUNK = 512 }; /* mask elements made at once: stay in the L1 cache */

static void draw(float factors[ROWS][CHUNK], const ls_dropout *dropout, int64_t row, int64_t rows,
                 int64_t first, int64_t count)
{
    const ls_mask_part part = {row, rows, first, count, CHUNK};
    LS_KERNEL(dropout_factors)(factors[0], dropout, &part);
}

static void add_scaled(float *to, const float *old, const float *from, const float *factors,
                       int64_t count)
{
    int64_t e = 0;
    for (; e + LS_LANES <= count; e += LS_LANES)
        vec_store(to + e, vec_fma(vec_load(from + e), vec_load(factors + e), vec_load(old + e)));
    int64_t left = count - e;
    if (left)
        vec_store_first(to + e,
                        vec_fma(vec_load_first(from + e, left), vec_load_first(factors + e, left),
                                vec_load_first(old + e, left)),
                        left);
}

static void scale(float *to, const float *from, const float *factors, int64_t count)
{
    int64_t e = 0;
    for (; e + LS_LANES <= count; e += LS_LANES)
        vec_store(to + e, vec_load(from + e) * vec_load(factors + e));
    int64_t left = count - e;
    if (left)
        vec_store_first(to + e, vec_load_first(from + e, left) * vec_load_first(factors + e, left),
                        left);
}

void LS_KERNEL(residual_dropout)(float *sum, const float *residual, const float *branch,
                                 int64_t hidden, const ls_dropout *dropout, int64_t begin,
                                 int64_t end)
{
    float factors[ROWS][CHUNK];
    bool draws = dropout->probability > 0.0f;
    if (!draws)
        for (int row = 0; row < ROWS; row++)
            for (int i = 0; i < CHUNK; i++)
                factors[row][i] = 1.0f;
    for (int64_t first = begin; first < end; first += ROWS) {
        int64_t rows = end - first < ROWS ? end - first : ROWS;
        for (int64_t start = 0; start < hidden; start += CHUNK) {
            int64_t count = hidden - start < CHUNK ? hidden - start : CHUNK;
            if (draws) draw(factors, dropout, first, rows, start, count);
            for (int64_t row = 0; row < rows; row++) {
                int64_t at = (first + row) * hidden + start;
                add_scaled(sum + at, residual + at, branch + at, factors[row], count);
            }
        }
    }
}

void LS_KERNEL(dropout)(float *to, const float *from, int64_t hidden, const ls_dropout *dropout,
                        int64_t begin, int64_t end)
{
    if (!(dropout->probability > 0.0f)) {
        if (to != from && end > begin)
            memcpy(to + begin * hidden, from + begin * hidden,
                   (size_t)((end - begin) * hidden) * sizeof *to);
        return;
    }
    float factors[ROWS][CHUNK];
    for (int64_t first = begin; first < end; first += ROWS) {
        int64_t rows = end - first < ROWS ? end - first : ROWS;
        for (int64_t start = 0; start < hidden; start += CHUNK) {
            int64_t count = hidden - start < CHUNK ? hidden - start : CHUNK;
            draw(factors, dropout, first, rows, start, count);
            for (int64_t row = 0; row < rows; row++) {
                int64_t at = (first + row) * hidden + start;
                scale(to + at, from + at, factors[row], count);
            }
        }
    }
}

/* One loop for each kind: the switches inside are resolved at compile time. What activation and
 * slope have in common is computed once. */
LS_INLINE void apply(ls_activation kind, float *out, float *slope, const float *in, int64_t stride,
                     int64_t rows, int64_t columns)
{
    for (int64_t row = 0; row < rows; row++) {
        const int64_t end = row * stride + columns;
        int64_t e = row * stride;
        for (; e + LS_LANES <= end; e += LS_LANES) {
            vec x = vec_load(in + e);
            if (slope) vec_store(slope + e, vec_activation_slope(kind, x));
            vec_store(out + e, vec_activation(kind, x));
        }
        const int64_t left = end - e;
        if (left <= 0) continue;
        vec x = vec_load_first(in + e, left);
        if (slope) vec_store_first(slope + e, vec_activation_slope(kind, x), left);
        vec_store_first(out + e, vec_activation(kind, x), left);
    }
}

#define APPLY(kind)                                                                                \
    if (slope)                                                                                     \
        apply(kind, out, slope, in, stride, rows, columns);                                        \
    else                                                                                           \
        apply(kind, out, NULL, in, stride, rows, columns)

void LS_KERNEL(activation)(ls_activation kind, float *out, float *slope, const float *in,
                           int64_t stride, int64_t rows, int64_t columns)
{
    switch (kind) {
    case LS_ACTIVATION_GELU:
        APPLY(LS_ACTIVATION_GELU);
        break;
    case LS_ACTIVATION_GELU_TANH:
        APPLY(LS_ACTIVATION_GELU_TANH);
        break;
    case LS_ACTIVATION_RELU:
        APPLY(LS_ACTIVATION_RELU);
        break;
    case LS_ACTIVATION_TANH:
        APPLY(LS_ACTIVATION_TANH);
        break;
    case LS_ACTIVATION_NONE:
        APPLY(LS_ACTIVATION_NONE);
        break;
    }
}

void LS_KERNEL(multiply)(float *out, const float *a, const float *b, int64_t stride, int64_t rows,
                         int64_t columns)
{
    for (int64_t row = 0; row < rows; row++) {
        const int64_t end = row * stride + columns;
        int64_t e = row * stride;
        for (; e + LS_LANES <= end; e += LS_LANES)
            vec_store(out + e, vec_load(a + e) * vec_load(b + e));
        const int64_t left = end - e;
        if (left > 0)
            vec_store_first(out + e, vec_load_first(a + e, left) * vec_load_first(b + e, left),
                            left);
    }
}

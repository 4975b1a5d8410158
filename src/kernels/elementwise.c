/* Dropout, residual with dropout, activations: one pass over memory each. */
#include <string.h>

#include "kernels/activation.h"
#include "kernels/dropout_factors.h"
#include "kernels/functions.h"

enum { CHUNK = 512 }; /* mask elements made at once: stays in the L1 cache */

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
    float factors[CHUNK];
    bool draws = dropout->probability > 0.0f;
    if (!draws)
        for (int i = 0; i < CHUNK; i++)
            factors[i] = 1.0f;
    for (int64_t row = begin; row < end; row++) {
        for (int64_t start = 0; start < hidden; start += CHUNK) {
            int64_t count = hidden - start < CHUNK ? hidden - start : CHUNK;
            int64_t at = row * hidden + start;
            if (draws) LS_KERNEL(dropout_factors)(factors, dropout, row, start, count);
            add_scaled(sum + at, residual + at, branch + at, factors, count);
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
    float factors[CHUNK];
    for (int64_t row = begin; row < end; row++) {
        for (int64_t start = 0; start < hidden; start += CHUNK) {
            int64_t count = hidden - start < CHUNK ? hidden - start : CHUNK;
            int64_t at = row * hidden + start;
            LS_KERNEL(dropout_factors)(factors, dropout, row, start, count);
            scale(to + at, from + at, factors, count);
        }
    }
}

/* One loop for each kind: the switch inside vec_activation is resolved at compile time. */
LS_INLINE void apply(ls_activation kind, float *out, const float *in, int64_t count)
{
    int64_t e = 0;
    for (; e + LS_LANES <= count; e += LS_LANES)
        vec_store(out + e, vec_activation(kind, vec_load(in + e)));
    if (e < count)
        vec_store_first(out + e, vec_activation(kind, vec_load_first(in + e, count - e)),
                        count - e);
}

void LS_KERNEL(activation)(ls_activation kind, float *out, const float *in, int64_t count)
{
    switch (kind) {
    case LS_ACTIVATION_GELU:
        apply(LS_ACTIVATION_GELU, out, in, count);
        break;
    case LS_ACTIVATION_GELU_TANH:
        apply(LS_ACTIVATION_GELU_TANH, out, in, count);
        break;
    case LS_ACTIVATION_RELU:
        apply(LS_ACTIVATION_RELU, out, in, count);
        break;
    case LS_ACTIVATION_TANH:
        apply(LS_ACTIVATION_TANH, out, in, count);
        break;
    case LS_ACTIVATION_NONE:
        apply(LS_ACTIVATION_NONE, out, in, count);
        break;
    }
}

LS_INLINE void apply_backward(ls_activation kind, float *in_gradient, const float *out_gradient,
                              const float *in, int64_t count)
{
    int64_t e = 0;
    for (; e + LS_LANES <= count; e += LS_LANES)
        vec_store(in_gradient + e,
                  vec_load(out_gradient + e) * vec_activation_derivative(kind, vec_load(in + e)));
    int64_t left = count - e;
    if (left)
        vec_store_first(in_gradient + e,
                        vec_load_first(out_gradient + e, left) *
                            vec_activation_derivative(kind, vec_load_first(in + e, left)),
                        left);
}

void LS_KERNEL(activation_backward)(ls_activation kind, float *in_gradient,
                                    const float *out_gradient, const float *in, int64_t count)
{
    switch (kind) {
    case LS_ACTIVATION_GELU:
        apply_backward(LS_ACTIVATION_GELU, in_gradient, out_gradient, in, count);
        break;
    case LS_ACTIVATION_GELU_TANH:
        apply_backward(LS_ACTIVATION_GELU_TANH, in_gradient, out_gradient, in, count);
        break;
    case LS_ACTIVATION_RELU:
        apply_backward(LS_ACTIVATION_RELU, in_gradient, out_gradient, in, count);
        break;
    case LS_ACTIVATION_TANH:
        apply_backward(LS_ACTIVATION_TANH, in_gradient, out_gradient, in, count);
        break;
    case LS_ACTIVATION_NONE:
        apply_backward(LS_ACTIVATION_NONE, in_gradient, out_gradient, in, count);
        break;
    }
}

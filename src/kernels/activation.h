/* Activations of a vector and their derivatives: shared by the activation kernels and the tile of
 * the matrix product, which must agree to the bit. Finite arguments give finite results. */
#ifndef LS_KERNELS_ACTIVATION_H
#define LS_KERNELS_ACTIVATION_H

#include "kernels/kernels.h"
#include "kernels/math.h"

#define ROOT_HALF 0x1.6a09e6p-1f            /* sqrt(1/2) */
#define ROOT_TWO_OVER_PI 0x1.988454p-1f     /* sqrt(2 / pi) */
#define ONE_OVER_ROOT_TWO_PI 0x1.988454p-2f /* 1 / sqrt(2 pi) */
#define GELU_TANH_CUBIC 0.044715f

static inline vec vec_gelu(vec x)
{
    const vec half = vec_set(0.5f);
    return x * vec_fma(vec_erf(x * vec_set(ROOT_HALF)), half, half);
}

/* Phi(x) + x phi(x) */
static inline vec vec_gelu_slope(vec x)
{
    const vec half = vec_set(0.5f);
    vec z = x * vec_set(ROOT_HALF);
    vec e = vec_exp(-(z * z));
    vec cumulative = vec_fma(vec_erf_with(z, e), half, half);
    return vec_fma(x, e * vec_set(ONE_OVER_ROOT_TWO_PI), cumulative);
}

/* u = sqrt(2 / pi) (x + 0.044715 x^3) */
static inline vec gelu_tanh_argument(vec x)
{
    vec cubic = vec_fma(x * x, vec_set(GELU_TANH_CUBIC), vec_set(1.0f));
    return x * vec_set(ROOT_TWO_OVER_PI) * cubic;
}

static inline vec vec_gelu_tanh(vec x)
{
    const vec half = vec_set(0.5f);
    return x * vec_fma(vec_tanh(gelu_tanh_argument(x)), half, half);
}

/* (1 + tanh u) / 2 + x (1 - tanh^2 u) u' / 2 */
static inline vec vec_gelu_tanh_slope(vec x)
{
    const vec half = vec_set(0.5f);
    /* From 16 on tanh is 1 to the last bit; the bound keeps x^2 finite. */
    vec bounded = vec_max(vec_set(-16.0f), vec_min(vec_set(16.0f), x));
    vec t = vec_tanh(gelu_tanh_argument(bounded));
    vec slope = vec_fma(bounded * bounded, vec_set(3.0f * GELU_TANH_CUBIC), vec_set(1.0f));
    slope = slope * vec_set(ROOT_TWO_OVER_PI);
    vec rest = vec_fma(-t, t, vec_set(1.0f)) * slope;
    return vec_fma(bounded * half, rest, vec_fma(t, half, half));
}

static inline vec vec_relu(vec x)
{
    /* NaN stays NaN. The addition flushes denormals, which vec_max does on some sets only. */
    return vec_max(vec_set(0.0f), x) + vec_set(0.0f);
}

static inline vec vec_relu_slope(vec x)
{
    return vec_select_less(vec_set(0.0f), x, vec_set(1.0f), vec_set(0.0f));
}

static inline vec vec_tanh_slope(vec x)
{
    vec t = vec_tanh(x);
    return vec_fma(-t, t, vec_set(1.0f));
}

/* For a `kind` that the caller's loop holds constant. */
LS_INLINE vec vec_activation(ls_activation kind, vec x)
{
    switch (kind) {
    case LS_ACTIVATION_GELU:
        return vec_gelu(x);
    case LS_ACTIVATION_GELU_TANH:
        return vec_gelu_tanh(x);
    case LS_ACTIVATION_RELU:
        return vec_relu(x);
    case LS_ACTIVATION_TANH:
        return vec_tanh(x);
    case LS_ACTIVATION_NONE:
        break;
    }
    return x;
}

LS_INLINE vec vec_activation_slope(ls_activation kind, vec x)
{
    switch (kind) {
    case LS_ACTIVATION_GELU:
        return vec_gelu_slope(x);
    case LS_ACTIVATION_GELU_TANH:
        return vec_gelu_tanh_slope(x);
    case LS_ACTIVATION_RELU:
        return vec_relu_slope(x);
    case LS_ACTIVATION_TANH:
        return vec_tanh_slope(x);
    case LS_ACTIVATION_NONE:
        break;
    }
    return vec_set(1.0f);
}

#endif

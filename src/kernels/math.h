/* exp, log, tanh and erf of a vector, our own: the C library's bits change with its version.
 *
 * Built from +, -, *, /, fma, compare and integer steps only, so every instruction set gives the
 * same bits. Errors stay below, in units in the last place: exp 1, log 1, tanh 1.5, erf 1.25
 * (tests/unit/kernels/test_math.c). NaN gives NaN. Denormal arguments count as zero,
 * denormal results are zero. Coefficients: tools/math/fit_polynomials.py. */
#ifndef LS_KERNELS_MATH_H
#define LS_KERNELS_MATH_H

#include <float.h>

#include "kernels/polynomials.h"
#include "kernels/vector.h"

/* c[0] + c[1] x + ... + c[count - 1] x^(count - 1), by Horner's rule. */
LS_INLINE vec vec_polynomial(const float *c, int count, vec x)
{
    vec sum = vec_set(c[count - 1]);
#pragma GCC unroll 16
    for (int i = count - 2; i >= 0; i--)
        sum = vec_fma(sum, x, vec_set(c[i]));
    return sum;
}

static inline vec vec_abs(vec a)
{
    return vec_from_bits(vec_bits(a) & ivec_set(0x7fffffff));
}

/* The size of `a`, which must not be negative, with the sign of `sign`. */
static inline vec vec_with_sign(vec a, vec sign)
{
    return vec_from_bits(vec_bits(a) | (vec_bits(sign) & ivec_set(INT32_MIN)));
}

/* exp(x) = 2^n exp(r), n = round(x / ln 2). Zero below ln(FLT_MIN), infinite above ln(FLT_MAX). */
static inline vec vec_exp(vec x)
{
    /* Adding 1.5 * 2^23 rounds to an integer, which the low bits of the sum then hold. */
    const vec shift = vec_set(0x1.8p23f);
    vec shifted = vec_fma(x, vec_set(LOG2_E), shift);
    vec n = shifted - shift;
    vec r = vec_fma(n, vec_set(-LN2_HIGH), x);
    r = vec_fma(n, vec_set(-LN2_LOW), r);
    vec tail = vec_fma(r * r, vec_polynomial(exp_polynomial, 5, r), r);
    vec value = tail + vec_set(1.0f);
    /* Times 2^n: n goes straight into the exponent, whose range ends where the limits below are. */
    uvec bits = (uvec)vec_bits(value) + ((uvec)vec_bits(shifted) << 23);
    value = vec_from_bits((ivec)bits);
    value = vec_select_less(x, vec_set(-0x1.5d589ep6f), vec_set(0.0f), value);
    return vec_select_less(x, vec_set(0x1.62e43p6f), value, x * vec_set(__builtin_inff()));
}

/* log(x) = e ln 2 + log(1 + f), sqrt(1/2) <= 1 + f < sqrt(2). -inf at 0, NaN below. */
static inline vec vec_log(vec x)
{
    const ivec root_half = ivec_set(0x3f3504f3);
    uvec bits = (uvec)vec_bits(x) + (uvec)(ivec_set(0x3f800000) - root_half);
    vec e = vec_from_int((ivec)(bits >> 23) - ivec_set(127));
    vec f = vec_from_bits((ivec)(bits & (uvec)ivec_set(0x7fffff)) + root_half) - vec_set(1.0f);
    vec square = f * f;
    vec tail = f * square * vec_polynomial(log_polynomial, 9, f);
    tail = vec_fma(e, vec_set(LN2_LOW), tail);
    tail = vec_fma(square, vec_set(-0.5f), tail);
    vec value = vec_fma(e, vec_set(LN2_HIGH), f + tail);
    value = vec_select_less(x, vec_set(__builtin_inff()), value, x);
    vec below = vec_select_less(vec_set(-FLT_MIN), x, vec_set(-__builtin_inff()),
                                vec_set(__builtin_nanf("")));
    return vec_select_less(x, vec_set(FLT_MIN), below, value);
}

/* x + x^3 P(x^2) near zero, 1 - 2 / (exp(2 |x|) + 1) beyond. */
static inline vec vec_tanh(vec x)
{
    const vec one = vec_set(1.0f);
    vec a = vec_abs(x);
    vec s = a * a;
    vec small = vec_fma(a * s, vec_polynomial(tanh_polynomial, 5, s), a);
    vec large = one - vec_set(2.0f) / (vec_exp(a + a) + one);
    return vec_with_sign(vec_select_less(a, vec_set(0.625f), small, large), x);
}

/* erf(x), where the caller has exp_minus_square = exp(-x^2) at hand. */
static inline vec vec_erf_with(vec x, vec exp_minus_square)
{
    vec a = vec_abs(x);
    vec s = a * a;
    vec small = vec_fma(a, vec_polynomial(erf_polynomial, 7, s), a);
    vec bounded = vec_min(vec_set(4.0f), a); /* erf is 1 to the last bit from 3.92 on */
    vec large =
        vec_fma(vec_polynomial(erfc_polynomial, 8, bounded), -exp_minus_square, vec_set(1.0f));
    return vec_with_sign(vec_select_less(a, vec_set(1.0f), small, large), x);
}

static inline vec vec_erf(vec x)
{
    return vec_erf_with(x, vec_exp(-(x * x)));
}

#endif

/* Made by tools/math/fit_polynomials.py: coefficients of math.h, constant term first.
 * Errors are those of the exact polynomial, relative unless said otherwise. */
#ifndef LS_KERNELS_POLYNOMIALS_H
#define LS_KERNELS_POLYNOMIALS_H

/* clang-format off */
#define LN2_HIGH 0x1.62e4p-1f
#define LN2_LOW 0x1.7f7d1cp-20f
#define LOG2_E 0x1.715476p+0f

/* exp(r) = 1 + r + r^2 P(r), |r| <= ln(2) / 2: error 3.5e-9. */
static const float exp_polynomial[5] = {
    0x1.fffffcp-2f,
    0x1.555482p-3f,
    0x1.555826p-5f,
    0x1.12449p-7f,
    0x1.6afddep-10f,
};

/* log(1 + f) = f - f^2 / 2 + f^3 P(f), sqrt(1/2) <= 1 + f <= sqrt(2): error 2.1e-8. */
static const float log_polynomial[9] = {
    0x1.555546p-2f,
    -0x1.0000c8p-2f,
    0x1.99a6bp-3f,
    -0x1.550a7cp-3f,
    0x1.22c9b2p-3f,
    -0x1.035792p-3f,
    0x1.f7badap-4f,
    -0x1.aabe7cp-4f,
    0x1.6bebeap-5f,
};

/* tanh(x) = x + x s P(s), s = x^2, |x| <= 0.625: error 4.2e-9. */
static const float tanh_polynomial[5] = {
    -0x1.555534p-2f,
    0x1.11075ep-3f,
    -0x1.b842c4p-5f,
    0x1.524c4p-6f,
    -0x1.767a14p-8f,
};

/* erf(x) = x + x P(s), s = x^2, |x| <= 1: error 1.3e-9. */
static const float erf_polynomial[7] = {
    0x1.06eba8p-3f,
    -0x1.81274p-2f,
    0x1.ce2d5p-4f,
    -0x1.b7fe9p-6f,
    0x1.542e1p-8f,
    -0x1.a50b0ep-11f,
    0x1.4c3436p-14f,
};

/* erfc(x) = exp(-x^2) P(x), 1 <= x <= 4, absolute: error 1.4e-8. */
static const float erfc_polynomial[8] = {
    0x1.f8e5aap-1f,
    -0x1.0c5784p+0f,
    0x1.95cefp-1f,
    -0x1.ba0a26p-2f,
    0x1.50254p-3f,
    -0x1.4fdb68p-5f,
    0x1.898da8p-8f,
    -0x1.97c7e6p-12f,
};

/* clang-format on */

#endif

#include "base/scalar_math.h"

#include <string.h>

/* ln 2 in two parts: the first has 32 bits, so that its product with an exponent is exact. */
#define LN2_HIGH 0x1.62e42feep-1
#define LN2_LOW 0x1.a39ef35793c76p-33
#define LOG2_E 0x1.71547652b82fep+0
#define ROUNDING_SHIFT 0x1.8p52 /* added and taken away, rounds to an integer */

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* 2^n, -1022 <= n <= 1023 */
static double power_of_two(int64_t n)
{
    return from_bits((uint64_t)(n + 1023) << 52);
}

static double round_to_integer(double x)
{
    return (x + ROUNDING_SHIFT) - ROUNDING_SHIFT;
}

/* exp(x + tail), |tail| tiny beside x. */
static double exp_with_tail(double x, double tail)
{
    if (x != x) return x;
    if (x > 709.8) return __builtin_inf();
    if (x < -745.2) return 0.0;
    double n = round_to_integer(x * LOG2_E);
    double r = ((x - n * LN2_HIGH) - n * LN2_LOW) + tail;
    /* Taylor's series: |r| <= 0.35, and the first term left out is below 2e-17. */
    double sum = 0.0;
    for (int k = 13; k >= 2; k--)
        sum = (sum + 1.0) * r / (double)k;
    double value = 1.0 + (r + r * sum);
    int64_t whole = (int64_t)n, half = whole / 2;
    return value * power_of_two(half) * power_of_two(whole - half);
}

double ls_math_exp(double x)
{
    return exp_with_tail(x, 0.0);
}

/* a * b = high + low exactly (Dekker 1971), for values far from overflow. */
static double multiply_exactly(double a, double b, double *low)
{
    const double split = 0x1.0000002p27;
    double a_part = a * split, b_part = b * split;
    double a_high = a_part - (a_part - a), b_high = b_part - (b_part - b);
    double a_low = a - a_high, b_low = b - b_high;
    double product = a * b;
    *low = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
    return product;
}

/* log(x) = high + low for finite x > 0, to about 2^-58 of its size.
 * x = 2^e m, sqrt(1/2) < m <= sqrt(2); log m = 2 atanh(s), s = (m - 1) / (m + 1). */
static double log_in_two(double x, double *low)
{
    double exponent = 0.0;
    if (x < 0x1p-1022) {
        x *= 0x1p54;
        exponent = -54.0;
    }
    uint64_t bits = bits_of(x);
    exponent += (double)((int64_t)(bits >> 52) - 1023);
    double m = from_bits((bits & 0xfffffffffffff) | (uint64_t)1023 << 52);
    if (m > 0x1.6a09e667f3bcdp0) {
        m *= 0.5;
        exponent += 1.0;
    }
    /* s + s_low: the quotient and what its rounding lost. */
    double above = m - 1.0, below = m + 1.0;
    double part = below - m, below_low = (m - (below - part)) + (1.0 - part);
    double s = above / below, product_low;
    double product = multiply_exactly(s, below, &product_low);
    double s_low = (((above - product) - product_low) - s * below_low) / below;
    /* 2 atanh(s) = 2 s + 2 s (s^2 / 3 + s^4 / 5 + ...), s^2 < 0.0295 */
    double square = s * s, series = 0.0;
    for (int k = 11; k >= 1; k--)
        series = (series + 1.0 / (double)(2 * k + 1)) * square;
    double large = exponent * LN2_HIGH, small = 2.0 * s;
    double high = large + small;
    double back = high - large;
    double lost = (large - (high - back)) + (small - back);
    double rest = lost + (2.0 * s * series + (exponent * LN2_LOW + 2.0 * s_low));
    double sum = high + rest;
    *low = (high - sum) + rest;
    return sum;
}

double ls_math_log(double x)
{
    if (x != x || x == __builtin_inf()) return x;
    if (x < 0.0) return __builtin_nan("");
    if (x == 0.0) return -__builtin_inf();
    double low;
    return log_in_two(x, &low);
}

double ls_math_pow(double x, double y)
{
    if (y == 0.0 || x == 1.0) return 1.0;
    if (x != x || y != y || x < 0.0) return __builtin_nan("");
    if (x == 0.0 || x == __builtin_inf()) return (x == 0.0) == (y > 0.0) ? 0.0 : __builtin_inf();
    double low;
    double high = log_in_two(x, &low);
    double estimate = y * high;
    if (estimate > 800.0) return __builtin_inf();
    if (estimate < -800.0) return 0.0;
    double product_low;
    double product = multiply_exactly(y, high, &product_low);
    return exp_with_tail(product, product_low + y * low);
}

double ls_math_cos(double x)
{
    /* pi / 2 in three parts of 33 bits: their products with n are exact. */
    const double half_pi[3] = {0x1.921fb544p+0, 0x1.0b4611a6p-34, 0x1.3198a2e037073p-69};
    if (!(x >= -1e6 && x <= 1e6)) return __builtin_nan("");
    double n = round_to_integer(x * 0x1.45f306dc9c883p-1); /* 2 / pi */
    double r = ((x - n * half_pi[0]) - n * half_pi[1]) - n * half_pi[2];
    /* Taylor's series of the cosine or the sine, |r| <= pi / 4. */
    double square = r * r, cosine = 0.0, sine = 0.0;
    for (int k = 18; k >= 2; k -= 2) {
        cosine = (1.0 - cosine) * square / (double)(k * (k - 1));
        sine = (1.0 - sine) * square / (double)(k * (k + 1));
    }
    cosine = 1.0 - cosine;
    sine = r - r * sine;
    switch ((int64_t)n & 3) {
    case 0:
        return cosine;
    case 1:
        return -sine;
    case 2:
        return -cosine;
    default:
        return sine;
    }
}

/* 53 bits of two words. */
static double fraction(uint32_t high, uint32_t low)
{
    return (double)(((uint64_t)high << 32 | low) >> 11);
}

double ls_normal(ls_philox_key key, ls_philox_block counter)
{
    ls_philox_block words = ls_philox(key, counter);
    double radius = (fraction(words.word[0], words.word[1]) + 1.0) * 0x1p-53; /* (0, 1] */
    double angle = fraction(words.word[2], words.word[3]) * 0x1p-53;          /* [0, 1) */
    return __builtin_sqrt(-2.0 * ls_math_log(radius)) * ls_math_cos(angle * 0x1.921fb54442d18p+2);
}

void ls_normal_fill(float *values, int64_t count, double deviation, ls_philox_key key,
                    uint32_t stream)
{
    for (int64_t i = 0; i < count; i++) {
        ls_philox_block counter = {{(uint32_t)i, (uint32_t)(i >> 32), stream, 0}};
        values[i] = (float)(deviation * ls_normal(key, counter));
    }
}

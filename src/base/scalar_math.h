/* Double-precision functions for the host's side of the numeric path: schedules, bias corrections,
 * initial weights. Not the C library's, whose bits change with its version; only +, -, *, /, sqrt
 * and integer steps, each rounded once, so the bits are the same everywhere.
 *
 * Relative errors are below 1e-15 (tests/unit/base/test_scalar_math.c), those of ls_math_cos
 * absolute. NaN gives NaN. */
#ifndef LS_BASE_SCALAR_MATH_H
#define LS_BASE_SCALAR_MATH_H

#include <stdint.h>

#include "base/random.h"

double ls_math_exp(double x); /* 0 below -745.2, infinite above 709.8 */
double ls_math_log(double x); /* -inf at 0, NaN below */

/* x^y for x >= 0 (NaN below): 1 where y is 0 or x is 1, as C's pow. */
double ls_math_pow(double x, double y);

double ls_math_cos(double x); /* |x| <= 1e6, NaN beyond */

/* A draw from the standard normal distribution, from one Philox block (Box and Muller 1958). */
double ls_normal(ls_philox_key key, ls_philox_block counter);

/* values[i] = deviation * ls_normal(key, {i low, i high, stream, 0}), rounded to float. */
void ls_normal_fill(float *values, int64_t count, double deviation, ls_philox_key key,
                    uint32_t stream);

#endif

/* base/scalar_math: against the C library's long double, and the moments of normal draws. */
#include "testing.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/scalar_math.h"

/* Fails unless |ours - wanted| <= limit * max(|wanted|, floor). */
static void check_near(const char *what, double x, double ours, long double wanted, double limit,
                       double smallest)
{
    long double scale = fabsl(wanted) > smallest ? fabsl(wanted) : (long double)smallest;
    long double error = fabsl((long double)ours - wanted);
    if (!(error <= (long double)limit * scale))
        fail_msg("%s(%.17g) = %.17g, wanted %.20Lg: error %.3Lg", what, x, ours, wanted, error);
}

static void exp_and_log_are_accurate(void **state)
{
    (void)state;
    for (int i = -70000; i <= 70000; i++) {
        double x = i * 0.010137;
        check_near("exp", x, ls_math_exp(x), expl((long double)x), 4e-16, DBL_MIN);
        double y = exp(x);
        if (isfinite(y) && y > 0)
            check_near("log", y, ls_math_log(y), logl((long double)y), 3e-16, 0.0);
        double near = 1.0 + i * 1e-7;
        check_near("log", near, ls_math_log(near), logl((long double)near), 3e-16, 0.0);
    }
}

static void pow_is_accurate(void **state)
{
    (void)state;
    const double bases[] = {0.9, 0.999, 0.99999, 1.0000001, 2.0, 10.0, 0.1, 3.7e-5, 12345.678};
    for (size_t b = 0; b < sizeof bases / sizeof bases[0]; b++)
        for (int step = -300; step < 3000; step++) {
            double y = step < 0 ? step * 0.3 : step < 2000 ? step : step * 37.5;
            long double wanted = powl((long double)bases[b], (long double)y);
            if (wanted > (long double)DBL_MAX || wanted < (long double)DBL_MIN) continue;
            double limit = fabs(y * log(bases[b])) < 100 ? 1e-15 : 8e-15;
            check_near("pow", y, ls_math_pow(bases[b], y), wanted, limit, 0.0);
        }
}

static void cos_is_accurate(void **state)
{
    (void)state;
    for (int i = -200000; i <= 200000; i++) {
        double x = i < 100000 ? i * 0.000123 : i * 3.77;
        check_near("cos", x, ls_math_cos(x), cosl((long double)x), 3e-16, 1.0);
    }
}

static void limits_are_those_of_the_functions(void **state)
{
    (void)state;
    assert_true(ls_math_exp(0.0) == 1.0 && ls_math_exp(1000.0) == INFINITY &&
                ls_math_exp(-1000.0) == 0.0);
    assert_true(ls_math_exp(-INFINITY) == 0.0 && isnan(ls_math_exp(NAN)));
    assert_true(ls_math_log(1.0) == 0.0 && ls_math_log(0.0) == -INFINITY &&
                ls_math_log(INFINITY) == INFINITY);
    assert_true(isnan(ls_math_log(-1.0)) && isnan(ls_math_log(NAN)));
    check_near("log", 5e-324, ls_math_log(5e-324), logl((long double)5e-324), 1e-15, 0.0);
    assert_true(ls_math_pow(0.0, 0.0) == 1.0 && ls_math_pow(0.0, 2.0) == 0.0 &&
                ls_math_pow(0.0, -1.0) == INFINITY);
    assert_true(ls_math_pow(INFINITY, 2.0) == INFINITY && ls_math_pow(INFINITY, -2.0) == 0.0);
    assert_true(ls_math_pow(0.5, 1e300) == 0.0 && ls_math_pow(2.0, INFINITY) == INFINITY);
    assert_true(isnan(ls_math_pow(-1.0, 0.5)) && isnan(ls_math_pow(NAN, 1.0)) &&
                ls_math_pow(1.0, NAN) == 1.0);
    assert_true(ls_math_cos(0.0) == 1.0 && isnan(ls_math_cos(INFINITY)) && isnan(ls_math_cos(NAN)));
    assert_true(isnan(ls_math_cos(2e6)));
}

static void normal_draws_have_the_right_moments(void **state)
{
    (void)state;
    enum { COUNT = 200000 };
    float *values = malloc(COUNT * sizeof *values);
    assert_non_null(values);
    ls_normal_fill(values, COUNT, 0.02, (ls_philox_key){{42, 7}}, 3);
    double moment[5] = {0};
    int64_t beyond_two = 0;
    for (int i = 0; i < COUNT; i++) {
        double z = (double)values[i] / 0.02;
        for (int k = 1; k <= 4; k++)
            moment[k] += pow(z, k) / COUNT;
        beyond_two += fabs(z) > 2.0;
    }
    assert_true(fabs(moment[1]) < 0.01 && fabs(moment[2] - 1.0) < 0.02);
    assert_true(fabs(moment[3]) < 0.05 && fabs(moment[4] - 3.0) < 0.1);
    assert_true(fabs((double)beyond_two / COUNT - 0.0455) < 0.003);
    /* A value is named by its index: filling less gives the same beginning. */
    float fewer[10];
    ls_normal_fill(fewer, 10, 0.02, (ls_philox_key){{42, 7}}, 3);
    assert_memory_equal(fewer, values, sizeof fewer);
    free(values);
}

/* Golden bits: a compiler or machine that gives others breaks saved runs. */
static void bits_are_fixed(void **state)
{
    (void)state;
    uint64_t hash = 14695981039346656037u;
    for (int i = 1; i <= 20000; i++) {
        ls_philox_block counter = {{(uint32_t)i, 0, 0, 0}};
        double values[] = {ls_math_exp(i * 0.0337 - 300.0), ls_math_log(i * 0.7),
                           ls_math_pow(0.999, i), ls_math_cos(i * 0.11),
                           ls_normal((ls_philox_key){{1, 2}}, counter)};
        for (size_t k = 0; k < sizeof values / sizeof values[0]; k++) {
            uint64_t bits;
            memcpy(&bits, &values[k], sizeof bits);
            hash = (hash ^ bits) * 1099511628211u;
        }
    }
    assert_int_equal(hash, 0x399ffbd633dc5d92u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_and_log_are_accurate),
        cmocka_unit_test(pow_is_accurate),
        cmocka_unit_test(cos_is_accurate),
        cmocka_unit_test(limits_are_those_of_the_functions),
        cmocka_unit_test(normal_draws_have_the_right_moments),
        cmocka_unit_test(bits_are_fixed),
    };
    return cmocka_run_group_tests_name("base/scalar_math", tests, NULL, NULL);
}

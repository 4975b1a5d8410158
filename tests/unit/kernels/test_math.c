/* kernels/math.h: errors in units in the last place against the C library's long double, and the
 * limits. This file sees the reference's one-lane vectors; that other sets give the same bits is
 * checked through the activations (test_flat.c) and the loss (test_rows.c). */
#include "testing.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/activation.h"

/* |ours - wanted| in units of the last place of `wanted`; 0 where both overflow or are tiny. */
static double error_in_ulp(float ours, long double wanted)
{
    if (isnan(wanted)) return isnan(ours) ? 0.0 : INFINITY;
    if (fabsl(wanted) > (long double)FLT_MAX * (1.0L + 0x1p-25L)) /* rounds to infinity */
        return (long double)ours == (wanted > 0 ? HUGE_VALL : -HUGE_VALL) ? 0.0 : INFINITY;
    if (fabsl(wanted) < (long double)FLT_MIN) /* may be flushed */
        return fabsf(ours) <= FLT_MIN ? 0.0 : INFINITY;
    int exponent;
    frexpl(wanted, &exponent);
    return (double)(fabsl((long double)ours - wanted) / ldexpl(1.0L, exponent - FLT_MANT_DIG));
}

typedef struct sweep {
    const char *name;
    float (*ours)(float);
    long double (*wanted)(long double);
    double limit;
} sweep;

static float ours_exp(float x)
{
    return vec_exp(x);
}
static float ours_log(float x)
{
    return vec_log(x);
}
static float ours_tanh(float x)
{
    return vec_tanh(x);
}
static float ours_erf(float x)
{
    return vec_erf(x);
}

static const sweep sweeps[] = {
    {"exp", ours_exp, expl, 1.0},
    {"log", ours_log, logl, 1.0},
    {"tanh", ours_tanh, tanhl, 1.5},
    {"erf", ours_erf, erfl, 1.25},
};

static void errors_stay_in_their_bounds(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sweeps / sizeof sweeps[0]; i++) {
        const sweep *s = &sweeps[i];
        double worst = 0.0;
        float worst_at = 0.0f;
        for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 1021) {
            uint32_t word = (uint32_t)bits;
            float x;
            memcpy(&x, &word, sizeof x);
            if (x != 0.0f && fabsf(x) < FLT_MIN) continue;
            double error = error_in_ulp(s->ours(x), s->wanted((long double)x));
            if (error > worst) worst = error, worst_at = x;
        }
        print_message("%s: largest error %.3f ulp, at %a\n", s->name, worst, (double)worst_at);
        assert_true(worst <= s->limit);
    }
}

/* Where a branch or a limit ends, every float counts. */
static void errors_stay_in_their_bounds_at_borders(void **state)
{
    (void)state;
    const float borders[] = {1.0f,      0.625f,      4.0f,        88.72284f, 87.33654f,
                             0.707107f, 1.41421356f, 0.34657359f, 9.010913f, 3.919f};
    for (size_t i = 0; i < sizeof sweeps / sizeof sweeps[0]; i++)
        for (size_t b = 0; b < sizeof borders / sizeof borders[0]; b++)
            for (int sign = -1; sign <= 1; sign += 2) {
                float x = borders[b];
                for (int step = 0; step < 3000; step++)
                    x = nextafterf(x, 0.0f);
                for (int step = 0; step < 6000; step++, x = nextafterf(x, 1e30f)) {
                    float at = (float)sign * x;
                    double error = error_in_ulp(sweeps[i].ours(at), sweeps[i].wanted(at));
                    if (!(error <= sweeps[i].limit))
                        fail_msg("%s(%a): error %.3f ulp", sweeps[i].name, (double)at, error);
                }
            }
}

static void limits_are_those_of_the_functions(void **state)
{
    (void)state;
    assert_true(vec_exp(0.0f) == 1.0f && vec_exp(-0.0f) == 1.0f);
    assert_true(vec_exp(INFINITY) == INFINITY && vec_exp(FLT_MAX) == INFINITY);
    assert_true(vec_exp(-INFINITY) == 0.0f && vec_exp(-FLT_MAX) == 0.0f);
    assert_true(vec_exp(-88.0f) == 0.0f);
    assert_true(vec_log(1.0f) == 0.0f && vec_log(0.0f) == -INFINITY && vec_log(-0.0f) == -INFINITY);
    assert_true(vec_log(INFINITY) == INFINITY && isnan(vec_log(-1.0f)));
    assert_true(isnan(vec_log(-INFINITY)));
    assert_true(vec_tanh(INFINITY) == 1.0f && vec_tanh(-INFINITY) == -1.0f);
    assert_true(vec_tanh(FLT_MAX) == 1.0f && vec_tanh(-FLT_MAX) == -1.0f);
    assert_true(vec_erf(INFINITY) == 1.0f && vec_erf(-INFINITY) == -1.0f);
    assert_true(vec_erf(FLT_MAX) == 1.0f && vec_erf(-FLT_MAX) == -1.0f);
    assert_true(signbit(vec_tanh(-0.0f)) && signbit(vec_erf(-0.0f)));
    for (uint32_t bits = 0x7f800001; bits < 0x80000000; bits += 0x1357) {
        float x;
        memcpy(&x, &bits, sizeof x);
        assert_true(isnan(vec_exp(x)) && isnan(vec_log(x)) && isnan(vec_tanh(x)));
        assert_true(isnan(vec_erf(x)) && isnan(vec_gelu(x)) && isnan(vec_gelu_slope(x)));
        assert_true(isnan(vec_gelu_tanh(x)) && isnan(vec_gelu_tanh_slope(x)));
    }
}

static void activations_of_finite_numbers_are_finite(void **state)
{
    (void)state;
    for (uint64_t bits = 0; bits < UINT32_MAX; bits += 4093) {
        uint32_t word = (uint32_t)bits;
        float x;
        memcpy(&x, &word, sizeof x);
        if (!isfinite(x)) continue;
        for (int kind = LS_ACTIVATION_NONE; kind <= LS_ACTIVATION_TANH; kind++) {
            float y = vec_activation((ls_activation)kind, x);
            float slope = vec_activation_slope((ls_activation)kind, x);
            if (!isfinite(y) || fabsf(y) > fmaxf(fabsf(x), 1.0f) || !isfinite(slope) ||
                fabsf(slope) > 1.2f)
                fail_msg("activation %d of %a is %a, its slope %a", kind, (double)x, (double)y,
                         (double)slope);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_stay_in_their_bounds),
        cmocka_unit_test(errors_stay_in_their_bounds_at_borders),
        cmocka_unit_test(limits_are_those_of_the_functions),
        cmocka_unit_test(activations_of_finite_numbers_are_finite),
    };
    return cmocka_run_group_tests_name("kernels/math", tests, NULL, NULL);
}

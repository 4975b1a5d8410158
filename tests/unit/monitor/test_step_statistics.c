/* Numbers of a run: warm-up left out, true percentiles, shares that are the whole. */
#include "testing.h"

#include <math.h>

#include "base/alloc.h"
#include "monitor/step_statistics.h"

static ls_step_summary summary_of(int64_t steps, int64_t planned)
{
    ls_error error;
    ls_step_statistics *statistics = NULL;
    assert_ok(ls_step_statistics_new(&statistics, planned, &error), error);
    uint64_t allocations = ls_allocation_count();
    for (int64_t i = 0; i < steps; i++) {
        /* Three slow steps, then 0.1, 0.2, ... in an order that is not sorted. */
        int64_t place = (i * 7) % 20;
        double seconds = i < LS_WARM_UP_STEPS ? 100 : 0.1 * (double)(place + 1);
        ls_step_sample sample = {
            .seconds = seconds,
            .times = {0.1 * seconds, 0.2 * seconds, 0.4 * seconds, 0.25 * seconds, 0.05 * seconds},
            .samples = 32,
            .tokens = 100,
            .elements = 5,
            .flops = 1e9};
        ls_step_statistics_add(statistics, &sample);
    }
    ls_step_summary summary = ls_step_statistics_summary(statistics);
    assert_int_equal(ls_allocation_count(), allocations);
    ls_step_statistics_free(statistics);
    return summary;
}

static void near(double got, double wanted)
{
    if (!(fabs(got - wanted) <= 1e-9 * fabs(wanted))) fail_msg("%.17g, wanted %.17g", got, wanted);
}

static void the_first_steps_do_not_count(void **state)
{
    (void)state;
    ls_step_summary summary = summary_of(23, 23);
    assert_int_equal(summary.steps, 20);
    near(summary.seconds, 21);
    near(summary.samples_per_second, 20 * 32 / 21.0);
    near(summary.tokens_per_second, 20 * 100 / 21.0);
    near(summary.flops_per_second, 20e9 / 21.0);
    near(summary.flops_per_step, 1e9);
    near(summary.step_seconds_median, 1.05);
    near(summary.step_seconds_p95, 1.9);
    near(summary.elements_per_step, 5);
    near(summary.mean.exchange, 0.25 * 21 / 20);
    near(summary.share.data + summary.share.forward + summary.share.backward +
             summary.share.exchange + summary.share.optimizer,
         1);
    near(summary.share.backward, 0.4);
}

static void a_run_of_few_steps_counts_all(void **state)
{
    (void)state;
    for (int64_t steps = 1; steps <= LS_WARM_UP_STEPS; steps++) {
        ls_step_summary summary = summary_of(steps, steps);
        assert_int_equal(summary.steps, steps);
        near(summary.step_seconds_median, 100);
        near(summary.step_seconds_p95, 100);
    }
    ls_step_summary one = summary_of(LS_WARM_UP_STEPS + 1, 4);
    assert_int_equal(one.steps, 1);
    assert_true(one.step_seconds_median < 100);
    assert_true(isnan(summary_of(0, 10).samples_per_second));
    assert_true(isnan(summary_of(0, 10).step_seconds_median));
}

/* Memory does not grow with the run; the percentiles are those of the last steps. */
static void a_long_run_is_remembered_in_part(void **state)
{
    (void)state;
    ls_step_summary summary = summary_of(LS_REMEMBERED_STEPS + 1000, INT64_MAX);
    assert_int_equal(summary.steps, LS_REMEMBERED_STEPS + 1000 - LS_WARM_UP_STEPS);
    near(summary.step_seconds_p95, 1.9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_steps_do_not_count),
        cmocka_unit_test(a_run_of_few_steps_counts_all),
        cmocka_unit_test(a_long_run_is_remembered_in_part),
    };
    return cmocka_run_group_tests_name("monitor/step_statistics", tests, NULL, NULL);
}

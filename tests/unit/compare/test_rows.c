/* From what runs found to rows and sentences. */
#include "comparisons.h"

static made_comparison made;

static int fresh(void **state)
{
    (void)state;
    make_comparison(&made);
    return 0;
}

static double value(int row, ls_measure measure)
{
    return made.rows[row].values[measure];
}

/* The verdict of a kind, "" if there is none. */
static const char *verdict(const char *kind)
{
    for (size_t i = 0; i < made.comparison.verdict_count; i++)
        if (strcmp(made.comparison.verdicts[i].kind, kind) == 0)
            return made.comparison.verdicts[i].text;
    return "";
}

static void assert_says(const char *kind, const char *text)
{
    if (!strstr(verdict(kind), text)) fail_msg("%s: '%s' without '%s'", kind, verdict(kind), text);
}

static void middles_and_deviations(void **state)
{
    (void)state;
    double values[] = {5, 1, 4, 2, 3}, even[] = {4, 1, 3, 2}, mean, deviation;
    assert_true(ls_median(values, 5) == 3);
    assert_true(ls_median(even, 4) == 2.5);
    assert_true(ls_percentile(values, 5, 95) == 5);
    assert_true(ls_percentile(values, 5, 0) == 1);
    assert_true(ls_percentile(values, 5, 40) == 2);
    assert_true(isnan(ls_median(values, 0)));
    assert_true(isnan(ls_percentile(values, 0, 95)));
    ls_mean_and_deviation((double[]){1, 2, 3}, 3, &mean, &deviation);
    assert_true(mean == 2 && deviation == 1);
    ls_mean_and_deviation((double[]){7}, 1, &mean, &deviation);
    assert_true(mean == 7 && isnan(deviation));
}

static void speeds_are_those_of_the_middle_round(void **state)
{
    (void)state;
    made.rounds[0][2].values[LS_MEASURE_SHARE_FORWARD] = 0.25;
    made.rounds[0][0].values[LS_MEASURE_SHARE_FORWARD] = 0.75;
    made.rounds[0][2].values[LS_MEASURE_FLOPS_PER_SECOND] = 3e9;
    made.rows[0].full.peak_flops_per_second = 12e9;
    made.rows[1].full.peak_flops_per_second = 24e9;
    made.rows[2].full.peak_flops_per_second = 20e9;
    made.rounds[2][2].values[LS_MEASURE_FLOPS_PER_SECOND] = 3e9;
    finish_comparison(&made);
    assert_true(value(0, LS_MEASURE_SHARE_OF_PEAK) == 0.25);
    assert_true(value(2, LS_MEASURE_SHARE_OF_PEAK) == 0.125);
    assert_true(value(0, LS_MEASURE_SAMPLES_PER_SECOND) == 10);
    assert_true(value(0, LS_MEASURE_REAL_TOKENS_PER_SECOND) == 200);
    assert_true(value(0, LS_MEASURE_SHARE_FORWARD) == 0.25);
    assert_true(value(0, LS_MEASURE_STEP_MS_MEDIAN) == 200.5);
    assert_true(value(0, LS_MEASURE_STEP_MS_P95) == 301);
    /* Of an even number the slower one in the middle. */
    made.rows[0].round_count = 2;
    finish_comparison(&made);
    assert_true(value(0, LS_MEASURE_SAMPLES_PER_SECOND) == 5);
}

static void the_base_is_single_with_the_same_batch(void **state)
{
    (void)state;
    finish_comparison(&made);
    assert_true(value(0, LS_MEASURE_SPEED_UP) == 1 && value(0, LS_MEASURE_EFFICIENCY) == 1);
    assert_true(value(1, LS_MEASURE_SPEED_UP) == 1.9 && value(1, LS_MEASURE_EFFICIENCY) == 0.95);
    assert_true(value(2, LS_MEASURE_SPEED_UP) == 1.8 && value(2, LS_MEASURE_EFFICIENCY) == 0.9);
    assert_true(isnan(value(3, LS_MEASURE_SPEED_UP)));
    assert_int_equal(made.rows[2].same_bits, 1);
    assert_int_equal(made.rows[3].same_bits, -1);
    assert_true(fabs(value(2, LS_MEASURE_ACCURACY) - 0.81) < 1e-12);
    assert_true(fabs(value(2, LS_MEASURE_ACCURACY_DEVIATION) - 0.02 / sqrt(2)) < 1e-12);
    assert_true(value(2, LS_MEASURE_PEAK_DEVICE_BYTES) == 360 * 1048576.0);
    assert_true(isnan(value(2, LS_MEASURE_FLOPS_PER_SECOND)));
}

static void one_seed_with_other_bits_is_told(void **state)
{
    (void)state;
    made.seeds[2][1].weights_sha256[5] = 'f';
    finish_comparison(&made);
    assert_int_equal(made.rows[2].same_bits, 0);
    assert_int_equal(made.rows[2].seeds[0].same_bits, 1);
    assert_true(made.comparison.any_different);
    assert_says("bits", "Other bits than single: ddp (batch size 32)");
}

static void what_came_out_is_said_plainly(void **state)
{
    (void)state;
    made.options.target_accuracy = 0.75;
    finish_comparison(&made);
    assert_string_equal(verdict("fastest"),
                        "Fastest: single, all cores with 19.0 samples/s, 1.90 times single.");
    assert_string_equal(verdict("smallest"),
                        "Smallest: ddp on 2 devices with 360.0 MiB on a device, "
                        "0.90 times what single needs.");
    assert_says("devices",
                "More devices do not make it faster on this machine: ddp on 2 devices has "
                "0.95 times the speed of one device with the same 2 cores.");
    assert_says("devices", "Nothing stands out");
    assert_says("devices", "room: ddp on 2 devices takes 0.88 times the memory");
    assert_says("scaling", "1.80 times as fast as one device of the same size, 90 %");
    assert_says("bits", "all 3 rows that ran end with the weights of single");
    assert_says("bits", "0.8100 on the test file");
    /* Step 8 of 32 samples at 19 samples a second. */
    assert_says("target", "first by single, all cores, after 13.5 s");
    assert_says("batch", "Batch size 64 gives 20.0 samples/s under ddp, 1.11 times batch size 32");
}

static void equal_speeds_are_no_victory(void **state)
{
    (void)state;
    for (int r = 0; r < MADE_ROUNDS; r++)
        made.rounds[2][r].values[LS_MEASURE_SAMPLES_PER_SECOND] = 18.9;
    finish_comparison(&made);
    assert_says("fastest", "as fast, within 2 %: ddp on 2 devices");
    assert_says("devices", "do not make it faster");
}

static void more_devices_may_pay(void **state)
{
    (void)state;
    for (int r = 0; r < MADE_ROUNDS; r++)
        made.rounds[2][r].values[LS_MEASURE_SAMPLES_PER_SECOND] = 38;
    finish_comparison(&made);
    assert_says("devices", "More devices pay on this machine: ddp on 2 devices is 2.00 times");
}

static void causes_come_from_what_was_measured(void **state)
{
    (void)state;
    made.rows[2].full.values[LS_MEASURE_OP_BYTES_PER_SECOND] = 13e9;
    made.rounds[2][2].values[LS_MEASURE_SHARE_EXCHANGE] = 0.25;
    made.rounds[2][2].values[LS_MEASURE_SHARE_OPTIMIZER] = 0.4;
    finish_comparison(&made);
    assert_says("devices", "Memory bandwidth: 2 devices read and write 13.0 GB/s of 14.0.");
    assert_says("devices", "Communication: 25 % of a step is spent waiting");
    assert_says("devices", "The optimizer takes 40 % of a step.");
    made.rows[2].full.values[LS_MEASURE_OP_BYTES_PER_SECOND] = 5e9;
    made.rounds[2][2].values[LS_MEASURE_SHARE_EXCHANGE] = 0.01;
    made.rounds[2][2].values[LS_MEASURE_SHARE_OPTIMIZER] = 0.01;
    finish_comparison(&made);
    assert_says("devices", "Nothing stands out");
    snprintf(made.rows[2].full.bottleneck, 300, "compute: 80 %% of the step");
    finish_comparison(&made);
    assert_says("devices", "Its profile names compute: 80 % of the step.");
}

/* A profile may have measured its peak while others had the cores. */
static void no_share_of_peak_is_above_one(void **state)
{
    (void)state;
    made.rows[1].full.peak_flops_per_second = 2e9;
    made.rows[2].full.peak_flops_per_second = 1e9;
    for (int r = 0; r < MADE_ROUNDS; r++) {
        made.rounds[1][r].values[LS_MEASURE_FLOPS_PER_SECOND] = 3e9;
        made.rounds[2][r].values[LS_MEASURE_FLOPS_PER_SECOND] = 4e9;
    }
    made.rows[2].full.values[LS_MEASURE_OP_BYTES_PER_SECOND] = 15e9;
    finish_comparison(&made);
    assert_true(value(1, LS_MEASURE_SHARE_OF_PEAK) == 0.75);
    assert_true(value(2, LS_MEASURE_SHARE_OF_PEAK) == 1);
    assert_says("devices", "touch 15.0 GB/s, more than the 14.0 that memory was measured");
    made.rows[2].full.values[LS_MEASURE_OP_BYTES_PER_SECOND] = 5e9;
    snprintf(made.rows[2].full.bottleneck, 300, "compute: 80 %% of the step; at 300 %% of x");
    finish_comparison(&made);
    assert_says("devices", "Its profile names compute: 80 % of the step.");
}

static void rows_that_failed_are_left_out(void **state)
{
    (void)state;
    made.rows[1].state = LS_COMPARE_KILLED;
    snprintf(made.rows[1].reason, sizeof made.rows[1].reason, "killed by signal 9 (Killed)");
    finish_comparison(&made);
    assert_true(made.comparison.any_failed);
    assert_true(isnan(value(1, LS_MEASURE_SAMPLES_PER_SECOND)));
    assert_says("fastest", "ddp on 2 devices with 18.0");
    assert_string_equal(verdict("devices"), "");
    assert_says("failed", "single, all cores was not compared (killed): killed by signal 9");
    /* Without a base nothing is said of it. */
    made.rows[0].state = LS_COMPARE_FAILED;
    finish_comparison(&made);
    assert_true(isnan(value(2, LS_MEASURE_SPEED_UP)));
    assert_string_equal(verdict("bits"), "");
    assert_string_equal(verdict("fastest"), "Fastest: ddp on 2 devices with 18.0 samples/s.");
    assert_string_equal(verdict("scaling"), "");
}

/* The full runs had ended: what failed was a later one. */
static void bits_are_told_of_rows_that_fail_later(void **state)
{
    (void)state;
    made.rows[0].state = made.rows[2].state = LS_COMPARE_FAILED;
    made.seeds[2][1].weights_sha256[5] = 'f';
    finish_comparison(&made);
    assert_int_equal(made.rows[1].same_bits, 1);
    assert_int_equal(made.rows[2].same_bits, 0);
    assert_true(made.comparison.any_failed && made.comparison.any_different);
    assert_says("bits", "Other bits than single: ddp (batch size 32)");
}

static void a_target_may_not_be_reached(void **state)
{
    (void)state;
    made.options.target_accuracy = 0.9;
    finish_comparison(&made);
    assert_says("target", "Accuracy 0.9 on the validation file was not reached.");
    assert_true(isnan(value(0, LS_MEASURE_SECONDS_TO_TARGET_ACCURACY)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(middles_and_deviations),
        cmocka_unit_test_setup(speeds_are_those_of_the_middle_round, fresh),
        cmocka_unit_test_setup(the_base_is_single_with_the_same_batch, fresh),
        cmocka_unit_test_setup(one_seed_with_other_bits_is_told, fresh),
        cmocka_unit_test_setup(what_came_out_is_said_plainly, fresh),
        cmocka_unit_test_setup(equal_speeds_are_no_victory, fresh),
        cmocka_unit_test_setup(more_devices_may_pay, fresh),
        cmocka_unit_test_setup(causes_come_from_what_was_measured, fresh),
        cmocka_unit_test_setup(no_share_of_peak_is_above_one, fresh),
        cmocka_unit_test_setup(rows_that_failed_are_left_out, fresh),
        cmocka_unit_test_setup(bits_are_told_of_rows_that_fail_later, fresh),
        cmocka_unit_test_setup(a_target_may_not_be_reached, fresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

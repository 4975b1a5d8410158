/* metrics.jsonl: lines that other programs read. */
#include "testing.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/files.h"
#include "formats/json.h"
#include "monitor/metrics.h"

static const ls_step_report step_report = {.step = 3,
                                           .total_steps = 10,
                                           .epoch = 0.3,
                                           .loss = 0.1 + 0.2,
                                           .learning_rate = 5e-5,
                                           .gradient_norm = 1.5,
                                           .samples = 32,
                                           .tokens = 900,
                                           .step_seconds = 0.1234567891,
                                           .tokens_per_second = 7290.0,
                                           .skipped_steps = 2,
                                           .backward_seconds = 0.06,
                                           .device_bytes = 4096};
static const int64_t confusion[] = {5, 1, 2, 4};
static const char *const labels[] = {"a", "b"};
static const ls_evaluation_report evaluation_report = {.name = "valid\"ation",
                                                       .epoch = 1,
                                                       .step = 10,
                                                       .samples = 12,
                                                       .classes = 2,
                                                       .labels = labels,
                                                       .confusion = confusion,
                                                       .loss = 0.5,
                                                       .accuracy = 0.75,
                                                       .macro_f1 = 0.74,
                                                       .seconds = 2};

static ls_status close_sink(ls_sink *sink, ls_error *error)
{
    ls_status status = sink->operations->finish(sink, error);
    sink->operations->free(sink);
    return status;
}

/* Line `number` of the file, parsed; NULL after the last. */
static json_t *line_of(const char *folder, int number)
{
    ls_error error;
    char *bytes = NULL;
    size_t count = 0;
    json_t *root = NULL;
    assert_ok(ls_file_read(&bytes, &count, test_path(folder, "metrics.jsonl"), 1 << 20, &error),
              error);
    char *at = bytes;
    for (int i = 0; i < number && at; i++) {
        at = strchr(at, '\n');
        if (at) at++;
    }
    if (at && *at) assert_ok(ls_json_parse(&root, at, strcspn(at, "\n"), "line", &error), error);
    ls_free(bytes);
    return root;
}

static void a_step_and_an_evaluation_have_their_keys(void **state)
{
    (void)state;
    ls_error error;
    char *folder = test_folder();
    ls_sink *metrics = NULL;
    assert_ok(ls_metrics_open(&metrics, folder, false, &error), error);
    assert_ok(metrics->operations->step(metrics, &step_report, &error), error);
    assert_ok(metrics->operations->evaluation(metrics, &evaluation_report, &error), error);
    assert_ok(close_sink(metrics, &error), error);

    json_t *step = line_of(folder, 0), *evaluation = line_of(folder, 1);
    assert_int_equal(json_object_size(step), 19);
    assert_int_equal(json_integer_value(json_object_get(step, "step")), 3);
    assert_true(json_real_value(json_object_get(step, "loss")) == 0.1 + 0.2);
    assert_true(json_number_value(json_object_get(step, "step_seconds")) == 0.123457);
    assert_int_equal(json_integer_value(json_object_get(step, "tokens")), 900);
    assert_int_equal(json_integer_value(json_object_get(step, "skipped_steps")), 2);
    assert_true(json_number_value(json_object_get(step, "backward_seconds")) == 0.06);
    assert_int_equal(json_integer_value(json_object_get(step, "device_bytes")), 4096);
    assert_string_equal(json_string_value(json_object_get(evaluation, "evaluation")),
                        "valid\"ation");
    assert_true(json_number_value(json_object_get(evaluation, "accuracy")) == 0.75);
    const json_t *row = json_array_get(json_object_get(evaluation, "confusion"), 1);
    assert_int_equal(json_integer_value(json_array_get(row, 0)), 2);
    assert_null(json_object_get(evaluation, "gradient_norm"));
    assert_null(line_of(folder, 2));
    ls_json_free(step);
    ls_json_free(evaluation);
    test_folder_remove(folder);
}

static void what_is_not_finite_stays_json(void **state)
{
    (void)state;
    ls_error error;
    char *folder = test_folder();
    ls_sink *metrics = NULL;
    ls_step_report report = step_report;
    report.loss = NAN;
    report.gradient_norm = INFINITY;
    report.tokens_per_second = -INFINITY;
    assert_ok(ls_metrics_open(&metrics, folder, false, &error), error);
    assert_ok(metrics->operations->step(metrics, &report, &error), error);
    assert_ok(close_sink(metrics, &error), error);
    json_t *step = line_of(folder, 0);
    assert_string_equal(json_string_value(json_object_get(step, "loss")), "NaN");
    assert_string_equal(json_string_value(json_object_get(step, "gradient_norm")), "Infinity");
    assert_string_equal(json_string_value(json_object_get(step, "tokens_per_second")), "-Infinity");
    ls_json_free(step);
    test_folder_remove(folder);
}

static void a_former_run_is_kept_or_dropped(void **state)
{
    (void)state;
    ls_error error;
    char *folder = test_folder();
    for (int run = 0; run < 3; run++) {
        ls_sink *metrics = NULL;
        assert_ok(ls_metrics_open(&metrics, folder, run == 1, &error), error);
        assert_ok(metrics->operations->step(metrics, &step_report, &error), error);
        assert_ok(close_sink(metrics, &error), error);
        json_t *second = line_of(folder, 1);
        assert_int_equal(second != NULL, run == 1);
        ls_json_free(second);
    }
    test_folder_remove(folder);
}

static void a_step_allocates_nothing(void **state)
{
    (void)state;
    ls_error error;
    char *folder = test_folder();
    ls_sink *metrics = NULL;
    assert_ok(ls_metrics_open(&metrics, folder, false, &error), error);
    uint64_t before = ls_allocation_count();
    ls_step_report report = step_report;
    report.step = report.samples = report.tokens = report.skipped_steps = report.host_bytes =
        report.device_bytes = INT64_MIN;
    report.data_seconds = report.forward_seconds = report.backward_seconds =
        report.exchange_seconds = report.optimizer_seconds = report.cores_busy =
            -1.7976931348623157e308;
    report.epoch = report.loss = report.learning_rate = report.gradient_norm = report.step_seconds =
        report.tokens_per_second = -1.7976931348623157e308;
    assert_ok(metrics->operations->step(metrics, &report, &error), error);
    assert_int_equal(ls_allocation_count(), before);
    metrics->operations->free(metrics);
    test_folder_remove(folder);
}

static void a_full_disk_and_a_missing_folder_are_named(void **state)
{
    (void)state;
    ls_error error;
    char *folder = test_folder();
    ls_sink *metrics = NULL;
    assert_int_equal(ls_metrics_open(&metrics, test_path(folder, "no"), false, &error), LS_IO);
    assert_non_null(strstr(error.text, "metrics.jsonl"));
    assert_int_equal(symlink("/dev/full", test_path(folder, "metrics.jsonl")), 0);
    assert_ok(ls_metrics_open(&metrics, folder, true, &error), error);
    assert_int_equal(metrics->operations->step(metrics, &step_report, &error), LS_IO);
    assert_non_null(strstr(error.text, "metrics.jsonl"));
    metrics->operations->free(metrics);
    test_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_and_an_evaluation_have_their_keys),
        cmocka_unit_test(what_is_not_finite_stays_json),
        cmocka_unit_test(a_former_run_is_kept_or_dropped),
        cmocka_unit_test(a_step_allocates_nothing),
        cmocka_unit_test(a_full_disk_and_a_missing_folder_are_named),
    };
    return cmocka_run_group_tests_name("monitor/metrics", tests, NULL, NULL);
}

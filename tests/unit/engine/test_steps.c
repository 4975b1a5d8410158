/* Memory: a step allocates nothing, a run takes the bytes that its plan says, to the byte, and a
 * budget is kept or refused with numbers. */
#include "tiny_engine.h"

#include <unistd.h>

#include "base/alloc.h"

static char *folder;
static const char *train, *validation;

/* Rows longer than those of training, as a run's other files may be: cut at the model's 64. */
static void write_long_rows(const char *path)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("text\tlabel\n", file);
    for (int row = 0; row < 3; row++) {
        for (int word = 0; word < 70; word++)
            fputs(word % 2 ? "star " : "the ", file);
        fputs("\tsport\n", file);
    }
    assert_int_equal(fclose(file), 0);
}

static int setup(void **state)
{
    (void)state;
    folder = test_folder();
    train = strdup(tiny_rows(folder, "train.tsv"));
    validation = strdup(test_path(folder, "validation.tsv"));
    write_long_rows(validation);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free((char *)train);
    free((char *)validation);
    test_folder_remove(folder);
    return 0;
}

/* --- allocations ------------------------------------------------------------------------------ */

static int refuse(void *context, size_t bytes)
{
    (void)context, (void)bytes;
    return 1;
}

/* From the first step on: memory is taken when trainer and reader are made. Short batches, new
 * epochs (the reader shuffles anew) and passes that cut leaves are among the steps. */
static void steps_allocate_nothing(void **state)
{
    (void)state;
    static const int64_t passes[] = {16, 6, 3};
    static const char *const models[] = {"tiny-bert", "tiny-distilbert"};
    for (int i = 0; i < 6; i++) {
        tiny_engine engine;
        tiny_engine_open(&engine, models[i % 2], train, folder, passes[i / 2], NULL);
        uint64_t count = ls_allocation_count();
        size_t bytes = ls_allocated_bytes();
        ls_set_allocation_hook(refuse, NULL);
        for (int64_t step = 1; step <= 3 * TINY_STEPS_AN_EPOCH; step++)
            tiny_engine_step(&engine, step);
        ls_set_allocation_hook(NULL, NULL);
        assert_true(ls_allocation_count() == count);
        assert_true(ls_allocated_bytes() == bytes);
        tiny_engine_close(&engine);
    }
}

typedef struct step_counts {
    uint64_t at[2 * TINY_STEPS_AN_EPOCH + 1];
} step_counts;

static void note_count(void *context, const ls_step_report *report)
{
    step_counts *counts = context;
    counts->at[report->step] = ls_allocation_count();
}

/* The same through the public function, which also writes a line of metrics a step. */
static void a_run_allocates_nothing_between_steps(void **state)
{
    (void)state;
    step_counts counts;
    ls_callbacks callbacks = {.context = &counts, .step = note_count};
    ls_options options = tiny_options("tiny-bert", train, test_path(folder, "output"));
    ls_error error;
    assert_ok(ls_train(&options, &callbacks, NULL, NULL, &error), error);
    for (int step = 2; step <= 2 * TINY_STEPS_AN_EPOCH; step++)
        assert_true(counts.at[step] == counts.at[1]);
}

/* --- planned and measured --------------------------------------------------------------------- */

static char *plan_of(const ls_options *options)
{
    char *text;
    ls_error error;
    assert_ok(ls_plan_text(options, &text, &error), error);
    return text;
}

/* Of a line "NAME   123 bytes ..." of a plan. */
static int64_t planned(const char *text, const char *name)
{
    char start[64];
    snprintf(start, sizeof start, "\n%s ", name);
    const char *line = strstr(text, start);
    if (!line) fail_msg("no '%s' in the plan\n%s", name, text);
    return strtoll(line + strlen(start), NULL, 10);
}

static int64_t planned_samples(const char *text)
{
    static const char before[] = "A pass holds up to ";
    assert_int_equal(strncmp(text, before, sizeof before - 1), 0);
    return strtoll(text + sizeof before - 1, NULL, 10);
}

/* The run's own numbers, after all three of plan, planned and measured were found equal. */
static ls_train_report check_bytes(const ls_options *options)
{
    ls_train_report report;
    ls_error error;
    ls_options shorter = *options;
    shorter.max_steps = 2;
    assert_ok(ls_train(&shorter, NULL, NULL, &report, &error), error);
    char *text = plan_of(options);
    assert_int_equal(report.planned_bytes, report.measured_bytes);
    assert_int_equal(report.planned_bytes, planned(text, "total on the device"));
    int64_t sum = planned(text, "parameters") + planned(text, "gradients") +
                  planned(text, "optimizer state") + planned(text, "activations") +
                  planned(text, "inputs") + planned(text, "scalars") +
                  planned(text, "kernel scratch") + planned(text, "evaluation's own inputs");
    assert_int_equal(sum, report.planned_bytes);
    ls_text_free(text);
    return report;
}

static void a_run_takes_what_its_plan_says(void **state)
{
    (void)state;
    static const char *const models[] = {"tiny-bert", "tiny-distilbert"};
    static const int64_t passes[] = {LS_SAMPLES_ALL, LS_SAMPLES_AUTO, 1, 3, 4, 6, 100};
    for (int i = 0; i < 2; i++) {
        ls_options options = tiny_options(models[i], train, test_path(folder, "output"));
        for (size_t p = 0; p < sizeof passes / sizeof *passes; p++) {
            options.samples_per_pass = passes[p];
            options.threads = 1 + (int64_t)p % 3;
            check_bytes(&options);
        }
        options.leaf_size = 1;
        options.samples_per_pass = 3;
        check_bytes(&options);
    }
}

/* A plan reads the files that the run will read. */
static void a_plan_knows_the_data(void **state)
{
    (void)state;
    ls_options options = tiny_options("tiny-distilbert", train, test_path(folder, "output"));
    int64_t plain = check_bytes(&options).planned_bytes;
    options.validation = validation;
    assert_true(check_bytes(&options).planned_bytes > plain);
    options.validation = NULL;
    options.test = validation;
    assert_true(check_bytes(&options).planned_bytes > plain);
    options.test = NULL;
    options.batch_size = 1000;
    options.epochs = 3;
    check_bytes(&options);
}

/* Without data, rows are as long as they may be. */
static void a_plan_needs_no_data(void **state)
{
    (void)state;
    ls_options options = tiny_options("tiny-bert", NULL, NULL);
    options.batch_size = 4;
    char *text = plan_of(&options);
    assert_non_null(strstr(text, "A pass holds up to 4 samples of up to 256 tokens"));
    assert_null(strstr(text, "gradient_norm"));
    ls_text_free(text);
    options.print_program = true;
    text = plan_of(&options);
    assert_non_null(strstr(text, "gradient_norm"));
    ls_text_free(text);
}

/* --- a budget --------------------------------------------------------------------------------- */

static int64_t bytes_with(ls_options options, int64_t samples_per_pass)
{
    options.samples_per_pass = samples_per_pass;
    char *text = plan_of(&options);
    int64_t bytes = planned(text, "total on the device");
    ls_text_free(text);
    return bytes;
}

/* Fewer samples a pass save activations, but more partial sums may have to wait: what fits first
 * of 16, 8, 6, ... is taken. */
static void auto_takes_as_few_passes_as_fit(void **state)
{
    (void)state;
    enum { CHOICES = 7 };
    static const int64_t samples[CHOICES] = {16, 8, 6, 4, 3, 2, 1};
    int64_t bytes[CHOICES];
    ls_options options = tiny_options("tiny-bert", train, test_path(folder, "output"));
    options.threads = 1;
    options.validation = validation;
    ls_train_report free_run = check_bytes(&options);
    for (int i = 0; i < CHOICES; i++)
        bytes[i] = bytes_with(options, samples[i]);
    assert_true(bytes[CHOICES - 1] < bytes[0]);
    for (int i = 0; i < 2 * CHOICES; i++) {
        options.device_memory = bytes[i / 2] - i % 2;
        int first = 0;
        while (first < CHOICES && bytes[first] > options.device_memory)
            first++;
        if (first == CHOICES) continue;
        char *text = plan_of(&options);
        assert_int_equal(planned_samples(text), samples[first]);
        ls_text_free(text);
        ls_train_report report = check_bytes(&options);
        assert_int_equal(report.measured_bytes, bytes[first]);
        assert_string_equal(report.weights_sha256, free_run.weights_sha256);
    }
}

static void check_refused(const ls_options *options, int64_t needs)
{
    ls_error error;
    char *text, number[32], budget[32];
    snprintf(number, sizeof number, "%lld bytes", (long long)needs);
    snprintf(budget, sizeof budget, "%lld", (long long)options->device_memory);
    for (int plan = 0; plan < 2; plan++) {
        ls_status status = plan ? ls_plan_text(options, &text, &error)
                                : ls_train(options, NULL, NULL, NULL, &error);
        assert_int_equal(status, LS_NO_MEMORY);
        if (!strstr(error.text, number) || !strstr(error.text, budget) ||
            !strstr(error.text, "--device-memory"))
            fail_msg("should say %s and %s: %s", number, budget, error.text);
    }
    assert_int_not_equal(access(options->output, F_OK), 0);
}

static void a_budget_too_small_is_refused(void **state)
{
    (void)state;
    ls_options options = tiny_options("tiny-bert", train, test_path(folder, "refused"));
    int64_t least = bytes_with(options, 1), eight = bytes_with(options, 8);
    options.device_memory = least - 1;
    check_refused(&options, least);
    options.samples_per_pass = 8;
    options.device_memory = eight - 1;
    check_refused(&options, eight);
    options.device_memory = 1;
    check_refused(&options, eight);
}

static void inference_keeps_a_budget(void **state)
{
    (void)state;
    ls_options options = tiny_options("tiny-distilbert", NULL, NULL);
    ls_error error;
    options.data = train;
    options.device_memory = 1;
    assert_int_equal(ls_evaluate(&options, NULL, &error), LS_NO_MEMORY);
    const char *needs = strstr(error.text, " need ");
    assert_non_null(needs);
    assert_non_null(strstr(error.text, "forward passes of 1 sample "));
    int64_t least = strtoll(needs + 6, NULL, 10);
    options.device_memory = least - 1;
    assert_int_equal(ls_evaluate(&options, NULL, &error), LS_NO_MEMORY);
    options.device_memory = least;
    assert_ok(ls_evaluate(&options, NULL, &error), error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_allocate_nothing),
        cmocka_unit_test(a_run_allocates_nothing_between_steps),
        cmocka_unit_test(a_run_takes_what_its_plan_says),
        cmocka_unit_test(a_plan_knows_the_data),
        cmocka_unit_test(a_plan_needs_no_data),
        cmocka_unit_test(auto_takes_as_few_passes_as_fit),
        cmocka_unit_test(a_budget_too_small_is_refused),
        cmocka_unit_test(inference_keeps_a_budget),
    };
    return cmocka_run_group_tests_name("steps", tests, setup, teardown);
}

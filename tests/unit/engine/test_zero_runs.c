/* Whole runs with optimizer state, gradients and parameters divided among devices: the file that
 * one device trains, what a device's memory allows, what is refused.
 *
 * LOCKSTEP_TEST_LONG=1 runs every combination of layouts instead of one for each pair. */
#include "tiny_runs.h"

#include <unistd.h>

#include "effort.h"

/* Batches of 8 or 24 leaves; the last one of an epoch has 6 samples, which are 2 leaves. */
enum { ROWS = 102, BATCH = 32, LARGE_BATCH = 96, STEPS = 30, SAMPLE_STEPS = 8 };

/* Of model.safetensors after the run of zero_options, on any machine and any layout: that of data
 * parallel's test. */
static const char golden[] = "800e7973dd2764a8af59572d7b53ea7aef44e34bb7748b92d4def1bcae220541";

static char *folder;
static const char *train, *validation;

static int setup(void **state)
{
    (void)state;
    folder = test_folder();
    train = strdup(tiny_file(folder, "train.tsv", ROWS));
    validation = strdup(tiny_file(folder, "validation.tsv", 41));
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

static ls_options zero_options(int64_t batch_size, const char *strategy, int64_t devices)
{
    ls_options options = tiny_options("tiny-bert", train, NULL);
    options.validation = validation;
    options.batch_size = batch_size;
    options.max_steps = STEPS;
    options.threads = 1;
    options.strategy = strategy;
    options.devices = devices;
    return options;
}

/* --- the same bits ---------------------------------------------------------------------------- */

static tiny_outcome check_run(const ls_options *options, const tiny_outcome *wanted)
{
    char what[200];
    snprintf(what, sizeof what, "%s, batch of %lld, %lld samples a pass, devices",
             options->strategy, (long long)options->batch_size,
             (long long)options->samples_per_pass);
    tiny_outcome got = tiny_run(options, folder);
    tiny_check_same(&got, wanted, what, options->devices);
    if (got.report.planned_bytes != got.report.measured_bytes)
        fail_msg("%s %lld: planned %lld bytes, measured %lld", what, (long long)options->devices,
                 (long long)got.report.planned_bytes, (long long)got.report.measured_bytes);
    return got;
}

static const char *const strategies[] = {"ddp", "zero1", "zero2", "zero3"};
/* The same, and what lies elsewhere or is made again; `disk`: moments and parameters in a file. */
static const struct {
    const char *strategy;
    bool disk;
} all_strategies[] = {
    {"ddp", false},           {"zero1", false}, {"zero2", false},          {"zero3", false},
    {"zero3+offload", false}, {"zero3", true},  {"zero3+recompute", false}};
static const int64_t device_counts[] = {1, 2, 3, 4, 8};

/* Batch 96 in three passes of all devices, or in one. */
static void devices_do_not_matter(void **state)
{
    (void)state;
    bool all = test_all();
    int asked = 0;
    static const int64_t in_three[] = {32, 16, 12, 8, 4};
    for (int batch = 0; batch < 2; batch++) {
        ls_options single = zero_options(batch ? LARGE_BATCH : BATCH, "single", 1);
        if (batch && !all) single.max_steps = SAMPLE_STEPS;
        single.save_every = single.max_steps;
        if (batch) single.validation = NULL;
        tiny_outcome wanted = tiny_run(&single, folder);
        if (!batch) assert_string_equal(wanted.weights, golden);
        assert_int_equal(strlen(wanted.moments), 64);
        for (int s = 0; s < (int)(sizeof all_strategies / sizeof *all_strategies); s++)
            for (int d = 0; d < 5; d++) {
                ls_options options = single;
                options.strategy = all_strategies[s].strategy;
                if (all_strategies[s].disk) {
                    options.offload_optimizer = options.offload_parameters = "disk";
                    options.offload_path = folder;
                }
                options.devices = device_counts[d];
                if (batch) options.samples_per_pass = in_three[d];
                options.bucket_size = d % 2 ? 16 << 10 : 25 << 20;
                options.threads = 1 + (s + d) % 2;
                if ((all || (s + d + batch) % 2 == 0) && test_takes(&asked))
                    check_run(&options, &wanted);
            }
    }
}

/* Leaves that are cut by the batch's end, one leaf for a rank, a data set smaller than a batch. */
static void odd_batches_do_not_matter(void **state)
{
    (void)state;
    static const struct {
        int64_t batch_size, leaf_size, devices, samples_per_pass;
    } odd[] = {{31, 4, 7, 4}, {5, 1, 5, 1}, {21, 2, 6, 2}, {1000, 9, 4, 9}, {9, 8, 2, 8}};
    int asked = 0;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        if (!test_takes(&asked)) continue;
        ls_options options = zero_options(odd[i].batch_size, "single", 1);
        options.max_steps = 7;
        options.leaf_size = odd[i].leaf_size;
        tiny_outcome wanted = tiny_run(&options, folder);
        options.strategy = strategies[1 + i % 3];
        options.devices = odd[i].devices;
        options.samples_per_pass = odd[i].samples_per_pass;
        check_run(&options, &wanted);
        options.strategy = "zero3";
        options.samples_per_pass = LS_SAMPLES_ALL;
        check_run(&options, &wanted);
    }
}

/* What is gathered ahead and what stays whole on every device; with what lies elsewhere too. */
static void gathers_do_not_matter(void **state)
{
    (void)state;
    static const struct {
        const char *strategy;
        int64_t devices, prefetch, threshold, samples_per_pass;
    } layouts[] = {
        {"zero3", 2, 0, 0, LS_SAMPLES_ALL},           {"zero3", 3, 1 << 30, 100, 4},
        {"zero3", 4, 9304, 1297, LS_SAMPLES_ALL},     {"zero3+recompute", 2, -1, 1 << 20, 8},
        {"zero3+offload", 2, 1 << 30, 0, 4},          {"zero3+offload", 3, 20000, 100, 8},
        {"zero3+offload", 2, 0, 1 << 20, 8},          {"zero3+offload", 1, 1 << 30, 40, 8},
        {"zero3+offload+recompute", 2, 20000, 40, 8},
    };
    ls_options single = zero_options(BATCH, "single", 1);
    single.max_steps = SAMPLE_STEPS;
    tiny_outcome wanted = tiny_run(&single, folder);
    int asked = 0;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        ls_options options = single;
        options.strategy = layouts[i].strategy;
        options.devices = layouts[i].devices;
        options.prefetch_bucket_size = layouts[i].prefetch;
        options.persistence_threshold = layouts[i].threshold;
        options.samples_per_pass = layouts[i].samples_per_pass;
        options.offload_block_size = 8192;
        if (test_takes(&asked)) check_run(&options, &wanted);
    }
}

/* Ranks without samples of an evaluation's batch gather with the others. */
static void evaluations_smaller_than_the_group_do_not_matter(void **state)
{
    (void)state;
    ls_options options = zero_options(BATCH, "single", 1);
    options.max_steps = 5;
    options.validation = tiny_file(folder, "three.tsv", 3);
    options.test = options.validation;
    tiny_outcome wanted = tiny_run(&options, folder);
    assert_non_null(strstr(wanted.metrics, "\"evaluation\": \"test\""));
    options.strategy = "zero3";
    options.devices = 8;
    check_run(&options, &wanted);
}

/* --- memory ----------------------------------------------------------------------------------- */

/* What does not fit as a whole fits in parts. */
static void a_budget_that_ddp_has_not_zero3_has(void **state)
{
    (void)state;
    ls_error error;
    ls_options options = zero_options(BATCH, "zero3", 4);
    options.max_steps = 10;
    options.samples_per_pass = 4;
    tiny_outcome free_of_limits = tiny_run(&options, folder);
    options.device_memory = free_of_limits.report.planned_bytes;
    options.samples_per_pass = LS_SAMPLES_AUTO;
    check_run(&options, &free_of_limits);

    options.strategy = "ddp";
    options.output = test_path(folder, "refused");
    assert_int_equal(ls_train(&options, NULL, NULL, NULL, &error), LS_NO_MEMORY);
    assert_non_null(strstr(error.text, "--device-memory"));
    assert_non_null(strstr(error.text, "the smallest change that fits: --"));
    options = zero_options(BATCH, "single", 1);
    options.max_steps = 10;
    tiny_outcome single = tiny_run(&options, folder);
    assert_string_equal(single.weights, free_of_limits.weights);
}

static void passes_of_auto_hold_whole_leaves(void **state)
{
    (void)state;
    ls_options options = zero_options(BATCH, "zero2", 2);
    options.max_steps = 3;
    int64_t before = 0;
    for (int64_t samples = 16; samples >= 4; samples -= 4) {
        options.samples_per_pass = samples;
        int64_t bytes = tiny_run(&options, folder).report.planned_bytes;
        assert_true(before == 0 || bytes < before);
        before = bytes;
        options.device_memory = bytes;
        options.samples_per_pass = LS_SAMPLES_AUTO;
        assert_true(tiny_run(&options, folder).report.planned_bytes <= bytes);
        options.device_memory = 0;
    }
    ls_error error;
    options.device_memory = before - 1;
    options.samples_per_pass = LS_SAMPLES_AUTO;
    options.output = test_path(folder, "refused");
    assert_int_equal(ls_train(&options, NULL, NULL, NULL, &error), LS_NO_MEMORY);
    assert_non_null(strstr(error.text, "4 samples a pass"));
    assert_int_not_equal(access(options.output, F_OK), 0);
}

/* --- what is refused, what fails -------------------------------------------------------------- */

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *strategy;
        int64_t devices, samples_per_pass, device_memory;
        ls_status status;
        const char *says[4];
    } refused[] = {
        {"zero1", 9, 0, 0, LS_USAGE, {"--devices 9", "8 leaves", "--leaf-size 3", "32 samples"}},
        {"zero2",
         2,
         6,
         0,
         LS_USAGE,
         {"--samples-per-pass 6", "--leaf-size 4", "--leaf-size 3", "--strategy zero2"}},
        {"zero3",
         2,
         3,
         0,
         LS_USAGE,
         {"--samples-per-pass 3", "--leaf-size 4", "--leaf-size 3", "--samples-per-pass 4"}},
        {"zero3",
         4,
         0,
         60000,
         LS_NO_MEMORY,
         {"--device-memory", "60000", "communication buffers", "--devices"}},
        {"single", 2, 0, 0, LS_USAGE, {"--devices", "--strategy single", "", ""}},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        ls_error error;
        ls_options options = zero_options(BATCH, refused[i].strategy, refused[i].devices);
        options.output = test_path(folder, "refused");
        if (refused[i].samples_per_pass) options.samples_per_pass = refused[i].samples_per_pass;
        options.device_memory = refused[i].device_memory;
        assert_int_equal(ls_train(&options, NULL, NULL, NULL, &error), refused[i].status);
        for (int word = 0; word < 4; word++)
            if (!strstr(error.text, refused[i].says[word]))
                fail_msg("should say '%s': %s", refused[i].says[word], error.text);
        assert_int_not_equal(access(options.output, F_OK), 0);
    }
    /* What cuts a leaf under zero2 is well where gradients are whole. */
    ls_options options = zero_options(BATCH, "zero1", 2);
    options.max_steps = 1;
    options.samples_per_pass = 6;
    (void)tiny_run(&options, folder);
}

static void a_run_that_diverges_stops_on_all_ranks(void **state)
{
    (void)state;
    ls_error single, divided;
    ls_options options = zero_options(BATCH, "single", 1);
    options.output = test_path(folder, "diverged");
    options.learning_rate = options.weight_decay = 1e6;
    options.weight_decay_all = true;
    options.max_grad_norm = 0;
    assert_int_equal(ls_train(&options, NULL, NULL, NULL, &single), LS_NOT_FINITE);
    options.devices = 3;
    for (int s = 1; s < 4; s++) {
        options.strategy = strategies[s];
        assert_int_equal(ls_train(&options, NULL, NULL, NULL, &divided), LS_NOT_FINITE);
        assert_string_equal(divided.text, single.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_do_not_matter),
        cmocka_unit_test(odd_batches_do_not_matter),
        cmocka_unit_test(gathers_do_not_matter),
        cmocka_unit_test(evaluations_smaller_than_the_group_do_not_matter),
        cmocka_unit_test(a_budget_that_ddp_has_not_zero3_has),
        cmocka_unit_test(passes_of_auto_hold_whole_leaves),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(a_run_that_diverges_stops_on_all_ranks),
    };
    return cmocka_run_group_tests_name("zero_runs", tests, setup, teardown);
}

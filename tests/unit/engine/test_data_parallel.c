/* Data parallel on devices of one process: the bits of one device, for any number of them; memory
 * as planned; and a rank that fails stops all.
 *
 * LOCKSTEP_TEST_LONG=1 runs every combination of layouts instead of one for each pair. */
#include "tiny_runs.h"

#include <unistd.h>

#include "effort.h"

/* Batches of 8 leaves; the last one of an epoch has 6 samples, which are 2 leaves: of more ranks
 * than that some have none. */
enum { ROWS = 102, BATCH = 32, STEPS = 30 };

/* Of model.safetensors after the run of parallel_options, on any machine and any layout. */
static const struct {
    const char *model, *weights;
} golden[] = {
    {"tiny-bert", "800e7973dd2764a8af59572d7b53ea7aef44e34bb7748b92d4def1bcae220541"},
    {"tiny-distilbert", "22cebf89c8c2388d39a5bf4bdfdbd480bbf5b9cb8926ba5ae23aef30774cd37d"},
};

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

static ls_options parallel_options(const char *model)
{
    ls_options options = tiny_options(model, train, NULL);
    options.validation = validation;
    options.batch_size = BATCH;
    options.max_steps = STEPS;
    options.threads = 1;
    return options;
}

/* --- the same bits ---------------------------------------------------------------------------- */

typedef struct layout {
    int64_t devices, threads, bucket_size, samples_per_pass;
} layout;

enum { SMALL_BUCKETS = 16 << 10, LARGE_BUCKETS = 25 << 20, DEVICE_COUNTS = 5 };
static const int64_t device_counts[DEVICE_COUNTS] = {1, 2, 3, 4, 8};

static void check_layout(const char *model, layout l, const tiny_outcome *wanted)
{
    char what[200];
    ls_options options = parallel_options(model);
    options.strategy = "ddp";
    options.devices = l.devices;
    options.threads = l.threads;
    options.bucket_size = l.bucket_size;
    options.samples_per_pass = l.samples_per_pass;
    options.save_every = STEPS;
    snprintf(what, sizeof what, "%s, %lld threads, buckets of %lld, %lld samples a pass, devices",
             model, (long long)l.threads, (long long)l.bucket_size, (long long)l.samples_per_pass);
    tiny_outcome got = tiny_run(&options, folder);
    tiny_check_same(&got, wanted, what, l.devices);
    if (got.report.planned_bytes != got.report.measured_bytes)
        fail_msg("%s %lld: planned %lld bytes, measured %lld", what, (long long)l.devices,
                 (long long)got.report.planned_bytes, (long long)got.report.measured_bytes);
}

static layout layout_of(int64_t devices, int index)
{
    return (layout){devices, 1 + (index & 1), index & 2 ? SMALL_BUCKETS : LARGE_BUCKETS,
                    index & 4 ? 2 : LS_SAMPLES_ALL};
}

static void devices_do_not_matter(void **state)
{
    (void)state;
    bool all = test_all();
    int asked = 0;
    /* Of each number of devices two layouts that are opposites: any two of the settings then occur
     * with each other in all their values. */
    static const int sample[DEVICE_COUNTS] = {0, 1, 2, 3, 6};
    for (size_t m = 0; m < sizeof golden / sizeof *golden; m++) {
        ls_options single = parallel_options(golden[m].model);
        single.save_every = STEPS;
        tiny_outcome wanted = tiny_run(&single, folder);
        assert_int_equal(wanted.report.steps, STEPS);
        assert_string_equal(wanted.weights, golden[m].weights);
        assert_non_null(strstr(wanted.metrics, "\"evaluation\": \"validation\""));
        for (int d = 0; d < DEVICE_COUNTS; d++) {
            for (int index = 0; index < 8; index++) {
                bool first = index == sample[d], opposite = index == 7 - sample[d];
                if ((all || first || (opposite && m == 0)) && test_takes(&asked))
                    check_layout(golden[m].model, layout_of(device_counts[d], index), &wanted);
            }
        }
    }
}
static void one_rank_of_ddp_is_single(void **state)
{
    (void)state;
    ls_options options = parallel_options("tiny-bert");
    int64_t single = tiny_run(&options, folder).report.planned_bytes;
    options.strategy = "ddp";
    assert_int_equal(tiny_run(&options, folder).report.planned_bytes, single);
}

/* --- batches that ranks do not share evenly --------------------------------------------------- */

/* Leaves that are cut by the batch's end, one leaf for a rank, a data set smaller than a batch. */
static void odd_batches_do_not_matter(void **state)
{
    (void)state;
    static const struct {
        int64_t batch_size, leaf_size, devices, samples_per_pass;
    } odd[] = {{31, 4, 7, 3}, {5, 1, 5, 1}, {21, 2, 6, 3}, {1000, 9, 4, 7}, {9, 8, 2, 5}};
    int asked = 0;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        if (!test_takes(&asked)) continue;
        ls_options options = parallel_options("tiny-bert");
        options.max_steps = 7;
        options.batch_size = odd[i].batch_size;
        options.leaf_size = odd[i].leaf_size;
        tiny_outcome wanted = tiny_run(&options, folder);
        options.strategy = "ddp";
        options.devices = odd[i].devices;
        options.bucket_size = SMALL_BUCKETS;
        options.samples_per_pass = odd[i].samples_per_pass;
        tiny_outcome got = tiny_run(&options, folder);
        tiny_check_same(&got, &wanted, "batch of", odd[i].batch_size);
        assert_int_equal(got.report.planned_bytes, got.report.measured_bytes);
    }
}

/* --- memory ----------------------------------------------------------------------------------- */

/* More devices hold fewer samples each. */
static void a_device_needs_less_with_more_devices(void **state)
{
    (void)state;
    ls_options options = parallel_options("tiny-bert");
    options.samples_per_pass = LS_SAMPLES_ALL;
    int64_t alone = tiny_run(&options, folder).report.measured_bytes;
    options.strategy = "ddp";
    options.devices = 4;
    ls_train_report report = tiny_run(&options, folder).report;
    assert_true(report.measured_bytes < alone);
    /* A budget is a device's. */
    options.device_memory = report.measured_bytes;
    assert_int_equal(tiny_run(&options, folder).report.measured_bytes, report.measured_bytes);
    options.device_memory--;
    ls_error error;
    options.output = test_path(folder, "refused");
    assert_int_equal(ls_train(&options, NULL, NULL, NULL, &error), LS_NO_MEMORY);
    /* With auto a rank takes more passes instead. */
    options.samples_per_pass = LS_SAMPLES_AUTO;
    assert_true(tiny_run(&options, folder).report.measured_bytes < report.measured_bytes);
}

/* --- what is refused, what fails -------------------------------------------------------------- */

static void more_devices_than_leaves_are_refused(void **state)
{
    (void)state;
    static const struct {
        int64_t batch_size, leaf_size, devices;
        const char *says[4];
    } refused[] = {
        {32, 4, 9, {"--devices 9", "8 leaves", "32 samples", "--leaf-size 3"}},
        {32, 16, 4, {"--devices 4", "2 leaves", "32 samples", "--leaf-size 8"}},
        {4, 1, 6, {"--devices 6", "4 leaves", "4 samples", "--batch-size of at least 6"}},
        /* All there is, is one batch of 102. */
        {1000, 51, 3, {"--devices 3", "2 leaves", "102 samples", "--leaf-size 34"}},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        ls_error error;
        ls_options options = parallel_options("tiny-bert");
        options.strategy = "ddp";
        options.output = test_path(folder, "refused");
        options.batch_size = refused[i].batch_size;
        options.leaf_size = refused[i].leaf_size;
        options.devices = refused[i].devices;
        assert_int_equal(ls_train(&options, NULL, NULL, NULL, &error), LS_USAGE);
        for (int word = 0; word < 4; word++)
            if (!strstr(error.text, refused[i].says[word]))
                fail_msg("should say '%s': %s", refused[i].says[word], error.text);
        assert_int_not_equal(access(options.output, F_OK), 0);
    }
}

/* All ranks see the same sum: none waits for another, and what is said is said once. */
static void a_run_that_diverges_stops_on_all_ranks(void **state)
{
    (void)state;
    ls_error single, parallel;
    ls_options options = parallel_options("tiny-bert");
    options.output = test_path(folder, "diverged");
    options.learning_rate = options.weight_decay = 1e6;
    options.weight_decay_all = true;
    options.max_grad_norm = 0;
    assert_int_equal(ls_train(&options, NULL, NULL, NULL, &single), LS_NOT_FINITE);
    options.strategy = "ddp";
    options.devices = 3;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(ls_train(&options, NULL, NULL, NULL, &parallel), LS_NOT_FINITE);
        assert_string_equal(parallel.text, single.text);
    }
}

static bool stop_at_once(void *context)
{
    return ++*(int *)context > 2;
}

static void a_run_stops_on_request_with_its_model(void **state)
{
    (void)state;
    ls_error error;
    int asked[2] = {0, 0};
    ls_train_report report[2];
    ls_options options = parallel_options("tiny-bert");
    for (int i = 0; i < 2; i++) {
        options.output = test_path(folder, i ? "stopped-ddp" : "stopped");
        ls_callbacks callbacks = {.context = &asked[i], .should_stop = stop_at_once};
        options.strategy = i ? "ddp" : "single";
        options.devices = i ? 4 : 1;
        assert_int_equal(ls_train(&options, &callbacks, NULL, &report[i], &error), LS_INTERRUPTED);
    }
    assert_int_equal(report[0].steps, report[1].steps);
    assert_string_equal(report[0].weights_sha256, report[1].weights_sha256);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_do_not_matter),
        cmocka_unit_test(one_rank_of_ddp_is_single),
        cmocka_unit_test(odd_batches_do_not_matter),
        cmocka_unit_test(a_device_needs_less_with_more_devices),
        cmocka_unit_test(more_devices_than_leaves_are_refused),
        cmocka_unit_test(a_run_that_diverges_stops_on_all_ranks),
        cmocka_unit_test(a_run_stops_on_request_with_its_model),
    };
    return cmocka_run_group_tests_name("data_parallel", tests, setup, teardown);
}

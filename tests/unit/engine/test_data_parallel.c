/* Data parallel on devices of one process: the bits of one device, for any number of them; memory
 * as planned; and a rank that fails stops all.
 *
 * LOCKSTEP_TEST_LONG=1 runs every combination of layouts instead of one for each pair. */
#include "tiny_runs.h"

#include <unistd.h>

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
    bool all = getenv("LOCKSTEP_TEST_LONG") != NULL;
    /* Of each number of devices two layouts that are opposites: any two of the settings then occur
     * with each other in all their values. */
    static const int sample[DEVICE_COUNTS] = {0, 1, 2, 3, 6};
    for (size_t m = 0; m < sizeof golden / sizeof *golden; m++) {
        ls_options single = parallel_options(golden[m].model);
        tiny_outcome wanted = tiny_run(&single, folder);
        assert_int_equal(wanted.report.steps, STEPS);
        assert_string_equal(wanted.weights, golden[m].weights);
        assert_non_null(strstr(wanted.metrics, "\"evaluation\": \"validation\""));
        for (int d = 0; d < DEVICE_COUNTS; d++) {
            for (int index = 0; index < 8; index++) {
                bool first = index == sample[d], opposite = index == 7 - sample[d];
                if (all || first || (opposite && m == 0))
                    check_layout(golden[m].model, layout_of(device_counts[d], index), &wanted);
            }
        }
    }
}
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_do_not_matter),
    };
    return cmocka_run_group_tests_name("data_parallel", tests, setup, teardown);
}

/* Optimizer state in host memory or in a file: the bits of a run that has it on the device, for any
 * layout; memory as planned; and what goes wrong is said and leaves nothing.
 *
 * LOCKSTEP_TEST_LONG=1 runs every combination. */
#include "tiny_ranks.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "effort.h"

enum { ROWS = 102, BATCH = 32, STEPS = 6, PAGE_BYTES = 4096 };

static char *folder, *disk;
static const char *train;

static int setup(void **state)
{
    (void)state;
    folder = test_folder();
    disk = test_folder();
    train = strdup(tiny_file(folder, "train.tsv", ROWS));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free((char *)train);
    test_folder_remove(folder);
    test_folder_remove(disk);
    return 0;
}

static ls_options options_for(const char *model)
{
    ls_options options = tiny_options(model, train, NULL);
    options.batch_size = BATCH;
    options.max_steps = STEPS;
    options.threads = 1;
    options.offload_block_size = PAGE_BYTES;
    return options;
}

static void offload_to(ls_options *options, const char *place)
{
    options->offload_optimizer = place;
    options->offload_path = strcmp(place, "disk") == 0 ? disk : NULL;
}

static int entries(const char *path)
{
    int count = 0;
    DIR *files = opendir(path);
    assert_non_null(files);
    while (readdir(files))
        count++;
    closedir(files);
    return count - 2;
}

/* --- the same bits ---------------------------------------------------------------------------- */

static void check(const ls_options *options, const tiny_outcome *wanted, const char *what)
{
    tiny_outcome got = tiny_run(options, folder);
    const ls_train_report *report = &got.report;
    const char *optimizer = options->offload_optimizer, *parameters = options->offload_parameters;
    bool host = optimizer[0] == 'h' || (parameters && parameters[0] == 'h');
    bool file = optimizer[0] == 'd' || (parameters && parameters[0] == 'd');
    tiny_check_same(&got, wanted, what, options->devices);
    if (report->planned_bytes != report->measured_bytes ||
        report->planned_host_bytes != report->measured_host_bytes ||
        report->planned_file_bytes != report->measured_file_bytes)
        fail_msg("%s: planned %lld, %lld, %lld bytes, measured %lld, %lld, %lld", what,
                 (long long)report->planned_bytes, (long long)report->planned_host_bytes,
                 (long long)report->planned_file_bytes, (long long)report->measured_bytes,
                 (long long)report->measured_host_bytes, (long long)report->measured_file_bytes);
    assert_int_equal(report->planned_host_bytes > 0, host);
    assert_int_equal(report->planned_file_bytes > 0, file);
    assert_int_equal(entries(disk), 0);
}

/* Where the moments are, where the parameters are (with zero3), and everything else. */
static void layouts_do_not_matter(void **state)
{
    (void)state;
    static const char *const models[] = {"tiny-bert", "tiny-distilbert"};
    static const char *const places[] = {"none", "host", "disk"};
    static const char *const recompute[] = {"none", "layer", "attention"};
    static const char *const strategies[] = {"ddp", "zero1", "zero2", "zero3", "zero3", "zero3"};
    bool all = test_all();
    int asked = 0;
    for (size_t m = 0; m < 2; m++) {
        ls_options options = options_for(models[m]);
        options.validation = train;
        tiny_outcome wanted = tiny_run(&options, folder);
        for (int index = 0; index < 162; index++) {
            int place = index % 3, devices = index / 3 % 3, way = index / 9 % 3, s = index / 27;
            /* Each two of the settings in all their values, about once. */
            if (!all &&
                ((place + devices + way + s) % 3 || (place + 2 * devices + s) % 2 != (int)m))
                continue;
            if (!test_takes(&asked)) continue;
            options.strategy = strategies[s];
            options.offload_parameters = places[s < 3 ? 0 : s - 3];
            options.offload_optimizer = places[place];
            options.offload_path = place == 2 || s == 5 ? disk : NULL;
            options.recompute = recompute[way];
            options.devices = 1 + devices;
            options.threads = 1 + way % 2;
            options.offload_block_size = devices == 1 ? 5 * PAGE_BYTES : PAGE_BYTES;
            options.samples_per_pass = way == 2 ? 4 : LS_SAMPLES_ALL;
            check(&options, &wanted, strategies[s]);
        }
    }
}

static void names_of_strategies_say_it_too(void **state)
{
    (void)state;
    ls_options options = options_for("tiny-bert");
    tiny_outcome wanted = tiny_run(&options, folder);
    options.strategy = "ddp+offload+recompute";
    options.devices = 2;
    tiny_outcome got = tiny_run(&options, folder);
    tiny_check_same(&got, &wanted, "devices", 2);
    int64_t moments = got.report.planned_host_bytes;
    assert_true(moments > 0 && got.report.planned_file_bytes == 0);
    /* Each device has its own. */
    options.strategy = "zero2+offload";
    assert_in_range(tiny_run(&options, folder).report.planned_host_bytes, moments / 2,
                    moments * 3 / 4);
    options.strategy = "zero3+offload";
    got = tiny_run(&options, folder);
    tiny_check_same(&got, &wanted, "zero3+offload, devices", 2);
    assert_in_range(got.report.planned_host_bytes, moments * 3 / 4, moments);
    options.offload_optimizer = "disk";
    options.offload_path = disk;
    got = tiny_run(&options, folder);
    assert_true(got.report.planned_file_bytes > 0 && got.report.planned_host_bytes > 0);
}

/* From a page to one block for all. */
static void block_sizes_do_not_matter(void **state)
{
    (void)state;
    ls_options options = options_for("tiny-distilbert");
    tiny_outcome wanted = tiny_run(&options, folder);
    static const int64_t sizes[] = {1, 2, 3, 7, 16, 64, 256};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        offload_to(&options, i & 1 ? "host" : "disk");
        options.offload_block_size = sizes[i] * PAGE_BYTES;
        check(&options, &wanted, "block size");
    }
}

/* --- what is kept ----------------------------------------------------------------------------- */

static tiny_held state_after(const tiny_ranks_options *options)
{
    tiny_ranks r;
    tiny_ranks_open(&r, options);
    tiny_ranks_steps(&r, 3);
    tiny_held held = tiny_ranks_held(&r);
    tiny_ranks_close(&r);
    return held;
}

/* Parameters and moments, wherever they lie, with memory that is overwritten as soon as it is no
 * longer in use. */
static void what_is_kept_is_what_a_device_keeps(void **state)
{
    (void)state;
    static const ls_space spaces[] = {LS_SPACE_DEVICE, LS_SPACE_HOST_MEMORY, LS_SPACE_FILE};
    static const char *const strategies[] = {"ddp", "zero1", "zero2", "zero3"};
    tiny_ranks_options options = {.rows = train,
                                  .folder = folder,
                                  .count = 1,
                                  .batch_size = TINY_BATCH,
                                  .samples_per_pass = LS_SAMPLES_ALL};
    tiny_held wanted = state_after(&options);
    assert_true(wanted.count > 10000);
    bool all = test_all();
    int asked = 0;
    for (int index = 0; index < 27; index += all ? 1 : 2) {
        if (!test_takes(&asked)) continue;
        int optimizer = index % 3, parameters = index / 3 % 3, count = 1 + index / 9;
        bool divided = parameters > 0;
        options.strategy = strategies[divided ? 3 : (optimizer + count) % 4];
        options.count = count;
        options.poison = true;
        options.recompute = (ls_recompute_what)((optimizer + parameters + count) % 3);
        options.samples_per_pass = index % 2 ? 4 : LS_SAMPLES_ALL;
        options.offload = (ls_offload_options){.optimizer = spaces[optimizer],
                                               .parameters = spaces[parameters],
                                               .block_elements = 3 * PAGE_BYTES / 4};
        tiny_held got = state_after(&options);
        if (!tiny_same(&got, &wanted))
            fail_msg("%s on %d: moments in %d, parameters in %d", options.strategy, count,
                     optimizer, parameters);
        free(got.elements);
    }
    free(wanted.elements);
    assert_int_equal(entries(disk), 0);
}

static void a_step_allocates_nothing(void **state)
{
    (void)state;
    tiny_engine engine;
    tiny_engine_open_offloaded(
        &engine, "tiny-bert", train, folder, 6, NULL,
        (ls_offload_options){.optimizer = LS_SPACE_FILE, .block_elements = PAGE_BYTES / 4});
    tiny_engine_step(&engine, 1);
    tiny_engine_step(&engine, 2);
    uint64_t before = ls_allocation_count();
    for (int64_t step = 3; step <= 4; step++)
        tiny_engine_step(&engine, step);
    assert_int_equal(ls_allocation_count(), before);
    tiny_engine_close(&engine);
}

/* --- memory ----------------------------------------------------------------------------------- */

/* What does not fit on a device does once the moments are elsewhere, which its budget leaves out.
 */
static void a_budget_is_the_devices_alone(void **state)
{
    (void)state;
    ls_error error;
    ls_options options = options_for("tiny-bert");
    options.samples_per_pass = LS_SAMPLES_ALL;
    tiny_outcome wanted = tiny_run(&options, folder);
    options.device_memory = wanted.report.measured_bytes - 1;
    options.output = test_path(folder, "refused");
    assert_int_equal(ls_train(&options, NULL, NULL, NULL, &error), LS_NO_MEMORY);
    assert_int_not_equal(access(options.output, F_OK), 0);
    offload_to(&options, "host");
    tiny_outcome got = tiny_run(&options, folder);
    tiny_check_same(&got, &wanted, "budget", options.device_memory);
    /* But for the blocks that are on the device, and gaps between the runs' units. */
    int64_t saved = wanted.report.measured_bytes - got.report.measured_bytes;
    assert_true(saved > got.report.planned_host_bytes * 3 / 4);
}

/* --- what is refused, what fails -------------------------------------------------------------- */

static void what_does_not_go_together_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *strategy, *optimizer, *parameters, *path;
        int64_t block;
        const char *says[2];
    } refused[] = {
        {"ddp", "disk", NULL, NULL, 4096, {"--offload-optimizer disk", "--offload-path"}},
        {"ddp", "host", NULL, "x", 4096, {"--offload-path x", "--offload-optimizer disk"}},
        {"zero3", NULL, "disk", NULL, 4096, {"--offload-parameters disk", "--offload-path"}},
        {"zero3+offload", NULL, "none", NULL, 4096, {"zero3+offload", "--offload-parameters none"}},
        {"zero2", "host", "host", NULL, 4096, {"--offload-parameters host", "--strategy zero3"}},
        {"ddp", NULL, NULL, "x", 4096, {"--offload-path x", "--offload-optimizer"}},
        {"ddp+offload",
         "none",
         NULL,
         NULL,
         4096,
         {"--strategy ddp+offload", "--offload-optimizer none"}},
        {"ddp", "tape", NULL, NULL, 4096, {"--offload-optimizer", "none, host, disk"}},
        {"ddp", "host", "host", NULL, 4096, {"--offload-parameters host", "--strategy zero3"}},
        {"single", NULL, "disk", NULL, 4096, {"--offload-parameters disk", "--strategy zero3"}},
        {"ddp", "host", NULL, NULL, 5000, {"--offload-block-size", "4096"}},
        {"ddp", "host", NULL, NULL, 0, {"--offload-block-size", "4096"}},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        ls_error error;
        ls_options options = options_for("tiny-bert");
        options.output = test_path(folder, "refused");
        options.strategy = refused[i].strategy;
        options.offload_optimizer = refused[i].optimizer;
        options.offload_parameters = refused[i].parameters;
        options.offload_path = refused[i].path;
        options.offload_block_size = refused[i].block;
        assert_int_equal(ls_train(&options, NULL, NULL, NULL, &error), LS_USAGE);
        for (int word = 0; word < 2; word++)
            if (!strstr(error.text, refused[i].says[word]))
                fail_msg("should say '%s': %s", refused[i].says[word], error.text);
        assert_int_not_equal(access(options.output, F_OK), 0);
    }
}

static void limit_files(int64_t bytes, struct rlimit *former)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    if (former) *former = limit;
    limit.rlim_cur = (rlim_t)bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* Nothing has been changed when the disk turns out to be missing or full. */
static void a_disk_without_room_is_refused_at_the_start(void **state)
{
    (void)state;
    struct rlimit former;
    ls_error error;
    ls_options options = options_for("tiny-bert");
    offload_to(&options, "disk");
    options.output = test_path(folder, "refused");
    options.strategy = "ddp";
    options.devices = 2;
    options.offload_path = test_path(folder, "missing");
    assert_int_equal(ls_train(&options, NULL, NULL, NULL, &error), LS_IO);
    assert_non_null(strstr(error.text, "--offload-path"));
    assert_non_null(strstr(error.text, options.offload_path));
    assert_non_null(strstr(error.text, "No such file"));
    assert_int_not_equal(access(options.output, F_OK), 0);

    offload_to(&options, "disk");
    signal(SIGXFSZ, SIG_IGN);
    limit_files(100000, &former);
    ls_status status = ls_train(&options, NULL, NULL, NULL, &error);
    limit_files((int64_t)former.rlim_cur, NULL);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(status, LS_IO);
    assert_non_null(strstr(error.text, disk));
    assert_non_null(strstr(error.text, "File too large"));
    assert_int_not_equal(access(options.output, F_OK), 0);
    assert_int_equal(entries(disk), 0);
}

/* From the third step on the file takes nothing beyond its first pages. */
static void take_the_disk_away(void *context, const ls_step_report *report)
{
    if (report->step == 2) limit_files(20000, context);
}

static void a_disk_that_fails_ends_the_run_with_the_cause(void **state)
{
    (void)state;
    static const char *const strategies[] = {"ddp", "ddp", "zero3", "zero3"};
    for (int i = 0; i < 4; i++) {
        struct rlimit former;
        ls_error error;
        ls_train_report report;
        ls_callbacks callbacks = {.context = &former, .step = take_the_disk_away};
        ls_options options = options_for("tiny-bert");
        offload_to(&options, "disk");
        if (i > 1) options.offload_parameters = "disk";
        options.strategy = strategies[i];
        options.devices = i % 2 ? 3 : 1;
        options.output = test_path(folder, "failing");
        signal(SIGXFSZ, SIG_IGN);
        ls_status status = ls_train(&options, &callbacks, NULL, &report, &error);
        limit_files((int64_t)former.rlim_cur, NULL);
        signal(SIGXFSZ, SIG_DFL);
        assert_int_equal(status, LS_IO);
        assert_in_range(report.steps, 2, 4);
        assert_non_null(strstr(error.text, disk));
        assert_non_null(strstr(error.text, "File too large"));
        /* And which of several ranks it was. */
        char rank[32];
        snprintf(rank, sizeof rank, "rank %d: ", error.rank);
        assert_int_equal(strncmp(error.text, rank, strlen(rank)) == 0, options.devices > 1);
        assert_int_equal(entries(disk), 0);
        assert_int_not_equal(access(test_path(options.output, "model.safetensors"), F_OK), 0);
    }
}

static bool no_name_in_the_folder(void *context)
{
    ++*(int *)context;
    assert_int_equal(entries(disk), 0);
    return false;
}

static void the_file_has_no_name_while_it_is_used(void **state)
{
    (void)state;
    int asked = 0;
    ls_error error;
    ls_callbacks callbacks = {.context = &asked, .should_stop = no_name_in_the_folder};
    ls_options options = options_for("tiny-bert");
    offload_to(&options, "disk");
    options.output = test_path(folder, "output");
    assert_ok(ls_train(&options, &callbacks, NULL, NULL, &error), error);
    assert_true(asked >= STEPS - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts_do_not_matter),
        cmocka_unit_test(names_of_strategies_say_it_too),
        cmocka_unit_test(block_sizes_do_not_matter),
        cmocka_unit_test(what_is_kept_is_what_a_device_keeps),
        cmocka_unit_test(a_step_allocates_nothing),
        cmocka_unit_test(a_budget_is_the_devices_alone),
        cmocka_unit_test(what_does_not_go_together_is_refused),
        cmocka_unit_test(a_disk_without_room_is_refused_at_the_start),
        cmocka_unit_test(a_disk_that_fails_ends_the_run_with_the_cause),
        cmocka_unit_test(the_file_has_no_name_while_it_is_used),
    };
    return cmocka_run_group_tests_name("engine/offload", tests, setup, teardown);
}

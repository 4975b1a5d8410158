/* Processes, what a run wrote, the output folder. */
#include "testing.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/files.h"
#include "compare/facts.h"
#include "compare/folder.h"
#include "compare/process.h"

static ls_error error;
static char *folder;

static int make_folder(void **state)
{
    (void)state;
    folder = test_folder();
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    test_folder_remove(folder);
    return 0;
}

/* --- processes -----------------------------------------------------------------------------------
 */

static bool stop(void *context)
{
    return context && access(context, F_OK) == 0;
}

static void assert_ends(const char *script, int exit_status, int signal_number, const char *reason)
{
    const char *const words[] = {"/bin/sh", "-c", script, NULL};
    const char *log = test_path(folder, "log.txt");
    char found[200];
    ls_process_result result;
    assert_ok(ls_process_run(&result, words, log, NULL, NULL, &error), error);
    assert_int_equal(result.exit_status, exit_status);
    assert_int_equal(result.signal, signal_number);
    ls_process_reason(found, sizeof found, &result, log);
    assert_string_equal(found, reason);
}

static void a_process_gives_its_reason(void **state)
{
    (void)state;
    assert_ends("echo 'lockstep: first'; echo 'lockstep: last: x' >&2; echo more; exit 2", 2, 0,
                "last: x");
    assert_ends("echo nothing of use; exit 7", 7, 0,
                "ended with exit status 7 and without a reason");
    assert_ends("kill -9 $$", -1, SIGKILL, "killed by signal 9 (Killed)");
    assert_ends("cat; exit 1", 1, 0, "ended with exit status 1 and without a reason");
    const char *const words[] = {"/nowhere/program", NULL};
    ls_process_result result;
    assert_ok(ls_process_run(&result, words, test_path(folder, "log.txt"), NULL, NULL, &error),
              error);
    assert_int_equal(result.exit_status, 127);
    assert_int_equal(
        ls_process_run(&result, words, test_path(folder, "no/log"), NULL, NULL, &error), LS_IO);
    assert_non_null(strstr(error.text, "no/log"));
}

/* A program that does not listen is ended all the same, and its children with it. */
static void a_stop_ends_the_process(void **state)
{
    (void)state;
    static const char *const scripts[] = {"touch $1; exec sleep 1000",
                                          "trap '' TERM; touch $1; sleep 1000 & wait; sleep 1000"};
    for (int i = 0; i < 2; i++) {
        const char *sign = test_path(folder, i ? "two" : "one");
        const char *const words[] = {"/bin/sh", "-c", scripts[i], "sh", sign, NULL};
        ls_process_result result;
        double start = ls_seconds();
        assert_int_equal(ls_process_run(&result, words, test_path(folder, "log.txt"), stop,
                                        (void *)(uintptr_t)sign, &error),
                         LS_INTERRUPTED);
        assert_int_equal(result.signal, i ? SIGKILL : SIGTERM);
        assert_true(ls_seconds() - start < 30);
    }
}

/* --- what a run wrote
 * ------------------------------------------------------------------------------- */

static const char record[] =
    "{\"planned_bytes\": 100, \"measured_bytes\": 90, \"weights_sha256\": \"root\","
    " \"results\": {\"measured_bytes\": 95, \"weights_sha256\": \"abc\","
    " \"share\": {\"forward\": 0.3, \"data\": null},"
    " \"memory\": {\"parameters\": 60, \"inputs\": 0, \"activations\": 35}}}";
static const char metrics[] =
    "{\"step\": 1, \"loss\": 0.7, \"samples\": 4, \"tokens\": 40, \"step_seconds\": 9}\n"
    "{\"step\": 2, \"loss\": \"NaN\", \"samples\": 4, \"tokens\": 30, \"step_seconds\": 0.5}\n"
    "{\"step\": 2, \"evaluation\": \"validation\", \"loss\": 0.6, \"accuracy\": 0.5, \"macro_f1\": "
    "0.4}\n"
    "{\"step\": 3, \"loss\": 0.5, \"samples\": 2, \"tokens\": 20, \"step_seconds\": 0.25}\n"
    "{\"step\": 3, \"evaluation\": \"test\", \"loss\": 0.45, \"accuracy\": 0.75, \"macro_f1\": "
    "0.7}\n";

static const char summary[] = "{\"seconds\": 2, \"peak_flops_per_second\": 7,"
                              " \"bottleneck\": {\"text\": \"compute: most\", \"try\": \"x\"},"
                              " \"ops\": [{\"bytes\": 30}, {\"bytes\": 10}]}";

static void write_run(const char *run, const char *steps)
{
    test_write_file(test_path(folder, "run.json"), run, strlen(run));
    test_write_file(test_path(folder, "metrics.jsonl"), steps, strlen(steps));
}

static void numbers_are_read_back(void **state)
{
    (void)state;
    ls_run_facts facts;
    write_run(record, metrics);
    assert_ok(ls_run_facts_read(&facts, folder, 1, &error), error);
    assert_true(facts.values[LS_MEASURE_PLANNED_DEVICE_BYTES] == 100);
    assert_true(facts.values[LS_MEASURE_PEAK_DEVICE_BYTES] == 95);
    assert_true(facts.values[LS_MEASURE_SHARE_FORWARD] == 0.3);
    assert_true(isnan(facts.values[LS_MEASURE_SHARE_DATA]));
    assert_true(isnan(facts.values[LS_MEASURE_FLOPS_PER_SECOND]));
    assert_true(facts.values[LS_MEASURE_SAMPLES_PER_SECOND] == 8);
    assert_true(fabs(facts.values[LS_MEASURE_REAL_TOKENS_PER_SECOND] - 50 / 0.75) < 1e-9);
    assert_string_equal(facts.weights_sha256, "abc");
    assert_int_equal(facts.step_count, 2);
    assert_true(facts.step_ms[0] == 500);
    assert_int_equal(facts.loss_count, 3);
    assert_true(isnan(facts.losses[1].y));
    assert_int_equal(facts.accuracy_count, 1);
    assert_string_equal(facts.evaluated_on, "test");
    assert_true(facts.loss == 0.45 && facts.accuracy == 0.75 && facts.macro_f1 == 0.7);
    assert_int_equal(facts.part_count, 2);
    assert_string_equal(facts.parts[1].name, "activations");
    assert_true(isnan(facts.values[LS_MEASURE_OP_BYTES_PER_SECOND]));
    ls_run_facts_deinit(&facts);
    assert_ok(ls_folder_make(test_path(folder, "profile"), &error), error);
    test_write_file(test_path(folder, "profile/summary.json"), summary, sizeof summary - 1);
    assert_ok(ls_run_facts_read(&facts, folder, 1, &error), error);
    assert_true(facts.values[LS_MEASURE_OP_BYTES_PER_SECOND] == 20);
    assert_true(facts.peak_flops_per_second == 7);
    assert_string_equal(facts.bottleneck, "compute: most");
    ls_run_facts_deinit(&facts);
}

static void damaged_records_are_named(void **state)
{
    (void)state;
    ls_run_facts facts;
    assert_int_equal(ls_run_facts_read(&facts, folder, 0, &error), LS_IO);
    assert_non_null(strstr(error.text, "run.json"));
    ls_run_facts_deinit(&facts);
    write_run("{\"planned_bytes\": 1}", metrics);
    assert_int_equal(ls_run_facts_read(&facts, folder, 0, &error), LS_INVALID);
    assert_non_null(strstr(error.text, "no 'weights_sha256'"));
    ls_run_facts_deinit(&facts);
    write_run(record, "{\"step\": 1}\n{\"step\": \n");
    assert_int_equal(ls_run_facts_read(&facts, folder, 0, &error), LS_INVALID);
    assert_non_null(strstr(error.text, "metrics.jsonl:2"));
    ls_run_facts_deinit(&facts);
}

static int fail_in_turn(void *context, size_t bytes)
{
    int *left = context;
    (void)bytes;
    return (*left)-- == 0;
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    ls_status status = LS_NO_MEMORY;
    write_run(record, metrics);
    size_t before = ls_allocated_bytes();
    for (int turn = 0; status != LS_OK; turn++) {
        ls_run_facts facts;
        int left = turn;
        ls_set_allocation_hook(fail_in_turn, &left);
        status = ls_run_facts_read(&facts, folder, 0, &error);
        ls_set_allocation_hook(NULL, NULL);
        if (status != LS_OK) assert_int_equal(status, LS_NO_MEMORY);
        ls_run_facts_deinit(&facts);
        assert_int_equal(ls_allocated_bytes(), before);
    }
}

/* --- the folder
 * ---------------------------------------------------------------------------------------- */

static const ls_compare_documents documents = {"{}", "name\n", "<html>"};

static void finish(const char *path)
{
    ls_compare_folder output;
    assert_ok(ls_compare_folder_open(&output, path, "again", &error), error);
    assert_ok(ls_compare_folder_finish(&output, &documents, &error), error);
    ls_compare_folder_close(&output);
}

static void documents_appear_when_all_is_done(void **state)
{
    (void)state;
    const char *path = test_path(folder, "a/b");
    ls_compare_folder output;
    assert_ok(ls_compare_folder_open(&output, path, "again", &error), error);
    assert_true(ls_path_exists(test_path(path, "running/command.txt")));
    ls_compare_folder_close(&output);
    assert_false(ls_path_exists(test_path(folder, "a")));
    finish(path);
    assert_true(ls_path_exists(test_path(path, "compare.json")));
    assert_true(ls_path_exists(test_path(path, "runs/command.txt")));
    assert_false(ls_path_exists(test_path(path, "running")));
    finish(path);
    test_write_file(test_path(path, "notes"), "x", 1);
    assert_int_equal(ls_compare_folder_open(&output, path, "again", &error), LS_INVALID);
    assert_non_null(strstr(error.text, "notes"));
    assert_true(ls_path_exists(test_path(path, "compare.json")));
}

static void a_full_disk_leaves_the_former_one(void **state)
{
    (void)state;
    const char *path = test_path(folder, "full");
    static char large[100000];
    memset(large, 'x', sizeof large - 1);
    const ls_compare_documents full = {large, "name\n", "<html>"};
    ls_compare_folder output;
    struct rlimit before, small;
    finish(path);
    assert_ok(ls_compare_folder_open(&output, path, "again", &error), error);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    small = (struct rlimit){50000, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    ls_status status = ls_compare_folder_finish(&output, &full, &error);
    setrlimit(RLIMIT_FSIZE, &before);
    ls_compare_folder_close(&output);
    assert_int_equal(status, LS_IO);
    assert_non_null(strstr(error.text, "running/compare.json"));
    assert_true(ls_path_exists(test_path(path, "compare.json")));
    assert_true(ls_path_exists(test_path(path, "compare.csv")));
    assert_true(ls_path_exists(test_path(path, "report.html")));
    assert_true(ls_path_exists(test_path(path, "runs/command.txt")));
    assert_false(ls_path_exists(test_path(path, "running")));
    finish(path);
    assert_false(ls_path_exists(test_path(path, "runs/compare.json")));
}

static void names_of_rows_become_names_of_folders(void **state)
{
    (void)state;
    char name[LS_COMPARE_FOLDER_BYTES];
    ls_compare_folder_name(name, "single, all cores", 32, 7);
    assert_string_equal(name, "single-all-cores-batch32-seed7");
    ls_compare_folder_name(name, "zero3+offload", 8, -1);
    assert_string_equal(name, "zero3+offload-batch8-seed-1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_gives_its_reason),
        cmocka_unit_test(a_stop_ends_the_process),
        cmocka_unit_test(damaged_records_are_named),
        cmocka_unit_test(numbers_are_read_back),
        cmocka_unit_test(any_allocation_may_fail),
        cmocka_unit_test(documents_appear_when_all_is_done),
        cmocka_unit_test(a_full_disk_leaves_the_former_one),
        cmocka_unit_test(names_of_rows_become_names_of_folders),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

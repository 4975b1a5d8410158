/* Checkpoints of runs in this process: written beside training on ranks of any number, read by runs
 * on any other, with the bits and the history of a run that never stopped. */
#include "tiny_runs.h"

#include <unistd.h>

#include "base/alloc.h"
#include "base/files.h"
#include "base/staging.h"
#include "engine/checkpoint/folder.h"

static char *folder;
static const char *train, *validation;

static int setup(void **state)
{
    (void)state;
    folder = test_folder();
    train = strdup(tiny_rows(folder, "train.tsv"));
    validation = strdup(tiny_file(folder, "validation.tsv", 20));
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

static ls_options saving_options(const char *model)
{
    ls_options options = tiny_options(model, train, NULL);
    options.validation = validation;
    options.threads = 1;
    return options;
}

/* A run in folder/output goes into a folder below that is new. */
static tiny_outcome run_below(const ls_options *options, const char *name)
{
    ls_error error;
    char *below = strdup(test_path(folder, name));
    assert_ok(ls_folder_make(below, &error), error);
    tiny_outcome outcome = tiny_run(options, below);
    free(below);
    return outcome;
}

static void a_run_goes_on_from_any_step_on_any_ranks(void **state)
{
    (void)state;
    static const int64_t devices[] = {1, 2, 4};
    static const char *const models[] = {"tiny-bert", "tiny-distilbert"};
    char name[64], from[4096];
    for (int m = 0; m < 2; m++) {
        ls_options options = saving_options(models[m]);
        tiny_outcome wanted = run_below(&options, models[m]);
        options.strategy = "ddp";
        options.save_every = 1;
        options.save_total_limit = 100;
        for (int i = 0; i < 3; i++) {
            options.devices = devices[i];
            snprintf(name, sizeof name, "%s-%d", models[m], i);
            tiny_outcome got = run_below(&options, name);
            tiny_check_same(&got, &wanted, "saved on devices", devices[i]);
            assert_int_equal(got.report.planned_bytes, got.report.measured_bytes);
        }
        for (int64_t step = 1; step <= 2 * TINY_STEPS_AN_EPOCH; step++) {
            options.devices = devices[(step + 1) % 3];
            snprintf(name, sizeof name, "%s-%d", models[m], (int)(step % 3));
            snprintf(from, sizeof from, "%s/output/checkpoint-%lld", test_path(folder, name),
                     (long long)step);
            options.resume = from;
            options.save_async = step % 2;
            snprintf(name, sizeof name, "%s-again-%lld", models[m], (long long)step);
            tiny_outcome got = run_below(&options, name);
            tiny_check_same(&got, &wanted, "resumed after step", step);
            assert_int_equal(got.report.resumed_step, step);
            assert_int_equal(got.report.planned_bytes, got.report.measured_bytes);
        }
    }
}

/* Memory with a snapshot: what each rank saves of parameters and two moments. */
static void a_snapshot_is_in_the_plan(void **state)
{
    (void)state;
    ls_options options = saving_options("tiny-bert");
    options.strategy = "ddp";
    options.devices = 3;
    int64_t without = run_below(&options, "no-snapshot").report.planned_bytes;
    options.save_every = 100;
    int64_t with = run_below(&options, "snapshot").report.planned_bytes;
    /* 12 bytes a parameter over three ranks, and up to 64 a tensor for alignment. */
    int64_t parameters = 27898;
    assert_true(with - without >= 12 * parameters / 3);
    assert_true(with - without <= 12 * parameters / 3 + 123 * 64);
    options.save_async = false;
    assert_int_equal(run_below(&options, "no-snapshot-sync").report.planned_bytes, without);
}

static void the_folder_is_read_by_name(void **state)
{
    (void)state;
    ls_error error;
    ls_checkpoint_list list;
    char *output = test_folder();
    static const char *const names[] = {"checkpoint-20",       "checkpoint-3", "checkpoint-",
                                        "checkpoint-007",      "checkpoint-0", "checkpoint-5x",
                                        "checkpoint-9.tmp-17", "other"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_ok(ls_folder_make(test_path(output, names[i]), &error), error);
    assert_ok(ls_checkpoint_list_read(&list, output, &error), error);
    assert_int_equal(list.count, 3);
    assert_true(list.steps[0] == 0 && list.steps[1] == 3 && list.steps[2] == 20);
    ls_checkpoint_list_deinit(&list);
    assert_true(ls_checkpoint_is_one("checkpoint-9.tmp-17"));
    assert_false(ls_checkpoint_is_one("checkpoint-9.tmp-"));
    assert_false(ls_checkpoint_is_one("checkpoint-007"));
    assert_ok(ls_checkpoint_clean(output, &error), error);
    assert_false(ls_path_exists(test_path(output, "checkpoint-9.tmp-17")));
    assert_true(ls_path_exists(test_path(output, "checkpoint-20")));
    assert_ok(ls_checkpoint_list_read(&list, test_path(output, "nowhere"), &error), error);
    assert_int_equal(list.count, 0);
    test_folder_remove(output);
}

static void the_best_and_the_newest_stay(void **state)
{
    (void)state;
    ls_error error;
    ls_checkpoint_list list;
    char name[64], *output = test_folder();
    for (int step = 10; step <= 60; step += 10) {
        snprintf(name, sizeof name, "checkpoint-%d", step);
        assert_ok(ls_folder_make(test_path(output, name), &error), error);
    }
    /* The run stands at 50; 60 is of a run that had come further. */
    assert_ok(ls_checkpoint_prune(output, 50, 20, 2, &error), error);
    assert_ok(ls_checkpoint_list_read(&list, output, &error), error);
    assert_int_equal(list.count, 4);
    static const int64_t kept[] = {20, 40, 50, 60};
    for (int i = 0; i < 4; i++)
        assert_int_equal(list.steps[i], kept[i]);
    ls_checkpoint_list_deinit(&list);
    test_folder_remove(output);
}

/* --- a folder that appears whole ----------------------------------------------------------------
 */

static void a_folder_appears_whole_and_takes_the_place_of_another(void **state)
{
    (void)state;
    ls_error error;
    ls_staging staging;
    char *output = test_folder(), path[4096];
    snprintf(path, sizeof path, "%s", test_path(output, "whole"));
    for (int round = 0; round < 2; round++) {
        ls_sized_file file;
        char inside[4200];
        assert_ok(ls_staging_open(&staging, path, &error), error);
        assert_true(ls_path_exists(path) == (round == 1));
        snprintf(inside, sizeof inside, "%s/%s", staging.temporary, round ? "second" : "first");
        assert_ok(ls_sized_file_create(&file, inside, 8, &error), error);
        assert_ok(ls_sized_file_write(&file, "5678", 4, 4, &error), error);
        assert_ok(ls_sized_file_write(&file, "1234", 4, 0, &error), error);
        assert_ok(ls_sized_file_finish(&file, &error), error);
        ls_sized_file_deinit(&file);
        assert_ok(ls_staging_commit(&staging, &error), error);
        ls_staging_deinit(&staging);
    }
    char *bytes;
    size_t count;
    assert_ok(ls_file_read(&bytes, &count, test_path(path, "second"), 100, &error), error);
    assert_int_equal(count, 8);
    assert_memory_equal(bytes, "12345678", 8);
    ls_free(bytes);
    assert_false(ls_path_exists(test_path(path, "first")));
    /* One that is not committed leaves nothing. */
    assert_ok(ls_staging_open(&staging, test_path(output, "other"), &error), error);
    ls_staging_deinit(&staging);
    assert_ok(ls_folder_remove(path, &error), error);
    assert_ok(ls_folder_remove(path, &error), error);
    assert_int_equal(rmdir(output), 0);
    free(output);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_goes_on_from_any_step_on_any_ranks),
        cmocka_unit_test(a_snapshot_is_in_the_plan),
        cmocka_unit_test(the_folder_is_read_by_name),
        cmocka_unit_test(the_best_and_the_newest_stay),
        cmocka_unit_test(a_folder_appears_whole_and_takes_the_place_of_another),
    };
    return cmocka_run_group_tests_name("checkpoints", tests, setup, teardown);
}

/* How far a run has come, and whether a restart made a step. */
#include "testing.h"

#include <string.h>
#include <sys/stat.h>

#include "launch/run_progress.h"

static char *folder;

static void write_metrics(const char *text)
{
    test_write_file(test_path(folder, "metrics.jsonl"), text, strlen(text));
}

static int setup(void **state)
{
    (void)state;
    folder = test_folder();
    return folder ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    test_folder_remove(folder);
    return 0;
}

static void the_furthest_of_metrics_and_checkpoints_counts(void **state)
{
    (void)state;
    ls_run_progress progress = ls_run_progress_read(NULL);
    assert_int_equal(ls_run_progress_step(&progress), 0);
    progress = ls_run_progress_read(test_path(folder, "none"));
    assert_int_equal(progress.checkpoint, -1);
    write_metrics(
        "{\"step\": 1, \"loss\": 0.5}\n{\"step\": 12, \"loss\": 0.4}\n{\"step\": 13, \"lo");
    progress = ls_run_progress_read(folder);
    assert_int_equal(ls_run_progress_step(&progress), 12);
    mkdir(test_path(folder, "checkpoint-9"), 0755);
    mkdir(test_path(folder, "checkpoint-40"), 0755);
    mkdir(test_path(folder, "checkpoint-99.tmp"), 0755);
    mkdir(test_path(folder, "checkpoint-"), 0755);
    progress = ls_run_progress_read(folder);
    assert_int_equal(progress.checkpoint, 40);
    assert_int_equal(ls_run_progress_step(&progress), 40);
}

static void steps_made_are_told_from_steps_left_over(void **state)
{
    (void)state;
    mkdir(test_path(folder, "checkpoint-10"), 0755);
    write_metrics("{\"step\": 10}\n{\"step\": 11}\n{\"step\": 12}\n");
    const ls_run_progress before = ls_run_progress_read(folder);
    /* It ended before it touched anything: the lines are the former run's. */
    ls_run_progress after = ls_run_progress_read(folder);
    assert_false(ls_run_progress_made(&before, &after));
    /* It went back to the checkpoint and made nothing of it. */
    write_metrics("{\"step\": 10}\n");
    after = ls_run_progress_read(folder);
    assert_false(ls_run_progress_made(&before, &after));
    /* One step, though not as far as before. */
    write_metrics("{\"step\": 10}\n{\"step\": 11}\n");
    after = ls_run_progress_read(folder);
    assert_true(ls_run_progress_made(&before, &after));
    /* A checkpoint alone is proof. */
    mkdir(test_path(folder, "checkpoint-20"), 0755);
    write_metrics("");
    after = ls_run_progress_read(folder);
    assert_true(ls_run_progress_made(&before, &after));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_furthest_of_metrics_and_checkpoints_counts, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(steps_made_are_told_from_steps_left_over, setup, teardown),
    };
    return cmocka_run_group_tests_name("run_progress", tests, NULL, NULL);
}

/* Command lines, and lines of text as commands read them. */
#include "testing.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/exit_status.h"
#include "cli/lines.h"

enum { MOST_WORDS = 24 };

static ls_invocation invocation;
static ls_error error;

/* Parse a command line written with spaces; the words live until the next call. */
static ls_status parse(const ls_command *command, const char *line)
{
    static char copy[1000];
    char *words[MOST_WORDS], *state = NULL;
    int count = 0;
    ls_sources_free(invocation.sources);
    strncpy(copy, line, sizeof copy - 1);
    for (char *word = strtok_r(copy, " ", &state); word; word = strtok_r(NULL, " ", &state))
        words[count++] = word;
    return ls_arguments_parse(&invocation, command, count, words, &error);
}

static int free_sources(void **state)
{
    (void)state;
    ls_sources_free(invocation.sources);
    invocation.sources = NULL;
    return 0;
}

static void flags_take_values_in_both_ways(void **state)
{
    (void)state;
    assert_ok(parse(&ls_command_train,
                    "--model m --train=t.tsv --output o --batch_size 8 --learning-rate=1e-3 "
                    "--max-steps -1 --weight_decay_all --skip-bad-rows=false --quiet --seed 7"),
              error);
    assert_string_equal(invocation.options.model, "m");
    assert_string_equal(invocation.options.train, "t.tsv");
    assert_int_equal(invocation.options.batch_size, 8);
    assert_true(invocation.options.learning_rate == 1e-3);
    assert_int_equal(invocation.options.max_steps, -1);
    assert_true(invocation.options.weight_decay_all && invocation.quiet);
    assert_false(invocation.options.skip_bad_rows || invocation.help);
    assert_int_equal(invocation.options.seed, 7);
}

static void a_path_is_the_model_where_a_command_takes_one(void **state)
{
    (void)state;
    assert_ok(parse(&ls_command_inspect, "folder/model"), error);
    assert_string_equal(invocation.options.model, "folder/model");
    assert_int_equal(parse(&ls_command_inspect, "one two"), LS_USAGE);
    assert_int_equal(parse(&ls_command_predict, "folder"), LS_USAGE);
    assert_non_null(strstr(error.text, "folder"));
    assert_int_equal(parse(&ls_command_inspect, "-x"), LS_USAGE);
}

static void what_is_missing_is_named_with_an_example(void **state)
{
    (void)state;
    assert_int_equal(parse(&ls_command_train, "--model m --output o"), LS_USAGE);
    assert_non_null(strstr(error.text, "--train"));
    assert_non_null(strstr(error.text, "lockstep train --model"));
    assert_int_equal(parse(&ls_command_train, "--model m --epochs"), LS_USAGE);
    assert_non_null(strstr(error.text, "--epochs needs a value"));
    assert_int_equal(parse(&ls_command_train, "--model --train t"), LS_USAGE);
    assert_non_null(strstr(error.text, "--model needs a value"));
    assert_ok(parse(&ls_command_train, "--help"), error);
    assert_true(invocation.help);
}

static void wrong_flags_are_explained(void **state)
{
    (void)state;
    assert_int_equal(parse(&ls_command_train, "--epoch 3"), LS_USAGE);
    assert_non_null(strstr(error.text, "--epochs"));
    assert_int_equal(parse(&ls_command_predict, "--model m --epochs 3"), LS_USAGE);
    assert_non_null(strstr(error.text, "predict has no --epochs"));
    assert_non_null(strstr(error.text, "train, plan"));
    assert_int_equal(parse(&ls_command_tokenize, "--quiet"), LS_USAGE);
    assert_int_equal(parse(&ls_command_train, "--=3"), LS_USAGE);
    assert_int_equal(parse(&ls_command_train, "--"), LS_USAGE);
}

static void each_status_has_its_exit_code(void **state)
{
    (void)state;
    assert_int_equal(ls_exit_status(LS_OK), 0);
    assert_int_equal(ls_exit_status(LS_INVALID), 1);
    assert_int_equal(ls_exit_status(LS_IO), 1);
    assert_int_equal(ls_exit_status(LS_NO_MEMORY), 1);
    assert_int_equal(ls_exit_status(LS_USAGE), 2);
    assert_int_equal(ls_exit_status(LS_UNSUPPORTED), 1);
    assert_int_equal(ls_exit_status(LS_NOT_FINITE), 5);
    assert_int_equal(ls_exit_status(LS_INTERRUPTED), 75);
}

/* --- lines ----------------------------------------------------------------------------------- */

static void lines_end_in_many_ways(void **state)
{
    (void)state;
    static const char bytes[] = "\xef\xbb\xbf"
                                "one\r\n\ntwo\0x\nlast";
    char *folder = test_folder();
    ls_lines lines;
    ls_line batch[3];
    size_t count = 0;
    test_write_file(test_path(folder, "x.txt"), bytes, sizeof bytes - 1);
    assert_ok(ls_lines_open(&lines, test_path(folder, "x.txt"), &error), error);
    assert_ok(ls_lines_next(&lines, batch, 3, &count, &error), error);
    assert_int_equal(count, 3);
    assert_string_equal(batch[0].text, "one");
    assert_int_equal(batch[1].length, 0);
    assert_int_equal(batch[2].length, 5);
    assert_int_equal(batch[2].number, 3);
    assert_ok(ls_lines_next(&lines, batch, 3, &count, &error), error);
    assert_int_equal(count, 1);
    assert_string_equal(batch[0].text, "last");
    assert_ok(ls_lines_next(&lines, batch, 3, &count, &error), error);
    assert_int_equal(count, 0);
    ls_lines_close(&lines);
    assert_int_equal(ls_lines_open(&lines, test_path(folder, "no.txt"), &error), LS_IO);
    assert_non_null(strstr(error.text, "no.txt"));
    test_folder_remove(folder);
}

/* Someone who types a line gets its answer before the next one. */
static void a_line_does_not_wait_for_the_next(void **state)
{
    (void)state;
    int ends[2];
    ls_line batch[8];
    size_t count = 0;
    assert_int_equal(pipe(ends), 0);
    ls_lines lines = {.descriptor = ends[0], .name = "pipe"};
    assert_int_equal(write(ends[1], "one\ntwo\nth", 10), 10);
    assert_ok(ls_lines_next(&lines, batch, 8, &count, &error), error);
    assert_int_equal(count, 2);
    assert_int_equal(write(ends[1], "ree\n", 4), 4);
    assert_ok(ls_lines_next(&lines, batch, 8, &count, &error), error);
    assert_int_equal(count, 1);
    assert_string_equal(batch[0].text, "three");
    close(ends[1]);
    assert_ok(ls_lines_next(&lines, batch, 8, &count, &error), error);
    assert_int_equal(count, 0);
    ls_lines_close(&lines);
}

static void a_line_without_end_is_refused_by_its_number(void **state)
{
    (void)state;
    ls_line batch[8];
    size_t count = 0;
    ls_lines lines = {.descriptor = open("/dev/zero", O_RDONLY), .name = "zeros"};
    assert_int_equal(ls_lines_next(&lines, batch, 8, &count, &error), LS_INVALID);
    assert_non_null(strstr(error.text, "zeros:1"));
    ls_lines_close(&lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(flags_take_values_in_both_ways, free_sources),
        cmocka_unit_test_teardown(a_path_is_the_model_where_a_command_takes_one, free_sources),
        cmocka_unit_test_teardown(what_is_missing_is_named_with_an_example, free_sources),
        cmocka_unit_test_teardown(wrong_flags_are_explained, free_sources),
        cmocka_unit_test(each_status_has_its_exit_code),
        cmocka_unit_test(lines_end_in_many_ways),
        cmocka_unit_test(a_line_does_not_wait_for_the_next),
        cmocka_unit_test(a_line_without_end_is_refused_by_its_number),
    };
    return cmocka_run_group_tests_name("cli/arguments", tests, NULL, NULL);
}

/* What the program shows: columns, numbers, progress lines, the evaluation block. */
#include "testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/columns.h"
#include "cli/evaluation.h"
#include "cli/format.h"
#include "cli/progress_line.h"

static void text_is_cut_by_columns_not_bytes(void **state)
{
    (void)state;
    char into[64];
    assert_int_equal(ls_columns_fit(into, sizeof into, "positive", 8), 8);
    assert_string_equal(into, "positive");
    assert_int_equal(ls_columns_fit(into, sizeof into, "positive", 5), 5);
    assert_string_equal(into, "posi…");
    assert_int_equal(ls_columns_fit(into, sizeof into, "été", 3), 3);
    assert_string_equal(into, "été");
    assert_int_equal(ls_columns_of("日本語"), 6);
    assert_int_equal(ls_columns_fit(into, sizeof into, "日本語", 4), 3);
    assert_string_equal(into, "日…");
    assert_int_equal(ls_columns_fit(into, sizeof into, "abc", 0), 0);
    assert_string_equal(into, "");
    assert_int_equal(ls_columns_fit(into, 5, "abcdefgh", 50), 2);
    assert_string_equal(into, "a…");
}

static void nothing_can_steer_the_terminal(void **state)
{
    (void)state;
    char into[64];
    ls_columns_fit(into, sizeof into, "a\x1b[31m\tb\xff\xc2\x9bz\xe2\x80\xae", LS_NO_LIMIT);
    assert_string_equal(into, "a?[31m?b??z?");
}

static void only_utf8_is_valid(void **state)
{
    (void)state;
    static const char *const bad[] = {"\xff",         "\xc0\x80",         "\xc3",
                                      "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe0\x80\x80"};
    assert_true(ls_utf8_is_valid("aé日😀", strlen("aé日😀")));
    assert_false(ls_utf8_is_valid("a\0b", 3));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(ls_utf8_is_valid(bad[i], strlen(bad[i])));
}

static void numbers_are_written_for_people(void **state)
{
    (void)state;
    char into[LS_FORMAT_BYTES];
    assert_string_equal(ls_format_count(into, 0), "0");
    assert_string_equal(ls_format_count(into, 1234567), "1,234,567");
    assert_string_equal(ls_format_count(into, -1000), "-1,000");
    assert_string_equal(ls_format_count(into, INT64_MIN), "-9,223,372,036,854,775,808");
    assert_string_equal(ls_format_bytes(into, 1023), "1023 bytes");
    assert_string_equal(ls_format_bytes(into, 642123456), "612.4 MiB");
    assert_string_equal(ls_format_duration(into, 59.6), "1:00");
    assert_string_equal(ls_format_duration(into, 3723), "1:02:03");
    assert_string_equal(ls_format_duration(into, NAN), "-:--");
}

static ls_step_report report_at(int64_t step)
{
    return (ls_step_report){.step = step,
                            .total_steps = 1234,
                            .epoch = 0.5,
                            .loss = 0.4321,
                            .learning_rate = 5e-5,
                            .gradient_norm = 1.234,
                            .tokens_per_second = 1812,
                            .seconds_left = 151};
}

static void a_live_line_fits_every_width(void **state)
{
    (void)state;
    char line[512];
    for (int columns = 1; columns <= 200; columns++) {
        for (int64_t step = 1; step <= 1234; step += 137) {
            ls_step_report report = report_at(step);
            ls_progress_live_line(line, sizeof line, columns, &report);
            assert_true(ls_columns_of(line) <= columns);
        }
    }
}

static void a_narrow_line_keeps_what_matters_most(void **state)
{
    (void)state;
    char line[512];
    ls_step_report report = report_at(617);
    ls_progress_live_line(line, sizeof line, 39, &report);
    assert_string_equal(line, " 617/1234  loss 0.4321  2:31 left");
    ls_progress_live_line(line, sizeof line, 60, &report);
    assert_string_equal(line, "[====>      ]  617/1234  loss 0.4321  1,812 tok/s  2:31 left");
    ls_progress_live_line(line, sizeof line, 120, &report);
    assert_non_null(strstr(line, "lr 5.00e-05  norm 1.23  1,812 tok/s  2:31 left"));
}

static void odd_reports_do_no_harm(void **state)
{
    (void)state;
    char line[512];
    ls_step_report report = {.step = INT64_MAX,
                             .total_steps = 0,
                             .loss = NAN,
                             .learning_rate = 1e300,
                             .gradient_norm = INFINITY,
                             .tokens_per_second = INFINITY,
                             .seconds_left = -1};
    ls_progress_live_line(line, sizeof line, 200, &report);
    assert_non_null(strstr(line, "loss nan"));
    ls_progress_plain_line(line, sizeof line, &report);
    assert_non_null(strstr(line, "gradient norm inf"));
    report.loss = -1e300;
    ls_progress_live_line(line, sizeof line, 80, &report);
    ls_progress_stage_line(line, sizeof line, 20, "reading a/very/long/path/train.tsv", 45, 100);
    assert_string_equal(line, "reading a/very… 45 %");
    ls_progress_stage_line(line, sizeof line, 80, "reading train.tsv", 45, 0);
    assert_string_equal(line, "reading train.tsv");
}

/* --- evaluation ------------------------------------------------------------------------------ */

enum { MOST_CLASSES = 150 };

static char *evaluation_text(int classes, int columns, const char *label)
{
    static char text[1 << 16];
    static const char *labels[MOST_CLASSES];
    static int64_t confusion[MOST_CLASSES * MOST_CLASSES];
    for (int id = 0; id < classes; id++)
        labels[id] = label;
    for (int cell = 0; cell < classes * classes; cell++)
        confusion[cell] = cell % (classes + 1) ? 1 : 1000;
    ls_evaluation_report report = {.name = "validation",
                                   .epoch = 1,
                                   .step = 267,
                                   .samples = 1066,
                                   .classes = classes,
                                   .labels = labels,
                                   .confusion = confusion,
                                   .loss = 0.4212,
                                   .accuracy = 0.8124,
                                   .macro_f1 = 0.8119};
    memset(text, 0, sizeof text);
    FILE *stream = fmemopen(text, sizeof text, "w");
    assert_non_null(stream);
    ls_evaluation_print_fitted(stream, &report, columns);
    assert_int_equal(fclose(stream), 0);
    return text;
}

static int widest_line(const char *text)
{
    char line[4096];
    int widest = 0;
    while (*text) {
        size_t length = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)length, text);
        if (ls_columns_of(line) > widest) widest = ls_columns_of(line);
        text += length + (text[length] == '\n');
    }
    return widest;
}

static void an_evaluation_shows_metrics_and_confusion(void **state)
{
    (void)state;
    const char *text = evaluation_text(2, 80, "positive");
    assert_non_null(strstr(text, "validation, epoch 1, step 267\n"));
    assert_non_null(strstr(text, "accuracy  0.8124  (2,000 of 1,066 rows)"));
    assert_non_null(strstr(text, "macro-F1  0.8119"));
    assert_non_null(strstr(text, "loss      0.4212"));
    assert_non_null(strstr(text, "  true \\ predicted  positive  positive\n"));
    assert_non_null(strstr(text, "  positive             1,000         1\n"));
}

static void a_confusion_table_fits_or_becomes_a_list(void **state)
{
    (void)state;
    static const char longest[] = "a label that is far too long for the column of a table";
    for (int classes = 2; classes <= 12; classes++)
        for (int columns = 50; columns <= 200; columns += 10)
            assert_true(widest_line(evaluation_text(classes, columns, longest)) <= columns);
    assert_non_null(strstr(evaluation_text(12, 120, "x"), "true \\ predicted"));
    const char *list = evaluation_text(13, 200, "x");
    assert_null(strstr(list, "predicted"));
    assert_non_null(strstr(list, "class precision   recall       F1     rows\n"));
    assert_non_null(strstr(list, "x        0.9881   0.9881   0.9881     1012\n"));
    assert_non_null(strstr(evaluation_text(150, 80, "x"), "and 50 classes more"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_cut_by_columns_not_bytes),
        cmocka_unit_test(nothing_can_steer_the_terminal),
        cmocka_unit_test(only_utf8_is_valid),
        cmocka_unit_test(numbers_are_written_for_people),
        cmocka_unit_test(a_live_line_fits_every_width),
        cmocka_unit_test(a_narrow_line_keeps_what_matters_most),
        cmocka_unit_test(odd_reports_do_no_harm),
        cmocka_unit_test(an_evaluation_shows_metrics_and_confusion),
        cmocka_unit_test(a_confusion_table_fits_or_becomes_a_list),
    };
    return cmocka_run_group_tests_name("cli/display", tests, NULL, NULL);
}

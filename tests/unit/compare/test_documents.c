/* compare.json, compare.csv, the page's data, the timeline, the tables of a terminal. */
#include "comparisons.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/files.h"
#include "cli/columns.h"
#include "cli/compare_table.h"
#include "compare/documents.h"
#include "compare/report.h"
#include "compare/timeline.h"
#include "formats/json.h"

static made_comparison made;
static ls_text text;
static ls_error error;

static int fresh(void **state)
{
    (void)state;
    make_comparison(&made);
    finish_comparison(&made);
    return 0;
}

static int clear(void **state)
{
    (void)state;
    ls_text_deinit(&text);
    return 0;
}

static void json_holds_the_numbers_and_null(void **state)
{
    (void)state;
    json_t *root;
    assert_ok(ls_compare_json(&made.comparison, &text, &error), error);
    assert_ok(ls_json_parse(&root, text.data, text.length, "compare.json", &error), error);
    const json_t *rows = json_object_get(root, "rows");
    assert_int_equal(json_array_size(rows), 3);
    assert_int_equal(json_array_size(json_object_get(root, "batch_size_rows")), 1);
    const json_t *ddp = json_array_get(rows, 2);
    assert_true(json_number_value(json_object_get(ddp, "samples_per_second")) == 18);
    assert_true(json_number_value(json_object_get(ddp, "speed_up")) == 1.8);
    assert_true(json_is_null(json_object_get(ddp, "flops_per_second")));
    assert_true(json_is_null(json_object_get(ddp, "memory")));
    assert_true(json_is_true(json_object_get(ddp, "same_bits_as_single")));
    assert_string_equal(json_string_value(json_object_get(ddp, "weights_sha256")),
                        made.seeds[2][0].weights_sha256);
    assert_int_equal(json_array_size(json_object_get(ddp, "seeds")), 2);
    assert_true(json_array_size(json_object_get(root, "verdicts")) >= 5);
    for (int i = 0; i < LS_MEASURE_COUNT; i++)
        assert_non_null(json_object_get(ddp, ls_measure_table[i].key));
    ls_json_free(root);
}

/* A reason is a child's output: it may be cut in a character, or be no text at all. */
static void any_reason_gives_whole_documents(void **state)
{
    (void)state;
    static const char reason[] = "bad, \"quoted\"\t\x1b <\xc3\xa9> \xff\xc3";
    json_t *root;
    made.rows[2].state = LS_COMPARE_FAILED;
    snprintf(made.rows[2].reason, sizeof made.rows[2].reason, "%s", reason);
    finish_comparison(&made);
    assert_ok(ls_compare_json(&made.comparison, &text, &error), error);
    assert_ok(ls_json_parse(&root, text.data, text.length, "compare.json", &error), error);
    const json_t *row = json_array_get(json_object_get(root, "rows"), 2);
    assert_string_equal(json_string_value(json_object_get(row, "reason")),
                        "bad, \"quoted\"\t\x1b <\xc3\xa9> ??");
    ls_json_free(root);
    ls_text_clear(&text);
    assert_ok(ls_compare_csv(&made.comparison, &text, &error), error);
    assert_non_null(strstr(text.data, "\nddp,failed,\"bad, \"\"quoted\"\"\t"));
    assert_non_null(strstr(text.data, "\n\"single, all cores\",done,,1,2,32,19,"));
}

static void long_curves_are_thinned(void **state)
{
    (void)state;
    static ls_compare_point many[1001];
    json_t *root;
    for (int i = 0; i < 1001; i++)
        many[i] = (ls_compare_point){i + 1, i == 500 ? NAN : 1};
    made.rows[0].full.losses = many;
    made.rows[0].full.loss_count = 1001;
    assert_ok(ls_compare_json(&made.comparison, &text, &error), error);
    assert_ok(ls_json_parse(&root, text.data, text.length, "compare.json", &error), error);
    const json_t *row = json_array_get(json_object_get(root, "rows"), 0);
    const json_t *curve = json_object_get(row, "training_loss");
    size_t count = json_array_size(curve);
    assert_in_range(count, 200, 401);
    const json_t *last = json_array_get(curve, count - 1);
    assert_true(json_number_value(json_array_get(last, 0)) == 1001);
    ls_json_free(root);
}

static void no_text_ends_the_pages_script(void **state)
{
    (void)state;
    assert_ok(ls_compare_report_json(&text, "{\"a\": \"</script><!--\"}", &error), error);
    assert_string_equal(text.data, "{\"a\": \"\\u003c/script>\\u003c!--\"}");
}

static void a_step_of_the_trace_becomes_the_timeline(void **state)
{
    (void)state;
    static const char trace[] =
        "{\"traceEvents\":["
        "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":0,\"args\":{\"name\":\"compute\"}"
        "},"
        "{\"ph\":\"X\",\"name\":\"step "
        "4\",\"cat\":\"step\",\"pid\":0,\"tid\":0,\"ts\":0,\"dur\":10},"
        "{\"ph\":\"X\",\"name\":\"step "
        "5\",\"cat\":\"step\",\"pid\":0,\"tid\":0,\"ts\":1000,\"dur\":2000},"
        "{\"ph\":\"X\",\"name\":\"before\",\"cat\":\"forward\",\"pid\":1,\"tid\":0,\"ts\":1,"
        "\"dur\":3},"
        "{\"ph\":\"X\",\"name\":\"linear\",\"cat\":\"forward\",\"pid\":1,\"tid\":0,\"ts\":1500,"
        "\"dur\":250,"
        "\"args\":{\"layer\":\"layer 0\"}},"
        "{\"ph\":\"C\",\"name\":\"memory\",\"pid\":1,\"ts\":1500}]}";
    json_t *root;
    char *folder = test_folder();
    assert_ok(ls_compare_timeline(&text, folder, "ddp", &error), error);
    assert_int_equal(text.length, 0);
    assert_ok(ls_folder_make(test_path(folder, "profile"), &error), error);
    test_write_file(test_path(folder, "profile/trace.json"), trace, sizeof trace - 1);
    assert_ok(ls_compare_timeline(&text, folder, "ddp", &error), error);
    assert_ok(ls_json_parse(&root, text.data, text.length, "timeline", &error), error);
    const json_t *events = json_object_get(root, "events");
    assert_string_equal(json_string_value(json_object_get(root, "step")), "step 5");
    assert_int_equal(json_array_size(events), 1);
    const json_t *event = json_array_get(events, 0);
    assert_string_equal(json_string_value(json_object_get(event, "thread")), "compute");
    assert_string_equal(json_string_value(json_object_get(event, "layer")), "layer 0");
    assert_true(json_number_value(json_object_get(event, "from_ms")) == 0.5);
    assert_true(json_number_value(json_object_get(event, "to_ms")) == 0.75);
    ls_json_free(root);
    test_write_file(test_path(folder, "profile/trace.json"), trace, 30);
    assert_int_equal(ls_compare_timeline(&text, folder, "ddp", &error), LS_INVALID);
    assert_non_null(strstr(error.text, "trace.json"));
    test_folder_remove(folder);
}

/* What is printed into so many columns; free it. */
static char *printed(int columns)
{
    char *data = NULL;
    size_t size;
    FILE *stream = open_memstream(&data, &size);
    assert_non_null(stream);
    ls_compare_table_print(stream, columns, &made.comparison);
    ls_compare_verdicts_print(stream, columns, &made.comparison);
    assert_int_equal(fclose(stream), 0);
    for (char *line = data; *line;) {
        char *end = strchr(line, '\n'), kept = *end;
        *end = '\0';
        if (ls_columns_of(line) > columns) fail_msg("wider than %d columns: %s", columns, line);
        *end = kept;
        line = end + 1;
    }
    return data;
}

static void tables_fit_the_terminal(void **state)
{
    (void)state;
    made.rows[1].state = LS_COMPARE_FAILED;
    for (int i = 0; i < 60; i++)
        strcat(made.rows[1].reason, "xxxx ");
    finish_comparison(&made);
    char *wide = printed(80);
    assert_non_null(strstr(wide, "strategy           samples/s  tokens/s  ms/step  p95"));
    assert_non_null(
        strstr(wide, "\nddp                     18.0       360      200  301      1.80"));
    assert_non_null(strstr(wide, "\nsingle, all cores  failed: xxxx"));
    assert_non_null(strstr(wide, "0.8100±0.0141"));
    free(wide);
    char *narrow = printed(40);
    assert_non_null(strstr(narrow, "\nddp\n  samples/s   18.0\n  tokens/s    360\n"));
    assert_non_null(strstr(narrow, "\n  same bits   yes\n"));
    free(narrow);
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
    size_t before = ls_allocated_bytes();
    ls_status status = LS_NO_MEMORY;
    for (int turn = 0; status != LS_OK; turn++) {
        int left = turn;
        ls_set_allocation_hook(fail_in_turn, &left);
        status = ls_compare_json(&made.comparison, &text, &error);
        if (status == LS_OK) status = ls_compare_csv(&made.comparison, &text, &error);
        ls_set_allocation_hook(NULL, NULL);
        if (status != LS_OK) assert_int_equal(status, LS_NO_MEMORY);
        ls_text_deinit(&text);
        assert_int_equal(ls_allocated_bytes(), before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(json_holds_the_numbers_and_null, fresh, clear),
        cmocka_unit_test_setup_teardown(any_reason_gives_whole_documents, fresh, clear),
        cmocka_unit_test_setup_teardown(long_curves_are_thinned, fresh, clear),
        cmocka_unit_test_setup_teardown(no_text_ends_the_pages_script, fresh, clear),
        cmocka_unit_test_setup_teardown(a_step_of_the_trace_becomes_the_timeline, fresh, clear),
        cmocka_unit_test_setup_teardown(tables_fit_the_terminal, fresh, clear),
        cmocka_unit_test_setup_teardown(any_allocation_may_fail, fresh, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

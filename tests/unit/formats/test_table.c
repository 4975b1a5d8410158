/* formats/table: rows of TSV, CSV and JSONL; columns; bad rows that can be skipped. */
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/table.h"

/* The folder of the running test. */
typedef struct fixture {
    char *folder;
    const char *path;
    ls_table *table;
} fixture;

static int make_folder(void **state)
{
    fixture *test = calloc(1, sizeof *test);
    assert_non_null(test);
    test->folder = test_folder();
    *state = test;
    return 0;
}

static int remove_folder(void **state)
{
    fixture *test = *state;
    ls_table_free(test->table);
    test_folder_remove(test->folder);
    free(test);
    return 0;
}

static ls_status open_bytes(fixture *test, const char *name, const char *bytes, size_t count,
                            const ls_table_options *options, ls_error *error)
{
    static const ls_table_options none;
    ls_table_free(test->table);
    test->table = NULL;
    test->path = test_path(test->folder, name);
    test_write_file(test->path, bytes, count);
    return ls_table_open(&test->table, test->path, options ? options : &none, error);
}

static void open_text(fixture *test, const char *name, const char *text,
                      const ls_table_options *options)
{
    ls_error error;
    assert_ok(open_bytes(test, name, text, strlen(text), options, &error), error);
}

static void expect_not_opened(fixture *test, const char *name, const char *text,
                              const ls_table_options *options, ls_status status, const char *why)
{
    ls_error error = {0};
    ls_status got = open_bytes(test, name, text, strlen(text), options, &error);
    if (got != status || !strstr(error.text, why) || !strstr(error.text, name))
        fail_msg("wanted '%s', got %d '%s'", why, got, error.text);
    assert_null(test->table);
}

static void expect_row(fixture *test, uint64_t line, const char *text, const char *pair,
                       const char *label)
{
    ls_error error;
    ls_row row;
    bool more = false;
    assert_ok(ls_table_next(test->table, &row, &more, &error), error);
    assert_true(more);
    assert_int_equal(row.text_length, strlen(text));
    assert_memory_equal(row.text, text, row.text_length);
    assert_int_equal(row.line, line);
    assert_int_equal(row.pair != NULL, pair != NULL);
    if (pair) assert_int_equal(row.pair_length, strlen(pair));
    if (pair) assert_memory_equal(row.pair, pair, row.pair_length);
    assert_int_equal(row.has_label, label != NULL);
    if (label) assert_string_equal(row.label, label);
    if (label) assert_int_equal(row.label_length, strlen(label));
}

static void expect_end(fixture *test)
{
    ls_error error;
    ls_row row;
    bool more = true;
    for (int i = 0; i < 2; i++) {
        assert_ok(ls_table_next(test->table, &row, &more, &error), error);
        assert_false(more);
    }
}

/* A bad row on this line; the reader goes on after it. */
static void expect_bad(fixture *test, uint64_t line, const char *why)
{
    ls_error error = {0};
    ls_row row;
    bool more = true;
    char place[4200];
    snprintf(place, sizeof place, "%s:%llu: ", test->path, (unsigned long long)line);
    ls_status status = ls_table_next(test->table, &row, &more, &error);
    if (status != LS_INVALID || strncmp(error.text, place, strlen(place)) != 0 ||
        !strstr(error.text, why))
        fail_msg("wanted '%s%s', got %d '%s'", place, why, status, error.text);
    assert_false(more);
    assert_true(ls_table_can_skip(test->table));
}

static void csv_follows_rfc_4180(void **state)
{
    fixture *test = *state;
    open_text(test, "a.csv",
              "\xef\xbb\xbfid,\"text\",label\r\n"
              "1,plain,pos\r\n"
              "2,\"with, comma\",neg\r\n"
              "3,\"two\r\nlines and \"\"quotes\"\"\",pos\r\n"
              "\r\n"
              "4,a 5\" disk,\"n\"\"g\"\r\n"
              "5,\"\"\"\",pos\r\n"
              "6,last,pos",
              NULL);
    assert_string_equal(ls_table_text_column(test->table), "text");
    assert_string_equal(ls_table_label_column(test->table), "label");
    assert_null(ls_table_text_pair_column(test->table));
    for (int round = 0; round < 2; round++) {
        expect_row(test, 2, "plain", NULL, "pos");
        expect_row(test, 3, "with, comma", NULL, "neg");
        expect_row(test, 4, "two\r\nlines and \"quotes\"", NULL, "pos");
        expect_row(test, 7, "a 5\" disk", NULL, "n\"g");
        expect_row(test, 8, "\"", NULL, "pos");
        expect_row(test, 9, "last", NULL, "pos");
        expect_end(test);
        ls_table_rewind(test->table);
    }
}

static void tsv_quotes_nothing(void **state)
{
    fixture *test = *state;
    open_text(test, "a.tsv", "label\tsentence\n1\t\"quoted\" text, with comma\n0\tb\r\n\n\n", NULL);
    assert_string_equal(ls_table_text_column(test->table), "sentence");
    expect_row(test, 2, "\"quoted\" text, with comma", NULL, "1");
    expect_row(test, 3, "b", NULL, "0");
    expect_end(test);
}

static void jsonl_decodes_strings_and_labels(void **state)
{
    fixture *test = *state;
    open_text(test, "a.jsonl",
              "\xef\xbb\xbf{\"text\": \"\\u00e9 \\ud83d\\ude00 \\n \\\"\", \"label\": \"pos\"}\r\n"
              "\n  \t\n"
              "{\"label\": -3, \"text\": \"b\", \"more\": [1, {\"x\": null}]}\n"
              "{\"label\": true, \"text\": \"c\"}\n"
              "{\"label\": null, \"text\": \"d\"}\n"
              "{\"text\": \"e\"}",
              NULL);
    expect_row(test, 1, "\xc3\xa9 \xf0\x9f\x98\x80 \n \"", NULL, "pos");
    expect_row(test, 4, "b", NULL, "-3");
    expect_row(test, 5, "c", NULL, "true");
    expect_row(test, 6, "d", NULL, NULL);
    expect_row(test, 7, "e", NULL, NULL);
    expect_end(test);
}

static void rows_know_their_place_in_the_file(void **state)
{
    fixture *test = *state;
    static const char text[] = "text,label\n\"a\nb\",1\r\n\nc,2\n";
    ls_error error;
    ls_row row;
    bool more;
    open_text(test, "a.csv", text, NULL);
    assert_int_equal(ls_table_bytes(test->table), sizeof text - 1);
    assert_ok(ls_table_next(test->table, &row, &more, &error), error);
    assert_int_equal(row.offset, 11);
    assert_int_equal(row.bytes, 9);
    assert_ok(ls_table_next(test->table, &row, &more, &error), error);
    assert_int_equal(row.offset, 21);
    assert_int_equal(row.bytes, 4);
    assert_int_equal(row.line, 5);
}

static void columns_are_guessed_or_named(void **state)
{
    fixture *test = *state;
    static const struct {
        const char *header, *text, *pair, *label;
    } cases[] = {
        {"text\tsentence\tlabel", "text", NULL, "label"},
        {"sentence\tlabels", "sentence", NULL, "labels"},
        {"sentence1\tsentence2\tlabel", "sentence1", "sentence2", "label"},
        {"premise\thypothesis\tlabel", "premise", "hypothesis", "label"},
        {"question1\tquestion2\tlabel", "question1", "question2", "label"},
        {"question\tsentence\tlabel", "question", "sentence", "label"},
        {"text\tpremise\thypothesis", "text", NULL, NULL},
        {"text", "text", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[200];
        snprintf(text, sizeof text, "%s\nx\tx\tx\n", cases[i].header);
        open_text(test, "a.tsv", text, NULL);
        const char *pair = ls_table_text_pair_column(test->table),
                   *label = ls_table_label_column(test->table);
        assert_string_equal(ls_table_text_column(test->table), cases[i].text);
        assert_int_equal(pair != NULL, cases[i].pair != NULL);
        if (pair) assert_string_equal(pair, cases[i].pair);
        assert_int_equal(label != NULL, cases[i].label != NULL);
        if (label) assert_string_equal(label, cases[i].label);
    }
    ls_table_options options = {.text_column = "b", .text_pair_column = "a", .label_column = "c"};
    open_text(test, "a.csv", "a,b,c,text,label\n1,2,3,4,5\n", &options);
    expect_row(test, 2, "2", "1", "3");
    /* A format that is told wins over the name. */
    options = (ls_table_options){.format = LS_TABLE_TSV};
    open_text(test, "a.data", "text\tlabel\nx,y\t1\n", &options);
    expect_row(test, 2, "x,y", NULL, "1");
}

static void files_that_cannot_be_used_are_refused_at_open(void **state)
{
    fixture *test = *state;
    ls_table_options need = {.need_label = true}, column = {.text_column = "body"},
                     label = {.label_column = "class"}, pair = {.text_pair_column = "other"};
    expect_not_opened(test, "a.txt", "text\nx\n", NULL, LS_UNSUPPORTED, ".tsv, .csv, .jsonl");
    expect_not_opened(test, "noextension", "text\nx\n", NULL, LS_UNSUPPORTED, ".tsv");
    expect_not_opened(test, "a.csv", "", NULL, LS_INVALID, "is empty");
    expect_not_opened(test, "a.csv", "\xef\xbb\xbf", NULL, LS_INVALID, "is empty");
    expect_not_opened(test, "a.csv", "\n\n", NULL, LS_INVALID, "is empty");
    expect_not_opened(test, "a.csv", "text,label\n\n", NULL, LS_INVALID, "no rows");
    expect_not_opened(test, "a.jsonl", "\n", NULL, LS_INVALID, "is empty");
    expect_not_opened(test, "a.jsonl", "[1]\n{]\n", NULL, LS_INVALID, "a.jsonl:1: holds an array");
    expect_not_opened(test, "a.csv", "a,b\n1,2\n", NULL, LS_INVALID, "the columns are: 'a', 'b'");
    expect_not_opened(test, "a.csv", "text,b\n1,2\n", &need, LS_INVALID, "'label'");
    expect_not_opened(test, "a.csv", "text,b\n1,2\n", &column, LS_INVALID,
                      "no column 'body'; the columns are: 'text', 'b'");
    expect_not_opened(test, "a.csv", "text,b\n1,2\n", &label, LS_INVALID, "no column 'class'");
    expect_not_opened(test, "a.csv", "text,b\n1,2\n", &pair, LS_INVALID, "no column 'other'");
    expect_not_opened(test, "a.jsonl", "{\"text\": \"x\", \"b\": 1}\n", &label, LS_INVALID,
                      "no column 'class'; the columns are: 'text', 'b'");
    expect_not_opened(test, "a.csv", "text,text\n1,2\n", NULL, LS_INVALID, "is there 2 times");
    expect_not_opened(test, "a.csv", "text,\"label\n1,2\n", NULL, LS_INVALID, "never closed");
    expect_not_opened(test, "a.csv", "text,lab\xffl\n1,2\n", NULL, LS_INVALID, "bad UTF-8");
    ls_error error;
    assert_int_equal(ls_table_open(&test->table, "/no/such/file.csv", &need, &error), LS_IO);
    assert_int_equal(ls_table_open(&test->table, test->folder, &need, &error), LS_UNSUPPORTED);
}

static void bad_csv_rows_are_named_and_skipped(void **state)
{
    fixture *test = *state;
    static const char text[] = "text,label\n"
                               "one,1\n"
                               "two,2,3\n"
                               "three\n"
                               "b\xc3(d,1\n"
                               "nul\0byte,1\n"
                               "\"x\"y,1\n"
                               ",1\n"
                               "\" \n \",1\n"
                               "none,\n"
                               "good,1\n";
    ls_error error;
    ls_table_options options = {.need_label = true};
    assert_ok(open_bytes(test, "a.csv", text, sizeof text - 1, &options, &error), error);
    expect_row(test, 2, "one", NULL, "1");
    expect_bad(test, 3, "3 fields, the header has 2");
    expect_bad(test, 4, "1 field, the header has 2");
    expect_bad(test, 5, "bad UTF-8 (0xc3) at byte 2");
    expect_bad(test, 6, "a NUL byte at byte 4");
    expect_bad(test, 7, "field 1 goes on after its closing quote");
    expect_bad(test, 8, "'text' is empty");
    expect_bad(test, 9, "'text' is empty");
    expect_bad(test, 11, "'label' is empty");
    expect_row(test, 12, "good", NULL, "1");
    expect_end(test);
    assert_false(ls_table_can_skip(test->table));
    /* Where no label is needed, an empty one is none. */
    open_text(test, "a.csv", "text,label\nnone,\n", NULL);
    expect_row(test, 2, "none", NULL, NULL);
}

static void an_open_quote_is_the_end(void **state)
{
    fixture *test = *state;
    ls_error error;
    ls_row row;
    bool more = true;
    open_text(test, "a.csv", "text,label\none,1\n\"two,2\nthree,3\n", NULL);
    expect_row(test, 2, "one", NULL, "1");
    assert_int_equal(ls_table_next(test->table, &row, &more, &error), LS_INVALID);
    assert_non_null(strstr(error.text, "a.csv:3: a quote opened in this row is never closed"));
    assert_false(ls_table_can_skip(test->table));
    assert_int_equal(ls_table_next(test->table, &row, &more, &error), LS_INVALID);
    assert_false(ls_table_can_skip(test->table));
    ls_table_rewind(test->table);
    expect_row(test, 2, "one", NULL, "1");
}

static void bad_jsonl_rows_are_named_and_skipped(void **state)
{
    fixture *test = *state;
    static const char text[] = "{\"text\": \"a\", \"label\": 1}\n"
                               "{\"text\": \"a\", \"label\": 1\n"
                               "{\"text\": \"\\ud83d\", \"label\": 1}\n"
                               "{\"text\": \"\\u0000\", \"label\": 1}\n"
                               "{\"text\": \"x\0y\", \"label\": 1}\n"
                               "{\"text\": \"\xff\", \"label\": 1}\n"
                               "[\"a\", 1]\n"
                               "{\"label\": 1}\n"
                               "{\"text\": 3, \"label\": 1}\n"
                               "{\"text\": null, \"label\": 1}\n"
                               "{\"text\": \"\", \"label\": 1}\n"
                               "{\"text\": \"a\"}\n"
                               "{\"text\": \"a\", \"label\": null}\n"
                               "{\"text\": \"a\", \"label\": 1.5}\n"
                               "{\"text\": \"a\", \"label\": \"\"}\n"
                               "{\"text\": \"a\", \"text\": \"b\", \"label\": 1}\n"
                               "{\"text\": \"a\", \"label\": 1} {}\n"
                               "{\"text\": \"z\", \"label\": 2}\n";
    static const char *const why[] = {
        "not valid JSON",
        "unpaired surrogate escape",
        "NUL character",
        "NUL byte",
        "bad UTF-8",
        "holds an array",
        "key 'text' is missing",
        "key 'text' is an integer",
        "key 'text' is null",
        "'text' is empty",
        "key 'label' is missing",
        "key 'label' is null",
        "key 'label' is a number with a fraction",
        "'label' is empty",
        "duplicate key 'text'",
        "not valid JSON",
    };
    ls_error error;
    ls_table_options options = {.need_label = true};
    assert_ok(open_bytes(test, "a.jsonl", text, sizeof text - 1, &options, &error), error);
    expect_row(test, 1, "a", NULL, "1");
    for (size_t i = 0; i < sizeof why / sizeof *why; i++)
        expect_bad(test, i + 2, why[i]);
    expect_row(test, 18, "z", NULL, "2");
    expect_end(test);
}

/* Rows of all lengths cross the window's border in every way. */
static void long_rows_cross_the_window(void **state)
{
    fixture *test = *state;
    enum { ROWS = 9 };
    static const size_t lengths[ROWS] = {
        1, 1 << 20, (1 << 20) - 9, 3, 700000, 700000, (3 << 20) + 1, 5, 900000};
    size_t capacity = 12 << 20, count = 0;
    char *bytes = malloc(capacity);
    assert_non_null(bytes);
    count += (size_t)sprintf(bytes, "text,label\r\n");
    for (int i = 0; i < ROWS; i++) {
        bytes[count++] = '"';
        memset(bytes + count, 'a' + i, lengths[i]);
        count += lengths[i];
        count += (size_t)sprintf(bytes + count, "\"\"\n\",%d\r\n", i);
    }
    ls_error error;
    assert_ok(open_bytes(test, "a.csv", bytes, count, NULL, &error), error);
    for (int i = 0; i < ROWS; i++) {
        ls_row row;
        bool more;
        char label[4];
        assert_ok(ls_table_next(test->table, &row, &more, &error), error);
        assert_true(more);
        assert_int_equal(row.text_length, lengths[i] + 2);
        assert_int_equal(row.text[0], 'a' + i);
        assert_int_equal(row.text[lengths[i] - 1], 'a' + i);
        assert_memory_equal(row.text + lengths[i], "\"\n", 2);
        assert_int_equal(row.line, 2 + 2 * i);
        snprintf(label, sizeof label, "%d", i);
        assert_string_equal(row.label, label);
    }
    expect_end(test);
    free(bytes);
}

static void a_row_of_100_mb_is_refused_and_skipped(void **state)
{
    fixture *test = *state;
    static const char *const names[] = {"a.csv", "a.tsv", "a.jsonl"};
    size_t huge = 100 << 20, count;
    char *bytes = malloc(huge + 100);
    assert_non_null(bytes);
    for (int i = 0; i < 3; i++) {
        const char *ok = i == 2 ? "{\"text\": \"ok\"}\n" : "text\nok\n";
        memset(bytes, 'x', huge + 100);
        count = (size_t)sprintf(bytes, "%s", ok);
        bytes[count] = 'x';
        bytes[count + huge] = '\n';
        strcpy(bytes + count + huge + 1, i == 2 ? ok : "ok\n");
        count += huge + 1 + strlen(bytes + count + huge + 1);
        ls_error error;
        size_t before = ls_allocated_bytes();
        assert_ok(open_bytes(test, names[i], bytes, count, NULL, &error), error);
        expect_row(test, i == 2 ? 1 : 2, "ok", NULL, NULL);
        expect_bad(test, i == 2 ? 2 : 3, "longer than the limit of 64 MiB");
        expect_row(test, i == 2 ? 3 : 4, "ok", NULL, NULL);
        expect_end(test);
        assert_true(ls_allocated_bytes() < before + (128u << 20));
    }
    free(bytes);
}

int main(void)
{
#define WITH_FOLDER(function) cmocka_unit_test_setup_teardown(function, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(csv_follows_rfc_4180),
        WITH_FOLDER(tsv_quotes_nothing),
        WITH_FOLDER(jsonl_decodes_strings_and_labels),
        WITH_FOLDER(rows_know_their_place_in_the_file),
        WITH_FOLDER(columns_are_guessed_or_named),
        WITH_FOLDER(files_that_cannot_be_used_are_refused_at_open),
        WITH_FOLDER(bad_csv_rows_are_named_and_skipped),
        WITH_FOLDER(an_open_quote_is_the_end),
        WITH_FOLDER(bad_jsonl_rows_are_named_and_skipped),
        WITH_FOLDER(long_rows_cross_the_window),
        WITH_FOLDER(a_row_of_100_mb_is_refused_and_skipped),
    };
    return cmocka_run_group_tests_name("formats/table", tests, NULL, NULL);
}

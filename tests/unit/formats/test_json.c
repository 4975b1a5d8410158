/* formats/json: what is accepted, and what the errors say. */
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/files.h"
#include "formats/json.h"
#include "formats/utf8.h"

static void expect_refused(const char *text, size_t count, const char *why)
{
    ls_error error = {0};
    json_t *root = NULL;
    assert_int_equal(ls_json_parse(&root, text, count, "a.json", &error), LS_INVALID);
    assert_null(root);
    if (!strstr(error.text, why)) fail_msg("'%s' does not say '%s'", error.text, why);
    if (!strstr(error.text, "a.json: ")) fail_msg("'%s' does not name the file", error.text);
    assert_int_equal(ls_utf8_valid_prefix(error.text, strlen(error.text)), strlen(error.text));
    assert_null(strchr(error.text, '\n'));
}

static void bad_documents_are_refused_with_the_place(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", "not valid JSON"},
        {"   ", "not valid JSON"},
        {"3", "not valid JSON"},
        {"{\"a\": 1", "not valid JSON"},
        {"{\"a\": 1} x", "not valid JSON"},
        {"{\"a\": 1,}", "not valid JSON"},
        {"{\"a\": NaN}", "not valid JSON"},
        {"{\"a\": 01}", "not valid JSON"},
        {"{\n\n\"a\": tru}", "line 3"},
        {"{\"a\": 1, \"a\": 2}", "duplicate key 'a'"},
        {"{\"bert.encoder.layer.0.output.dense.weight\": 1,"
         " \"bert.encoder.layer.0.output.dense.weight\": 2}",
         "duplicate key 'bert.encoder.layer.0.output.dense.weight'"},
        {"{\"with \\\"quote\": 1, \"with \\\"quote\": 2}", "duplicate key 'with \\\"quote'"},
        {"{\"a\": \"\\ud83d\"}", "unpaired surrogate escape"},
        {"{\"a\": \"\\ude00 x\"}", "unpaired surrogate escape"},
        {"{\"a\": \"\\ud83d\\u0041\"}", "unpaired surrogate escape"},
        {"{\"a\": \"x\\u0000y\"}", "NUL character"},
        {"{\"\\u0000\": 1}", "NUL character"},
        {"{\"a\": \"\xff\"}", "bad UTF-8"},
        {"{\"a\": \"\xed\xa0\x80\"}", "bad UTF-8"},
        {"{\"a\": \"line\nbreak\"}", "not valid JSON"},
        {"{\"a\": \"\\x\"}", "not valid JSON"},
        {"{\"a\": 99999999999999999999}", "out of range"},
        {"{\"a\": 1e999}", "out of range"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_refused(cases[i][0], strlen(cases[i][0]), cases[i][1]);
    expect_refused("{\"a\":\0 1}", 9, "NUL byte");
}

static void deep_nesting_is_refused_before_it_recurses(void **state)
{
    (void)state;
    enum { DEPTH = 100000 };
    char *text = malloc(DEPTH);
    assert_non_null(text);
    memset(text, '[', DEPTH);
    expect_refused(text, DEPTH, "deeper than 64");
    for (size_t i = 0; i < DEPTH; i++)
        text[i] = i % 5 == 0 ? '{' : "\"a\":"[i % 5 - 1];
    expect_refused(text, DEPTH, "deeper than 64");

    ls_error error;
    json_t *root = NULL;
    memset(text, '[', 64);
    memset(text + 64, ']', 64);
    assert_ok(ls_json_parse(&root, text, 128, "a.json", &error), error);
    ls_json_free(root);
    /* Brackets inside text do not count. */
    memset(text, '[', 1000);
    memcpy(text, "[\"\\\"", 4);
    memcpy(text + 998, "\"]", 2);
    assert_ok(ls_json_parse(&root, text, 1000, "a.json", &error), error);
    ls_json_free(root);
    free(text);
}

static void text_is_decoded(void **state)
{
    (void)state;
    ls_error error;
    json_t *root = NULL;
    ls_json_view view;
    const char *value = NULL;
    static const char text[] =
        "\xef\xbb\xbf{\"a\": \"\\ud83d\\ude00 \\u00e9 \\n\\t\\/\\\\\\\" \xc3\xa9\"}\r\n";
    assert_ok(ls_json_parse(&root, text, sizeof text - 1, "a.json", &error), error);
    assert_ok(ls_json_view_init(&view, root, "a.json", &error), error);
    assert_ok(ls_json_get_string(&view, "a", LS_JSON_REQUIRED, &value, &error), error);
    assert_string_equal(value, "\xf0\x9f\x98\x80 \xc3\xa9 \n\t/\\\" \xc3\xa9");
    ls_json_free(root);
}

static json_t *parse(const char *text, ls_json_view *view)
{
    ls_error error;
    json_t *root = NULL;
    assert_ok(ls_json_parse(&root, text, strlen(text), "a.json", &error), error);
    assert_ok(ls_json_view_init(view, root, "a.json", &error), error);
    return root;
}

static void getters_check_type_and_range(void **state)
{
    (void)state;
    ls_error error;
    ls_json_view root, child, grandchild;
    json_t *document =
        parse("{\"n\": 7, \"x\": 0.5, \"yes\": true, \"none\": null, \"text\": \"t\","
              " \"a\": {\"b\": {\"c\": -1}}, \"list\": [1, {\"n\": 8}]}",
              &root);
    int64_t n = 0;
    double x = 0;
    bool yes = false;
    const char *text = NULL;
    const json_t *list = NULL;
    assert_ok(ls_json_get_integer(&root, "n", LS_JSON_REQUIRED, 7, 7, &n, &error), error);
    assert_int_equal(n, 7);
    assert_ok(ls_json_get_number(&root, "n", LS_JSON_REQUIRED, 0, 10, &x, &error), error);
    assert_true(x == 7.0);
    assert_ok(ls_json_get_bool(&root, "yes", LS_JSON_REQUIRED, &yes, &error), error);
    assert_true(yes);
    assert_ok(ls_json_get_array(&root, "list", LS_JSON_REQUIRED, &list, &error), error);
    assert_int_equal(json_array_size(list), 2);
    assert_ok(ls_json_get_element(&root, "list", list, 1, &child, &error), error);
    assert_int_equal(ls_json_get_integer(&child, "n", LS_JSON_REQUIRED, 0, 7, &n, &error),
                     LS_INVALID);
    assert_string_equal(error.text, "a.json: key 'list[1].n': is 8, must be from 0 to 7");
    assert_int_equal(ls_json_get_element(&root, "list", list, 0, &child, &error), LS_INVALID);
    assert_string_equal(error.text, "a.json: key 'list[0]': is an integer, an object is needed");

    n = 42; /* optional: the caller's default stays */
    assert_ok(ls_json_get_integer(&root, "none", LS_JSON_OPTIONAL, 0, 9, &n, &error), error);
    assert_ok(ls_json_get_integer(&root, "missing", LS_JSON_OPTIONAL, 0, 9, &n, &error), error);
    assert_int_equal(n, 42);
    assert_ok(ls_json_get_object(&root, "missing", LS_JSON_OPTIONAL, &child, &error), error);
    assert_ok(ls_json_get_integer(&child, "x", LS_JSON_OPTIONAL, 0, 9, &n, &error), error);

    assert_int_equal(ls_json_get_integer(&root, "missing", LS_JSON_REQUIRED, 0, 9, &n, &error),
                     LS_INVALID);
    assert_string_equal(error.text, "a.json: key 'missing': is missing, but it is needed");
    assert_int_equal(ls_json_get_string(&root, "none", LS_JSON_REQUIRED, &text, &error),
                     LS_INVALID);
    assert_string_equal(error.text, "a.json: key 'none': is null, but it is needed");
    assert_int_equal(ls_json_get_integer(&root, "x", LS_JSON_OPTIONAL, 0, 9, &n, &error),
                     LS_INVALID);
    assert_int_equal(ls_json_get_bool(&root, "n", LS_JSON_OPTIONAL, &yes, &error), LS_INVALID);
    assert_int_equal(ls_json_get_number(&root, "x", LS_JSON_OPTIONAL, 1, 2, &x, &error),
                     LS_INVALID);
    assert_int_equal(ls_json_get_string(&root, "list", LS_JSON_OPTIONAL, &text, &error),
                     LS_INVALID);
    assert_string_equal(error.text, "a.json: key 'list': is an array, text is needed");

    assert_ok(ls_json_get_object(&root, "a", LS_JSON_REQUIRED, &child, &error), error);
    assert_ok(ls_json_get_object(&child, "b", LS_JSON_REQUIRED, &grandchild, &error), error);
    assert_int_equal(ls_json_get_integer(&grandchild, "c", LS_JSON_REQUIRED, 0, 9, &n, &error),
                     LS_INVALID);
    assert_string_equal(error.text, "a.json: key 'a.b.c': is -1, must be from 0 to 9");
    ls_json_free(document);
}

static void files_are_read_up_to_the_cap_and_written_back(void **state)
{
    (void)state;
    ls_error error;
    ls_json_view view;
    char *folder = test_folder(), *bytes = NULL;
    size_t count = 0;
    const char *path = test_path(folder, "a.json");
    json_t *root = parse("{\"z\": 0.1, \"a\": [1, 1e-12, 2.0, 0.30000000000000004, -0.0],"
                         " \"t\": \"\xc3\xa9\\n\", \"e\": {}, \"l\": [], \"n\": null}",
                         &view);
    assert_ok(ls_json_write(root, path, &error), error);
    assert_ok(ls_file_read(&bytes, &count, path, 1000, &error), error);
    assert_string_equal(bytes,
                        "{\n  \"z\": 0.1,\n  \"a\": [\n    1,\n    1e-12,\n    2.0,\n"
                        "    0.30000000000000004,\n    -0.0\n  ],\n  \"t\": \"\xc3\xa9\\n\",\n"
                        "  \"e\": {},\n  \"l\": [],\n  \"n\": null\n}\n");
    ls_free(bytes);
    json_t *again = NULL;
    assert_ok(ls_json_load(&again, path, count, &error), error);
    assert_true(json_equal(root, again));
    ls_json_free(again);
    assert_int_equal(ls_json_load(&again, path, count - 1, &error), LS_INVALID);
    assert_non_null(strstr(error.text, "a.json"));
    assert_int_equal(ls_json_load(&again, test_path(folder, "no.json"), 10, &error), LS_IO);
    ls_json_free(root);
    test_folder_remove(folder);
}

static void utf8_is_checked_to_the_letter(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t valid;
    } cases[] = {
        {"plain ascii, longer than one word", 33},
        {"\xc3\xa9", 2},
        {"\xe2\x82\xac\xf0\x9f\x98\x80", 7},
        {"ab\xc0\x80", 2},
        {"\xc1\xbf", 0},
        {"\xe0\x9f\xbf", 0},
        {"\xed\x9f\xbf\xed\xa0\x80", 3},
        {"\xf0\x8f\xbf\xbf", 0},
        {"\xf4\x8f\xbf\xbf\xf4\x90\x80\x80", 4},
        {"\xf5\x80\x80\x80", 0},
        {"12345678\x80", 8},
        {"1234567\xe2\x82", 7},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(ls_utf8_valid_prefix(cases[i].bytes, strlen(cases[i].bytes)),
                         cases[i].valid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_documents_are_refused_with_the_place),
        cmocka_unit_test(deep_nesting_is_refused_before_it_recurses),
        cmocka_unit_test(text_is_decoded),
        cmocka_unit_test(getters_check_type_and_range),
        cmocka_unit_test(files_are_read_up_to_the_cap_and_written_back),
        cmocka_unit_test(utf8_is_checked_to_the_letter),
    };
    return cmocka_run_group_tests_name("formats/json", tests, NULL, NULL);
}

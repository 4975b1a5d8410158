/* tokenizer/: ids equal to those that Hugging Face's library gave for the golden texts. */
#include "testing.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/alloc.h"
#include "tokenizer/tokenizer.h"

static ls_error error;

static const char *data(const char *name)
{
    return test_path(LS_TEST_SOURCE "/tests/data/tokenizer", name);
}

static ls_tokenizer *open_tokenizer(const char *name)
{
    ls_tokenizer *tokenizer = NULL;
    assert_ok(ls_tokenizer_open(&tokenizer, data(name), &error), error);
    return tokenizer;
}

static ls_tokenizer_scratch *new_scratch(void)
{
    ls_tokenizer_scratch *scratch = NULL;
    assert_ok(ls_tokenizer_scratch_new(&scratch, &error), error);
    return scratch;
}

static json_t *read_golden(void)
{
    json_error_t problem;
    json_t *golden = json_load_file(data("golden.json"), 0, &problem);
    assert_non_null(golden);
    return golden;
}

static ls_status encode_case(const ls_tokenizer *tokenizer, ls_tokenizer_scratch *scratch,
                             const json_t *expected, ls_encoding *out, ls_error *problem)
{
    const json_t *text = json_object_get(expected, "text"),
                 *pair = json_object_get(expected, "pair");
    return ls_tokenizer_encode(
        tokenizer, scratch, json_string_value(text), json_string_length(text),
        json_string_value(pair), json_string_length(pair),
        (int)json_integer_value(json_object_get(expected, "max_length")), out, problem);
}

static int differs(const json_t *expected, const ls_encoding *encoding)
{
    const json_t *ids = json_object_get(expected, "ids"),
                 *types = json_object_get(expected, "types");
    if (json_array_size(ids) != (size_t)encoding->length) return 1;
    for (int i = 0; i < encoding->length; i++) {
        if (encoding->ids[i] != json_integer_value(json_array_get(ids, (size_t)i))) return 1;
        if (encoding->types[i] != json_integer_value(json_array_get(types, (size_t)i))) return 1;
    }
    return 0;
}

static void check_golden(const char *folder)
{
    json_t *golden = read_golden();
    ls_tokenizer *tokenizer = open_tokenizer(folder);
    ls_tokenizer_scratch *scratch = new_scratch();
    json_t *cases = json_object_get(golden, folder), *expected;
    size_t index;
    assert_true(json_array_size(cases) > 90);
    json_array_foreach(cases, index, expected)
    {
        ls_encoding encoding;
        assert_ok(encode_case(tokenizer, scratch, expected, &encoding, &error), error);
        if (differs(expected, &encoding))
            fail_msg("%s: case %zu: other ids than the golden ones: %s", folder, index,
                     json_dumps(json_object_get(expected, "text"), JSON_ENCODE_ANY));
    }
    ls_tokenizer_scratch_free(scratch);
    ls_tokenizer_free(tokenizer);
    json_decref(golden);
}

static void uncased_ids_are_the_golden_ones(void **state)
{
    (void)state;
    check_golden("uncased");
}

static void cased_ids_from_vocab_txt_are_the_golden_ones(void **state)
{
    (void)state;
    check_golden("cased");
}

static void added_tokens_and_other_flags_give_the_golden_ids(void **state)
{
    (void)state;
    check_golden("added");
}

typedef struct worker {
    pthread_t thread;
    const ls_tokenizer *tokenizer;
    const json_t *cases;
    int wrong;
} worker;

static void *work(void *argument)
{
    worker *self = argument;
    ls_error problem;
    ls_tokenizer_scratch *scratch = NULL;
    self->wrong = ls_tokenizer_scratch_new(&scratch, &problem) != LS_OK;
    for (size_t i = 0; !self->wrong && i < json_array_size(self->cases); i++) {
        const json_t *expected = json_array_get(self->cases, i);
        ls_encoding encoding;
        if (encode_case(self->tokenizer, scratch, expected, &encoding, &problem) != LS_OK ||
            differs(expected, &encoding))
            self->wrong = 1;
    }
    ls_tokenizer_scratch_free(scratch);
    return NULL;
}

static void threads_share_a_tokenizer(void **state)
{
    (void)state;
    json_t *golden = read_golden();
    ls_tokenizer *tokenizer = open_tokenizer("uncased");
    worker workers[4];
    for (int i = 0; i < 4; i++) {
        workers[i] = (worker){.tokenizer = tokenizer, .cases = json_object_get(golden, "uncased")};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(workers[i].thread, NULL);
        assert_int_equal(workers[i].wrong, 0);
    }
    ls_tokenizer_free(tokenizer);
    json_decref(golden);
}

static void a_warm_scratch_allocates_nothing(void **state)
{
    (void)state;
    json_t *golden = read_golden();
    json_t *cases = json_object_get(golden, "uncased"), *expected;
    ls_tokenizer *tokenizer = open_tokenizer("uncased");
    ls_tokenizer_scratch *scratch = new_scratch();
    ls_encoding encoding;
    size_t index;
    uint64_t before = 0;
    for (int round = 0; round < 2; round++) {
        before = ls_allocation_count();
        json_array_foreach(cases, index, expected)
            assert_ok(encode_case(tokenizer, scratch, expected, &encoding, &error), error);
    }
    assert_int_equal(ls_allocation_count() - before, 0);
    ls_tokenizer_scratch_free(scratch);
    ls_tokenizer_free(tokenizer);
    json_decref(golden);
}

static void check_ids(const ls_tokenizer *tokenizer, ls_tokenizer_scratch *scratch,
                      const char *text, size_t length, const char *like)
{
    ls_encoding encoding;
    assert_ok(
        ls_tokenizer_encode(tokenizer, scratch, like, strlen(like), NULL, 0, 0, &encoding, &error),
        error);
    int count = encoding.length;
    int32_t ids[64];
    assert_true(count <= 64);
    memcpy(ids, encoding.ids, (size_t)count * sizeof *ids);
    assert_ok(ls_tokenizer_encode(tokenizer, scratch, text, length, NULL, 0, 0, &encoding, &error),
              error);
    assert_int_equal(encoding.length, count);
    assert_memory_equal(encoding.ids, ids, (size_t)count * sizeof *ids);
}

static void bytes_that_are_not_utf8_are_replacement_characters(void **state)
{
    (void)state;
    ls_tokenizer *uncased = open_tokenizer("uncased"), *added = open_tokenizer("added");
    ls_tokenizer_scratch *scratch = new_scratch();
    /* Stray continuation, overlong, surrogate, beyond U+10FFFF, cut off, and a NUL. */
    static const char bad[] = "fo\x80x \xc0\xafjump\xed\xa0\x80s \xf4\x90\x80\x80 a\xff\0\xf0\x9f";
    check_ids(uncased, scratch, bad, sizeof bad - 1, "fox jumps a"); /* clean_text drops them */
    check_ids(added, scratch, "a \xc3", 3, "a \xef\xbf\xbd");
    for (int first = 0; first < 256; first++)
        for (int second = 0; second < 256; second++) {
            char text[3] = {(char)first, (char)second, 'a'};
            ls_encoding encoding;
            assert_ok(ls_tokenizer_encode(added, scratch, text, 3, text, 2, 5, &encoding, &error),
                      error);
        }
    ls_tokenizer_scratch_free(scratch);
    ls_tokenizer_free(uncased);
    ls_tokenizer_free(added);
}

static void a_long_text_is_cut_to_the_maximum_length(void **state)
{
    (void)state;
    enum { PARTS = 300000 };
    /* A letter, a spacing mark that waits to be put in order, and one of lower class behind it. */
    static const char part[] = "a\xf0\x9d\x85\xad\xe3\x80\xae \xcc\xb4";
    size_t bytes = sizeof part - 1;
    char *text = malloc(PARTS * bytes);
    assert_non_null(text);
    ls_tokenizer *tokenizer = open_tokenizer("uncased");
    ls_tokenizer_scratch *scratch = new_scratch();
    ls_encoding encoding;
    for (size_t i = 0; i < PARTS; i++)
        memcpy(text + i * bytes, part, bytes);
    assert_ok(ls_tokenizer_encode(tokenizer, scratch, text, PARTS * bytes, NULL, 0, 128, &encoding,
                                  &error),
              error);
    assert_int_equal(encoding.length, 128);
    assert_int_equal(encoding.ids[127], ls_tokenizer_separator_id(tokenizer));
    for (size_t i = 0; i < PARTS; i++)
        memcpy(text + i * 3, "\xe3\x80\xae", 3); /* marks only */
    assert_ok(
        ls_tokenizer_encode(tokenizer, scratch, text, PARTS * 3, text, 9, 9, &encoding, &error),
        error);
    assert_int_equal(encoding.ids[1], ls_tokenizer_unknown_id(tokenizer));
    free(text);
    ls_tokenizer_scratch_free(scratch);
    ls_tokenizer_free(tokenizer);
}

static void too_small_a_maximum_length_is_refused(void **state)
{
    (void)state;
    ls_tokenizer *tokenizer = open_tokenizer("uncased");
    ls_tokenizer_scratch *scratch = new_scratch();
    ls_encoding encoding;
    assert_int_equal(ls_tokenizer_encode(tokenizer, scratch, "a", 1, NULL, 0, 1, &encoding, &error),
                     LS_USAGE);
    assert_int_equal(ls_tokenizer_encode(tokenizer, scratch, "a", 1, "a", 1, 2, &encoding, &error),
                     LS_USAGE);
    assert_int_equal(
        ls_tokenizer_encode(tokenizer, scratch, "a", 1, NULL, 0, -1, &encoding, &error), LS_USAGE);
    assert_ok(ls_tokenizer_encode(tokenizer, scratch, "a", 1, NULL, 0, 2, &encoding, &error),
              error);
    assert_int_equal(encoding.length, 2);
    ls_tokenizer_scratch_free(scratch);
    ls_tokenizer_free(tokenizer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uncased_ids_are_the_golden_ones),
        cmocka_unit_test(cased_ids_from_vocab_txt_are_the_golden_ones),
        cmocka_unit_test(added_tokens_and_other_flags_give_the_golden_ids),
        cmocka_unit_test(threads_share_a_tokenizer),
        cmocka_unit_test(a_warm_scratch_allocates_nothing),
        cmocka_unit_test(bytes_that_are_not_utf8_are_replacement_characters),
        cmocka_unit_test(a_long_text_is_cut_to_the_maximum_length),
        cmocka_unit_test(too_small_a_maximum_length_is_refused),
    };
    return cmocka_run_group_tests_name("tokenizer encode", tests, NULL, NULL);
}

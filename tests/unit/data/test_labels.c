/* data/labels.h: which class a label is, and what is said where it is none. */
#include "testing.h"

#include <stdio.h>
#include <string.h>

#include "data/labels.h"

static ls_error error;

static ls_labels *set_of(const char *const *names, int count)
{
    ls_labels *labels = NULL;
    assert_ok(ls_labels_new(&labels, &error), error);
    if (count) assert_ok(ls_labels_set(labels, names, count, &error), error);
    return labels;
}

/* Read texts[i] at line i + 2; the status of the first failure, or of finish. */
static ls_status read_labels(ls_labels *labels, const char *const *texts, size_t count,
                             int16_t *classes)
{
    ls_label_reader *reader = NULL;
    assert_ok(ls_label_reader_new(&reader, labels, "data/train.tsv", &error), error);
    ls_status status = LS_OK;
    for (size_t at = 0; status == LS_OK && at < count; at++)
        status = ls_label_reader_class(reader, texts[at], strlen(texts[at]), at + 2, &classes[at],
                                       &error);
    if (status == LS_OK) status = ls_label_reader_finish(reader, classes, count, &error);
    ls_label_reader_free(reader);
    return status;
}

static void check(const char *const *names, int name_count, const char *const *texts, size_t count,
                  const int16_t *expected, const char *const *sorted, int sorted_count)
{
    int16_t classes[16];
    ls_labels *labels = set_of(names, name_count);
    assert_ok(read_labels(labels, texts, count, classes), error);
    assert_memory_equal(classes, expected, count * sizeof *expected);
    assert_int_equal(ls_labels_count(labels), sorted_count);
    for (int id = 0; id < sorted_count; id++) {
        assert_string_equal(ls_labels_name(labels, id), sorted[id]);
        assert_int_equal(ls_labels_find(labels, sorted[id], strlen(sorted[id])), id);
    }
    assert_int_equal(ls_labels_find(labels, "nowhere", 7), -1);
    ls_labels_free(labels);
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void words_are_sorted_by_bytes(void **state)
{
    (void)state;
    const char *texts[] = {"pos", "neg", "Pos", "pos", "\xc3\xa9t\xc3\xa9", "10"};
    const int16_t classes[] = {3, 2, 1, 3, 4, 0};
    const char *sorted[] = {"10", "Pos", "neg", "pos", "\xc3\xa9t\xc3\xa9"};
    check(NULL, 0, texts, COUNT(texts), classes, sorted, 5);
}

static void integers_are_sorted_by_value(void **state)
{
    (void)state;
    const char *texts[] = {"10", "9", "-1", "100", "0", "9"};
    const int16_t classes[] = {3, 2, 0, 4, 1, 2};
    const char *sorted[] = {"-1", "0", "9", "10", "100"};
    check(NULL, 0, texts, COUNT(texts), classes, sorted, 5);
}

static void a_model_is_asked_by_name_or_by_number(void **state)
{
    (void)state;
    const char *names[] = {"negative", "neutral", "positive"};
    const char *by_name[] = {"positive", "negative", "positive"};
    const int16_t name_classes[] = {2, 0, 2};
    check(names, 3, by_name, 3, name_classes, names, 3);
    const char *by_number[] = {"2", "0", "1"};
    const int16_t number_classes[] = {2, 0, 1};
    check(names, 3, by_number, 3, number_classes, names, 3);
    /* Names that are numbers are names. */
    const char *stars[] = {"3", "2", "1"};
    const char *given[] = {"1", "3", "2"};
    const int16_t star_classes[] = {2, 0, 1};
    check(stars, 3, given, 3, star_classes, stars, 3);
}

static void check_refused(const char *const *names, int name_count, const char *const *texts,
                          size_t count, const char *const *said, size_t said_count)
{
    int16_t classes[16];
    ls_labels *labels = set_of(names, name_count);
    assert_int_equal(read_labels(labels, texts, count, classes), LS_INVALID);
    for (size_t at = 0; at < said_count; at++)
        if (!strstr(error.text, said[at])) fail_msg("no \"%s\" in: %s", said[at], error.text);
    assert_int_equal(ls_labels_count(labels), name_count);
    ls_labels_free(labels);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    const char *names[] = {"neg", "pos"};
    const char *unseen[] = {"neg", "pos", "neutral"};
    const char *unseen_says[] = {"data/train.tsv:4:", "\"neutral\"", "neg, pos"};
    check_refused(names, 2, unseen, 3, unseen_says, 3);
    const char *out_of_range[] = {"0", "2"};
    const char *range_says[] = {"data/train.tsv:3:", "\"2\"", "neg, pos"};
    check_refused(names, 2, out_of_range, 2, range_says, 3);
    const char *negative[] = {"-1"};
    const char *negative_says[] = {"data/train.tsv:2:", "\"-1\""};
    check_refused(names, 2, negative, 1, negative_says, 2);
    const char *mixed[] = {"0", "pos"};
    const char *mixed_says[] = {"data/train.tsv:3:", "\"pos\"", "class numbers"};
    check_refused(names, 2, mixed, 2, mixed_says, 3);
    const char *empty[] = {"neg", ""};
    const char *empty_says[] = {"data/train.tsv:3:", "empty label"};
    check_refused(names, 2, empty, 2, empty_says, 2);
    check_refused(NULL, 0, empty, 2, empty_says, 2);
    const char *single[] = {"yes", "yes"};
    const char *single_says[] = {"data/train.tsv", "\"yes\"", "2 classes"};
    check_refused(NULL, 0, single, 2, single_says, 3);
    const char *none_says[] = {"no row has a label"};
    check_refused(NULL, 0, NULL, 0, none_says, 1);
}

/* A text column taken for the label: many long, different values. */
static void ten_thousand_labels_are_the_limit(void **state)
{
    (void)state;
    static int16_t classes[LS_LABELS_MAX];
    ls_labels *labels = set_of(NULL, 0);
    ls_label_reader *reader = NULL;
    char text[300] = "";
    int16_t class_id = 0;
    assert_ok(ls_label_reader_new(&reader, labels, "train.tsv", &error), error);
    for (int at = 0; at < LS_LABELS_MAX; at++) {
        snprintf(text, sizeof text, "%0200d", LS_LABELS_MAX - 1 - at);
        assert_ok(ls_label_reader_class(reader, text, strlen(text), 1, &classes[at], &error),
                  error);
    }
    assert_int_equal(ls_label_reader_class(reader, "x", 1, 7, &class_id, &error), LS_INVALID);
    assert_non_null(strstr(error.text, "train.tsv:7: more than 10000"));
    assert_ok(ls_label_reader_finish(reader, classes, LS_LABELS_MAX, &error), error);
    for (int at = 0; at < LS_LABELS_MAX; at++)
        assert_int_equal(classes[at], LS_LABELS_MAX - 1 - at);
    ls_label_reader_free(reader);

    /* Errors stay short: long labels and long lists are cut. */
    memset(text, 'y', sizeof text - 1);
    const char *one[] = {text};
    assert_int_equal(read_labels(labels, one, 1, classes), LS_INVALID);
    assert_non_null(strstr(error.text, "(10000 in all)"));
    assert_true(strlen(error.text) < 700);
    ls_labels_free(labels);
}

static void a_models_names_are_checked(void **state)
{
    (void)state;
    ls_labels *labels = set_of(NULL, 0);
    const char *twice[] = {"a", "b", "a"}, *empty[] = {"a", ""}, *good[] = {"a", "b"};
    assert_int_equal(ls_labels_set(labels, twice, 3, &error), LS_INVALID);
    assert_non_null(strstr(error.text, "labels 0 and 2 are both \"a\""));
    assert_int_equal(ls_labels_set(labels, empty, 2, &error), LS_INVALID);
    assert_int_equal(ls_labels_set(labels, good, 1, &error), LS_INVALID);
    assert_int_equal(ls_labels_count(labels), 0);
    assert_ok(ls_labels_set(labels, good, 2, &error), error);
    ls_labels_free(labels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_sorted_by_bytes),
        cmocka_unit_test(integers_are_sorted_by_value),
        cmocka_unit_test(a_model_is_asked_by_name_or_by_number),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(ten_thousand_labels_are_the_limit),
        cmocka_unit_test(a_models_names_are_checked),
    };
    return cmocka_run_group_tests_name("labels", tests, NULL, NULL);
}

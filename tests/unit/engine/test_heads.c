/* Classification heads and their labels: a head in the files is kept with its labels, a new one
 * gets the data's, and the labels of a file find their classes. */
#include "model_variants.h"

#include "formats/model_config.h"

static void write_rows(const char *name, const char *rows)
{
    char text[1000];
    int count = snprintf(text, sizeof text, "text\tlabel\n%s", rows);
    test_write_file(test_path(folder, name), text, (size_t)count);
}

/* The labels of a trained folder's config.json, "a, b, c". */
static const char *labels_of(const char *path)
{
    static char text[1000];
    ls_model_config config;
    assert_ok(ls_model_config_load(&config, path, &error), error);
    assert_true(config.labels_given);
    *text = '\0';
    for (size_t i = 0; i < config.label_count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? ", " : "",
                 config.labels[i]);
    ls_model_config_deinit(&config);
    return text;
}

/* Class counts of an evaluation: [true][predicted]. */
typedef struct counts {
    int64_t samples, confusion[4][4];
    int32_t classes;
    double loss;
} counts;

static void take_counts(void *context, const ls_evaluation_report *report)
{
    counts *into = context;
    *into = (counts){.samples = report->samples, .classes = report->classes, .loss = report->loss};
    assert_true(report->classes <= 4);
    for (int32_t i = 0; i < report->classes * report->classes; i++)
        into->confusion[i / report->classes][i % report->classes] = report->confusion[i];
}

static ls_status evaluate(const char *path, const char *rows, counts *into)
{
    ls_options options = tiny_options("tiny-distilbert", NULL, NULL);
    ls_callbacks callbacks = {.context = into, .evaluation = take_counts};
    options.model = path;
    options.data = rows;
    error = (ls_error){0};
    return ls_evaluate(&options, &callbacks, &error);
}

/* Also with labels that the file does not use. */
static void a_head_is_kept_with_its_labels(void **state)
{
    (void)state;
    counts before = {0}, after = {0};
    model m = load_model("tiny-distilbert");
    write_model(&m);
    check_run(&m, "");
    assert_string_equal(messages, "");
    assert_string_equal(labels_of(output), "business, science, sport, world");
    assert_ok(evaluate(changed, train, &before), error);
    assert_ok(evaluate(output, train, &after), error);
    assert_int_equal(before.samples, TINY_ROWS);
    assert_int_equal(before.classes, 4);
    assert_memory_equal(&before, &after, sizeof before);
    free_model(&m);
}

static void a_new_head_gets_the_labels_of_the_data(void **state)
{
    (void)state;
    model m = load_model("tiny-bert");
    write_model(&m);
    assert_ok(run_folder(changed, train, 1e-3, NULL), error);
    assert_string_equal(labels_of(output), "business, science, sport");
    model trained = load_file("tiny-bert", test_path(output, "model.safetensors"));
    tensor *weight = find(&trained, "classifier.weight");
    assert_int_equal(weight->shape[0], 3);
    assert_int_equal(weight->shape[1], 36);

    /* Trained on, it is a model like any other: its head stays. */
    assert_int_equal(rename(output, test_path(folder, "first")), 0);
    assert_ok(run_folder(test_path(folder, "first"), train, 0, NULL), error);
    assert_string_equal(messages, "");
    check_output(&trained, "");
    assert_string_equal(labels_of(output), "business, science, sport");
    free_model(&trained);

    /* Integers are in the order of their values. */
    write_rows("numbers.tsv", "the\t10\na\t9\nof\t-1\n");
    assert_ok(run_folder(changed, test_path(folder, "numbers.tsv"), 0, NULL), error);
    assert_string_equal(labels_of(output), "-1, 9, 10");
    free_model(&m);
}

/* One row a class, whose label is given as a name and as a number. */
static void labels_find_their_classes(void **state)
{
    (void)state;
    counts names = {0}, numbers = {0}, one = {0};
    static const char *const labels[] = {"business", "science", "sport", "world"};
    write_rows("names.tsv", "the star\tworld\na match\tbusiness\nof\tsport\nis\tscience\n");
    write_rows("numbers.tsv", "the star\t3\na match\t0\nof\t2\nis\t1\n");
    const char *path = tiny_model("tiny-distilbert");
    assert_ok(evaluate(path, test_path(folder, "names.tsv"), &names), error);
    assert_ok(evaluate(path, test_path(folder, "numbers.tsv"), &numbers), error);
    assert_memory_equal(&names, &numbers, sizeof names);
    for (int i = 0; i < 4; i++) {
        char row[64];
        snprintf(row, sizeof row, "the star\t%s\n", labels[i]);
        write_rows("one.tsv", row);
        assert_ok(evaluate(path, test_path(folder, "one.tsv"), &one), error);
        int64_t in_row = 0;
        for (int predicted = 0; predicted < 4; predicted++)
            in_row += one.confusion[i][predicted];
        assert_int_equal(in_row, 1);
    }

    ls_train_report with_names, with_numbers;
    assert_ok(run_folder(path, test_path(folder, "names.tsv"), 1e-3, &with_names), error);
    assert_ok(run_folder(path, test_path(folder, "numbers.tsv"), 1e-3, &with_numbers), error);
    assert_string_equal(with_names.weights_sha256, with_numbers.weights_sha256);
}

static void expect_text(ls_status status, const char *const *needles, int count)
{
    assert_int_equal(status, LS_INVALID);
    for (int i = 0; i < count; i++)
        if (!strstr(error.text, needles[i])) fail_msg("no '%s' in: %s", needles[i], error.text);
}

static void a_label_that_the_model_lacks_is_named(void **state)
{
    (void)state;
    static const char *const unknown[] = {"bad.tsv:3:", "\"weather\"", "business", "world"};
    static const char *const beyond[] = {"bad.tsv:3:", "\"4\""};
    counts unused;
    const char *path = tiny_model("tiny-distilbert"), *rows = test_path(folder, "bad.tsv");
    write_rows("bad.tsv", "the\tsport\na\tweather\n");
    expect_text(run_folder(path, rows, 0, NULL), unknown, 4);
    expect_text(evaluate(path, rows, &unused), unknown, 4);
    write_rows("bad.tsv", "the\t3\na\t4\n");
    expect_text(run_folder(path, rows, 0, NULL), beyond, 2);
}

/* A label that only the validation file has. */
static void validation_has_no_labels_of_its_own(void **state)
{
    (void)state;
    static const char *const needles[] = {"unseen.tsv:2:", "\"world\"", "business, science, sport"};
    write_rows("unseen.tsv", "the\tworld\n");
    ls_options options = tiny_options("tiny-bert", train, test_path(folder, "none"));
    options.validation = test_path(folder, "unseen.tsv");
    ls_status status = ls_train(&options, NULL, NULL, NULL, &error);
    expect_text(status, needles, 3);
    assert_int_not_equal(access(options.output, F_OK), 0);
}

static void a_head_of_another_size_is_refused(void **state)
{
    (void)state;
    model m = load_model("tiny-distilbert");
    find(&m, "classifier.weight")->shape[0] = 3;
    find(&m, "classifier.weight")->count = 3 * 32;
    write_model(&m);
    check_refused("classifier.weight", "config.json");
    assert_non_null(strstr(error.text, "3 rows"));
    assert_non_null(strstr(error.text, "4 labels"));
    free_model(&m);
}

static void half_a_head_does_not_predict(void **state)
{
    (void)state;
    counts unused;
    static const char *const parts[] = {"pre_classifier.weight", "classifier.bias"};
    for (int i = 0; i < 2; i++) {
        model m = load_model("tiny-distilbert");
        take_out(&m, parts[i]);
        write_model(&m);
        expect_text(evaluate(changed, train, &unused), &parts[i], 1);
        free_model(&m);
    }
    static const char *const no_head[] = {"classifier.weight", "lockstep train"};
    expect_text(evaluate(tiny_model("tiny-bert"), train, &unused), no_head, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_is_kept_with_its_labels),
        cmocka_unit_test(a_new_head_gets_the_labels_of_the_data),
        cmocka_unit_test(labels_find_their_classes),
        cmocka_unit_test(a_label_that_the_model_lacks_is_named),
        cmocka_unit_test(validation_has_no_labels_of_its_own),
        cmocka_unit_test(a_head_of_another_size_is_refused),
        cmocka_unit_test(half_a_head_does_not_predict),
    };
    return cmocka_run_group_tests_name("heads", tests, variants_setup, variants_teardown);
}

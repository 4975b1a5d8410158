/* run.json, and the two small functions over one folder each: inspect and the text encoder. */
#include "testing.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/run_record.h"
#include "base/alloc.h"
#include "formats/json.h"

#define TINY LS_TEST_SOURCE "/tests/data/tiny-bert"

static const json_t *setting(const json_t *root, const char *name)
{
    return json_object_get(json_object_get(root, "settings"), name);
}

static void run_json_says_where_each_value_came_from(void **state)
{
    (void)state;
    ls_error error;
    char *folder = test_folder();
    ls_options given, used;
    ls_sources *sources = NULL;
    static const char *const labels[] = {"bad \"film\"", "good"};
    const ls_run_fact facts[] = {
        {.key = "version", .kind = LS_RUN_TEXT, .text = "0.1.0"},
        {.key = "digest", .kind = LS_RUN_TEXT},
        {.key = "steps", .kind = LS_RUN_INTEGER, .integer = 12345678901},
        {.key = "loss", .kind = LS_RUN_NUMBER, .number = NAN},
        {.key = "seconds", .kind = LS_RUN_NUMBER, .number = 0.1},
        {.key = "labels", .kind = LS_RUN_TEXTS, .texts = labels, .count = 2},
    };
    ls_options_default(&given);
    given.model = "caf\xe9/model"; /* Latin-1, as a path may be */
    used = given;
    used.samples_per_pass = 16;
    assert_ok(ls_sources_new(&sources, &error), error);
    assert_ok(ls_sources_set(sources, "model", "command line", &error), error);
    assert_ok(ls_run_record_write(folder, &given, &used, sources, facts, 6, &error), error);

    json_t *root = NULL;
    assert_ok(ls_json_load(&root, test_path(folder, "run.json"), 1 << 20, &error), error);
    const json_t *model = setting(root, "model"), *samples = setting(root, "samples_per_pass");
    const json_t *rate = setting(root, "learning_rate");
    assert_string_equal(json_string_value(json_object_get(model, "value")), "caf?/model");
    assert_string_equal(json_string_value(json_object_get(model, "source")), "command line");
    assert_true(json_real_value(json_object_get(rate, "value")) == 5e-5);
    assert_string_equal(json_string_value(json_object_get(rate, "source")), "default");
    assert_int_equal(json_integer_value(json_object_get(samples, "value")), 16);
    assert_string_equal(json_string_value(json_object_get(samples, "given")), "auto");
    assert_true(json_is_null(json_object_get(setting(root, "validation"), "value")));
    assert_true(json_is_false(json_object_get(setting(root, "weight_decay_all"), "value")));
    assert_null(setting(root, "data"));
    assert_int_equal(json_integer_value(json_object_get(root, "steps")), 12345678901);
    assert_true(json_is_null(json_object_get(root, "loss")));
    assert_true(json_is_null(json_object_get(root, "digest")));
    assert_string_equal(json_string_value(json_array_get(json_object_get(root, "labels"), 0)),
                        labels[0]);
    ls_json_free(root);
    ls_sources_free(sources);
    test_folder_remove(folder);
}

typedef struct seen {
    int64_t tensors, elements;
    char first[64];
} seen;

static void count_tensor(void *context, const ls_tensor_report *tensor)
{
    seen *all = context;
    int64_t elements = 1;
    for (int axis = 0; axis < tensor->rank; axis++)
        elements *= tensor->shape[axis];
    assert_int_equal(elements, tensor->elements);
    int width = strstr(tensor->dtype, "64") ? 8 : strstr(tensor->dtype, "32") ? 4 : 2;
    assert_int_equal(tensor->bytes, width * tensor->elements);
    assert_non_null(strstr(tensor->file, "model.safetensors"));
    if (!all->tensors++) snprintf(all->first, sizeof all->first, "%s", tensor->name);
    all->elements += elements;
}

static void inspect_lists_a_folder_and_a_file_alike(void **state)
{
    (void)state;
    ls_error error;
    seen folder = {0}, file = {0};
    assert_ok(ls_inspect(TINY, count_tensor, &folder, &error), error);
    assert_ok(ls_inspect(TINY "/model.safetensors", count_tensor, &file, &error), error);
    assert_true(folder.tensors > 20 && folder.elements > 1000);
    assert_memory_equal(&folder, &file, sizeof file);
    assert_int_equal(ls_inspect(TINY "/no", count_tensor, &file, &error), LS_IO);
    assert_int_equal(ls_inspect(NULL, count_tensor, &file, &error), LS_USAGE);
}

static void an_encoder_cuts_to_the_length_it_is_told(void **state)
{
    (void)state;
    ls_error error;
    ls_options options;
    ls_text_encoder *encoder = NULL;
    const int32_t *ids;
    int64_t all = 0, cut = 0, none = 0;
    static const char text[] = "the film was good, the story was bad";
    ls_options_default(&options);
    assert_int_equal(ls_text_encoder_open(&encoder, &options, &error), LS_USAGE);
    options.model = TINY;
    assert_ok(ls_text_encoder_open(&encoder, &options, &error), error);
    assert_ok(ls_text_encoder_encode(encoder, text, strlen(text), &ids, &all, &error), error);
    assert_ok(ls_text_encoder_encode(encoder, "", 0, &ids, &none, &error), error);
    assert_int_equal(none, 2);
    ls_text_encoder_free(encoder);
    options.max_length = 5;
    assert_ok(ls_text_encoder_open(&encoder, &options, &error), error);
    assert_ok(ls_text_encoder_encode(encoder, text, strlen(text), &ids, &cut, &error), error);
    assert_true(all > 5 && cut == 5);
    ls_text_encoder_free(encoder);
    ls_text_encoder_free(NULL);
}

/* --- memory ---------------------------------------------------------------------------------- */

static int fail_at(void *context, size_t bytes)
{
    int64_t *left = context;
    (void)bytes;
    return (*left)-- == 0;
}

static ls_status all_of_it(const char *folder, ls_error *error)
{
    ls_options options;
    ls_sources *sources = NULL;
    seen unused = {0};
    ls_options_default(&options);
    ls_status status = ls_sources_new(&sources, error);
    if (status == LS_OK)
        status = ls_run_record_write(folder, &options, &options, sources, NULL, 0, error);
    if (status == LS_OK) status = ls_inspect(TINY, count_tensor, &unused, error);
    ls_sources_free(sources);
    return status;
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    ls_error error;
    char *folder = test_folder();
    ls_status status = LS_NO_MEMORY;
    int64_t failed = 0;
    for (int64_t n = 0; status != LS_OK; n++) {
        int64_t left = n;
        size_t before = ls_allocated_bytes();
        ls_set_allocation_hook(fail_at, &left);
        status = all_of_it(folder, &error);
        ls_set_allocation_hook(NULL, NULL);
        assert_int_equal(ls_allocated_bytes(), before);
        if (status == LS_OK) break;
        if (status != LS_NO_MEMORY) fail_msg("allocation %d: %s", (int)n, error.text);
        failed++;
    }
    assert_true(failed > 20);
    test_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_json_says_where_each_value_came_from),
        cmocka_unit_test(inspect_lists_a_folder_and_a_file_alike),
        cmocka_unit_test(an_encoder_cuts_to_the_length_it_is_told),
        cmocka_unit_test(each_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("api/run_record", tests, NULL, NULL);
}

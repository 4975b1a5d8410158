/* The model folders that people have: names with and without prefix, other heads, old names, half
 * precision, shards; and damaged ones. */
#include "model_variants.h"

/* --- names ------------------------------------------------------------------------------------ */

static void bodies_are_found_with_and_without_prefix(void **state)
{
    (void)state;
    static const struct {
        const char *name, *prefix;
        double rate;
    } cases[] = {{"tiny-bert", "bert.", 1e-3}, {"tiny-bert", "", 1e-3}};
    ls_train_report reports[2];
    model plain = load_model("tiny-bert");
    for (int i = 0; i < 2; i++) {
        model m = load_model(cases[i].name);
        put_prefix(&m, cases[i].prefix);
        write_model(&m);
        check_run(&plain, "bert.");
        assert_non_null(strstr(messages, "new weights, drawn from the seed: classifier.weight, "
                                         "classifier.bias\n"));
        assert_null(strstr(messages, "does not use"));
        assert_ok(run_folder(changed, train, cases[i].rate, &reports[i]), error);
        free_model(&m);
    }
    assert_string_equal(reports[0].weights_sha256, reports[1].weights_sha256);
    free_model(&plain);
}

static void a_bare_distilbert_gets_its_head(void **state)
{
    (void)state;
    static const char *const head[] = {"pre_classifier.weight", "pre_classifier.bias",
                                       "classifier.weight", "classifier.bias"};
    model m = load_model("tiny-distilbert");
    for (int i = 0; i < 4; i++)
        take_out(&m, head[i]);
    assert_int_equal(rename_all(&m, "distilbert.", ""), m.count);
    write_model(&m);
    check_run(&m, "distilbert.");
    for (int i = 0; i < 4; i++)
        assert_non_null(strstr(messages, head[i]));
    assert_null(strstr(messages, "does not use"));
    free_model(&m);
}

static void other_heads_are_left_out_and_named(void **state)
{
    (void)state;
    static const char *const heads[] = {
        "cls.predictions.bias", "cls.predictions.transform.dense.weight",
        "cls.predictions.transform.LayerNorm.weight", "cls.seq_relationship.weight"};
    for (int pretraining = 0; pretraining < 2; pretraining++) {
        model body = load_model("tiny-bert"), m = load_model("tiny-bert");
        if (!pretraining) {
            take_out(&body, "pooler.dense.weight");
            take_out(&body, "pooler.dense.bias");
            take_out(&m, "pooler.dense.weight");
            take_out(&m, "pooler.dense.bias");
        }
        put_prefix(&m, "bert.");
        for (int i = 0; i < 3 + pretraining; i++)
            add(&m, heads[i], 1, (int64_t[]){36});
        write_model(&m);
        change_config("\"BertModel\"",
                      pretraining ? "\"BertForPreTraining\"" : "\"BertForMaskedLM\"");
        check_run(&body, "bert.");
        const char *unused = strstr(messages, "tensors that this model does not use: ");
        assert_non_null(unused);
        for (int i = 0; i < 3 + pretraining; i++)
            assert_non_null(strstr(unused, heads[i]));
        assert_int_equal(strstr(messages, "bert.pooler.dense.weight") != NULL, !pretraining);
        assert_null(strstr(messages, "encoder"));
        free_model(&m);
        free_model(&body);
    }
}

enum { NORMS = 1 + 2 * 2 }; /* of tiny-bert */

static void old_norm_names_are_known(void **state)
{
    (void)state;
    model plain = load_model("tiny-bert"), m = load_model("tiny-bert");
    assert_int_equal(rename_all(&m, "LayerNorm.weight", "LayerNorm.gamma"), NORMS);
    assert_int_equal(rename_all(&m, "LayerNorm.bias", "LayerNorm.beta"), NORMS);
    for (int i = 0; i < 2; i++) {
        if (i) put_prefix(&m, "bert.");
        write_model(&m);
        check_run(&plain, "bert.");
        assert_null(strstr(messages, "does not use"));
    }
    free_model(&m);
    free_model(&plain);
}

/* --- dtypes and shards ------------------------------------------------------------------------ */

static void half_precision_is_read_exactly(void **state)
{
    (void)state;
    static const ls_safetensors_dtype dtypes[] = {LS_SAFETENSORS_F16, LS_SAFETENSORS_BF16};
    for (int d = 0; d < 2; d++) {
        model m = load_model("tiny-bert");
        for (size_t i = 0; i < m.count; i++) {
            m.tensors[i].dtype = dtypes[d];
            for (int64_t e = 0; e < m.tensors[i].count; e++)
                m.tensors[i].values[e] = cut(m.tensors[i].values[e], dtypes[d]);
        }
        write_model(&m);
        check_run(&m, "bert.");
        free_model(&m);
    }
}

static void shards_are_one_model(void **state)
{
    (void)state;
    model m = load_model("tiny-bert");
    char index[8192] = "{\"metadata\": {\"total_size\": 1}, \"weight_map\": {";
    write_rest(&m);
    size_t half = m.count / 2;
    write_weights(&m, "model-00001-of-00002.safetensors", 0, half);
    write_weights(&m, "model-00002-of-00002.safetensors", half, m.count);
    for (size_t i = 0; i < m.count; i++)
        snprintf(index + strlen(index), sizeof index - strlen(index),
                 "%s\"%s\": \"model-0000%d-of-00002.safetensors\"", i ? ", " : "",
                 m.tensors[i].name, i < half ? 1 : 2);
    strcat(index, "}}");
    test_write_file(test_path(changed, "model.safetensors.index.json"), index, strlen(index));
    check_run(&m, "bert.");
    assert_int_equal(unlink(test_path(changed, "model-00002-of-00002.safetensors")), 0);
    assert_int_not_equal(run_folder(changed, train, 0, NULL), LS_OK);
    assert_non_null(strstr(error.text, "model-00002-of-00002.safetensors"));
    free_model(&m);
}

/* --- damaged models --------------------------------------------------------------------------- */

static const char query[] = "encoder.layer.1.attention.self.query.weight";

static void a_missing_tensor_is_named(void **state)
{
    (void)state;
    static const char *const names[] = {query, "embeddings.LayerNorm.bias",
                                        "embeddings.token_type_embeddings.weight"};
    for (int i = 0; i < 3; i++) {
        model m = load_model("tiny-bert");
        take_out(&m, names[i]);
        write_model(&m);
        check_refused(names[i], "model.safetensors");
        assert_non_null(strstr(error.text, "missing"));
        free_model(&m);
    }
}

static void a_wrong_shape_is_named(void **state)
{
    (void)state;
    model m = load_model("tiny-bert");
    tensor *t = find(&m, query);
    t->shape[0] = 18;
    t->shape[1] = 72;
    write_model(&m);
    check_refused(query, "[18, 72]");
    assert_non_null(strstr(error.text, "[36, 36]"));
    t->rank = 1;
    t->shape[0] = 36 * 36;
    write_model(&m);
    check_refused(query, "[1296]");
    free_model(&m);
}

static void a_wrong_dtype_is_named(void **state)
{
    (void)state;
    model m = load_model("tiny-bert");
    find(&m, query)->dtype = LS_SAFETENSORS_I32;
    write_model(&m);
    ls_status status = run_folder(changed, train, 0, NULL);
    assert_true(status == LS_INVALID || status == LS_UNSUPPORTED);
    assert_non_null(strstr(error.text, query));
    assert_non_null(strstr(error.text, "I32"));
    free_model(&m);
}

static void weights_that_are_not_finite_are_named(void **state)
{
    (void)state;
    static const float bad[] = {__builtin_nanf(""), __builtin_inff(), -__builtin_inff()};
    for (int i = 0; i < 3; i++) {
        model m = load_model("tiny-bert");
        find(&m, query)->values[100 + i] = bad[i];
        write_model(&m);
        char element[32];
        snprintf(element, sizeof element, "element %d ", 100 + i);
        check_refused(query, element);
        free_model(&m);
    }
}

/* Nothing is left where the output would have been, and a former run's is left as it was. */
static void a_refused_model_leaves_no_output(void **state)
{
    (void)state;
    char before[65], after[65];
    model m = load_model("tiny-bert");
    write_model(&m);
    assert_ok(run_folder(changed, train, 0, NULL), error);
    assert_ok(ls_file_sha256(test_path(output, "model.safetensors"), before, &error), error);
    find(&m, query)->values[0] = __builtin_nanf("");
    write_model(&m);
    check_refused(query, "element 0 ");
    assert_ok(ls_file_sha256(test_path(output, "model.safetensors"), after, &error), error);
    assert_string_equal(after, before);

    ls_options options = tiny_options("tiny-bert", train, test_path(folder, "new"));
    options.model = changed;
    assert_int_equal(ls_train(&options, NULL, NULL, NULL, &error), LS_NOT_FINITE);
    assert_int_not_equal(access(options.output, F_OK), 0);
    free_model(&m);
}

static void a_vocabulary_larger_than_the_table_is_refused(void **state)
{
    (void)state;
    model m = load_model("tiny-bert");
    write_model(&m);
    change_config("\"vocab_size\": 151", "\"vocab_size\": 150");
    check_refused("151", "150");
    free_model(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_are_found_with_and_without_prefix),
        cmocka_unit_test(a_bare_distilbert_gets_its_head),
        cmocka_unit_test(other_heads_are_left_out_and_named),
        cmocka_unit_test(old_norm_names_are_known),
        cmocka_unit_test(half_precision_is_read_exactly),
        cmocka_unit_test(shards_are_one_model),
        cmocka_unit_test(a_missing_tensor_is_named),
        cmocka_unit_test(a_wrong_shape_is_named),
        cmocka_unit_test(a_wrong_dtype_is_named),
        cmocka_unit_test(weights_that_are_not_finite_are_named),
        cmocka_unit_test(a_refused_model_leaves_no_output),
        cmocka_unit_test(a_vocabulary_larger_than_the_table_is_refused),
    };
    return cmocka_run_group_tests_name("model_files", tests, variants_setup, variants_teardown);
}

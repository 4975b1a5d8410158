/* formats/model_config: the two families, their defaults, what is refused, what is written. */
#include "testing.h"

#include <stdio.h>
#include <string.h>

#include "formats/json.h"
#include "formats/model_config.h"

#define BERT_SIZES                                                                                 \
    "\"vocab_size\": 100, \"hidden_size\": 32, \"num_hidden_layers\": 2, "                         \
    "\"num_attention_heads\": 4, \"intermediate_size\": 64, \"max_position_embeddings\": 48"
#define BERT "\"model_type\": \"bert\", " BERT_SIZES
#define DISTILBERT                                                                                 \
    "\"model_type\": \"distilbert\", \"vocab_size\": 100, \"dim\": 32, \"n_layers\": 3, "          \
    "\"n_heads\": 2, \"hidden_dim\": 64, \"max_position_embeddings\": 48"

static ls_status parse(ls_model_config *config, const char *text, ls_error *error)
{
    return ls_model_config_parse(config, text, strlen(text), "m/config.json", error);
}

static void bert_takes_the_defaults_of_its_class(void **state)
{
    (void)state;
    ls_error error;
    ls_model_config config;
    assert_ok(parse(&config, "{" BERT ", \"architectures\": [\"BertForMaskedLM\"]}", &error),
              error);
    assert_int_equal(config.family, LS_MODEL_BERT);
    assert_string_equal(config.architecture, "BertForMaskedLM");
    assert_int_equal(config.vocab_size, 100);
    assert_int_equal(config.hidden_size, 32);
    assert_int_equal(config.layers, 2);
    assert_int_equal(config.heads, 4);
    assert_int_equal(config.intermediate_size, 64);
    assert_int_equal(config.max_positions, 48);
    assert_int_equal(config.type_vocab_size, 2);
    assert_int_equal(config.activation, LS_ACTIVATION_GELU);
    assert_true(config.layer_norm_epsilon == 1e-12);
    assert_true(config.hidden_dropout == 0.1 && config.attention_dropout == 0.1);
    assert_true(config.classifier_dropout == 0.1);
    assert_true(config.initializer_range == 0.02);
    assert_int_equal(config.pad_token_id, 0);
    assert_false(config.labels_given);
    assert_int_equal(config.label_count, 2);
    assert_string_equal(config.labels[1], "LABEL_1");
    ls_model_config_deinit(&config);

    assert_ok(
        parse(&config,
              "{" BERT ", \"hidden_dropout_prob\": 0.3, \"classifier_dropout\": null,"
              " \"hidden_act\": \"gelu_new\", \"pad_token_id\": null, \"layer_norm_eps\": 1e-5}",
              &error),
        error);
    assert_true(config.classifier_dropout == 0.3);
    assert_int_equal(config.activation, LS_ACTIVATION_GELU_TANH);
    assert_int_equal(config.pad_token_id, -1);
    assert_true(config.layer_norm_epsilon == 1e-5);
    ls_model_config_deinit(&config);
    ls_model_config_deinit(&config);
}

static void distilbert_has_keys_of_its_own(void **state)
{
    (void)state;
    ls_error error;
    ls_model_config config;
    assert_ok(parse(&config,
                    "{" DISTILBERT ", \"dropout\": 0, \"activation\": \"relu\","
                    " \"sinusoidal_pos_embds\": false, \"tie_weights_\": true}",
                    &error),
              error);
    assert_int_equal(config.family, LS_MODEL_DISTILBERT);
    assert_int_equal(config.layers, 3);
    assert_int_equal(config.heads, 2);
    assert_int_equal(config.type_vocab_size, 0);
    assert_int_equal(config.activation, LS_ACTIVATION_RELU);
    assert_true(config.hidden_dropout == 0.0 && config.attention_dropout == 0.1);
    assert_true(config.classifier_dropout == 0.2);
    assert_true(config.layer_norm_epsilon == 1e-12);
    assert_string_equal(ls_model_config_classifier(&config), "DistilBertForSequenceClassification");
    ls_model_config_deinit(&config);
}

static void bad_configs_are_refused_by_key(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        ls_status status;
        const char *why;
    } cases[] = {
        {"[]", LS_INVALID, "an object"},
        {"{\"model_type\": \"gpt2\"}", LS_UNSUPPORTED, "'gpt2' is not supported; supported are"},
        {"{" BERT_SIZES "}", LS_INVALID, "'model_type': is missing"},
        {"{\"model_type\": \"bert\", \"vocab_size\": 5}", LS_INVALID, "'hidden_size': is missing"},
        {"{\"model_type\": \"distilbert\", \"vocab_size\": 5}", LS_INVALID, "'dim': is missing"},
        {"{\"model_type\": \"bert\", \"vocab_size\": 0}", LS_INVALID, "'vocab_size': is 0"},
        {"{\"model_type\": \"bert\", \"vocab_size\": 99999999}", LS_INVALID, "'vocab_size': is 9"},
        {"{\"model_type\": \"bert\", \"vocab_size\": \"5\"}", LS_INVALID, "an integer is needed"},
        {"{\"model_type\": \"bert\", \"vocab_size\": 100, \"hidden_size\": 32, "
         "\"num_hidden_layers\": 2, \"num_attention_heads\": 5, \"intermediate_size\": 64, "
         "\"max_position_embeddings\": 48}",
         LS_INVALID, "5 heads do not divide hidden_size 32"},
        {"{" BERT ", \"type_vocab_size\": 0}", LS_INVALID, "'type_vocab_size'"},
        {"{" BERT ", \"hidden_dropout_prob\": 1}", LS_INVALID, "'hidden_dropout_prob'"},
        {"{" BERT ", \"attention_probs_dropout_prob\": -0.1}", LS_INVALID, "from 0 to 1"},
        {"{" BERT ", \"hidden_act\": \"quick_gelu\"}", LS_UNSUPPORTED, "'quick_gelu'"},
        {"{" BERT ", \"hidden_act\": 3}", LS_INVALID, "text is needed"},
        {"{" BERT ", \"position_embedding_type\": \"relative_key\"}", LS_UNSUPPORTED,
         "'relative_key'"},
        {"{" BERT ", \"is_decoder\": true}", LS_UNSUPPORTED, "'is_decoder'"},
        {"{" BERT ", \"problem_type\": \"regression\"}", LS_UNSUPPORTED, "'regression'"},
        {"{" BERT ", \"problem_type\": \"multi_label_classification\"}", LS_UNSUPPORTED,
         "'multi_label_classification'"},
        {"{" BERT ", \"pruned_heads\": {\"1\": [0]}}", LS_UNSUPPORTED, "'pruned_heads'"},
        {"{" BERT ", \"pad_token_id\": 100}", LS_INVALID, "'pad_token_id': is 100"},
        {"{" BERT ", \"layer_norm_eps\": 0}", LS_INVALID, "'layer_norm_eps'"},
        {"{" BERT ", \"id2label\": {}}", LS_INVALID, "'id2label': has 0 labels"},
        {"{" BERT ", \"id2label\": {\"0\": \"a\", \"2\": \"b\"}}", LS_INVALID, "must be 0 to 1"},
        {"{" BERT ", \"id2label\": {\"0\": \"a\", \"x\": \"b\"}}", LS_INVALID, "must be 0 to 1"},
        {"{" BERT ", \"id2label\": {\"0\": \"a\", \"1\": \"a\"}}", LS_INVALID, "two ids"},
        {"{" BERT ", \"id2label\": {\"0\": \"a\", \"1\": 3}}", LS_INVALID, "'id2label.1'"},
        {"{" BERT ", \"id2label\": {\"0\": \"a\", \"1\": \"b\"}, \"label2id\": {\"a\": 1}}",
         LS_INVALID, "'label2id.a': is 1, but id2label gives it 0"},
        {"{" BERT ", \"id2label\": {\"0\": \"a\", \"1\": \"b\"}, \"num_labels\": 3}", LS_INVALID,
         "'num_labels': is 3, but 2"},
        {"{" BERT ", \"label2id\": {\"a\": 0, \"b\": 0}}", LS_INVALID, "stands twice"},
        {"{" BERT ", \"num_labels\": 0}", LS_INVALID, "'num_labels'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ls_error error = {0};
        ls_model_config config;
        ls_status status = parse(&config, cases[i].text, &error);
        if (status != cases[i].status || !strstr(error.text, cases[i].why) ||
            strncmp(error.text, "m/config.json: ", 15) != 0)
            fail_msg("case %zu: %d '%s'", i, status, error.text);
    }
}

static void labels_come_in_the_order_of_their_ids(void **state)
{
    (void)state;
    ls_error error;
    ls_model_config config;
    static const char *const cases[] = {
        "{" BERT ", \"id2label\": {\"2\": \"c\", \"0\": \"a\", \"1\": \"b\"},"
        " \"label2id\": {\"LABEL_0\": 0, \"b\": 1}}",
        "{" BERT ", \"label2id\": {\"c\": 2, \"a\": 0, \"b\": 1}, \"num_labels\": 3}",
    };
    for (size_t i = 0; i < 2; i++) {
        assert_ok(parse(&config, cases[i], &error), error);
        assert_true(config.labels_given);
        assert_int_equal(config.label_count, 3);
        assert_string_equal(config.labels[0], "a");
        assert_string_equal(config.labels[1], "b");
        assert_string_equal(config.labels[2], "c");
        ls_model_config_deinit(&config);
    }
    assert_ok(parse(&config, "{" BERT ", \"num_labels\": 4}", &error), error);
    assert_false(config.labels_given);
    assert_int_equal(config.label_count, 4);
    assert_string_equal(config.labels[3], "LABEL_3");
    ls_model_config_deinit(&config);
}

static void the_trained_config_keeps_keys_and_names_the_classifier(void **state)
{
    (void)state;
    ls_error error;
    ls_model_config config, again;
    char *folder = test_folder();
    const char *path = test_path(folder, "config.json");
    static const char *const labels[] = {"no", "\xc3\xa9t\xc3\xa9 \"x\"", "yes"};
    assert_ok(parse(&config,
                    "{\"_name_or_path\": \"some/where\", \"architectures\": [\"BertModel\"], " BERT
                    ", \"use_cache\": true, \"dtype\": \"float16\", \"num_labels\": 2,"
                    " \"hidden_dropout_prob\": 0.1}",
                    &error),
              error);
    assert_ok(ls_model_config_write(&config, labels, 3, path, &error), error);
    assert_ok(ls_model_config_load(&again, folder, &error), error);
    assert_string_equal(again.architecture, "BertForSequenceClassification");
    assert_true(again.labels_given);
    assert_int_equal(again.label_count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(again.labels[i], labels[i]);
    const json_t *root = again.source;
    assert_null(json_object_get(root, "_name_or_path"));
    assert_null(json_object_get(root, "dtype"));
    assert_null(json_object_get(root, "num_labels"));
    assert_true(json_is_true(json_object_get(root, "use_cache")));
    assert_string_equal(json_string_value(json_object_get(root, "torch_dtype")), "float32");
    assert_string_equal(json_string_value(json_object_get(root, "problem_type")),
                        "single_label_classification");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(root, "label2id"), "yes")),
                     2);
    ls_model_config_deinit(&again);

    static const char *const twice[] = {"a", "a"};
    assert_int_equal(ls_model_config_write(&config, twice, 2, path, &error), LS_INVALID);
    ls_model_config_deinit(&config);
    test_folder_remove(folder);
}

static void a_missing_file_is_named(void **state)
{
    (void)state;
    ls_error error;
    ls_model_config config;
    char *folder = test_folder();
    assert_int_equal(ls_model_config_load(&config, folder, &error), LS_IO);
    assert_non_null(strstr(error.text, "config.json"));
    assert_int_equal(ls_model_config_load(&config, "/no/such/folder", &error), LS_IO);
    test_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bert_takes_the_defaults_of_its_class),
        cmocka_unit_test(distilbert_has_keys_of_its_own),
        cmocka_unit_test(bad_configs_are_refused_by_key),
        cmocka_unit_test(labels_come_in_the_order_of_their_ids),
        cmocka_unit_test(the_trained_config_keeps_keys_and_names_the_classifier),
        cmocka_unit_test(a_missing_file_is_named),
    };
    return cmocka_run_group_tests_name("formats/model_config", tests, NULL, NULL);
}

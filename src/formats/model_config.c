#include "formats/model_config.h"

#include <string.h>

#include "base/alloc.h"
#include "base/files.h"
#include "formats/json.h"
#include "formats/model_labels.h"

enum { MAX_CONFIG_BYTES = 64 << 20 };

/* Where a family keeps its settings, and what Transformers takes for those that may be missing
 * (configuration_bert.py, configuration_distilbert.py). A NULL key: the family has no such setting.
 */
typedef struct family_keys {
    const char *model_type, *classifier;
    const char *layers, *heads, *hidden, *intermediate, *type_vocab, *activation, *epsilon;
    const char *hidden_dropout, *attention_dropout, *classifier_dropout;
    int64_t default_type_vocab;
} family_keys;

static const family_keys families[] = {
    [LS_MODEL_BERT] = {.model_type = "bert",
                       .classifier = "BertForSequenceClassification",
                       .layers = "num_hidden_layers",
                       .heads = "num_attention_heads",
                       .hidden = "hidden_size",
                       .intermediate = "intermediate_size",
                       .type_vocab = "type_vocab_size",
                       .activation = "hidden_act",
                       .epsilon = "layer_norm_eps",
                       .hidden_dropout = "hidden_dropout_prob",
                       .attention_dropout = "attention_probs_dropout_prob",
                       .classifier_dropout = "classifier_dropout",
                       .default_type_vocab = 2},
    [LS_MODEL_DISTILBERT] = {.model_type = "distilbert",
                             .classifier = "DistilBertForSequenceClassification",
                             .layers = "n_layers",
                             .heads = "n_heads",
                             .hidden = "dim",
                             .intermediate = "hidden_dim",
                             .activation = "activation",
                             .hidden_dropout = "dropout",
                             .attention_dropout = "attention_dropout",
                             .classifier_dropout = "seq_classif_dropout"},
};
enum { FAMILY_COUNT = sizeof families / sizeof *families };

/* "gelu_10", "quick_gelu" and others are functions of their own: not guessed at. */
static const struct {
    const char *name;
    ls_activation activation;
} activations[] = {
    {"gelu", LS_ACTIVATION_GELU},          {"gelu_python", LS_ACTIVATION_GELU},
    {"gelu_new", LS_ACTIVATION_GELU_TANH}, {"gelu_pytorch_tanh", LS_ACTIVATION_GELU_TANH},
    {"relu", LS_ACTIVATION_RELU},          {"tanh", LS_ACTIVATION_TANH},
};

static ls_status parse_family(ls_model_config *config, const ls_json_view *view, ls_error *error)
{
    const char *type = NULL;
    LS_TRY(ls_json_get_string(view, "model_type", LS_JSON_REQUIRED, &type, error));
    for (int i = 0; i < FAMILY_COUNT; i++) {
        if (strcmp(families[i].model_type, type) != 0) continue;
        config->family = (ls_model_family)i;
        config->family_name = families[i].model_type;
        return LS_OK;
    }
    return ls_json_fail(view, "model_type", error, LS_UNSUPPORTED,
                        "'%.100s' is not supported; supported are: bert, distilbert", type);
}

static ls_status parse_architecture(ls_model_config *config, const ls_json_view *view,
                                    ls_error *error)
{
    const json_t *array = NULL;
    config->architecture = "";
    LS_TRY(ls_json_get_array(view, "architectures", LS_JSON_OPTIONAL, &array, error));
    if (!array || json_array_size(array) == 0) return LS_OK;
    const json_t *name = json_array_get(array, 0);
    if (!json_is_string(name))
        return ls_json_fail(view, "architectures", error, LS_INVALID,
                            "holds %s, names of classes are needed", ls_json_type_name(name));
    config->architecture = json_string_value(name);
    return LS_OK;
}

static ls_status parse_sizes(ls_model_config *config, const family_keys *keys,
                             const ls_json_view *view, ls_error *error)
{
    const struct {
        const char *key;
        int64_t high, *out;
    } sizes[] = {
        {"vocab_size", 10000000, &config->vocab_size},
        {keys->hidden, 1000000, &config->hidden_size},
        {keys->layers, 1000, &config->layers},
        {keys->heads, 100000, &config->heads},
        {keys->intermediate, 10000000, &config->intermediate_size},
        {"max_position_embeddings", 10000000, &config->max_positions},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        LS_TRY(ls_json_get_integer(view, sizes[i].key, LS_JSON_REQUIRED, 1, sizes[i].high,
                                   sizes[i].out, error));
    if (config->hidden_size % config->heads != 0)
        return ls_json_fail(view, keys->heads, error, LS_INVALID,
                            "%lld heads do not divide %s %lld evenly", (long long)config->heads,
                            keys->hidden, (long long)config->hidden_size);
    config->type_vocab_size = keys->default_type_vocab;
    if (keys->type_vocab)
        LS_TRY(ls_json_get_integer(view, keys->type_vocab, LS_JSON_OPTIONAL, 1, 100000,
                                   &config->type_vocab_size, error));
    return LS_OK;
}

static ls_status parse_activation(ls_model_config *config, const family_keys *keys,
                                  const ls_json_view *view, ls_error *error)
{
    const char *name = "gelu";
    LS_TRY(ls_json_get_string(view, keys->activation, LS_JSON_OPTIONAL, &name, error));
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++) {
        if (strcmp(activations[i].name, name) != 0) continue;
        config->activation = activations[i].activation;
        return LS_OK;
    }
    return ls_json_fail(view, keys->activation, error, LS_UNSUPPORTED,
                        "'%.100s' is not supported; supported are: gelu, gelu_new, "
                        "gelu_pytorch_tanh, relu, tanh",
                        name);
}

static ls_status get_dropout(const ls_json_view *view, const char *key, double *out,
                             ls_error *error)
{
    LS_TRY(ls_json_get_number(view, key, LS_JSON_OPTIONAL, 0.0, 1.0, out, error));
    if (*out < 1.0) return LS_OK;
    return ls_json_fail(view, key, error, LS_INVALID,
                        "is 1, which drops everything; it must be below 1");
}

static ls_status parse_numbers(ls_model_config *config, const family_keys *keys,
                               const ls_json_view *view, ls_error *error)
{
    config->hidden_dropout = config->attention_dropout = 0.1;
    LS_TRY(get_dropout(view, keys->hidden_dropout, &config->hidden_dropout, error));
    LS_TRY(get_dropout(view, keys->attention_dropout, &config->attention_dropout, error));
    config->classifier_dropout =
        config->family == LS_MODEL_DISTILBERT ? 0.2 : config->hidden_dropout;
    LS_TRY(get_dropout(view, keys->classifier_dropout, &config->classifier_dropout, error));

    config->layer_norm_epsilon = 1e-12;
    if (keys->epsilon)
        LS_TRY(ls_json_get_number(view, keys->epsilon, LS_JSON_OPTIONAL, 1e-30, 1.0,
                                  &config->layer_norm_epsilon, error));
    config->initializer_range = 0.02;
    LS_TRY(ls_json_get_number(view, "initializer_range", LS_JSON_OPTIONAL, 0.0, 100.0,
                              &config->initializer_range, error));

    /* Absent is 0, null is none: the one key for which the two differ. */
    config->pad_token_id = json_is_null(json_object_get(view->object, "pad_token_id")) ? -1 : 0;
    return ls_json_get_integer(view, "pad_token_id", LS_JSON_OPTIONAL, 0, config->vocab_size - 1,
                               &config->pad_token_id, error);
}

/* Settings with which the model would be another one. */
static ls_status refuse_variants(const ls_json_view *view, ls_error *error)
{
    static const char *const flags[] = {"is_decoder", "is_encoder_decoder", "add_cross_attention"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        bool set = false;
        LS_TRY(ls_json_get_bool(view, flags[i], LS_JSON_OPTIONAL, &set, error));
        if (set)
            return ls_json_fail(view, flags[i], error, LS_UNSUPPORTED,
                                "true is not supported; only encoders are");
    }
    const char *positions = "absolute", *problem = "single_label_classification";
    LS_TRY(
        ls_json_get_string(view, "position_embedding_type", LS_JSON_OPTIONAL, &positions, error));
    if (strcmp(positions, "absolute") != 0)
        return ls_json_fail(view, "position_embedding_type", error, LS_UNSUPPORTED,
                            "'%.100s' is not supported; only 'absolute' is", positions);
    LS_TRY(ls_json_get_string(view, "problem_type", LS_JSON_OPTIONAL, &problem, error));
    if (strcmp(problem, "single_label_classification") != 0)
        return ls_json_fail(view, "problem_type", error, LS_UNSUPPORTED,
                            "'%.100s' is not supported; only 'single_label_classification' is",
                            problem);
    if (json_object_size(ls_json_find(view, "pruned_heads")) > 0)
        return ls_json_fail(view, "pruned_heads", error, LS_UNSUPPORTED,
                            "models with pruned heads are not supported");
    if (ls_json_find(view, "quantization_config"))
        return ls_json_fail(view, "quantization_config", error, LS_UNSUPPORTED,
                            "quantized models are not supported; use the original weights");
    return LS_OK;
}

static ls_status parse_root(ls_model_config *config, ls_error *error)
{
    ls_json_view view;
    LS_TRY(ls_json_view_init(&view, config->source, config->path, error));
    LS_TRY(parse_family(config, &view, error));
    const family_keys *keys = &families[config->family];
    LS_TRY(refuse_variants(&view, error));
    LS_TRY(parse_architecture(config, &view, error));
    LS_TRY(parse_sizes(config, keys, &view, error));
    LS_TRY(parse_activation(config, keys, &view, error));
    LS_TRY(parse_numbers(config, keys, &view, error));
    return ls_model_labels_parse(config, &view, error);
}

ls_status ls_model_config_parse(ls_model_config *config, const char *bytes, size_t count,
                                const char *name, ls_error *error)
{
    *config = (ls_model_config){0};
    ls_status status;
    LS_TRY_GOTO(status, ls_copy_string(&config->path, name, error), fail);
    LS_TRY_GOTO(status, ls_json_parse(&config->source, bytes, count, name, error), fail);
    LS_TRY_GOTO(status, parse_root(config, error), fail);
    return LS_OK;
fail:
    ls_model_config_deinit(config);
    return status;
}

ls_status ls_model_config_load(ls_model_config *config, const char *path, ls_error *error)
{
    char *joined = NULL, *bytes = NULL;
    size_t count = 0;
    ls_status status = LS_OK;
    *config = (ls_model_config){0};
    if (ls_path_is_folder(path)) {
        LS_TRY(ls_path_join(&joined, path, "config.json", error));
        path = joined;
    }
    LS_TRY_GOTO(status, ls_file_read(&bytes, &count, path, MAX_CONFIG_BYTES, error), done);
    status = ls_model_config_parse(config, bytes, count, path, error);
done:
    ls_free(bytes);
    ls_free(joined);
    return status;
}

void ls_model_config_deinit(ls_model_config *config)
{
    for (size_t i = 0; i < config->label_count; i++)
        ls_free(config->labels[i]);
    ls_free(config->labels);
    ls_free(config->path);
    ls_json_free(config->source);
    *config = (ls_model_config){0};
}

const char *ls_model_config_classifier(const ls_model_config *config)
{
    return families[config->family].classifier;
}

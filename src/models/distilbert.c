/* DistilBertForSequenceClassification (Sanh et al. 2019): no token types, no pooler, no dropout
 * after the attention's output; a ReLU layer of its own before the classifier. */
#include <stdio.h>

#include "models/model.h"

static const ls_encoder_names names = {
    .query = "attention.q_lin",
    .key = "attention.k_lin",
    .value = "attention.v_lin",
    .output = "attention.out_lin",
    .output_norm = "sa_layer_norm",
    .up = "ffn.lin1",
    .down = "ffn.lin2",
    .down_norm = "output_layer_norm",
};

static ls_status build_embeddings(ls_model_builder *builder, ls_value_id *x)
{
    const ls_model_config *config = builder->config;
    const ls_inputs *inputs = &builder->model->inputs;
    ls_embedding_tables tables = {.type = LS_NO_VALUE};
    ls_affine affine;
    LS_TRY(ls_model_table(builder, "distilbert.embeddings.word_embeddings.weight",
                          config->vocab_size, config->hidden_size, inputs->word.touched,
                          &tables.word));
    LS_TRY(ls_model_table(builder, "distilbert.embeddings.position_embeddings.weight",
                          config->max_positions, config->hidden_size, inputs->position.touched,
                          &tables.position));
    LS_TRY(ls_model_norm(builder, "distilbert.embeddings.LayerNorm", config->hidden_size, &affine));
    ls_layer_norm_operands norm = {.residual = LS_NO_VALUE,
                                   .gamma = affine.weight,
                                   .beta = affine.bias,
                                   .epsilon = (float)config->layer_norm_epsilon};
    LS_TRY(ls_embedding(builder->program, "distilbert.embeddings", inputs, tables, &norm.branch,
                        builder->error));
    LS_TRY(ls_layer_norm(builder->program, "distilbert.embeddings.LayerNorm", inputs, norm, x,
                         builder->error));
    return ls_dropout_op(builder->program, "distilbert.embeddings", inputs, *x,
                         builder->program->training ? (float)config->hidden_dropout : 0.0f,
                         ls_site(0, LS_SITE_EMBEDDING), x, builder->error);
}

static ls_status build(ls_model_builder *builder)
{
    const ls_model_config *config = builder->config;
    ls_value_id x;
    LS_TRY(build_embeddings(builder, &x));
    for (int64_t i = 0; i < config->layers; i++) {
        char prefix[64];
        snprintf(prefix, sizeof prefix, "distilbert.transformer.layer.%lld", (long long)i);
        builder->program->unit++;
        ls_encoder_layer layer = {
            .prefix = prefix, .names = &names, .layer = i, .first_only = i == config->layers - 1};
        LS_TRY(ls_model_encoder_layer(builder, &layer, &x));
    }
    builder->program->unit++;
    LS_TRY(ls_model_apply_linear(builder, "pre_classifier", x, config->hidden_size,
                                 LS_INITIAL_NORMAL, LS_ACTIVATION_RELU, &x));
    LS_TRY(ls_dropout_op(builder->program, "pre_classifier", &builder->model->inputs, x,
                         builder->program->training ? (float)config->classifier_dropout : 0.0f,
                         ls_site(0, LS_SITE_CLASSIFIER), &x, builder->error));
    return ls_model_apply_linear(builder, "classifier", x, builder->model->classes,
                                 LS_INITIAL_NORMAL, LS_ACTIVATION_NONE, &builder->model->logits);
}

const ls_model_definition ls_model_distilbert = {
    .family = LS_MODEL_DISTILBERT,
    .prefix = "distilbert.",
    .build = build,
};

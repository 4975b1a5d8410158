/* BertForSequenceClassification (Devlin et al. 2018), with Hugging Face's parameter names. */
#include <stdio.h>

#include "models/model.h"

static const ls_encoder_names names = {
    .query = "attention.self.query",
    .key = "attention.self.key",
    .value = "attention.self.value",
    .output = "attention.output.dense",
    .output_norm = "attention.output.LayerNorm",
    .up = "intermediate.dense",
    .down = "output.dense",
    .down_norm = "output.LayerNorm",
};

static ls_status build_embeddings(ls_model_builder *builder, float dropout, ls_value_id *x)
{
    const ls_model_config *config = builder->config;
    const ls_inputs *inputs = &builder->model->inputs;
    ls_embedding_tables tables;
    ls_affine affine;
    LS_TRY(ls_model_table(builder, "bert.embeddings.word_embeddings.weight", config->vocab_size,
                          config->hidden_size, inputs->word.touched, &tables.word));
    LS_TRY(ls_model_table(builder, "bert.embeddings.position_embeddings.weight",
                          config->max_positions, config->hidden_size, inputs->position.touched,
                          &tables.position));
    LS_TRY(ls_model_table(builder, "bert.embeddings.token_type_embeddings.weight",
                          config->type_vocab_size, config->hidden_size, inputs->type.touched,
                          &tables.type));
    LS_TRY(ls_model_norm(builder, "bert.embeddings.LayerNorm", config->hidden_size, &affine));
    ls_layer_norm_operands norm = {.residual = LS_NO_VALUE,
                                   .gamma = affine.weight,
                                   .beta = affine.bias,
                                   .epsilon = (float)config->layer_norm_epsilon};
    LS_TRY(ls_embedding(builder->program, "bert.embeddings", inputs, tables, &norm.branch,
                        builder->error));
    LS_TRY(ls_layer_norm(builder->program, "bert.embeddings.LayerNorm", inputs, norm, x,
                         builder->error));
    return ls_dropout_op(builder->program, "bert.embeddings", inputs, *x, dropout,
                         ls_site(0, LS_SITE_EMBEDDING), x, builder->error);
}

static ls_status build_head(ls_model_builder *builder, ls_value_id x)
{
    const ls_model_config *config = builder->config;
    bool training = builder->program->training;
    LS_TRY(ls_model_apply_linear(builder, "bert.pooler.dense", x, config->hidden_size,
                                 LS_INITIAL_NORMAL, LS_ACTIVATION_TANH, &x));
    LS_TRY(ls_dropout_op(builder->program, "bert.pooler", &builder->model->inputs, x,
                         training ? (float)config->classifier_dropout : 0.0f,
                         ls_site(0, LS_SITE_CLASSIFIER), &x, builder->error));
    return ls_model_apply_linear(builder, "classifier", x, builder->model->classes,
                                 LS_INITIAL_NORMAL, LS_ACTIVATION_NONE, &builder->model->logits);
}

static ls_status build(ls_model_builder *builder)
{
    const ls_model_config *config = builder->config;
    float dropout = builder->program->training ? (float)config->hidden_dropout : 0.0f;
    ls_value_id x;
    LS_TRY(build_embeddings(builder, dropout, &x));
    for (int64_t i = 0; i < config->layers; i++) {
        char prefix[64];
        snprintf(prefix, sizeof prefix, "bert.encoder.layer.%lld", (long long)i);
        builder->program->unit++;
        ls_encoder_layer layer = {.prefix = prefix,
                                  .names = &names,
                                  .layer = i,
                                  .attention_output_dropout = dropout,
                                  .first_only = i == config->layers - 1};
        LS_TRY(ls_model_encoder_layer(builder, &layer, &x));
    }
    builder->program->unit++;
    return build_head(builder, x);
}

const ls_model_definition ls_model_bert = {
    .family = LS_MODEL_BERT,
    .prefix = "bert.",
    .build = build,
};

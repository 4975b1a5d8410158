/* The post-norm encoder layer that BERT and DistilBERT share (Devlin et al. 2018). */
#include <stdio.h>

#include "models/model.h"

static const char *join(char into[256], const char *prefix, const char *name)
{
    snprintf(into, 256, "%s.%s", prefix, name);
    return into;
}

static float dropout_of(const ls_model_builder *builder, double probability)
{
    return builder->program->training ? (float)probability : 0.0f;
}

/* x becomes layer_norm(residual + dropout(linear(branch))). */
static ls_status close_block(ls_model_builder *builder, const ls_encoder_layer *layer,
                             const char *linear, const char *norm, ls_value_id branch, int site,
                             float dropout, ls_value_id *x)
{
    char name[256];
    ls_layer_norm_operands operands = {
        .residual = *x,
        .epsilon = (float)builder->config->layer_norm_epsilon,
        .dropout = dropout,
        .site = ls_site(layer->layer, site),
    };
    LS_TRY(ls_model_apply_linear(builder, join(name, layer->prefix, linear), branch,
                                 builder->config->hidden_size, LS_INITIAL_REQUIRED,
                                 LS_ACTIVATION_NONE, &operands.branch));
    ls_affine affine;
    join(name, layer->prefix, norm);
    LS_TRY(ls_model_norm(builder, name, builder->config->hidden_size, &affine));
    operands.gamma = affine.weight;
    operands.beta = affine.bias;
    return ls_layer_norm(builder->program, name, &builder->model->inputs, operands, x,
                         builder->error);
}

static ls_status attention_block(ls_model_builder *builder, const ls_encoder_layer *layer,
                                 ls_value_id *x)
{
    char name[256];
    const ls_model_config *config = builder->config;
    ls_value_id rows = *x, context;
    if (layer->first_only)
        LS_TRY(ls_select_first(builder->program, join(name, layer->prefix, "first_tokens"),
                               &builder->model->inputs, *x, &rows, builder->error));
    ls_attention_operands operands = {
        .heads = config->heads,
        .max_positions = config->max_positions,
        .dropout = dropout_of(builder, config->attention_dropout),
        .site = ls_site(layer->layer, LS_SITE_ATTENTION),
    };
    const struct {
        const char *name;
        ls_value_id x, *y;
    } projections[] = {{layer->names->query, rows, &operands.query},
                       {layer->names->key, *x, &operands.key},
                       {layer->names->value, *x, &operands.value}};
    for (int i = 0; i < 3; i++)
        LS_TRY(ls_model_apply_linear(builder, join(name, layer->prefix, projections[i].name),
                                     projections[i].x, config->hidden_size, LS_INITIAL_REQUIRED,
                                     LS_ACTIVATION_NONE, projections[i].y));
    LS_TRY(ls_attention(builder->program, join(name, layer->prefix, "attention.context"),
                        &builder->model->inputs, operands, &context, builder->error));
    *x = rows;
    return close_block(builder, layer, layer->names->output, layer->names->output_norm, context,
                       LS_SITE_ATTENTION_OUTPUT, layer->attention_output_dropout, x);
}

ls_status ls_model_encoder_layer(ls_model_builder *builder, const ls_encoder_layer *layer,
                                 ls_value_id *x)
{
    char name[256];
    const ls_model_config *config = builder->config;
    ls_value_id inner;
    LS_TRY(attention_block(builder, layer, x));
    LS_TRY(ls_model_apply_linear(builder, join(name, layer->prefix, layer->names->up), *x,
                                 config->intermediate_size, LS_INITIAL_REQUIRED, config->activation,
                                 &inner));
    return close_block(builder, layer, layer->names->down, layer->names->down_norm, inner,
                       LS_SITE_FEED_FORWARD, dropout_of(builder, config->hidden_dropout), x);
}

#include "models/model.h"

#include <stdio.h>

#include "base/alloc.h"

const ls_model_definition *ls_model_definition_of(ls_model_family family)
{
    static const ls_model_definition *const definitions[] = {
        [LS_MODEL_BERT] = &ls_model_bert,
        [LS_MODEL_DISTILBERT] = &ls_model_distilbert,
    };
    return definitions[family];
}

ls_status ls_model_build(ls_program *program, ls_model *model, const ls_model_config *config,
                         const ls_model_options *options, ls_error *error)
{
    *model = (ls_model){.config = config, .classes = options->classes};
    ls_model_builder builder = {program, model, config, error};
    ls_status status = ls_inputs_declare(program, &model->inputs, options->touched, error);
    if (status == LS_OK) status = ls_model_definition_of(config->family)->build(&builder);
    if (status == LS_OK)
        status =
            ls_classifier_loss_op(program, &model->inputs, model->logits, &model->results, error);
    if (status != LS_OK) ls_model_deinit(model);
    return status;
}

void ls_model_deinit(ls_model *model)
{
    ls_free(model->parameters);
    *model = (ls_model){0};
}

static ls_status declare(ls_model_builder *builder, ls_value value, ls_initial initial,
                         ls_value_id *out, const char *prefix, const char *suffix)
{
    ls_model *model = builder->model;
    value.dtype = LS_F32;
    value.role = LS_ROLE_PARAMETER;
    value.unit = builder->program->unit;
    value.parameter = LS_NO_VALUE;
    LS_TRY(LS_GROW(model->parameters, model->parameter_capacity, model->parameter_count + 1,
                   "model parameters", builder->error));
    LS_TRY(ls_program_value(builder->program, out, value, builder->error, "%s%s", prefix, suffix));
    model->parameters[model->parameter_count++] = (ls_parameter){*out, initial};
    return LS_OK;
}

ls_status ls_model_table(ls_model_builder *builder, const char *name, int64_t rows, int64_t columns,
                         ls_value_id touched, ls_value_id *out)
{
    ls_value value = {.rank = 2,
                      .shape = {ls_fixed(rows), ls_fixed(columns)},
                      .decay = true,
                      .row_sparse = touched != LS_NO_VALUE,
                      .touched = touched};
    return declare(builder, value, LS_INITIAL_REQUIRED, out, name, "");
}

ls_status ls_model_linear(ls_model_builder *builder, const char *prefix, int64_t features,
                          int64_t depth, ls_initial weight_initial, ls_affine *out)
{
    ls_value weight = {.rank = 2,
                       .shape = {ls_fixed(features), ls_fixed(depth)},
                       .decay = true,
                       .touched = LS_NO_VALUE};
    ls_value bias = {.rank = 1, .shape = {ls_fixed(features)}, .touched = LS_NO_VALUE};
    ls_initial bias_initial =
        weight_initial == LS_INITIAL_REQUIRED ? LS_INITIAL_REQUIRED : LS_INITIAL_ZERO;
    LS_TRY(declare(builder, weight, weight_initial, &out->weight, prefix, ".weight"));
    return declare(builder, bias, bias_initial, &out->bias, prefix, ".bias");
}

ls_status ls_model_norm(ls_model_builder *builder, const char *prefix, int64_t size, ls_affine *out)
{
    ls_value vector = {.rank = 1, .shape = {ls_fixed(size)}, .touched = LS_NO_VALUE};
    LS_TRY(declare(builder, vector, LS_INITIAL_REQUIRED, &out->weight, prefix, ".weight"));
    return declare(builder, vector, LS_INITIAL_REQUIRED, &out->bias, prefix, ".bias");
}

ls_status ls_model_apply_linear(ls_model_builder *builder, const char *prefix, ls_value_id x,
                                int64_t features, ls_initial weight_initial,
                                ls_activation activation, ls_value_id *y)
{
    ls_affine affine;
    int64_t depth = ls_value_of(builder->program, x)->shape[1].constant;
    LS_TRY(ls_model_linear(builder, prefix, features, depth, weight_initial, &affine));
    return ls_linear(builder->program, prefix, x, affine.weight, affine.bias, activation, y,
                     builder->error);
}

/* y = activation(x W^T + b), and its three gradients. */
#include "ops/check.h"
#include "ops/definitions.h"
#include "ops/ops.h"

enum { X, WEIGHT, BIAS, INPUTS };
enum { Y, SLOPE, OUTPUTS };
/* Of the input's gradient. */
enum { FACTOR = 3, GRADIENT_INPUTS };

ls_status ls_linear(ls_program *program, const char *name, ls_value_id x, ls_value_id weight,
                    ls_value_id bias, ls_activation activation, ls_value_id *y, ls_error *error)
{
    ls_op op = ls_op_of(LS_OP_LINEAR, LS_SEGMENT_PASS, name);
    op.inputs[X] = x;
    op.inputs[WEIGHT] = weight;
    op.inputs[BIAS] = bias;
    op.attributes.activation = activation;
    ls_dimension shape[] = {ls_rows_of(program, x), ls_rows_of(program, weight)};
    LS_TRY(ls_new_activation(program, y, name, "", 2, shape, error));
    op.outputs[Y] = *y;
    /* The backward pass multiplies by the activation's slope: made here, where it shares most of
     * its work with the activation. */
    if (activation != LS_ACTIVATION_NONE && program->training)
        LS_TRY(ls_new_activation(program, &op.outputs[SLOPE], name, ".slope", 2, shape, error));
    return ls_program_op(program, &op, error);
}

static ls_status linear_check(const ls_program *program, const ls_op *op, ls_error *error)
{
    ls_dimension rows = ls_rows_of(program, op->inputs[X]);
    ls_dimension features = ls_rows_of(program, op->inputs[WEIGHT]);
    ls_dimension depth = ls_columns_of(program, op->inputs[X]);
    LS_TRY(ls_check_matrix(program, op, op->inputs[WEIGHT], features, depth, error));
    LS_TRY(ls_check_vector(program, op, op->inputs[BIAS], features, error));
    LS_TRY(ls_check_matrix(program, op, op->outputs[Y], rows, features, error));
    return ls_check_matrix(program, op, op->outputs[SLOPE], rows, features, error);
}

static ls_status append_activation_backward(ls_gradient_pass *pass, const ls_op *op,
                                            ls_value_id *gradient, ls_error *error)
{
    if (op->attributes.activation == LS_ACTIVATION_NONE) return LS_OK;
    ls_op *last = &pass->program->ops[pass->program->op_count - 1];
    if (last->kind == LS_OP_LINEAR_INPUT_GRADIENT && last->outputs[0] == *gradient) {
        /* The product that has just made the gradient multiplies what it stores. */
        last->inputs[FACTOR] = op->outputs[SLOPE];
        return LS_OK;
    }
    ls_op backward = ls_op_of(LS_OP_ACTIVATION_BACKWARD, LS_SEGMENT_PASS, op->name);
    backward.inputs[0] = *gradient;
    backward.inputs[1] = op->outputs[SLOPE];
    LS_TRY(ls_gradient_like(pass, op->outputs[SLOPE], "", gradient, error));
    backward.outputs[0] = *gradient;
    return ls_program_op(pass->program, &backward, error);
}

static ls_status append_parameter_gradients(ls_gradient_pass *pass, const ls_op *op,
                                            ls_value_id gradient, ls_error *error)
{
    ls_value_id bias_gradient;
    LS_TRY(ls_gradient_parameter(pass, op->inputs[BIAS], &bias_gradient, error));
    LS_TRY(ls_column_sums_op(pass->program, op->name, gradient, bias_gradient, pass->schedules,
                             error));
    ls_op weight = ls_op_of(LS_OP_WEIGHT_GRADIENT, LS_SEGMENT_PASS, op->name);
    weight.inputs[0] = gradient;
    weight.inputs[1] = op->inputs[X];
    weight.inputs[2] = ls_schedule_for(pass->program, pass->schedules, gradient);
    LS_TRY(ls_gradient_parameter(pass, op->inputs[WEIGHT], &weight.outputs[0], error));
    return ls_program_op(pass->program, &weight, error);
}

static ls_status linear_gradient_rule(ls_gradient_pass *pass, const ls_op *op, ls_error *error)
{
    ls_value_id gradient = ls_gradient_of(pass, op->outputs[Y]);
    if (gradient == LS_NO_VALUE) return LS_OK;
    LS_TRY(append_activation_backward(pass, op, &gradient, error));
    LS_TRY(append_parameter_gradients(pass, op, gradient, error));
    ls_op input = ls_op_of(LS_OP_LINEAR_INPUT_GRADIENT, LS_SEGMENT_PASS, op->name);
    input.inputs[0] = gradient;
    input.inputs[1] = op->inputs[WEIGHT];
    LS_TRY(ls_gradient_target(pass, op->inputs[X], &input.outputs[0], &input.inputs[2],
                              &input.attributes.accumulate, error));
    return ls_program_op(pass->program, &input, error);
}

/* 2 R N K, whichever two of the three sizes the output has. */
static ls_cost linear_cost(const ls_program *program, const ls_op *op, const ls_extents *extents)
{
    double rows = (double)ls_dimension_size(ls_rows_of(program, op->inputs[X]), extents);
    double weight = ls_elements_of(program, op->inputs[WEIGHT], extents);
    return ls_cost_of(program, op, extents, 2 * rows * weight);
}

const ls_op_definition ls_op_definition_LINEAR = {
    .kind = LS_OP_LINEAR,
    .inputs = INPUTS,
    .outputs = OUTPUTS,
    .check = linear_check,
    .gradient = linear_gradient_rule,
    .cost = linear_cost,
};

/* Inputs: gradient of y [R][N], weight [N][K], what the chain goes on from, what the result is
 * multiplied by. Output [R][K]. */
static ls_status linear_input_gradient_check(const ls_program *program, const ls_op *op,
                                             ls_error *error)
{
    ls_dimension rows = ls_rows_of(program, op->inputs[0]);
    ls_dimension depth = ls_columns_of(program, op->inputs[1]);
    LS_TRY(ls_check_matrix(program, op, op->inputs[1], ls_columns_of(program, op->inputs[0]), depth,
                           error));
    LS_TRY(ls_check_matrix(program, op, op->inputs[2], rows, depth, error));
    LS_TRY(ls_check_matrix(program, op, op->inputs[FACTOR], rows, depth, error));
    return ls_check_matrix(program, op, op->outputs[0], rows, depth, error);
}

const ls_op_definition ls_op_definition_LINEAR_INPUT_GRADIENT = {
    .kind = LS_OP_LINEAR_INPUT_GRADIENT,
    .inputs = GRADIENT_INPUTS,
    .outputs = 1,
    .optional_inputs = 1u << 2 | 1u << FACTOR,
    .check = linear_input_gradient_check,
    .cost = linear_cost,
};

/* Inputs: gradient of y [R][N], x [R][K], schedule. Output [slots][N][K]. */
static ls_status weight_gradient_check(const ls_program *program, const ls_op *op, ls_error *error)
{
    LS_TRY(ls_check_matrix(program, op, op->inputs[1], ls_rows_of(program, op->inputs[0]),
                           ls_columns_of(program, op->inputs[1]), error));
    LS_TRY(ls_check_host(program, op, op->inputs[2], error));
    ls_dimension shape[] = {ls_fixed(program->gradient_slots),
                            ls_columns_of(program, op->inputs[0]),
                            ls_columns_of(program, op->inputs[1])};
    return ls_check_shape(program, op, op->outputs[0], LS_F32, 3, shape, error);
}

static ls_cost weight_gradient_cost(const ls_program *program, const ls_op *op,
                                    const ls_extents *extents)
{
    double features = (double)ls_dimension_size(ls_columns_of(program, op->inputs[0]), extents);
    return ls_cost_of(program, op, extents,
                      2 * features * ls_elements_of(program, op->inputs[1], extents));
}

const ls_op_definition ls_op_definition_WEIGHT_GRADIENT = {
    .kind = LS_OP_WEIGHT_GRADIENT,
    .inputs = 3,
    .outputs = 1,
    .check = weight_gradient_check,
    .cost = weight_gradient_cost,
};

/* Inputs: gradient after the activation, its slope. Output: gradient before it. */
static ls_status activation_backward_check(const ls_program *program, const ls_op *op,
                                           ls_error *error)
{
    LS_TRY(ls_check_like(program, op, op->inputs[1], op->inputs[0], error));
    return ls_check_like(program, op, op->outputs[0], op->inputs[0], error);
}

static ls_cost activation_backward_cost(const ls_program *program, const ls_op *op,
                                        const ls_extents *extents)
{
    return ls_cost_of(program, op, extents, ls_elements_of(program, op->inputs[0], extents));
}

const ls_op_definition ls_op_definition_ACTIVATION_BACKWARD = {
    .kind = LS_OP_ACTIVATION_BACKWARD,
    .inputs = 2,
    .outputs = 1,
    .check = activation_backward_check,
    .cost = activation_backward_cost,
};

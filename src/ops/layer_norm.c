/* Layer norm, with the residual addition and the dropout of its branch in one op. */
#include "ops/check.h"
#include "ops/definitions.h"
#include "ops/ops.h"

enum { BRANCH, RESIDUAL, GAMMA, BETA, SAMPLES, POSITIONS, KEY, INPUTS };
enum { Y, SUM, MEAN, INVERSE, OUTPUTS };

ls_status ls_layer_norm(ls_program *program, const char *name, const ls_inputs *inputs,
                        ls_layer_norm_operands operands, ls_value_id *y, ls_error *error)
{
    ls_op op = ls_op_of(LS_OP_LAYER_NORM, LS_SEGMENT_PASS, name);
    op.inputs[BRANCH] = operands.branch;
    op.inputs[RESIDUAL] = operands.residual;
    op.inputs[GAMMA] = operands.gamma;
    op.inputs[BETA] = operands.beta;
    op.attributes.epsilon = operands.epsilon;
    const ls_dimension shape[] = {ls_rows_of(program, operands.branch),
                                  ls_columns_of(program, operands.branch)};
    if (operands.dropout > 0 && operands.residual != LS_NO_VALUE) {
        bool tokens = shape[0].symbol == LS_SYMBOL_TOKENS;
        op.inputs[SAMPLES] = tokens ? inputs->token_samples : inputs->samples;
        if (tokens) op.inputs[POSITIONS] = inputs->positions;
        op.inputs[KEY] = inputs->random_key;
        op.attributes.dropout = operands.dropout;
        op.attributes.site = operands.site;
    }
    LS_TRY(ls_new_activation(program, y, name, "", 2, shape, error));
    op.outputs[Y] = *y;
    if (operands.residual != LS_NO_VALUE)
        LS_TRY(ls_new_activation(program, &op.outputs[SUM], name, ".sum", 2, shape, error));
    LS_TRY(ls_new_activation(program, &op.outputs[MEAN], name, ".mean", 1, shape, error));
    LS_TRY(ls_new_activation(program, &op.outputs[INVERSE], name, ".inverse_deviation", 1, shape,
                             error));
    return ls_program_op(program, &op, error);
}

static ls_status layer_norm_check(const ls_program *program, const ls_op *op, ls_error *error)
{
    ls_dimension rows = ls_rows_of(program, op->inputs[BRANCH]);
    ls_dimension hidden = ls_columns_of(program, op->inputs[BRANCH]);
    LS_TRY(ls_check_matrix(program, op, op->inputs[RESIDUAL], rows, hidden, error));
    LS_TRY(ls_check_vector(program, op, op->inputs[GAMMA], hidden, error));
    LS_TRY(ls_check_vector(program, op, op->inputs[BETA], hidden, error));
    LS_TRY(ls_check_shape(program, op, op->inputs[SAMPLES], LS_I32, 1, &rows, error));
    LS_TRY(ls_check_shape(program, op, op->inputs[POSITIONS], LS_I32, 1, &rows, error));
    LS_TRY(ls_check_matrix(program, op, op->outputs[Y], rows, hidden, error));
    LS_TRY(ls_check_matrix(program, op, op->outputs[SUM], rows, hidden, error));
    LS_TRY(ls_check_vector(program, op, op->outputs[MEAN], rows, error));
    return ls_check_vector(program, op, op->outputs[INVERSE], rows, error);
}

static ls_status append_sums(ls_gradient_pass *pass, const ls_op *op, ls_value_id y_gradient,
                             ls_value_id sum, ls_error *error)
{
    ls_op sums = ls_op_of(LS_OP_LAYER_NORM_SUMS, LS_SEGMENT_PASS, op->name);
    sums.inputs[0] = y_gradient;
    sums.inputs[1] = sum;
    sums.inputs[2] = op->outputs[MEAN];
    sums.inputs[3] = op->outputs[INVERSE];
    sums.inputs[4] = ls_schedule_for(pass->program, pass->schedules, sum);
    LS_TRY(ls_gradient_parameter(pass, op->inputs[GAMMA], &sums.outputs[0], error));
    LS_TRY(ls_gradient_parameter(pass, op->inputs[BETA], &sums.outputs[1], error));
    return ls_program_op(pass->program, &sums, error);
}

static ls_status layer_norm_gradient_rule(ls_gradient_pass *pass, const ls_op *op, ls_error *error)
{
    ls_value_id y_gradient = ls_gradient_of(pass, op->outputs[Y]);
    if (y_gradient == LS_NO_VALUE) return LS_OK;
    bool has_residual = op->inputs[RESIDUAL] != LS_NO_VALUE;
    ls_value_id sum = has_residual ? op->outputs[SUM] : op->inputs[BRANCH];
    LS_TRY(append_sums(pass, op, y_gradient, sum, error));

    ls_op backward = ls_op_of(LS_OP_LAYER_NORM_BACKWARD, LS_SEGMENT_PASS, op->name);
    backward.attributes = op->attributes;
    backward.inputs[0] = y_gradient;
    backward.inputs[1] = sum;
    backward.inputs[2] = op->outputs[MEAN];
    backward.inputs[3] = op->outputs[INVERSE];
    backward.inputs[4] = op->inputs[GAMMA];
    for (int i = SAMPLES; i <= KEY; i++)
        backward.inputs[5 + i - SAMPLES] = op->inputs[i];
    LS_TRY(ls_gradient_like(pass, has_residual ? op->inputs[RESIDUAL] : op->inputs[BRANCH], "",
                            &backward.outputs[0], error));
    ls_value_id branch_gradient = backward.outputs[0];
    if (op->attributes.dropout > 0) {
        LS_TRY(ls_gradient_like(pass, op->inputs[BRANCH], "", &branch_gradient, error));
        backward.outputs[1] = branch_gradient;
    }
    if (has_residual)
        LS_TRY(ls_gradient_set(pass, op->inputs[RESIDUAL], backward.outputs[0], error));
    LS_TRY(ls_gradient_set(pass, op->inputs[BRANCH], branch_gradient, error));
    return ls_program_op(pass->program, &backward, error);
}

static ls_cost layer_norm_cost(const ls_program *program, const ls_op *op,
                               const ls_extents *extents)
{
    return ls_cost_of(program, op, extents, 8 * ls_elements_of(program, op->inputs[0], extents));
}

const ls_op_definition ls_op_definition_LAYER_NORM = {
    .kind = LS_OP_LAYER_NORM,
    .inputs = INPUTS,
    .outputs = OUTPUTS,
    .optional_inputs = 1u << RESIDUAL | 1u << SAMPLES | 1u << POSITIONS | 1u << KEY,
    .check = layer_norm_check,
    .gradient = layer_norm_gradient_rule,
    .cost = layer_norm_cost,
};

/* Inputs: gradient of y, sum, mean, inverse deviation, gamma; samples, positions, key for the
 * branch's mask. Outputs: gradient of the sum (and so of the residual), gradient of the branch. */
static ls_status layer_norm_backward_check(const ls_program *program, const ls_op *op,
                                           ls_error *error)
{
    ls_dimension rows = ls_rows_of(program, op->inputs[0]);
    LS_TRY(ls_check_like(program, op, op->inputs[1], op->inputs[0], error));
    LS_TRY(ls_check_vector(program, op, op->inputs[2], rows, error));
    LS_TRY(ls_check_vector(program, op, op->inputs[3], rows, error));
    LS_TRY(
        ls_check_vector(program, op, op->inputs[4], ls_columns_of(program, op->inputs[0]), error));
    LS_TRY(ls_check_like(program, op, op->outputs[0], op->inputs[0], error));
    return ls_check_like(program, op, op->outputs[1], op->inputs[0], error);
}

const ls_op_definition ls_op_definition_LAYER_NORM_BACKWARD = {
    .kind = LS_OP_LAYER_NORM_BACKWARD,
    .inputs = 8,
    .outputs = 2,
    .optional_inputs = 7u << 5,
    .check = layer_norm_backward_check,
    .cost = layer_norm_cost,
};

/* Inputs: gradient of y, sum, mean, inverse deviation, schedule. Outputs: gradients of gamma and
 * beta, [slots][H]. */
static ls_status layer_norm_sums_check(const ls_program *program, const ls_op *op, ls_error *error)
{
    ls_dimension rows = ls_rows_of(program, op->inputs[0]);
    ls_dimension hidden = ls_columns_of(program, op->inputs[0]);
    ls_dimension slots = ls_fixed(program->gradient_slots);
    LS_TRY(ls_check_like(program, op, op->inputs[1], op->inputs[0], error));
    LS_TRY(ls_check_vector(program, op, op->inputs[2], rows, error));
    LS_TRY(ls_check_vector(program, op, op->inputs[3], rows, error));
    LS_TRY(ls_check_host(program, op, op->inputs[4], error));
    LS_TRY(ls_check_matrix(program, op, op->outputs[0], slots, hidden, error));
    return ls_check_matrix(program, op, op->outputs[1], slots, hidden, error);
}

static ls_cost layer_norm_sums_cost(const ls_program *program, const ls_op *op,
                                    const ls_extents *extents)
{
    return ls_cost_of(program, op, extents, 5 * ls_elements_of(program, op->inputs[0], extents));
}

const ls_op_definition ls_op_definition_LAYER_NORM_SUMS = {
    .kind = LS_OP_LAYER_NORM_SUMS,
    .inputs = 5,
    .outputs = 2,
    .check = layer_norm_sums_check,
    .cost = layer_norm_sums_cost,
};

/* Dropout by itself (after the embeddings, before the classifier); masks are named, never stored:
 * the backward op draws the same one again. */
#include "ops/check.h"
#include "ops/definitions.h"
#include "ops/ops.h"

enum { X, SAMPLES, POSITIONS, KEY, INPUTS };

ls_status ls_dropout_op(ls_program *program, const char *name, const ls_inputs *inputs,
                        ls_value_id x, float probability, uint32_t site, ls_value_id *y,
                        ls_error *error)
{
    *y = x;
    if (probability <= 0) return LS_OK;
    ls_op op = ls_op_of(LS_OP_DROPOUT, LS_SEGMENT_PASS, name);
    const ls_dimension shape[] = {ls_rows_of(program, x), ls_columns_of(program, x)};
    bool tokens = shape[0].symbol == LS_SYMBOL_TOKENS;
    op.inputs[X] = x;
    op.inputs[SAMPLES] = tokens ? inputs->token_samples : inputs->samples;
    if (tokens) op.inputs[POSITIONS] = inputs->positions;
    op.inputs[KEY] = inputs->random_key;
    op.attributes.dropout = probability;
    op.attributes.site = site;
    LS_TRY(ls_new_activation(program, y, name, ".dropout", 2, shape, error));
    op.outputs[0] = *y;
    return ls_program_op(program, &op, error);
}

static ls_status dropout_check(const ls_program *program, const ls_op *op, ls_error *error)
{
    ls_dimension rows = ls_rows_of(program, op->inputs[X]);
    LS_TRY(ls_check_shape(program, op, op->inputs[SAMPLES], LS_I32, 1, &rows, error));
    LS_TRY(ls_check_shape(program, op, op->inputs[POSITIONS], LS_I32, 1, &rows, error));
    return ls_check_like(program, op, op->outputs[0], op->inputs[X], error);
}

static ls_status dropout_gradient_rule(ls_gradient_pass *pass, const ls_op *op, ls_error *error)
{
    ls_value_id gradient = ls_gradient_of(pass, op->outputs[0]);
    if (gradient == LS_NO_VALUE) return LS_OK;
    ls_op backward = *op;
    backward.inputs[X] = gradient;
    LS_TRY(ls_gradient_like(pass, op->inputs[X], "", &backward.outputs[0], error));
    LS_TRY(ls_gradient_set(pass, op->inputs[X], backward.outputs[0], error));
    return ls_program_op(pass->program, &backward, error);
}

static ls_cost dropout_cost(const ls_program *program, const ls_op *op, const ls_extents *extents)
{
    return ls_cost_of(program, op, extents, ls_elements_of(program, op->inputs[X], extents));
}

const ls_op_definition ls_op_definition_DROPOUT = {
    .kind = LS_OP_DROPOUT,
    .inputs = INPUTS,
    .outputs = 1,
    .optional_inputs = 1u << POSITIONS,
    .check = dropout_check,
    .gradient = dropout_gradient_rule,
    .cost = dropout_cost,
};

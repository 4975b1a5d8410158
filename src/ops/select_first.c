/* The rows that hold each sequence's first token: all that a classifier's head reads. */
#include "ops/check.h"
#include "ops/definitions.h"
#include "ops/ops.h"

enum { X, OFFSETS, INPUTS };

ls_status ls_select_first(ls_program *program, const char *name, const ls_inputs *inputs,
                          ls_value_id x, ls_value_id *y, ls_error *error)
{
    ls_op op = ls_op_of(LS_OP_SELECT_FIRST, LS_SEGMENT_PASS, name);
    op.inputs[X] = x;
    op.inputs[OFFSETS] = inputs->offsets;
    ls_dimension shape[] = {ls_per(LS_SYMBOL_SEQUENCES), ls_columns_of(program, x)};
    LS_TRY(ls_new_activation(program, y, name, "", 2, shape, error));
    op.outputs[0] = *y;
    return ls_program_op(program, &op, error);
}

static ls_status check(const ls_program *program, const ls_op *op, ls_value_id all,
                       ls_value_id first, ls_error *error)
{
    ls_dimension hidden = ls_columns_of(program, all);
    ls_dimension borders = {LS_SYMBOL_SEQUENCES, 1, 1};
    LS_TRY(ls_check_shape(program, op, op->inputs[OFFSETS], LS_I32, 1, &borders, error));
    LS_TRY(ls_check_matrix(program, op, all, ls_per(LS_SYMBOL_TOKENS), hidden, error));
    return ls_check_matrix(program, op, first, ls_per(LS_SYMBOL_SEQUENCES), hidden, error);
}

static ls_status select_first_check(const ls_program *program, const ls_op *op, ls_error *error)
{
    return check(program, op, op->inputs[X], op->outputs[0], error);
}

/* Adds to the gradient of x that other readers of x have left: a model that reads only the first
 * rows of its last layer has keys and values there. */
static ls_status select_first_gradient_rule(ls_gradient_pass *pass, const ls_op *op,
                                            ls_error *error)
{
    ls_value_id gradient = ls_gradient_of(pass, op->outputs[0]);
    if (gradient == LS_NO_VALUE) return LS_OK;
    ls_op backward = ls_op_of(LS_OP_SELECT_FIRST_BACKWARD, LS_SEGMENT_PASS, op->name);
    bool accumulate = false;
    LS_TRY(ls_gradient_target(pass, op->inputs[X], &backward.outputs[0], &backward.inputs[2],
                              &accumulate, error));
    backward.attributes.accumulate = accumulate;
    backward.inputs[0] = gradient;
    backward.inputs[OFFSETS] = op->inputs[OFFSETS];
    return ls_program_op(pass->program, &backward, error);
}

static ls_cost select_first_cost(const ls_program *program, const ls_op *op,
                                 const ls_extents *extents)
{
    (void)op;
    (void)program;
    return (ls_cost){0, 8.0 * (double)extents->size[LS_SYMBOL_SEQUENCES]};
}

const ls_op_definition ls_op_definition_SELECT_FIRST = {
    .kind = LS_OP_SELECT_FIRST,
    .inputs = INPUTS,
    .outputs = 1,
    .check = select_first_check,
    .gradient = select_first_gradient_rule,
    .cost = select_first_cost,
};

/* Inputs: gradient [S][H], offsets, what it is added to [T][H] (absent: zeros). Output [T][H]. */
static ls_status select_first_backward_check(const ls_program *program, const ls_op *op,
                                             ls_error *error)
{
    LS_TRY(ls_check_like(program, op, op->outputs[0],
                         op->inputs[2] == LS_NO_VALUE ? op->outputs[0] : op->inputs[2], error));
    return check(program, op, op->outputs[0], op->inputs[0], error);
}

const ls_op_definition ls_op_definition_SELECT_FIRST_BACKWARD = {
    .kind = LS_OP_SELECT_FIRST_BACKWARD,
    .inputs = 3,
    .outputs = 1,
    .optional_inputs = 1u << 2,
    .check = select_first_backward_check,
    .cost = select_first_cost,
};

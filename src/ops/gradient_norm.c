/* The global gradient norm: squares in double over blocks of 1,024 elements that start afresh at
 * each tensor, then one tree over all blocks, so that any slice of whole blocks gives the same
 * bits. A table's untouched rows are zeros: they change no sum. */
#include "ops/check.h"
#include "ops/definitions.h"
#include "ops/ops.h"
#include "program/layout.h"

/* Elements of the whole tensor that a gradient stands for. */
static int64_t elements_of(const ls_program *program, const ls_value *gradient)
{
    return ls_value_elements(ls_value_of(program, gradient->parameter), &ls_fixed_extents);
}

static int64_t blocks_of(const ls_program *program, const ls_value *gradient)
{
    return (elements_of(program, gradient) + LS_BLOCK - 1) / LS_BLOCK;
}

static ls_status append_squared_norms(ls_program *program, ls_value_id blocks, ls_error *error)
{
    int64_t first = 0;
    for (ls_value_id id = 0; id < program->value_count; id++) {
        const ls_value *gradient = ls_value_of(program, id);
        if (gradient->role != LS_ROLE_GRADIENT) continue;
        ls_op op = ls_op_of(LS_OP_SQUARED_NORM, LS_SEGMENT_UPDATE,
                            ls_value_of(program, gradient->parameter)->name);
        op.inputs[0] = id;
        if (gradient->row_sparse) op.inputs[1] = gradient->touched;
        op.outputs[0] = blocks;
        op.attributes.first_block = first;
        first += blocks_of(program, gradient);
        LS_TRY(ls_program_op(program, &op, error));
    }
    return LS_OK;
}

ls_status ls_gradient_norm(ls_program *program, float max_norm, ls_gradient_norm_results *results,
                           ls_error *error)
{
    int64_t total = 0;
    for (ls_value_id id = 0; id < program->value_count; id++)
        if (ls_value_of(program, id)->role == LS_ROLE_GRADIENT)
            total += blocks_of(program, ls_value_of(program, id));
    ls_value blocks = {.dtype = LS_F64,
                       .role = LS_ROLE_ACTIVATION,
                       .rank = 1,
                       .shape = {ls_fixed(total)},
                       .parameter = LS_NO_VALUE,
                       .touched = LS_NO_VALUE};
    ls_value scalar = {
        .dtype = LS_F32, .role = LS_ROLE_SCALAR, .parameter = LS_NO_VALUE, .touched = LS_NO_VALUE};
    ls_op op = ls_op_of(LS_OP_GRADIENT_NORM, LS_SEGMENT_UPDATE, "gradient_norm");
    op.attributes.max_norm = max_norm;
    LS_TRY(ls_program_value(program, &op.inputs[0], blocks, error, "squared_norms"));
    LS_TRY(append_squared_norms(program, op.inputs[0], error));
    LS_TRY(ls_program_value(program, &results->norm, scalar, error, "gradient_norm"));
    LS_TRY(ls_program_value(program, &results->clip_factor, scalar, error, "clip_factor"));
    LS_TRY(ls_program_value(program, &results->proceed, scalar, error, "proceed"));
    op.outputs[0] = results->norm;
    op.outputs[1] = results->clip_factor;
    op.outputs[2] = results->proceed;
    return ls_program_op(program, &op, error);
}

void ls_gradient_norm_watch_loss(ls_program *program, ls_value_id loss)
{
    for (int32_t i = 0; i < program->op_count; i++)
        if (program->ops[i].kind == LS_OP_GRADIENT_NORM) program->ops[i].inputs[1] = loss;
}

static ls_status squared_norm_check(const ls_program *program, const ls_op *op, ls_error *error)
{
    const ls_value *gradient = ls_value_of(program, op->inputs[0]);
    const ls_value *blocks = ls_value_of(program, op->outputs[0]);
    int64_t end = op->attributes.first_block + blocks_of(program, gradient);
    LS_TRY(ls_check_host(program, op, op->inputs[1], error));
    if (gradient->role == LS_ROLE_GRADIENT && blocks->dtype == LS_F64 &&
        end <= blocks->shape[0].constant)
        return LS_OK;
    return ls_fail(error, LS_INTERNAL, "program: %s (squared_norm): blocks do not fit", op->name);
}

static ls_cost squared_norm_cost(const ls_program *program, const ls_op *op,
                                 const ls_extents *extents)
{
    double elements = ls_elements_of(program, op->inputs[0], extents) / program->gradient_slots;
    return (ls_cost){2 * elements, 4 * elements};
}

const ls_op_definition ls_op_definition_SQUARED_NORM = {
    .kind = LS_OP_SQUARED_NORM,
    .inputs = 2,
    .outputs = 1,
    .optional_inputs = 1u << 1,
    .check = squared_norm_check,
    .cost = squared_norm_cost,
};

static ls_status gradient_norm_check(const ls_program *program, const ls_op *op, ls_error *error)
{
    for (int i = 0; i < 3; i++)
        LS_TRY(ls_check_shape(program, op, op->outputs[i], LS_F32, 0, NULL, error));
    return LS_OK;
}

static ls_cost gradient_norm_cost(const ls_program *program, const ls_op *op,
                                  const ls_extents *extents)
{
    return ls_cost_of(program, op, extents, ls_elements_of(program, op->inputs[0], extents));
}

const ls_op_definition ls_op_definition_GRADIENT_NORM = {
    .kind = LS_OP_GRADIENT_NORM,
    .inputs = 2,
    .outputs = 3,
    .optional_inputs = 1u << 1,
    .check = gradient_norm_check,
    .cost = gradient_norm_cost,
};

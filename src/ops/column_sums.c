/* Sums over the rows of a matrix in the samples' tree: bias gradients and the batch's loss. */
#include "ops/check.h"
#include "ops/definitions.h"
#include "ops/ops.h"

ls_status ls_column_sums_op(ls_program *program, const char *name, ls_value_id values,
                            ls_value_id slots, ls_schedules schedules, ls_error *error)
{
    ls_op op = ls_op_of(LS_OP_COLUMN_SUMS, LS_SEGMENT_PASS, name);
    op.inputs[0] = values;
    op.inputs[1] = ls_schedule_for(program, schedules, values);
    op.outputs[0] = slots;
    return ls_program_op(program, &op, error);
}

static ls_status column_sums_check(const ls_program *program, const ls_op *op, ls_error *error)
{
    LS_TRY(ls_check_host(program, op, op->inputs[1], error));
    return ls_check_matrix(program, op, op->outputs[0], ls_fixed(program->gradient_slots),
                           ls_columns_of(program, op->inputs[0]), error);
}

static ls_cost column_sums_cost(const ls_program *program, const ls_op *op,
                                const ls_extents *extents)
{
    return ls_cost_of(program, op, extents, ls_elements_of(program, op->inputs[0], extents));
}

const ls_op_definition ls_op_definition_COLUMN_SUMS = {
    .kind = LS_OP_COLUMN_SUMS,
    .inputs = 2,
    .outputs = 1,
    .check = column_sums_check,
    .cost = column_sums_cost,
};

/* One parameter's AdamW update, in place (Loshchilov and Hutter 2019), or Adam's. */
#include "ops/check.h"
#include "ops/definitions.h"
#include "ops/ops.h"
#include "program/layout.h"

enum {
    PARAMETER,
    GRADIENT,
    FIRST,
    SECOND,
    RATE,
    CORRECTION1,
    CORRECTION2,
    CLIP,
    PROCEED,
    TOUCHED,
    INPUTS
};

ls_status ls_adamw_op(ls_program *program, const ls_inputs *inputs, ls_adamw_operands operands,
                      const ls_gradient_norm_results *norm, ls_error *error)
{
    ls_op op =
        ls_op_of(LS_OP_ADAMW, LS_SEGMENT_UPDATE, ls_value_of(program, operands.parameter)->name);
    op.inputs[PARAMETER] = operands.parameter;
    op.inputs[GRADIENT] = operands.gradient;
    op.inputs[FIRST] = operands.first_moment;
    op.inputs[SECOND] = operands.second_moment;
    op.inputs[RATE] = inputs->learning_rate;
    op.inputs[CORRECTION1] = inputs->correction1;
    op.inputs[CORRECTION2] = inputs->correction2_root;
    op.inputs[CLIP] = norm->clip_factor;
    op.inputs[PROCEED] = norm->proceed;
    const ls_value *gradient = ls_value_of(program, operands.gradient);
    if (gradient->row_sparse) op.inputs[TOUCHED] = gradient->touched;
    op.outputs[0] = operands.parameter;
    op.outputs[1] = operands.first_moment;
    op.outputs[2] = operands.second_moment;
    op.attributes.beta1 = operands.beta1;
    op.attributes.beta2 = operands.beta2;
    op.attributes.epsilon = operands.epsilon;
    op.attributes.weight_decay = operands.weight_decay;
    op.attributes.l2 = operands.l2;
    return ls_program_op(program, &op, error);
}

/* Whole, or a block of what lies elsewhere. */
static ls_status check_updated(const ls_program *program, const ls_op *op, int input,
                               ls_value_id parameter, ls_error *error)
{
    ls_value_id id = op->inputs[input];
    if (op->attributes.elements && ls_value_of(program, id)->role == LS_ROLE_OFFLOAD)
        return ls_check_vector(program, op, id, ls_fixed(op->attributes.elements), error);
    return ls_check_like(program, op, id, parameter, error);
}

static ls_status adamw_check(const ls_program *program, const ls_op *op, ls_error *error)
{
    ls_value_id parameter = ls_value_of(program, op->inputs[GRADIENT])->parameter;
    LS_TRY(check_updated(program, op, PARAMETER, parameter, error));
    LS_TRY(check_updated(program, op, FIRST, parameter, error));
    LS_TRY(check_updated(program, op, SECOND, parameter, error));
    for (int i = RATE; i <= PROCEED; i++)
        LS_TRY(ls_check_shape(program, op, op->inputs[i], LS_F32, 0, NULL, error));
    LS_TRY(ls_check_host(program, op, op->inputs[TOUCHED], error));
    if (parameter == op->inputs[PARAMETER] ||
        ls_value_of(program, op->inputs[PARAMETER])->role == LS_ROLE_OFFLOAD)
        return LS_OK;
    return ls_fail(error, LS_INTERNAL, "program: %s (adamw): the gradient is another parameter's",
                   op->name);
}

/* Of a part that is in a block, what it is on the first rank. */
static ls_cost adamw_cost(const ls_program *program, const ls_op *op, const ls_extents *extents)
{
    const ls_attributes *block = &op->attributes;
    double elements = ls_elements_of(program, op->inputs[PARAMETER], extents);
    if (block->elements == 0) return ls_cost_of(program, op, extents, 14 * elements);
    ls_range part = ls_layout_part(program, ls_value_of(program, op->inputs[GRADIENT])->parameter,
                                   0, block->first_element, block->elements);
    elements = (double)(part.end - part.begin);
    return (ls_cost){14 * elements, 28 * elements};
}

const ls_op_definition ls_op_definition_ADAMW = {
    .kind = LS_OP_ADAMW,
    .inputs = INPUTS,
    .outputs = 3,
    .optional_inputs = 1u << TOUCHED,
    .check = adamw_check,
    .cost = adamw_cost,
};

/* Copies between the device and runs of values that lie in host memory or in a file: put in by a
 * strategy, run by the engine on the copy queue, in the order in which they stand. */
#include "ops/check.h"
#include "ops/definitions.h"

/* Blocks of up to four runs are copied together. Store: the blocks, then the runs. */
enum { RUNS = 4, STORE_INPUTS = 2 * RUNS };

static ls_status check_copy(const ls_program *program, const ls_op *op, ls_value_id run,
                            ls_value_id block, ls_error *error)
{
    if (run == LS_NO_VALUE && block == LS_NO_VALUE) return LS_OK;
    const ls_attributes *part = &op->attributes;
    ls_dimension size = ls_fixed(part->elements);
    if (part->elements == 0 && ls_value_of(program, block)->layout == LS_LAYOUT_RUN) return LS_OK;
    LS_TRY(ls_check_vector(program, op, block, size, error));
    if (run != LS_NO_VALUE && block != LS_NO_VALUE) {
        const ls_value *value = ls_value_of(program, run);
        bool elsewhere = value->space == LS_SPACE_HOST_MEMORY || value->space == LS_SPACE_FILE;
        if (elsewhere && part->first_element >= 0 && part->elements > 0 &&
            part->first_element + part->elements <= ls_value_elements(value, &ls_fixed_extents))
            return LS_OK;
    }
    return ls_fail(error, LS_INTERNAL, "program: %s (%s): copies a part that is not there",
                   op->name, ls_op_name(op->kind));
}

static ls_cost copy_cost(const ls_program *program, const ls_op *op, const ls_extents *extents)
{
    (void)program, (void)extents;
    int runs = 0;
    for (int i = 0; i < RUNS; i++)
        runs += op->inputs[i] != LS_NO_VALUE;
    return (ls_cost){0, 8.0 * (double)op->attributes.elements * runs};
}

/* Inputs: runs. Outputs: a block of each, there after the await that has it; or, without elements,
 * what the rank owns of parameters that follow each other (ls_layout_run_part). */
static ls_status fetch_check(const ls_program *program, const ls_op *op, ls_error *error)
{
    for (int i = 0; i < RUNS; i++)
        LS_TRY(check_copy(program, op, op->inputs[i], op->outputs[i], error));
    return LS_OK;
}

const ls_op_definition ls_op_definition_FETCH = {
    .kind = LS_OP_FETCH,
    .inputs = RUNS,
    .outputs = RUNS,
    .optional_inputs = ((1u << RUNS) - 1) & ~1u,
    .check = fetch_check,
    .cost = copy_cost,
};

/* Inputs: what one fetch has written. */
static ls_status await_check(const ls_program *program, const ls_op *op, ls_error *error)
{
    (void)program, (void)op, (void)error;
    return LS_OK;
}

static ls_cost await_cost(const ls_program *program, const ls_op *op, const ls_extents *extents)
{
    (void)program, (void)op, (void)extents;
    return (ls_cost){0};
}

const ls_op_definition ls_op_definition_AWAIT = {
    .kind = LS_OP_AWAIT,
    .inputs = RUNS,
    .outputs = 0,
    .optional_inputs = ((1u << RUNS) - 1) & ~1u,
    .check = await_check,
    .cost = await_cost,
};

/* Inputs: blocks, then the runs. Outputs: the runs, a part of them overwritten. */
static ls_status store_check(const ls_program *program, const ls_op *op, ls_error *error)
{
    for (int i = 0; i < RUNS; i++) {
        LS_TRY(check_copy(program, op, op->outputs[i], op->inputs[i], error));
        if (op->inputs[RUNS + i] != op->outputs[i])
            return ls_fail(error, LS_INTERNAL, "program: %s (store): not in place", op->name);
    }
    return LS_OK;
}

const ls_op_definition ls_op_definition_STORE = {
    .kind = LS_OP_STORE,
    .inputs = STORE_INPUTS,
    .outputs = RUNS,
    .optional_inputs = ((1u << STORE_INPUTS) - 1) & ~(1u | 1u << RUNS),
    .check = store_check,
    .cost = copy_cost,
};

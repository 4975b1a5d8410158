/* The exchange of a bucket of gradients between ranks: put in by a strategy, run by the engine,
 * which alone sees devices and communication together. */
#include "ops/check.h"
#include "ops/definitions.h"

static ls_status exchange_gradients_check(const ls_program *program, const ls_op *op,
                                          ls_error *error)
{
    LS_TRY(ls_check_host(program, op, op->inputs[0], error));
    if (op->attributes.bucket >= 0 && op->attributes.bucket < program->bucket_count) return LS_OK;
    return ls_fail(error, LS_INTERNAL, "program: %s: there is no bucket %d", op->name,
                   op->attributes.bucket);
}

static ls_cost exchange_gradients_cost(const ls_program *program, const ls_op *op,
                                       const ls_extents *extents)
{
    (void)extents;
    double bytes = (double)program->buckets[op->attributes.bucket].bytes;
    return (ls_cost){bytes / 4, 2 * bytes};
}

/* Input: the roots of the step (host: ls_step_roots). */
const ls_op_definition ls_op_definition_EXCHANGE_GRADIENTS = {
    .kind = LS_OP_EXCHANGE_GRADIENTS,
    .inputs = 1,
    .outputs = 0,
    .check = exchange_gradients_check,
    .cost = exchange_gradients_cost,
};

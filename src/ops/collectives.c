/* What moves between ranks: put in by a strategy, run by the engine, which alone sees devices and
 * communication together. Each op names a bucket of the program; it only starts the move, on the
 * communication queue, where collectives run in their order. */
#include "ops/check.h"
#include "ops/definitions.h"

static ls_status check_bucket(const ls_program *program, const ls_op *op, ls_error *error)
{
    if (op->attributes.bucket >= 0 && op->attributes.bucket < program->bucket_count) return LS_OK;
    return ls_fail(error, LS_INTERNAL, "program: %s: there is no bucket %d", op->name,
                   op->attributes.bucket);
}

static ls_status exchange_gradients_check(const ls_program *program, const ls_op *op,
                                          ls_error *error)
{
    LS_TRY(ls_check_host(program, op, op->inputs[0], error));
    return check_bucket(program, op, error);
}

static ls_cost exchange_gradients_cost(const ls_program *program, const ls_op *op,
                                       const ls_extents *extents)
{
    (void)extents;
    double bytes = (double)program->buckets[op->attributes.bucket].bytes;
    return (ls_cost){bytes / 4, 2 * bytes};
}

/* Partial sums are added over all ranks; `owned`: each rank gets what it owns of the sums, else all
 * of them. Input: the roots of the step (host: ls_step_roots). */
const ls_op_definition ls_op_definition_EXCHANGE_GRADIENTS = {
    .kind = LS_OP_EXCHANGE_GRADIENTS,
    .inputs = 1,
    .outputs = 0,
    .check = exchange_gradients_check,
    .cost = exchange_gradients_cost,
};

static ls_cost gather_cost(const ls_program *program, const ls_op *op, const ls_extents *extents)
{
    (void)extents;
    return (ls_cost){0, 2 * (double)program->buckets[op->attributes.bucket].bytes};
}

/* What each rank owns of the bucket's values goes to all. */
const ls_op_definition ls_op_definition_GATHER = {
    .kind = LS_OP_GATHER,
    .inputs = 0,
    .outputs = 0,
    .check = check_bucket,
    .cost = gather_cost,
};

static ls_cost wait_cost(const ls_program *program, const ls_op *op, const ls_extents *extents)
{
    (void)program, (void)op, (void)extents;
    return (ls_cost){0, 0};
}

/* Until the bucket's collective is done: its results may be read, and no rank reads what it sends,
 * as far as that has a lifetime (parameters have not). */
const ls_op_definition ls_op_definition_WAIT = {
    .kind = LS_OP_WAIT,
    .inputs = 0,
    .outputs = 0,
    .check = check_bucket,
    .cost = wait_cost,
};

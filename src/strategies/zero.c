#include "strategies/zero.h"

#include "base/alloc.h"
#include "program/layout.h"

/* Operands of an update. */
enum { ADAMW_PARAMETER = 0, ADAMW_FIRST = 2, ADAMW_SECOND = 3 };

int32_t ls_zero_first_update(const ls_program *program)
{
    int32_t i = 0;
    while (i < program->op_count && program->ops[i].segment != LS_SEGMENT_UPDATE)
        i++;
    return i;
}

/* --- buckets ---------------------------------------------------------------------------------- */

void ls_zero_add(ls_zero_rewrite *z, ls_value_id value, ls_value_id result)
{
    ls_value_id counted = ls_zero_has_role(z, value, LS_ROLE_PARAMETER) ? result : value;
    z->values[z->count] = value;
    z->results[z->count++] = result;
    if (!ls_zero_has_role(z, value, LS_ROLE_SCALAR))
        z->bytes += ls_rewrite_bytes(z->program, counted);
}

ls_status ls_zero_send(ls_zero_rewrite *z, ls_op_kind kind, ls_segment segment, int32_t before,
                       bool in_place, int32_t *bucket, ls_error *error)
{
    ls_op op = ls_op_of(kind, segment, NULL);
    LS_TRY(ls_rewrite_bucket(&z->rewrite, z->values, in_place ? NULL : z->results, z->count,
                             z->bytes, bucket, error));
    z->count = 0;
    z->bytes = 0;
    if (kind == LS_OP_EXCHANGE_GRADIENTS) {
        op.inputs[0] = z->options->inputs->roots;
        op.attributes.owned = true;
    }
    return ls_rewrite_insert(&z->rewrite, before, op, *bucket, error, "bucket.%d", (int)*bucket);
}

ls_status ls_zero_wait(ls_zero_rewrite *z, ls_segment segment, int32_t before, int32_t bucket,
                       ls_error *error)
{
    return ls_rewrite_insert(&z->rewrite, before, ls_op_of(LS_OP_WAIT, segment, NULL), bucket,
                             error, "bucket.%d", (int)bucket);
}

/* --- optimizer state -------------------------------------------------------------------------- */

void ls_zero_shard(ls_zero_rewrite *z, ls_value_id id, ls_value_id *runs)
{
    int unit = ls_zero_value(z, ls_layout_parameter(z->program, id))->unit;
    if (runs[unit] == LS_NO_VALUE) runs[unit] = id;
    z->program->values[id].layout = LS_LAYOUT_RUN;
    z->program->values[id].run = runs[unit];
}

ls_status ls_zero_new_runs(const ls_zero_rewrite *z, ls_value_id **runs, ls_error *error)
{
    LS_TRY(LS_NEW(*runs, z->units + 1, "runs of shards", error));
    for (int unit = 0; unit < z->units; unit++)
        (*runs)[unit] = LS_NO_VALUE;
    return LS_OK;
}

/* Norms and updates of what the rank owns, and moments of that only. */
static ls_status shard_update(ls_zero_rewrite *z, ls_error *error)
{
    ls_value_id *first = NULL, *second = NULL;
    ls_status status;
    LS_TRY_GOTO(status, ls_zero_new_runs(z, &first, error), done);
    LS_TRY_GOTO(status, ls_zero_new_runs(z, &second, error), done);
    for (int32_t i = 0; i < z->program->op_count; i++) {
        ls_op *op = &z->program->ops[i];
        if (op->kind != LS_OP_SQUARED_NORM && op->kind != LS_OP_ADAMW) continue;
        op->attributes.owned = true;
        if (op->kind == LS_OP_SQUARED_NORM) continue;
        ls_zero_shard(z, op->inputs[ADAMW_FIRST], first);
        ls_zero_shard(z, op->inputs[ADAMW_SECOND], second);
    }
done:
    ls_free(first);
    ls_free(second);
    return status;
}

/* The blocks' sums, and the loss, go to all ranks before the norm's tree is added up. */
static ls_status gather_norms(ls_zero_rewrite *z, ls_error *error)
{
    int32_t at = ls_zero_first_update(z->program), bucket;
    while (z->program->ops[at].kind != LS_OP_GRADIENT_NORM)
        at++;
    ls_value_id blocks = z->program->ops[at].inputs[0];
    z->program->values[blocks].role = LS_ROLE_COMMUNICATION;
    ls_zero_add(z, blocks, blocks);
    ls_zero_add(z, *z->options->loss, *z->options->loss);
    LS_TRY(ls_zero_send(z, LS_OP_GATHER, LS_SEGMENT_UPDATE, at, true, &bucket, error));
    return ls_zero_wait(z, LS_SEGMENT_UPDATE, at, bucket, error);
}

/* Parameters that every rank has are whole again, beside the update of those that follow. */
static ls_status gather_updated(ls_zero_rewrite *z, ls_error *error)
{
    int32_t end = z->program->op_count, bucket;
    int32_t first = z->program->bucket_count + z->rewrite.bucket_count;
    for (int32_t i = 0; i < end; i++) {
        const ls_op *op = &z->program->ops[i];
        if (op->kind != LS_OP_ADAMW || !ls_zero_is_whole(z, op->inputs[ADAMW_PARAMETER])) continue;
        ls_zero_add(z, op->inputs[ADAMW_PARAMETER], op->inputs[ADAMW_PARAMETER]);
        if (z->bytes >= z->options->bucket_bytes)
            LS_TRY(ls_zero_send(z, LS_OP_GATHER, LS_SEGMENT_UPDATE, i + 1, true, &bucket, error));
    }
    if (z->count)
        LS_TRY(ls_zero_send(z, LS_OP_GATHER, LS_SEGMENT_UPDATE, end, true, &bucket, error));
    for (bucket = first; bucket < z->program->bucket_count + z->rewrite.bucket_count; bucket++)
        LS_TRY(ls_zero_wait(z, LS_SEGMENT_UPDATE, end, bucket, error));
    return LS_OK;
}

/* --- gradients -------------------------------------------------------------------------------- */

/* What the owner holds of a gradient; the gradient itself is that of one pass. */
static ls_status new_shard(ls_zero_rewrite *z, ls_value_id id, ls_value_id *runs, ls_error *error)
{
    ls_value made = *ls_zero_value(z, id);
    made.shape[0] = ls_fixed(z->options->root_slots);
    if (made.row_sparse) {
        int64_t rows = ls_layout_rows(z->program, made.parameter);
        if (rows < made.shape[1].constant) made.shape[1] = ls_fixed(rows);
    }
    LS_TRY(ls_program_value(z->program, &z->now[id], made, error, "shard.%s", made.name));
    z->program->values[id].role = LS_ROLE_COMMUNICATION;
    if (made.row_sparse)
        z->program->values[z->now[id]].layout = LS_LAYOUT_ROWS;
    else
        ls_zero_shard(z, z->now[id], runs);
    return LS_OK;
}

static ls_status new_loss(ls_zero_rewrite *z, ls_error *error)
{
    ls_value_id loss = *z->options->loss;
    ls_value made = *ls_zero_value(z, loss);
    made.shape[0] = ls_fixed(z->options->root_slots);
    return ls_program_value(z->program, &z->now[loss], made, error, "step.%s", made.name);
}

static ls_status new_shards(ls_zero_rewrite *z, ls_error *error)
{
    ls_value_id *runs = NULL;
    ls_status status = ls_zero_new_runs(z, &runs, error);
    for (ls_value_id id = 0; status == LS_OK && id < z->value_count; id++)
        if (ls_zero_has_role(z, id, LS_ROLE_GRADIENT)) status = new_shard(z, id, runs, error);
    if (status == LS_OK) status = new_loss(z, error);
    ls_free(runs);
    if (status != LS_OK) return status;
    for (int32_t i = ls_zero_first_update(z->program); i < z->program->op_count; i++)
        for (int in = 0; in < LS_MAX_INPUTS; in++) {
            ls_value_id *input = &z->program->ops[i].inputs[in];
            if (ls_zero_has_role(z, *input, LS_ROLE_COMMUNICATION)) *input = z->now[*input];
        }
    return LS_OK;
}

/* The unit whose gradient an op writes, -1: none. */
static int completes(const ls_zero_rewrite *z, const ls_op *op)
{
    for (int out = 0; out < LS_MAX_OUTPUTS; out++)
        if (ls_zero_has_role(z, op->outputs[out], LS_ROLE_COMMUNICATION))
            return ls_zero_value(z, ls_zero_value(z, op->outputs[out])->parameter)->unit;
    return -1;
}

/* A unit's exchange stands after its last gradient, and is waited for after the next unit's. */
static ls_status exchange_units(ls_zero_rewrite *z, ls_error *error)
{
    int32_t update = ls_zero_first_update(z->program), former = LS_NO_VALUE, bucket;
    ls_zero_add(z, *z->options->loss, z->now[*z->options->loss]);
    for (int32_t i = 0; i < update; i++) {
        const ls_op *op = &z->program->ops[i];
        int unit = completes(z, op), next = -1;
        if (unit < 0) continue;
        for (int out = 0; out < LS_MAX_OUTPUTS; out++)
            if (ls_zero_has_role(z, op->outputs[out], LS_ROLE_COMMUNICATION))
                ls_zero_add(z, op->outputs[out], z->now[op->outputs[out]]);
        for (int32_t later = i + 1; next < 0 && later < update; later++)
            next = completes(z, &z->program->ops[later]);
        if (next == unit) continue;
        LS_TRY(ls_zero_send(z, LS_OP_EXCHANGE_GRADIENTS, LS_SEGMENT_PASS, i + 1, false, &bucket,
                            error));
        if (former != LS_NO_VALUE) LS_TRY(ls_zero_wait(z, LS_SEGMENT_PASS, i + 1, former, error));
        former = bucket;
    }
    LS_TRY(ls_zero_wait(z, LS_SEGMENT_PASS, update, former, error));
    *z->options->loss = z->now[*z->options->loss];
    return LS_OK;
}

/* --- the rewrite ------------------------------------------------------------------------------ */

static ls_status rewrite(ls_zero_rewrite *z, ls_error *error)
{
    const ls_sharding *wanted = &z->options->shard;
    if (wanted->gradients) {
        LS_TRY(new_shards(z, error));
        LS_TRY(exchange_units(z, error));
    }
    if (wanted->parameters) LS_TRY(ls_zero_parameters(z, error));
    if (wanted->optimizer_state) {
        LS_TRY(shard_update(z, error));
        LS_TRY(gather_norms(z, error));
        LS_TRY(gather_updated(z, error));
    }
    return ls_rewrite_finish(&z->rewrite, error);
}

ls_status ls_zero(ls_program *program, const ls_zero_options *options, ls_error *error)
{
    ls_zero_rewrite z = {.rewrite = {.program = program}, .program = program, .options = options};
    ls_status status;
    LS_TRY(ls_layout_divide(program, options->ranks, error));
    if (options->shard.optimizer_state && !options->shard.gradients) {
        ls_data_parallel_options sums = {.bucket_bytes = options->bucket_bytes,
                                         .first_bucket_bytes = options->first_bucket_bytes,
                                         .roots = options->inputs->roots,
                                         .loss = *options->loss,
                                         .owned = true};
        LS_TRY(ls_data_parallel(program, &sums, error));
    }
    z.value_count = program->value_count;
    for (ls_value_id id = 0; id < z.value_count; id++)
        if (ls_zero_has_role(&z, id, LS_ROLE_PARAMETER) && ls_zero_value(&z, id)->unit >= z.units)
            z.units = ls_zero_value(&z, id)->unit + 1;
    size_t count = (size_t)z.value_count + 2;
    LS_TRY_GOTO(status, LS_NEW(z.now, count, "shards", error), done);
    LS_TRY_GOTO(status, LS_NEW(z.values, count, "shards", error), done);
    LS_TRY_GOTO(status, LS_NEW(z.results, count, "shards", error), done);
    status = rewrite(&z, error);
done:
    ls_free(z.now);
    ls_free(z.values);
    ls_free(z.results);
    ls_rewrite_deinit(&z.rewrite);
    return status;
}

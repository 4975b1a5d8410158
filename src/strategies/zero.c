#include "base/alloc.h"
#include "program/layout.h"
#include "strategies/rewrite.h"
#include "strategies/strategy.h"

/* Operands of ops that the rewrite knows. */
enum { ADAMW_PARAMETER = 0, ADAMW_FIRST = 2, ADAMW_SECOND = 3, EMBEDDING_ROWS = 3, TABLES = 3 };

typedef struct zero {
    ls_rewrite rewrite;
    ls_program *program;
    const ls_zero_options *options;
    int units;
    ls_value_id *now;              /* [values] what stands for each of them now, or itself */
    ls_value_id *values, *results; /* [values] of the bucket that is being filled */
    int32_t count, value_count;    /* values of the bucket; of the program as it was */
    int64_t bytes;
} zero;

static const ls_value *value_of(const zero *z, ls_value_id id)
{
    return ls_value_of(z->program, id);
}

static bool has_role(const zero *z, ls_value_id id, ls_role role)
{
    return id != LS_NO_VALUE && value_of(z, id)->role == role;
}

static int32_t first_update(const ls_program *program)
{
    int32_t i = 0;
    while (i < program->op_count && program->ops[i].segment != LS_SEGMENT_UPDATE)
        i++;
    return i;
}

/* --- buckets ---------------------------------------------------------------------------------- */

/* Of a gather what arrives counts, of an exchange one partial sum. */
static void add(zero *z, ls_value_id value, ls_value_id result)
{
    ls_value_id counted = has_role(z, value, LS_ROLE_PARAMETER) ? result : value;
    z->values[z->count] = value;
    z->results[z->count++] = result;
    if (!has_role(z, value, LS_ROLE_SCALAR)) z->bytes += ls_rewrite_bytes(z->program, counted);
}

/* Close the bucket and put in its collective. */
static ls_status send(zero *z, ls_op_kind kind, ls_segment segment, int32_t before, bool in_place,
                      int32_t *bucket, ls_error *error)
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

static ls_status wait(zero *z, ls_segment segment, int32_t before, int32_t bucket, ls_error *error)
{
    return ls_rewrite_insert(&z->rewrite, before, ls_op_of(LS_OP_WAIT, segment, NULL), bucket,
                             error, "bucket.%d", (int)bucket);
}

/* --- optimizer state -------------------------------------------------------------------------- */

/* The value becomes part of its unit's run; runs[unit] is the run's first value. */
static void shard(zero *z, ls_value_id id, ls_value_id *runs)
{
    int unit = value_of(z, ls_layout_parameter(z->program, id))->unit;
    if (runs[unit] == LS_NO_VALUE) runs[unit] = id;
    z->program->values[id].layout = LS_LAYOUT_RUN;
    z->program->values[id].run = runs[unit];
}

static ls_status new_runs(const zero *z, ls_value_id **runs, ls_error *error)
{
    LS_TRY(LS_NEW(*runs, z->units + 1, "runs of shards", error));
    for (int unit = 0; unit < z->units; unit++)
        (*runs)[unit] = LS_NO_VALUE;
    return LS_OK;
}

/* Norms and updates of what the rank owns, and moments of that only. */
static ls_status shard_update(zero *z, ls_error *error)
{
    ls_value_id *first = NULL, *second = NULL;
    ls_status status;
    LS_TRY_GOTO(status, new_runs(z, &first, error), done);
    LS_TRY_GOTO(status, new_runs(z, &second, error), done);
    for (int32_t i = 0; i < z->program->op_count; i++) {
        ls_op *op = &z->program->ops[i];
        if (op->kind != LS_OP_SQUARED_NORM && op->kind != LS_OP_ADAMW) continue;
        op->attributes.owned = true;
        if (op->kind == LS_OP_SQUARED_NORM) continue;
        shard(z, op->inputs[ADAMW_FIRST], first);
        shard(z, op->inputs[ADAMW_SECOND], second);
    }
done:
    ls_free(first);
    ls_free(second);
    return status;
}

/* The blocks' sums, and the loss, go to all ranks before the norm's tree is added up. */
static ls_status gather_norms(zero *z, ls_error *error)
{
    int32_t at = first_update(z->program), bucket;
    while (z->program->ops[at].kind != LS_OP_GRADIENT_NORM)
        at++;
    ls_value_id blocks = z->program->ops[at].inputs[0];
    z->program->values[blocks].role = LS_ROLE_COMMUNICATION;
    add(z, blocks, blocks);
    add(z, *z->options->loss, *z->options->loss);
    LS_TRY(send(z, LS_OP_GATHER, LS_SEGMENT_UPDATE, at, true, &bucket, error));
    return wait(z, LS_SEGMENT_UPDATE, at, bucket, error);
}

/* Whole parameters again, beside the update of those that follow. */
static ls_status gather_updated(zero *z, ls_error *error)
{
    int32_t end = z->program->op_count, bucket;
    int32_t first = z->program->bucket_count + z->rewrite.bucket_count;
    for (int32_t i = 0; i < end; i++) {
        const ls_op *op = &z->program->ops[i];
        if (op->kind != LS_OP_ADAMW) continue;
        add(z, op->inputs[ADAMW_PARAMETER], op->inputs[ADAMW_PARAMETER]);
        if (z->bytes >= z->options->bucket_bytes)
            LS_TRY(send(z, LS_OP_GATHER, LS_SEGMENT_UPDATE, i + 1, true, &bucket, error));
    }
    if (z->count) LS_TRY(send(z, LS_OP_GATHER, LS_SEGMENT_UPDATE, end, true, &bucket, error));
    for (bucket = first; bucket < z->program->bucket_count + z->rewrite.bucket_count; bucket++)
        LS_TRY(wait(z, LS_SEGMENT_UPDATE, end, bucket, error));
    return LS_OK;
}

/* --- gradients -------------------------------------------------------------------------------- */

/* What the owner holds of a gradient; the gradient itself is that of one pass. */
static ls_status new_shard(zero *z, ls_value_id id, ls_value_id *runs, ls_error *error)
{
    ls_value made = *value_of(z, id);
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
        shard(z, z->now[id], runs);
    return LS_OK;
}

static ls_status new_loss(zero *z, ls_error *error)
{
    ls_value_id loss = *z->options->loss;
    ls_value made = *value_of(z, loss);
    made.shape[0] = ls_fixed(z->options->root_slots);
    return ls_program_value(z->program, &z->now[loss], made, error, "step.%s", made.name);
}

static ls_status new_shards(zero *z, ls_error *error)
{
    ls_value_id *runs = NULL;
    ls_status status = new_runs(z, &runs, error);
    for (ls_value_id id = 0; status == LS_OK && id < z->value_count; id++)
        if (has_role(z, id, LS_ROLE_GRADIENT)) status = new_shard(z, id, runs, error);
    if (status == LS_OK) status = new_loss(z, error);
    ls_free(runs);
    if (status != LS_OK) return status;
    for (int32_t i = first_update(z->program); i < z->program->op_count; i++)
        for (int in = 0; in < LS_MAX_INPUTS; in++) {
            ls_value_id *input = &z->program->ops[i].inputs[in];
            if (has_role(z, *input, LS_ROLE_COMMUNICATION)) *input = z->now[*input];
        }
    return LS_OK;
}

/* The unit whose gradient an op writes, -1: none. */
static int completes(const zero *z, const ls_op *op)
{
    for (int out = 0; out < LS_MAX_OUTPUTS; out++)
        if (has_role(z, op->outputs[out], LS_ROLE_COMMUNICATION))
            return value_of(z, value_of(z, op->outputs[out])->parameter)->unit;
    return -1;
}

/* A unit's exchange stands after its last gradient, and is waited for after the next unit's. */
static ls_status exchange_units(zero *z, ls_error *error)
{
    int32_t update = first_update(z->program), former = LS_NO_VALUE, bucket;
    add(z, *z->options->loss, z->now[*z->options->loss]);
    for (int32_t i = 0; i < update; i++) {
        const ls_op *op = &z->program->ops[i];
        int unit = completes(z, op), next = -1;
        if (unit < 0) continue;
        for (int out = 0; out < LS_MAX_OUTPUTS; out++)
            if (has_role(z, op->outputs[out], LS_ROLE_COMMUNICATION))
                add(z, op->outputs[out], z->now[op->outputs[out]]);
        for (int32_t later = i + 1; next < 0 && later < update; later++)
            next = completes(z, &z->program->ops[later]);
        if (next == unit) continue;
        LS_TRY(send(z, LS_OP_EXCHANGE_GRADIENTS, LS_SEGMENT_PASS, i + 1, false, &bucket, error));
        if (former != LS_NO_VALUE) LS_TRY(wait(z, LS_SEGMENT_PASS, i + 1, former, error));
        former = bucket;
    }
    LS_TRY(wait(z, LS_SEGMENT_PASS, update, former, error));
    *z->options->loss = z->now[*z->options->loss];
    return LS_OK;
}

/* --- parameters ------------------------------------------------------------------------------- */

/* Consecutive ops that read parameters of one unit. */
typedef struct visit {
    int unit;
    bool backward;
    int32_t first;  /* op */
    int32_t bucket; /* that gathers the unit */
} visit;

/* The unit whose parameters an op of the pass reads, -1: none. */
static int reads_unit(const zero *z, const ls_op *op)
{
    for (int in = 0; op->segment == LS_SEGMENT_PASS && in < LS_MAX_INPUTS; in++)
        if (has_role(z, op->inputs[in], LS_ROLE_PARAMETER))
            return value_of(z, op->inputs[in])->unit;
    return -1;
}

static int32_t find_visits(const zero *z, visit *visits)
{
    int32_t count = 0;
    bool backward = false;
    for (int32_t i = 0; i < z->program->op_count; i++) {
        const ls_op *op = &z->program->ops[i];
        int unit = reads_unit(z, op);
        backward |= op->kind == LS_OP_CLASSIFIER_LOSS;
        if (unit < 0) continue;
        const visit *last = count ? &visits[count - 1] : NULL;
        if (last && last->unit == unit && last->backward == backward) continue;
        visits[count++] = (visit){.unit = unit, .backward = backward, .first = i};
    }
    return count;
}

/* Only the forward pass reads tables, and of those only rows that it touches. */
static ls_status new_gathered(zero *z, ls_value_id parameter, int32_t visit_index, bool backward,
                              ls_error *error)
{
    ls_value made = *value_of(z, parameter);
    made.role = LS_ROLE_COMMUNICATION;
    if (made.row_sparse) {
        if (backward) return LS_OK;
        made.shape[0] = value_of(z, made.touched)->shape[0];
    }
    LS_TRY(ls_program_value(z->program, &z->now[parameter], made, error, "gathered.%d.%s",
                            (int)visit_index, made.name));
    add(z, parameter, z->now[parameter]);
    return LS_OK;
}

static void replace_operands(const zero *z, ls_op *op)
{
    const ls_inputs *inputs = z->options->inputs;
    const ls_value_id rows[TABLES] = {inputs->word.rows, inputs->position.rows, inputs->type.rows};
    for (int in = 0; in < LS_MAX_INPUTS; in++) {
        ls_value_id id = op->inputs[in];
        if (!has_role(z, id, LS_ROLE_PARAMETER)) continue;
        op->inputs[in] = z->now[id];
        if (op->kind == LS_OP_EMBEDDING && value_of(z, id)->row_sparse)
            op->inputs[EMBEDDING_ROWS + in] = rows[in];
    }
}

/* Gather a unit while the one before it is used. */
static ls_status gather_visit(zero *z, visit *visits, int32_t index, int32_t before,
                              ls_error *error)
{
    visit *v = &visits[index];
    for (ls_value_id id = 0; id < z->value_count; id++)
        if (has_role(z, id, LS_ROLE_PARAMETER) && value_of(z, id)->unit == v->unit)
            LS_TRY(new_gathered(z, id, index, v->backward, error));
    return send(z, LS_OP_GATHER, LS_SEGMENT_PASS, before, false, &v->bucket, error);
}

static ls_status gather_visits(zero *z, visit *visits, ls_error *error)
{
    int32_t count = find_visits(z, visits);
    for (int32_t i = 0; i < count; i++) {
        int32_t first = visits[i].first;
        int32_t end = i + 1 < count ? visits[i + 1].first : first_update(z->program);
        if (i == 0) LS_TRY(gather_visit(z, visits, 0, first, error));
        for (int32_t op = first; op < end; op++)
            if (z->program->ops[op].segment == LS_SEGMENT_PASS)
                replace_operands(z, &z->program->ops[op]);
        if (i + 1 < count) LS_TRY(gather_visit(z, visits, i + 1, first, error));
        LS_TRY(wait(z, LS_SEGMENT_PASS, first, visits[i].bucket, error));
    }
    return LS_OK;
}

static ls_status shard_parameters(zero *z, ls_error *error)
{
    ls_value_id *runs = NULL;
    visit *visits = NULL;
    ls_status status;
    LS_TRY_GOTO(status, new_runs(z, &runs, error), done);
    LS_TRY_GOTO(status, LS_NEW(visits, z->program->op_count + 1, "gathers", error), done);
    LS_TRY_GOTO(status, ls_inputs_declare_rows(z->program, z->options->inputs, error), done);
    LS_TRY_GOTO(status, gather_visits(z, visits, error), done);
    for (ls_value_id id = 0; id < z->value_count; id++)
        if (has_role(z, id, LS_ROLE_PARAMETER)) shard(z, id, runs);
done:
    ls_free(runs);
    ls_free(visits);
    return status;
}

/* --- the rewrite ------------------------------------------------------------------------------ */

static ls_status rewrite(zero *z, ls_error *error)
{
    const ls_sharding *wanted = &z->options->shard;
    if (wanted->gradients) {
        LS_TRY(new_shards(z, error));
        LS_TRY(exchange_units(z, error));
    }
    if (wanted->parameters) LS_TRY(shard_parameters(z, error));
    if (wanted->optimizer_state) {
        LS_TRY(shard_update(z, error));
        LS_TRY(gather_norms(z, error));
        if (!wanted->parameters) LS_TRY(gather_updated(z, error));
    }
    return ls_rewrite_finish(&z->rewrite, error);
}

ls_status ls_zero(ls_program *program, const ls_zero_options *options, ls_error *error)
{
    zero z = {.rewrite = {.program = program}, .program = program, .options = options};
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
        if (has_role(&z, id, LS_ROLE_PARAMETER) && value_of(&z, id)->unit >= z.units)
            z.units = value_of(&z, id)->unit + 1;
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

#include "base/alloc.h"
#include "program/program.h"

static bool exists(const ls_program *program, ls_value_id id)
{
    return id >= 0 && id < program->value_count;
}

static ls_status verify_operands(const ls_program *program, const ls_op *op,
                                 const ls_op_definition *definition, ls_error *error)
{
    for (int i = 0; i < LS_MAX_INPUTS; i++) {
        bool missing = op->inputs[i] == LS_NO_VALUE;
        bool wanted = i < definition->inputs && !(definition->optional_inputs >> i & 1);
        if (missing ? wanted : i >= definition->inputs || !exists(program, op->inputs[i]))
            return ls_fail(error, LS_INTERNAL, "program: %s (%s): input %d is %s", op->name,
                           ls_op_name(op->kind), i, missing ? "missing" : "not one of its own");
    }
    for (int i = 0; i < LS_MAX_OUTPUTS; i++) {
        bool missing = op->outputs[i] == LS_NO_VALUE;
        /* Which of the others an op has depends on how it is used; the first is always there. */
        if (missing ? i == 0 && definition->outputs > 0
                    : i >= definition->outputs || !exists(program, op->outputs[i]))
            return ls_fail(error, LS_INTERNAL, "program: %s (%s): output %d is %s", op->name,
                           ls_op_name(op->kind), i, missing ? "missing" : "not one of its own");
    }
    return LS_OK;
}

static bool exists_before_the_step(const ls_value *value)
{
    return value->role == LS_ROLE_PARAMETER || value->role == LS_ROLE_OPTIMIZER_STATE ||
           value->role == LS_ROLE_INPUT ||
           (value->role == LS_ROLE_OFFLOAD && value->space != LS_SPACE_DEVICE);
}

/* What the bytes of a value's storage hold at some point of the program: reading any other value of
 * that storage means that it was overwritten too early. */
typedef struct storage_state {
    ls_value_id holds;
    bool was_read;       /* since `holds` was first written */
    bool partial;        /* of a whole value: what other ranks own of it is not up to date */
    int32_t sent, comes; /* 1 + bucket that reads or writes it and was not waited for, or 0 */
} storage_state;

typedef struct verifier {
    const ls_program *program;
    storage_state *states; /* [values] by storage */
} verifier;

static storage_state *state_of(const verifier *v, ls_value_id id)
{
    return &v->states[ls_value_of(v->program, id)->storage];
}

static ls_status fail_use(const verifier *v, const ls_op *op, const char *does, ls_value_id id,
                          const char *why, ls_error *error)
{
    return ls_fail(error, LS_INTERNAL, "program: %s (%s) %s %s, which %s", op->name,
                   ls_op_name(op->kind), does, ls_value_of(v->program, id)->name, why);
}

/* Ops that use what the rank owns may have shards; all others, whole values. */
static ls_status verify_layout(const verifier *v, const ls_op *op, const char *does, ls_value_id id,
                               ls_error *error)
{
    const ls_value *value = ls_value_of(v->program, id);
    if (value->layout == LS_LAYOUT_WHOLE || op->attributes.owned) return LS_OK;
    return fail_use(v, op, does, id, "is sharded", error);
}

static ls_status verify_read(const verifier *v, const ls_op *op, const char *does, ls_value_id id,
                             ls_error *error)
{
    storage_state *state = state_of(v, id);
    if (state->holds != id)
        return fail_use(
            v, op, does, id,
            state->holds == LS_NO_VALUE ? "nothing has written" : "has been overwritten", error);
    if (state->comes) return fail_use(v, op, does, id, "has not arrived: a wait is missing", error);
    if (state->partial && !op->attributes.owned && op->kind != LS_OP_GATHER)
        return fail_use(v, op, does, id, "only its owners have", error);
    state->was_read = true;
    return LS_OK;
}

static ls_status verify_reads(const verifier *v, const ls_op *op, ls_error *error)
{
    for (int i = 0; i < LS_MAX_INPUTS; i++) {
        if (op->inputs[i] == LS_NO_VALUE) continue;
        LS_TRY(verify_layout(v, op, "reads", op->inputs[i], error));
        LS_TRY(verify_read(v, op, "reads", op->inputs[i], error));
    }
    return LS_OK;
}

static bool reads(const ls_op *op, ls_value_id id)
{
    for (int i = 0; i < LS_MAX_INPUTS; i++)
        if (op->inputs[i] == id) return true;
    return false;
}

/* What is fetched of a run is all of its values. */
static void arrive_whole(const verifier *v, const ls_op *op)
{
    for (ls_value_id id = op->outputs[0]; id < v->program->value_count; id++)
        if (op->kind == LS_OP_FETCH && ls_value_of(v->program, id)->run == op->outputs[0])
            state_of(v, id)->holds = id;
}

/* A value may be written by several ops, each a part of it, but only before it is read; an update
 * in place reads what it writes. */
static ls_status verify_writes(const verifier *v, const ls_op *op, ls_error *error)
{
    for (int i = 0; i < LS_MAX_OUTPUTS; i++) {
        ls_value_id id = op->outputs[i];
        if (id == LS_NO_VALUE) continue;
        LS_TRY(verify_layout(v, op, "writes", id, error));
        storage_state *state = state_of(v, id);
        if (state->holds == id && state->was_read && !reads(op, id))
            return fail_use(v, op, "writes", id, "was read before", error);
        if (state->sent || state->comes)
            return fail_use(v, op, "writes", id, "is on its way: a wait is missing", error);
        if (state->holds != id) *state = (storage_state){.holds = id};
        if (op->attributes.owned)
            state->partial = ls_value_of(v->program, id)->layout == LS_LAYOUT_WHOLE &&
                             ls_value_of(v->program, id)->role != LS_ROLE_OFFLOAD;
    }
    return LS_OK;
}

/* Everything that a bucket sends is complete where it stands, and what it brings is used by nobody
 * until it is there. A sum in place keeps its owners' parts only, where they alone get them. */
static ls_status verify_bucket(const verifier *v, const ls_op *op, ls_error *error)
{
    const ls_bucket *bucket = &v->program->buckets[op->attributes.bucket];
    bool exchange = op->kind == LS_OP_EXCHANGE_GRADIENTS;
    for (int32_t i = 0; i < bucket->count; i++)
        LS_TRY(verify_read(v, op, "sends", bucket->values[i], error));
    for (int32_t i = 0; i < bucket->count; i++) {
        ls_value_id id = bucket->values[i], result = ls_bucket_result(bucket, i);
        storage_state *state = state_of(v, result);
        if (exchange) state_of(v, id)->sent = op->attributes.bucket + 1;
        if (state->holds != result) *state = (storage_state){.holds = result};
        state->comes = op->attributes.bucket + 1;
        state->partial = exchange && op->attributes.owned &&
                         ls_value_of(v->program, result)->layout == LS_LAYOUT_WHOLE;
    }
    return LS_OK;
}

/* What an op of the exchange moves is there before the update begins. */
static void arrive(const verifier *v, const ls_bucket *bucket)
{
    for (int32_t i = 0; i < bucket->count; i++) {
        state_of(v, bucket->values[i])->sent = 0;
        state_of(v, ls_bucket_result(bucket, i))->comes = 0;
    }
}

static ls_status verify_nothing_on_its_way(const verifier *v, const char *end, ls_error *error)
{
    for (ls_value_id id = 0; id < v->program->value_count; id++)
        if (v->states[id].sent || v->states[id].comes)
            return ls_fail(error, LS_INTERNAL, "program: %s is on its way at the end of the %s",
                           ls_value_of(v->program, id)->name, end);
    return LS_OK;
}

static ls_status begin_update(const verifier *v, ls_error *error)
{
    for (int32_t i = 0; i < v->program->op_count; i++)
        if (v->program->ops[i].segment == LS_SEGMENT_EXCHANGE)
            arrive(v, &v->program->buckets[v->program->ops[i].attributes.bucket]);
    return verify_nothing_on_its_way(v, "pass", error);
}

/* The next step and what reads a trained model finds whole parameters. */
static ls_status end_step(const verifier *v, ls_error *error)
{
    LS_TRY(verify_nothing_on_its_way(v, "step", error));
    for (ls_value_id id = 0; id < v->program->value_count; id++)
        if (ls_value_of(v->program, id)->role == LS_ROLE_PARAMETER && v->states[id].partial)
            return ls_fail(error, LS_INTERNAL, "program: %s is not gathered after its update",
                           ls_value_of(v->program, id)->name);
    return LS_OK;
}

static ls_status verify_op(const verifier *v, const ls_op *op, ls_error *error)
{
    if (op->kind == LS_OP_WAIT)
        arrive(v, &v->program->buckets[op->attributes.bucket]);
    else if (ls_op_is_collective(op->kind))
        LS_TRY(verify_bucket(v, op, error));
    LS_TRY(verify_reads(v, op, error));
    LS_TRY(verify_writes(v, op, error));
    arrive_whole(v, op);
    return LS_OK;
}

static ls_status verify_order(const verifier *v, ls_error *error)
{
    const ls_program *program = v->program;
    for (ls_value_id id = 0; id < program->value_count; id++)
        v->states[id].holds = exists_before_the_step(ls_value_of(program, id)) ? id : LS_NO_VALUE;
    bool update = false;
    for (int32_t i = 0; i < program->op_count; i++) {
        const ls_op *op = &program->ops[i];
        if (update && op->segment != LS_SEGMENT_UPDATE)
            return ls_fail(error, LS_INTERNAL, "program: %s stands after the update", op->name);
        if (!update && op->segment == LS_SEGMENT_UPDATE) {
            LS_TRY(begin_update(v, error));
            update = true;
        }
        LS_TRY(verify_op(v, op, error));
    }
    return end_step(v, error);
}

ls_status ls_program_verify(const ls_program *program, ls_error *error)
{
    for (int32_t i = 0; i < program->op_count; i++) {
        const ls_op *op = &program->ops[i];
        const ls_op_definition *definition = program->definitions[op->kind];
        LS_TRY(verify_operands(program, op, definition, error));
        LS_TRY(definition->check(program, op, error));
    }
    verifier v = {.program = program};
    LS_TRY(LS_NEW(v.states, program->value_count + 1, "program verifier", error));
    ls_status status = verify_order(&v, error);
    ls_free(v.states);
    return status;
}

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
    bool was_read; /* since `holds` was first written */
} storage_state;

static ls_status verify_reads(const ls_program *program, const ls_op *op, storage_state *states,
                              ls_error *error)
{
    for (int i = 0; i < LS_MAX_INPUTS; i++) {
        ls_value_id id = op->inputs[i];
        if (id == LS_NO_VALUE) continue;
        storage_state *state = &states[ls_value_of(program, id)->storage];
        if (state->holds != id)
            return ls_fail(error, LS_INTERNAL, "program: %s (%s) reads %s, which %s", op->name,
                           ls_op_name(op->kind), ls_value_of(program, id)->name,
                           state->holds == LS_NO_VALUE ? "nothing has written"
                                                       : "has been overwritten");
        state->was_read = true;
    }
    return LS_OK;
}

static bool reads(const ls_op *op, ls_value_id id)
{
    for (int i = 0; i < LS_MAX_INPUTS; i++)
        if (op->inputs[i] == id) return true;
    return false;
}

/* A value may be written by several ops, each a part of it, but only before it is read; an update
 * in place reads what it writes. */
static ls_status verify_writes(const ls_program *program, const ls_op *op, storage_state *states,
                               ls_error *error)
{
    for (int i = 0; i < LS_MAX_OUTPUTS; i++) {
        ls_value_id id = op->outputs[i];
        if (id == LS_NO_VALUE) continue;
        storage_state *state = &states[ls_value_of(program, id)->storage];
        if (state->holds == id && state->was_read && !reads(op, id))
            return ls_fail(error, LS_INTERNAL, "program: %s (%s) writes %s, which was read before",
                           op->name, ls_op_name(op->kind), ls_value_of(program, id)->name);
        if (state->holds != id) *state = (storage_state){.holds = id};
    }
    return LS_OK;
}

/* Everything that a bucket sends is complete where it stands. */
static ls_status verify_bucket(const ls_program *program, const ls_op *op, storage_state *states,
                               ls_error *error)
{
    const ls_bucket *bucket = &program->buckets[op->attributes.bucket];
    for (int32_t i = 0; i < bucket->count; i++) {
        storage_state *state = &states[ls_value_of(program, bucket->values[i])->storage];
        if (state->holds != bucket->values[i])
            return ls_fail(error, LS_INTERNAL, "program: %s sends %s, which nothing has written",
                           op->name, ls_value_of(program, bucket->values[i])->name);
        state->was_read = true;
    }
    return LS_OK;
}

static ls_status verify_order(const ls_program *program, storage_state *states, ls_error *error)
{
    for (ls_value_id id = 0; id < program->value_count; id++)
        states[id].holds = exists_before_the_step(ls_value_of(program, id)) ? id : LS_NO_VALUE;
    for (int32_t i = 0; i < program->op_count; i++) {
        const ls_op *op = &program->ops[i];
        if (i && program->ops[i - 1].segment == LS_SEGMENT_UPDATE &&
            op->segment != LS_SEGMENT_UPDATE)
            return ls_fail(error, LS_INTERNAL, "program: %s stands after the update", op->name);
        if (op->kind == LS_OP_EXCHANGE_GRADIENTS) LS_TRY(verify_bucket(program, op, states, error));
        LS_TRY(verify_reads(program, op, states, error));
        LS_TRY(verify_writes(program, op, states, error));
    }
    return LS_OK;
}

ls_status ls_program_verify(const ls_program *program, ls_error *error)
{
    for (int32_t i = 0; i < program->op_count; i++) {
        const ls_op *op = &program->ops[i];
        const ls_op_definition *definition = program->definitions[op->kind];
        LS_TRY(verify_operands(program, op, definition, error));
        LS_TRY(definition->check(program, op, error));
    }
    storage_state *states = NULL;
    LS_TRY(LS_NEW(states, program->value_count + 1, "program verifier", error));
    ls_status status = verify_order(program, states, error);
    ls_free(states);
    return status;
}

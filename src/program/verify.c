#include "base/alloc.h"
#include "program/program.h"

static ls_status verify_operands(const ls_program *program, const ls_op *op,
                                 const ls_op_definition *definition, ls_error *error)
{
    for (int i = 0; i < LS_MAX_INPUTS; i++) {
        ls_value_id id = op->inputs[i];
        bool missing = id == LS_NO_VALUE;
        bool wanted = i < definition->inputs && !(definition->optional_inputs >> i & 1);
        if (missing ? wanted : i >= definition->inputs || id >= program->value_count)
            return ls_fail(error, LS_INTERNAL, "program: %s (%s): input %d is %s", op->name,
                           ls_op_name(op->kind), i, missing ? "missing" : "not one of its own");
    }
    for (int i = 0; i < LS_MAX_OUTPUTS; i++) {
        ls_value_id id = op->outputs[i];
        if (id != LS_NO_VALUE && (i >= definition->outputs || id >= program->value_count))
            return ls_fail(error, LS_INTERNAL, "program: %s (%s): output %d is not one of its own",
                           op->name, ls_op_name(op->kind), i);
    }
    return LS_OK;
}

static bool exists_before_the_step(const ls_value *value)
{
    return value->role == LS_ROLE_PARAMETER || value->role == LS_ROLE_OPTIMIZER_STATE ||
           value->role == LS_ROLE_INPUT;
}

/* Everything that a bucket sends is complete where it stands. */
static ls_status verify_bucket(const ls_program *program, const ls_op *op, const ls_value_id *owner,
                               ls_error *error)
{
    const ls_bucket *bucket = &program->buckets[op->attributes.bucket];
    for (int32_t i = 0; i < bucket->count; i++)
        if (owner[bucket->values[i]] != bucket->values[i])
            return ls_fail(error, LS_INTERNAL, "program: %s sends %s, which nothing has written",
                           op->name, ls_value_of(program, bucket->values[i])->name);
    return LS_OK;
}

/* `owner[s]` is the value whose bytes storage s holds now; reading any other value of that storage
 * means that it was overwritten too early. */
static ls_status verify_order(const ls_program *program, ls_value_id *owner, ls_error *error)
{
    for (ls_value_id id = 0; id < program->value_count; id++)
        owner[id] = exists_before_the_step(ls_value_of(program, id)) ? id : LS_NO_VALUE;
    for (int32_t i = 0; i < program->op_count; i++) {
        const ls_op *op = &program->ops[i];
        if (i && program->ops[i - 1].segment == LS_SEGMENT_UPDATE &&
            op->segment != LS_SEGMENT_UPDATE)
            return ls_fail(error, LS_INTERNAL, "program: %s stands after the update", op->name);
        if (op->kind == LS_OP_EXCHANGE_GRADIENTS) LS_TRY(verify_bucket(program, op, owner, error));
        for (int in = 0; in < LS_MAX_INPUTS; in++) {
            ls_value_id id = op->inputs[in];
            if (id == LS_NO_VALUE) continue;
            ls_value_id held = owner[ls_value_of(program, id)->storage];
            if (held != id)
                return ls_fail(error, LS_INTERNAL, "program: %s (%s) reads %s, which %s", op->name,
                               ls_op_name(op->kind), ls_value_of(program, id)->name,
                               held == LS_NO_VALUE ? "nothing has written"
                                                   : "has been overwritten");
        }
        for (int out = 0; out < LS_MAX_OUTPUTS; out++)
            if (op->outputs[out] != LS_NO_VALUE)
                owner[ls_value_of(program, op->outputs[out])->storage] = op->outputs[out];
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
    ls_value_id *owner = NULL;
    LS_TRY(LS_NEW(owner, program->value_count + 1, "program verifier", error));
    ls_status status = verify_order(program, owner, error);
    ls_free(owner);
    return status;
}

#include <stdio.h>

#include "base/alloc.h"
#include "strategies/strategy.h"

/* What the rewrite works on: the new list of ops and the bucket that is being filled. */
typedef struct rewrite {
    ls_program *program;
    const ls_data_parallel_options *options;
    ls_op *ops;
    int32_t op_count;
    ls_value_id *members; /* of all buckets, one after the other */
    ls_bucket *buckets;
    int32_t member_count, bucket_count;
    int32_t open_begin; /* first member of the open bucket */
    int64_t open_bytes;
} rewrite;

static int64_t gradient_bytes(const ls_program *program, ls_value_id id)
{
    static const ls_extents fixed = {{1}};
    return ls_value_bytes(ls_value_of(program, id), &fixed) / program->gradient_slots;
}

/* Every gradient is written by one op, so the op that writes it completes it. */
static void collect(rewrite *r, const ls_op *op)
{
    if (op->segment != LS_SEGMENT_PASS) return;
    for (int out = 0; out < LS_MAX_OUTPUTS; out++) {
        ls_value_id id = op->outputs[out];
        if (id == LS_NO_VALUE || ls_value_of(r->program, id)->role != LS_ROLE_GRADIENT) continue;
        r->members[r->member_count++] = id;
        r->open_bytes += gradient_bytes(r->program, id);
    }
}

static ls_status close_bucket(rewrite *r, ls_error *error)
{
    ls_op op = ls_op_of(LS_OP_EXCHANGE_GRADIENTS, LS_SEGMENT_EXCHANGE, NULL);
    LS_TRY(ls_arena_text(&r->program->arena, &op.name, error, "bucket.%d", (int)r->bucket_count));
    op.inputs[0] = r->options->roots;
    op.attributes.bucket = r->bucket_count;
    r->buckets[r->bucket_count++] =
        (ls_bucket){r->members + r->open_begin, r->member_count - r->open_begin, r->open_bytes};
    r->open_begin = r->member_count;
    r->open_bytes = 0;
    r->ops[r->op_count++] = op;
    return LS_OK;
}

static ls_status rewrite_ops(rewrite *r, ls_error *error)
{
    const ls_program *program = r->program;
    bool closed = false;
    for (int32_t i = 0; i < program->op_count; i++) {
        const ls_op *op = &program->ops[i];
        if (op->segment == LS_SEGMENT_UPDATE && !closed) {
            r->members[r->member_count++] = r->options->loss;
            LS_TRY(close_bucket(r, error));
            closed = true;
        }
        r->ops[r->op_count++] = *op;
        collect(r, op);
        int64_t wanted =
            r->bucket_count ? r->options->bucket_bytes : r->options->first_bucket_bytes;
        if (!closed && r->open_bytes >= wanted) LS_TRY(close_bucket(r, error));
    }
    return LS_OK;
}

ls_status ls_data_parallel(ls_program *program, const ls_data_parallel_options *options,
                           ls_error *error)
{
    rewrite r = {.program = program, .options = options};
    int32_t gradients = 0;
    for (ls_value_id id = 0; id < program->value_count; id++)
        gradients += ls_value_of(program, id)->role == LS_ROLE_GRADIENT;
    ls_status status;
    size_t capacity = (size_t)program->op_count + (size_t)gradients + 1;
    LS_TRY_GOTO(status, LS_ARENA_NEW(&program->arena, r.members, gradients + 1, error), fail);
    LS_TRY_GOTO(status, LS_ARENA_NEW(&program->arena, r.buckets, gradients + 1, error), fail);
    LS_TRY_GOTO(status, LS_NEW(r.ops, capacity, "program ops", error), fail);
    LS_TRY_GOTO(status, rewrite_ops(&r, error), fail);
    ls_free(program->ops);
    program->ops = r.ops;
    program->op_count = r.op_count;
    program->op_capacity = capacity;
    program->buckets = r.buckets;
    program->bucket_count = r.bucket_count;
    return LS_OK;
fail:
    ls_free(r.ops);
    return status;
}

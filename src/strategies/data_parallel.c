#include "base/alloc.h"
#include "strategies/rewrite.h"
#include "strategies/strategy.h"

/* The bucket that is being filled. */
typedef struct filling {
    ls_rewrite rewrite;
    const ls_data_parallel_options *options;
    ls_value_id *members;
    int32_t member_count;
    int64_t bytes;
} filling;

/* Every gradient is written by one op, so the op that writes it completes it. */
static void collect(filling *f, const ls_op *op)
{
    const ls_program *program = f->rewrite.program;
    if (op->segment != LS_SEGMENT_PASS) return;
    for (int out = 0; out < LS_MAX_OUTPUTS; out++) {
        ls_value_id id = op->outputs[out];
        if (id == LS_NO_VALUE || ls_value_of(program, id)->role != LS_ROLE_GRADIENT) continue;
        f->members[f->member_count++] = id;
        f->bytes += ls_rewrite_bytes(program, id);
    }
}

static ls_status close_bucket(filling *f, int32_t before, ls_error *error)
{
    int32_t bucket;
    LS_TRY(ls_rewrite_bucket(&f->rewrite, f->members, NULL, f->member_count, f->bytes, &bucket,
                             error));
    ls_op op = ls_op_of(LS_OP_EXCHANGE_GRADIENTS, LS_SEGMENT_EXCHANGE, NULL);
    op.inputs[0] = f->options->roots;
    op.attributes.owned = f->options->owned;
    f->member_count = 0;
    f->bytes = 0;
    return ls_rewrite_insert(&f->rewrite, before, op, bucket, error, "bucket.%d", (int)bucket);
}

static ls_status fill_buckets(filling *f, ls_error *error)
{
    const ls_program *program = f->rewrite.program;
    for (int32_t i = 0; i < program->op_count; i++) {
        const ls_op *op = &program->ops[i];
        if (op->segment == LS_SEGMENT_UPDATE) {
            f->members[f->member_count++] = f->options->loss;
            return close_bucket(f, i, error);
        }
        collect(f, op);
        int64_t wanted =
            f->rewrite.bucket_count ? f->options->bucket_bytes : f->options->first_bucket_bytes;
        if (f->bytes >= wanted) LS_TRY(close_bucket(f, i + 1, error));
    }
    return ls_fail(error, LS_INTERNAL, "program: data parallel without an update");
}

ls_status ls_data_parallel(ls_program *program, const ls_data_parallel_options *options,
                           ls_error *error)
{
    filling f = {.rewrite = {.program = program}, .options = options};
    ls_status status;
    LS_TRY_GOTO(status, LS_NEW(f.members, program->value_count + 1, "buckets", error), done);
    LS_TRY_GOTO(status, fill_buckets(&f, error), done);
    status = ls_rewrite_finish(&f.rewrite, error);
done:
    ls_free(f.members);
    ls_rewrite_deinit(&f.rewrite);
    return status;
}

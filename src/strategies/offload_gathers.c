#include <stdio.h>

#include "base/alloc.h"
#include "program/layout.h"
#include "strategies/offload.h"
#include "strategies/rewrite.h"

enum { AHEAD = 2 };

/* A gather of parameters in the pass: its op, the one that waits for it, what it sends. */
typedef struct visit {
    int32_t gather, wait;
    ls_value_id staged; /* the first of the run that stands for its parameters */
} visit;

typedef struct rewrite {
    ls_rewrite list;
    ls_program *program;
    ls_value_id home; /* the run of parameters */
    visit *visits;
    int32_t count;
} rewrite;

static int32_t find_wait(const ls_program *program, int32_t gather)
{
    int32_t bucket = program->ops[gather].attributes.bucket, i = gather;
    while (program->ops[i].kind != LS_OP_WAIT || program->ops[i].attributes.bucket != bucket)
        i++;
    return i;
}

static void find_visits(rewrite *r)
{
    const ls_program *program = r->program;
    for (int32_t i = 0; i < program->op_count; i++) {
        const ls_op *op = &program->ops[i];
        if (op->kind != LS_OP_GATHER || op->segment != LS_SEGMENT_PASS) continue;
        ls_value_id first = program->buckets[op->attributes.bucket].values[0];
        if (ls_value_of(program, first)->role != LS_ROLE_PARAMETER) continue;
        r->visits[r->count++] = (visit){.gather = i, .wait = find_wait(program, i)};
    }
}

/* What a rank owns of a bucket's parameters, on the device while it is sent. */
static ls_status stage_bucket(rewrite *r, ls_bucket *bucket, int32_t index, ls_error *error)
{
    ls_value_id *staged;
    LS_TRY(LS_ARENA_NEW(&r->program->arena, staged, bucket->count, error));
    for (int32_t i = 0; i < bucket->count; i++) {
        ls_value made = *ls_value_of(r->program, bucket->values[i]);
        made.role = LS_ROLE_OFFLOAD;
        made.space = LS_SPACE_DEVICE;
        made.parameter = bucket->values[i];
        LS_TRY(ls_program_value(r->program, &staged[i], made, error, "staged.%d.%s", (int)index,
                                made.name));
        r->program->values[staged[i]].layout = LS_LAYOUT_RUN;
        r->program->values[staged[i]].run = staged[0];
    }
    bucket->values = staged;
    r->visits[index].staged = staged[0];
    return LS_OK;
}

static ls_status stage_buckets(rewrite *r, ls_error *error)
{
    ls_program *program = r->program;
    ls_bucket *buckets;
    LS_TRY(LS_ARENA_NEW(&program->arena, buckets, program->bucket_count, error));
    for (int32_t i = 0; i < program->bucket_count; i++)
        buckets[i] = program->buckets[i];
    for (int32_t i = 0; i < r->count; i++) {
        int32_t bucket = program->ops[r->visits[i].gather].attributes.bucket;
        LS_TRY(stage_bucket(r, &buckets[bucket], i, error));
    }
    program->buckets = buckets;
    return LS_OK;
}

static ls_status insert(rewrite *r, ls_op_kind kind, int32_t index, int32_t before, ls_error *error)
{
    if (index >= r->count) return LS_OK;
    ls_op op = ls_op_of(kind, LS_SEGMENT_PASS, NULL);
    op.attributes.owned = true;
    op.inputs[0] = kind == LS_OP_FETCH ? r->home : r->visits[index].staged;
    if (kind == LS_OP_FETCH) op.outputs[0] = r->visits[index].staged;
    return ls_rewrite_insert(&r->list, before, op, 0, error, "staged.%d", (int)index);
}

/* Two visits ahead is not soon enough where more of them are gathered ahead: then a visit is
 * fetched while the one before it is gathered. */
static bool is_far_ahead(const rewrite *r, int32_t index)
{
    return index >= AHEAD && index < r->count &&
           r->visits[index - AHEAD].wait > r->visits[index].gather;
}

static ls_status rewrite_gathers(rewrite *r, ls_error *error)
{
    for (int32_t i = 0; i < AHEAD; i++)
        LS_TRY(insert(r, LS_OP_FETCH, i, r->visits[0].gather, error));
    for (int32_t i = 0; i < r->count; i++) {
        if (is_far_ahead(r, i + 1))
            LS_TRY(insert(r, LS_OP_FETCH, i + 1, r->visits[i].gather, error));
        LS_TRY(insert(r, LS_OP_AWAIT, i, r->visits[i].gather, error));
        if (!is_far_ahead(r, i + AHEAD))
            LS_TRY(insert(r, LS_OP_FETCH, i + AHEAD, r->visits[i].wait + 1, error));
    }
    return ls_rewrite_finish(&r->list, error);
}

ls_status ls_offload_gathers(ls_program *program, ls_value_id home, ls_error *error)
{
    rewrite r = {.list = {.program = program}, .program = program, .home = home};
    ls_status status;
    LS_TRY_GOTO(status, LS_NEW(r.visits, program->op_count + 1, "offload", error), done);
    find_visits(&r);
    LS_TRY_GOTO(status, stage_buckets(&r, error), done);
    if (r.count) status = rewrite_gathers(&r, error);
done:
    ls_rewrite_deinit(&r.list);
    ls_free(r.visits);
    return status;
}

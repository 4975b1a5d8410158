#include "engine/exchange.h"

#include "base/alloc.h"
#include "base/fail_point.h"
#include "base/queue.h"
#include "engine/collectives.h"

/* Slices of a gradient begin at borders of the norm's blocks. */
enum { BLOCK = 1024, QUEUED_OPS = 4096 };

struct ls_exchange {
    ls_comm *comm;
    ls_executor *executor;
    const ls_program *program;
    const ls_plan *plan;
    ls_collectives *collectives;
    ls_queue *queue;
    ls_status status; /* of the queue's thread: the first failure */
    ls_error error;
    /* The pieces of one bucket: [ranks][values of the largest bucket], [ranks + 1] */
    ls_piece *pieces;
    int32_t *begin;
};

/* The part of a gradient, or of the loss, that `rank` owns: whole blocks, whole rows of a table. */
static ls_piece piece_of(const ls_exchange *x, ls_value_id id, int rank, int32_t roots)
{
    static const ls_extents fixed = {{1}};
    const ls_value *value = ls_value_of(x->program, id);
    int64_t elements = ls_value_elements(value, &fixed) / x->program->gradient_slots;
    const ls_touched_rows *touched = NULL;
    int64_t unit = BLOCK, size = elements;
    if (value->row_sparse) {
        touched = ls_executor_bound(x->executor, value->touched);
        unit = value->shape[2].constant;
        size = touched->count * unit;
    }
    int64_t units = (size + unit - 1) / unit;
    int64_t begin = units * rank / x->comm->size * unit;
    int64_t end = units * (rank + 1) / x->comm->size * unit;
    if (end > size) end = size;
    if (begin > end) begin = end;
    ls_piece piece = {.arena = x->plan->arena[id],
                      .offset = x->plan->offset[id] + begin * (int64_t)sizeof(float),
                      .rows = begin < end,
                      .row_elements = end - begin,
                      .slot_stride = elements};
    if (!touched) return piece;
    piece.rows = (end - begin) / unit;
    piece.row_elements = unit;
    piece.present = touched->present + begin / unit * roots;
    return piece;
}

static ls_pieces list_pieces(ls_exchange *x, const ls_bucket *bucket, int32_t roots)
{
    int32_t count = 0;
    for (int rank = 0; rank < x->comm->size; rank++) {
        x->begin[rank] = count;
        for (int32_t i = 0; i < bucket->count; i++)
            x->pieces[count++] = piece_of(x, bucket->values[i], rank, roots);
    }
    x->begin[x->comm->size] = count;
    return (ls_pieces){x->pieces, x->begin};
}

static ls_status run_bucket(ls_exchange *x, const ls_op_call *call, ls_error *error)
{
    const ls_bucket *bucket = &x->program->buckets[call->op->attributes.bucket];
    const ls_step_roots *step = call->inputs[0].data;
    ls_pieces pieces = list_pieces(x, bucket, step->count);
    LS_TRY(ls_collectives_sum(x->collectives, step, &pieces, error));
    (void)ls_fail_point("exchange");
    return ls_collectives_gather(x->collectives, &pieces, error);
}

static void run_queued(void *context, const void *item)
{
    ls_exchange *x = context;
    if (x->status == LS_OK) x->status = run_bucket(x, item, &x->error);
}

static void enqueue(void *context, const ls_op_call *call)
{
    ls_queue_push(((ls_exchange *)context)->queue, call);
}

static ls_status connect(ls_exchange *x, ls_error *error)
{
    void *arenas[LS_PLAN_ARENA_COUNT] = {0};
    for (ls_plan_arena arena = 0; arena < LS_PLAN_SCRATCH; arena++)
        arenas[arena] = ls_executor_arena(x->executor, arena);
    return ls_collectives_new(&x->collectives, x->comm, ls_executor_device(x->executor), arenas,
                              error);
}

ls_status ls_exchange_new(ls_exchange **out, ls_comm *comm, ls_executor *executor,
                          const ls_program *program, const ls_plan *plan, ls_error *error)
{
    ls_exchange *x = NULL;
    ls_status status;
    int32_t most = 0;
    for (int32_t i = 0; i < program->bucket_count; i++)
        if (program->buckets[i].count > most) most = program->buckets[i].count;
    LS_TRY(LS_NEW(x, 1, "exchange", error));
    x->comm = comm;
    x->executor = executor;
    x->program = program;
    x->plan = plan;
    LS_TRY_GOTO(status, LS_NEW(x->pieces, comm->size * most, "exchange", error), fail);
    LS_TRY_GOTO(status, LS_NEW(x->begin, comm->size + 1, "exchange", error), fail);
    LS_TRY_GOTO(status, ls_queue_new(&x->queue, QUEUED_OPS, run_queued, x, error), fail);
    LS_TRY_GOTO(status, connect(x, error), fail);
    ls_executor_set_exchange(executor, enqueue, x);
    *out = x;
    return LS_OK;
fail:
    ls_exchange_free(x);
    return status;
}

void ls_exchange_free(ls_exchange *x)
{
    if (!x) return;
    ls_queue_free(x->queue);
    ls_collectives_free(x->collectives);
    ls_free(x->pieces);
    ls_free(x->begin);
    ls_free(x);
}

ls_status ls_exchange_finish(ls_exchange *x, ls_error *error)
{
    ls_queue_wait(x->queue);
    if (x->status != LS_OK) {
        if (error) *error = x->error;
        return x->status;
    }
    return ls_collectives_finish(x->collectives, error);
}

int64_t ls_exchange_elements(const ls_exchange *x)
{
    return ls_collectives_elements(x->collectives);
}

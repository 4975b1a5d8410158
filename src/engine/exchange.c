#include "engine/exchange.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail_point.h"
#include "base/queue.h"
#include "engine/collectives.h"
#include "engine/pieces.h"

enum { QUEUED_OPS = 4096 };

struct ls_exchange {
    ls_comm *comm;
    ls_executor *executor;
    const ls_program *program;
    ls_collectives *collectives;
    ls_piece_list pieces;
    ls_queue *queue;
    ls_track *track;  /* NULL: nothing is recorded */
    long *numbers;    /* [buckets] in the queue, of the last collective of each */
    ls_status status; /* of the queue's thread: the first failure */
    ls_error error;
};

/* A call that began at `begin`, in two spans: first it waits for the other ranks. */
static void record(ls_exchange *x, const ls_op_call *call, const char *name, double begin,
                   double waited, int64_t elements)
{
    ls_span span = {.name = "wait for ranks",
                    .begin = begin,
                    .end = begin + waited,
                    .op = (int32_t)(call->op - x->program->ops)};
    ls_track_add(x->track, &span);
    span.name = name;
    span.begin = span.end;
    span.end = ls_seconds();
    span.bytes = elements * (int64_t)sizeof(float);
    ls_track_add(x->track, &span);
}

static ls_status gather(ls_exchange *x, const ls_op_call *call, const char *name,
                        const ls_pieces *pieces, ls_error *error)
{
    double begin = ls_seconds();
    int64_t before = ls_collectives_elements(x->collectives);
    LS_TRY(ls_collectives_gather(x->collectives, pieces, error));
    record(x, call, name, begin, ls_collectives_waited(x->collectives),
           ls_collectives_elements(x->collectives) - before);
    return LS_OK;
}

static ls_status sum_bucket(ls_exchange *x, const ls_op_call *call, const ls_bucket *bucket,
                            ls_error *error)
{
    const ls_step_roots *step = call->inputs[0].data;
    ls_pieces pieces = ls_pieces_to_sum(&x->pieces, bucket, step);
    double begin = ls_seconds();
    int64_t before = ls_collectives_elements(x->collectives);
    LS_TRY(ls_collectives_sum(x->collectives, step, &pieces, error));
    (void)ls_fail_point("exchange");
    record(x, call, "sum bucket", begin, ls_collectives_waited(x->collectives),
           ls_collectives_elements(x->collectives) - before);
    return call->op->attributes.owned ? LS_OK : gather(x, call, "gather bucket", &pieces, error);
}

/* What this rank has sent may be gone after the wait: then nobody may still read it. */
static bool sends_transient(const ls_exchange *x, const ls_bucket *bucket)
{
    for (int32_t i = 0; i < bucket->count; i++)
        if (ls_plan_is_transient(x->pieces.plan->arena[bucket->values[i]])) return true;
    return false;
}

static ls_status run_bucket(ls_exchange *x, const ls_op_call *call, ls_error *error)
{
    const ls_bucket *bucket = &x->program->buckets[call->op->attributes.bucket];
    x->comm->task = call->op->name;
    if (call->op->kind == LS_OP_EXCHANGE_GRADIENTS) {
        LS_TRY(sum_bucket(x, call, bucket, error));
    } else {
        ls_pieces pieces = ls_pieces_to_gather(&x->pieces, bucket);
        LS_TRY(gather(x, call, "gather parameters", &pieces, error));
    }
    return sends_transient(x, bucket) ? ls_collectives_finish(x->collectives, error) : LS_OK;
}

static void run_queued(void *context, const void *item)
{
    ls_exchange *x = context;
    if (x->status == LS_OK) x->status = run_bucket(x, item, &x->error);
}

/* After a failure nothing more is moved, and ls_exchange_finish tells it. */
static void start_or_wait(void *context, const ls_op_call *call)
{
    ls_exchange *x = context;
    long *number = &x->numbers[call->op->attributes.bucket];
    if (call->op->kind == LS_OP_WAIT)
        ls_queue_wait_for(x->queue, *number);
    else
        *number = ls_queue_push(x->queue, call);
}

static ls_status connect(ls_exchange *x, ls_comm *comm, ls_error *error)
{
    void *arenas[LS_PLAN_ARENA_COUNT] = {0};
    for (ls_plan_arena arena = 0; arena < LS_PLAN_SCRATCH; arena++)
        arenas[arena] = ls_executor_arena(x->executor, arena);
    return ls_collectives_new(&x->collectives, comm, ls_executor_device(x->executor), arenas,
                              error);
}

ls_status ls_exchange_new(ls_exchange **out, ls_comm *comm, ls_executor *executor,
                          const ls_program *program, const ls_plan *plan, ls_error *error)
{
    ls_exchange *x = NULL;
    ls_status status;
    LS_TRY(LS_NEW(x, 1, "exchange", error));
    x->comm = comm;
    x->executor = executor;
    x->program = program;
    LS_TRY_GOTO(status, LS_NEW(x->numbers, program->bucket_count + 1, "exchange", error), fail);
    LS_TRY_GOTO(status, ls_piece_list_init(&x->pieces, program, plan, executor, comm->size, error),
                fail);
    LS_TRY_GOTO(status, ls_queue_new(&x->queue, QUEUED_OPS, run_queued, x, error), fail);
    LS_TRY_GOTO(status, connect(x, comm, error), fail);
    ls_executor_set_exchange(executor, start_or_wait, x);
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
    ls_piece_list_deinit(&x->pieces);
    ls_free(x->numbers);
    ls_free(x);
}

ls_status ls_exchange_finish(ls_exchange *x, ls_error *error)
{
    ls_queue_wait(x->queue);
    if (x->status != LS_OK) {
        if (error) *error = x->error;
        return x->status;
    }
    x->comm->task = "the end of the exchanges";
    return ls_collectives_finish(x->collectives, error);
}

void ls_exchange_trace(ls_exchange *x, ls_track *track)
{
    x->track = track;
}

int64_t ls_exchange_elements(const ls_exchange *x)
{
    return ls_collectives_elements(x->collectives);
}

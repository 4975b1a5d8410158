#include "engine/exchange/exchange.h"

#include <stdatomic.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail_point.h"
#include "base/queue.h"
#include "engine/exchange/collectives.h"
#include "engine/exchange/pieces.h"

enum { QUEUED_OPS = 4096 };

/* A thread that makes collective calls, one after the other. */
typedef struct lane {
    ls_exchange *exchange;
    ls_comm *comm;
    ls_collectives *collectives;
    ls_queue *queue;
    ls_piece_list pieces;
    ls_track *track;  /* NULL: nothing is recorded */
    long *numbers;    /* [buckets] in the queue, of the last collective of each */
    ls_status status; /* of the queue's thread: the first failure */
    ls_error error;
} lane;

/* With several hosts a lane of its own gathers, beside the sums: while one of the two waits for
 * the end of its bucket the other one uses the network. */
enum { SUMS, GATHERS };

struct ls_exchange {
    ls_executor *executor;
    const ls_program *program;
    const ls_plan *plan;
    _Atomic int failed; /* a lane has */
    lane lanes[LS_COMM_LANES];
    int lane_count;
};

/* A call that began at `begin`, in two spans: first it waits for the other ranks. */
static void record(const lane *l, const ls_op_call *call, const char *name, double begin,
                   double waited, int64_t elements)
{
    ls_span span = {.name = "wait for ranks",
                    .begin = begin,
                    .end = begin + waited,
                    .op = (int32_t)(call->op - l->exchange->program->ops)};
    ls_track_add(l->track, &span);
    span.name = name;
    span.begin = span.end;
    span.end = ls_seconds();
    span.bytes = elements * (int64_t)sizeof(float);
    ls_track_add(l->track, &span);
}

static ls_status gather(lane *l, const ls_op_call *call, const char *name, const ls_pieces *pieces,
                        ls_error *error)
{
    double begin = ls_seconds();
    int64_t before = ls_collectives_elements(l->collectives);
    LS_TRY(ls_collectives_gather(l->collectives, pieces, error));
    record(l, call, name, begin, ls_collectives_waited(l->collectives),
           ls_collectives_elements(l->collectives) - before);
    return LS_OK;
}

static ls_status sum(lane *l, const ls_op_call *call, const ls_step_roots *step,
                     const ls_pieces *pieces, ls_error *error)
{
    double begin = ls_seconds();
    int64_t before = ls_collectives_elements(l->collectives);
    LS_TRY(ls_collectives_sum(l->collectives, step, pieces, error));
    (void)ls_fail_point("exchange");
    record(l, call, "sum bucket", begin, ls_collectives_waited(l->collectives),
           ls_collectives_elements(l->collectives) - before);
    return LS_OK;
}

/* What this rank has sent may be gone after the wait: then nobody may still read it. */
static bool sends_transient(const ls_exchange *x, const ls_bucket *bucket)
{
    for (int32_t i = 0; i < bucket->count; i++)
        if (ls_plan_is_transient(x->plan->arena[bucket->values[i]])) return true;
    return false;
}

static lane *gathers_of(ls_exchange *x)
{
    return &x->lanes[x->lane_count == 1 ? SUMS : GATHERS];
}

static void push(lane *l, const ls_op_call *call)
{
    l->numbers[call->op->attributes.bucket] = ls_queue_push(l->queue, call);
}

static ls_status sum_bucket(lane *l, const ls_op_call *call, const ls_bucket *bucket,
                            ls_error *error)
{
    lane *gathers = gathers_of(l->exchange);
    const ls_step_roots *step = call->inputs[0].data;
    ls_pieces pieces = ls_pieces_to_sum(&l->pieces, bucket, step);
    bool summed = l == gathers && l != l->exchange->lanes; /* by the other lane */
    if (!summed) LS_TRY(sum(l, call, step, &pieces, error));
    if (call->op->attributes.owned) return LS_OK;
    if (l == gathers) return gather(l, call, "gather bucket", &pieces, error);
    push(gathers, call);
    return LS_OK;
}

static ls_status run_bucket(lane *l, const ls_op_call *call, ls_error *error)
{
    const ls_exchange *x = l->exchange;
    const ls_bucket *bucket = &x->program->buckets[call->op->attributes.bucket];
    l->comm->task = call->op->name;
    if (l != &x->lanes[SUMS]) l->comm->step = x->lanes[SUMS].comm->step;
    if (call->op->kind == LS_OP_EXCHANGE_GRADIENTS) {
        LS_TRY(sum_bucket(l, call, bucket, error));
    } else {
        ls_pieces pieces = ls_pieces_to_gather(&l->pieces, bucket);
        LS_TRY(gather(l, call, "gather parameters", &pieces, error));
    }
    return sends_transient(x, bucket) ? ls_collectives_finish(l->collectives, error) : LS_OK;
}

/* After a failure nothing more is moved, and ls_exchange_finish tells it. The other lane may be
 * waiting for ranks that wait for this one: an abort ends that. */
static void run_queued(void *context, const void *item)
{
    lane *l = context;
    ls_exchange *x = l->exchange;
    if (atomic_load(&x->failed)) return;
    l->status = run_bucket(l, item, &l->error);
    if (l->status == LS_OK) return;
    atomic_store(&x->failed, 1);
    if (x->lane_count > 1) l->comm->operations->abort(l->comm, &l->error);
}

/* What waits for a bucket waits for its sum, and then for the gather that this has pushed. */
static void start_or_wait(void *context, const ls_op_call *call)
{
    ls_exchange *x = context;
    bool sums = call->op->kind == LS_OP_EXCHANGE_GRADIENTS;
    if (call->op->kind != LS_OP_WAIT) {
        push(sums ? &x->lanes[SUMS] : gathers_of(x), call);
        return;
    }
    for (int i = 0; i < x->lane_count; i++)
        ls_queue_wait_for(x->lanes[i].queue, x->lanes[i].numbers[call->op->attributes.bucket]);
}

static ls_status open_lane(ls_exchange *x, lane *l, ls_error *error)
{
    void *arenas[LS_PLAN_ARENA_COUNT] = {0};
    for (ls_plan_arena arena = 0; arena < LS_PLAN_SCRATCH; arena++)
        arenas[arena] = ls_executor_arena(x->executor, arena);
    l->exchange = x;
    LS_TRY(LS_NEW(l->numbers, x->program->bucket_count + 1, "exchange", error));
    LS_TRY(ls_piece_list_init(&l->pieces, x->program, x->plan, x->executor, l->comm->size, error));
    LS_TRY(ls_queue_new(&l->queue, QUEUED_OPS, run_queued, l, error));
    return ls_collectives_new(&l->collectives, l->comm, ls_executor_device(x->executor), arenas,
                              error);
}

ls_status ls_exchange_new(ls_exchange **out, ls_comm *comm, ls_executor *executor,
                          const ls_program *program, const ls_plan *plan, ls_error *error)
{
    ls_exchange *x = NULL;
    ls_status status;
    LS_TRY(LS_NEW(x, 1, "exchange", error));
    x->executor = executor;
    x->program = program;
    x->plan = plan;
    x->lane_count = comm->hosts > 1 ? LS_COMM_LANES : 1;
    x->lanes[SUMS].comm = comm;
    if (x->lane_count > 1)
        LS_TRY_GOTO(status, comm->operations->second_lane(comm, &x->lanes[GATHERS].comm, error),
                    fail);
    for (int i = 0; i < x->lane_count; i++)
        LS_TRY_GOTO(status, open_lane(x, &x->lanes[i], error), fail);
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
    for (int i = 0; i < x->lane_count; i++) /* the sums' thread pushes gathers: it ends first */
        ls_queue_free(x->lanes[i].queue);
    for (int i = 0; i < x->lane_count; i++) {
        lane *l = &x->lanes[i];
        ls_collectives_free(l->collectives);
        ls_piece_list_deinit(&l->pieces);
        ls_free(l->numbers);
        if (i != SUMS) ls_comm_free(l->comm);
    }
    ls_free(x);
}

ls_status ls_exchange_finish(ls_exchange *x, ls_error *error)
{
    lane *sums = &x->lanes[SUMS];
    for (int i = 0; i < x->lane_count; i++)
        ls_queue_wait(x->lanes[i].queue);
    for (int i = 0; i < x->lane_count; i++) {
        const lane *l = &x->lanes[i];
        if (l->status == LS_OK) continue;
        if (error) *error = l->error;
        return l->status;
    }
    sums->comm->task = "the end of the exchanges";
    return ls_collectives_finish(sums->collectives, error);
}

void ls_exchange_trace(ls_exchange *x, ls_track *sums, ls_track *gathers)
{
    x->lanes[GATHERS].track = gathers;
    x->lanes[SUMS].track = sums;
}

int64_t ls_exchange_elements(const ls_exchange *x)
{
    int64_t elements = 0;
    for (int i = 0; i < x->lane_count; i++)
        elements += ls_collectives_elements(x->lanes[i].collectives);
    return elements;
}

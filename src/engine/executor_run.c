/* The walk over the prepared calls of a run, and who may look on: measures, spans, an observer. */
#include <string.h>

#include "base/clock.h"
#include "engine/executor_internal.h"
#include "engine/faults.h"

void ls_executor_measure(ls_executor *executor, ls_op_measure *measures)
{
    executor->measures = measures;
}

void ls_executor_observe(ls_executor *executor, ls_op_observer observer, void *context)
{
    executor->observer = observer;
    executor->observer_context = context;
}

static void poison(const ls_executor *executor, unsigned char *to, int64_t bytes)
{
    unsigned char piece[4096];
    memset(piece, 0xff, sizeof piece);
    for (int64_t at = 0; at < bytes; at += (int64_t)sizeof piece) {
        int64_t left = bytes - at;
        executor->device->operations->upload(executor->device, to + at, piece,
                                             left < (int64_t)sizeof piece ? left
                                                                          : (int64_t)sizeof piece);
    }
}

/* After the last op that uses it, a value's bytes are anyone's. What the last op of all writes is
 * read by the host. */
static void poison_ended(const ls_executor *executor, int32_t index)
{
    const ls_program *program = executor->program;
    for (ls_value_id id = 0; index + 1 < program->op_count && id < program->value_count; id++) {
        /* What is stored is read by the copy queue after the op that enqueues it. */
        bool transient = ls_plan_is_transient(executor->plan->arena[id]) &&
                         executor->plan->arena[id] != LS_PLAN_STAGING;
        if (!transient || executor->plan->last[id] != index || executor->plan->offset[id] < 0)
            continue;
        poison(executor, ls_executor_address(executor, id),
               ls_value_bytes(ls_value_of(program, id), &executor->plan->capacity));
    }
}

static void run_copy(ls_executor *executor, ls_prepared_op *prepared)
{
    if (prepared->call.op->kind == LS_OP_AWAIT)
        ls_offload_wait_for(executor->offload, executor->ops[prepared->fetch].number);
    else
        prepared->number = ls_offload_enqueue(executor->offload, &prepared->call);
}

void ls_executor_trace(ls_executor *executor, ls_track *track)
{
    executor->track = track;
}

ls_run_times ls_executor_times(const ls_executor *executor)
{
    return executor->times;
}

static ls_cost cost_of(const ls_executor *executor, int32_t index, const ls_extents *extents)
{
    const ls_op *op = &executor->program->ops[index];
    return executor->program->definitions[op->kind]->cost(executor->program, op, extents);
}

static bool runs(const ls_executor *executor, int32_t index, unsigned segments)
{
    return segments >> executor->program->ops[index].segment & 1;
}

/* By the device; collectives and copies are others' work. */
static bool is_computed(const ls_executor *executor, int32_t index)
{
    ls_op_kind kind = executor->program->ops[index].kind;
    return !ls_op_is_collective(kind) && !ls_op_is_copy(kind);
}

double ls_executor_flops(const ls_executor *executor, unsigned segments, const ls_extents *extents)
{
    double flops = 0;
    for (int32_t i = 0; i < executor->program->op_count; i++)
        if (runs(executor, i, segments) && is_computed(executor, i))
            flops += cost_of(executor, i, extents).flops;
    return flops;
}

static void run_exchange(ls_executor *executor, int32_t index)
{
    double start = ls_seconds();
    executor->exchange(executor->exchange_context, &executor->ops[index].call);
    if (index < executor->backward_begin)
        executor->times.exchange_before += ls_seconds() - start;
    else
        executor->times.exchange_after += ls_seconds() - start;
}

static void run_op(ls_executor *executor, int32_t index)
{
    ls_prepared_op *prepared = &executor->ops[index];
    (void)ls_fault_point(executor, "op");
    if (prepared->function)
        prepared->function(executor->device, &prepared->call);
    else if (ls_op_is_copy(prepared->call.op->kind))
        run_copy(executor, prepared);
    else
        run_exchange(executor, index);
    if (executor->observer) {
        executor->device->operations->wait(executor->device);
        if (!executor->observer(executor->observer_context, &prepared->call))
            executor->observer = NULL;
    }
    if (executor->poison) poison_ended(executor, index);
}

/* Waits for the op, so that the time is its own. */
static void run_measured(ls_executor *executor, int32_t index)
{
    ls_span span = {.op = index,
                    .tokens = (int32_t)executor->extents.size[LS_SYMBOL_TOKENS],
                    .samples = (int32_t)executor->extents.size[LS_SYMBOL_SEQUENCES]};
    span.begin = ls_seconds();
    run_op(executor, index);
    executor->device->operations->wait(executor->device);
    span.end = ls_seconds();
    ls_track_add(executor->track, &span);
    if (!executor->measures) return;
    ls_op_measure *measure = &executor->measures[index];
    ls_cost cost = cost_of(executor, index, &executor->extents);
    measure->seconds += span.end - span.begin;
    measure->flops += cost.flops;
    measure->bytes += cost.bytes;
    measure->runs++;
}

void ls_executor_run(ls_executor *executor, unsigned segments, const ls_extents *extents)
{
    bool measured = executor->measures || ls_track_is_on(executor->track);
    executor->extents = *extents;
    executor->extents.size[LS_SYMBOL_NONE] = 1;
    executor->times = (ls_run_times){0};
    for (int32_t i = 0; i < executor->program->op_count; i++) {
        if (!runs(executor, i, segments)) continue;
        if ((segments & LS_RUN_COLLECTIVES) && is_computed(executor, i)) continue;
        if (i >= executor->backward_begin && executor->times.backward_began == 0) {
            executor->device->operations->wait(executor->device);
            executor->times.backward_began = ls_seconds();
        }
        if (measured)
            run_measured(executor, i);
        else
            run_op(executor, i);
    }
    executor->device->operations->wait(executor->device);
    if (executor->times.backward_began == 0) executor->times.backward_began = ls_seconds();
}

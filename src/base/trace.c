#include "base/trace.h"

#include "base/alloc.h"

struct ls_trace {
    atomic_bool on;     /* a step goes on */
    atomic_bool window; /* for the data tracks */
    bool ended;         /* a step found no room */
    int ranks;
    int64_t steps;    /* that are recorded whole */
    ls_track *tracks; /* [ranks][LS_TRACE_THREAD_COUNT] */
};

static bool belongs_to_steps(int index)
{
    return index % LS_TRACE_THREAD_COUNT != LS_TRACE_DATA;
}

ls_status ls_trace_new(ls_trace **out, int ranks, int64_t capacity, ls_error *error)
{
    ls_trace *trace = NULL;
    ls_status status;
    int count = ranks * LS_TRACE_THREAD_COUNT;
    LS_TRY(LS_NEW(trace, 1, "trace", error));
    atomic_init(&trace->on, false);
    atomic_init(&trace->window, false);
    trace->ranks = ranks;
    LS_TRY_GOTO(status, LS_NEW(trace->tracks, count, "trace", error), fail);
    for (int i = 0; i < count; i++) {
        ls_track *track = &trace->tracks[i];
        track->on = belongs_to_steps(i) ? &trace->on : &trace->window;
        track->capacity = capacity < INT32_MAX ? (int32_t)capacity : INT32_MAX;
        LS_TRY_GOTO(status, LS_NEW(track->spans, track->capacity, "trace", error), fail);
    }
    *out = trace;
    return LS_OK;
fail:
    ls_trace_free(trace);
    return status;
}

void ls_trace_free(ls_trace *trace)
{
    if (!trace) return;
    for (int i = 0; trace->tracks && i < trace->ranks * LS_TRACE_THREAD_COUNT; i++)
        ls_free(trace->tracks[i].spans);
    ls_free(trace->tracks);
    ls_free(trace);
}

ls_track *ls_trace_track(ls_trace *trace, int rank, ls_trace_thread thread)
{
    return trace ? &trace->tracks[rank * LS_TRACE_THREAD_COUNT + (int)thread] : NULL;
}

void ls_trace_step_begin(ls_trace *trace)
{
    if (!trace || trace->ended) return;
    for (int i = 0; i < trace->ranks * LS_TRACE_THREAD_COUNT; i++)
        if (belongs_to_steps(i)) trace->tracks[i].step_begin = trace->tracks[i].count;
    atomic_store(&trace->window, true);
    atomic_store(&trace->on, true);
}

bool ls_trace_step_end(ls_trace *trace)
{
    bool full = false;
    if (!trace || trace->ended) return false;
    atomic_store(&trace->on, false);
    for (int i = 0; i < trace->ranks * LS_TRACE_THREAD_COUNT; i++)
        if (belongs_to_steps(i)) full |= trace->tracks[i].full;
    if (full) ls_trace_close(trace);
    if (!full) trace->steps++;
    if (!full || trace->steps == 0) return !full;
    for (int i = 0; i < trace->ranks * LS_TRACE_THREAD_COUNT; i++)
        if (belongs_to_steps(i)) trace->tracks[i].count = trace->tracks[i].step_begin;
    return false;
}

void ls_trace_close(ls_trace *trace)
{
    trace->ended = true;
    atomic_store(&trace->window, false);
}

void ls_track_add(ls_track *track, const ls_span *span)
{
    if (!ls_track_is_on(track)) return;
    int32_t count = atomic_load_explicit(&track->count, memory_order_relaxed);
    if (count == track->capacity) {
        track->full = true;
        return;
    }
    track->spans[count] = *span;
    atomic_store_explicit(&track->count, count + 1, memory_order_release);
}

#include "engine/snapshot.h"

#include "base/alloc.h"
#include "base/threads.h"

enum { PIECE = 1 << 18, ALIGNMENT = LS_PLAN_ALIGNMENT / sizeof(float) };

ls_status ls_snapshot_new(ls_snapshot *snapshot, const ls_state *state, ls_executor *executor,
                          ls_error *error)
{
    ls_status status;
    void *elements = NULL;
    ls_device *device = ls_executor_device(executor);
    *snapshot = (ls_snapshot){.executor = executor, .state = state};
    LS_TRY_GOTO(status, LS_NEW(snapshot->offsets, state->count + 1, "snapshot", error), fail);
    LS_TRY_GOTO(status,
                device->operations->allocate(device, state->assembly->plan.bytes[LS_PLAN_SNAPSHOT],
                                             true, ls_plan_arena_name(LS_PLAN_SNAPSHOT), &elements,
                                             error),
                fail);
    snapshot->elements = elements;
    int64_t offset = 0;
    for (size_t i = 0; i < state->count; i++) {
        ls_state_range part =
            ls_state_saved(state->assembly, state->tensors[i].value, ls_executor_rank(executor));
        snapshot->offsets[i] = offset;
        offset += (part.end - part.begin + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    snapshot->offsets[state->count] = offset;
    return LS_OK;
fail:
    ls_snapshot_deinit(snapshot);
    return status;
}

void ls_snapshot_deinit(ls_snapshot *snapshot)
{
    if (snapshot->elements) {
        ls_device *device = ls_executor_device(snapshot->executor);
        device->operations->release(device, snapshot->elements);
    }
    ls_free(snapshot->offsets);
    *snapshot = (ls_snapshot){0};
}

/* Pieces are cut at the snapshot's own places, so that all threads have as much to do. */
static void copy_piece(void *context, int64_t piece, int thread)
{
    const ls_snapshot *snapshot = context;
    const ls_state *state = snapshot->state;
    int64_t begin = piece * PIECE, end = begin + PIECE;
    (void)thread;
    for (size_t i = 0; i < state->count && snapshot->offsets[i] < end; i++) {
        if (snapshot->offsets[i + 1] <= begin) continue;
        ls_value_id value = state->tensors[i].value;
        ls_state_range part =
            ls_state_saved(state->assembly, value, ls_executor_rank(snapshot->executor));
        int64_t from = begin > snapshot->offsets[i] ? begin - snapshot->offsets[i] : 0;
        int64_t to = end - snapshot->offsets[i];
        if (to > part.end - part.begin) to = part.end - part.begin;
        if (from < to)
            ls_state_read(snapshot->executor, state->assembly, value, part.begin + from, to - from,
                          snapshot->elements + snapshot->offsets[i] + from);
    }
}

void ls_snapshot_take(ls_snapshot *snapshot)
{
    int64_t pieces = (snapshot->offsets[snapshot->state->count] + PIECE - 1) / PIECE;
    ls_threads_run(ls_cpu_device_pool(ls_executor_device(snapshot->executor)), pieces, copy_piece,
                   snapshot);
}

const float *ls_snapshot_part(const ls_snapshot *snapshot, size_t index)
{
    return snapshot->elements + snapshot->offsets[index];
}

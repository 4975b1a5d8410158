#include "engine/checkpoint/snapshot.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/threads.h"

enum { PIECE = 1 << 18, TOUCH_BYTES = 1 << 22, ALIGNMENT = LS_PLAN_ALIGNMENT / sizeof(float) };

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
                                             LS_MEMORY_DENSE, ls_plan_arena_name(LS_PLAN_SNAPSHOT),
                                             &elements, error),
                fail);
    snapshot->elements = elements;
    int64_t offset = 0;
    for (size_t i = 0; i < state->count; i++) {
        ls_range part =
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

void ls_snapshot_touch(const ls_snapshot *snapshot)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    int64_t bytes = snapshot->offsets[snapshot->state->count] * (int64_t)sizeof(float);
    uintptr_t begin = (uintptr_t)snapshot->elements, end = begin + (uintptr_t)bytes;
    begin = (begin + page - 1) / page * page;
    end = end / page * page;
    for (uintptr_t next; begin < end; begin = next) {
        next = end - begin > TOUCH_BYTES ? begin + TOUCH_BYTES : end;
        /* A system that cannot do it does it later. */
        (void)madvise((void *)begin, next - begin, MADV_POPULATE_WRITE);
    }
}

typedef struct copy_work {
    const ls_snapshot *snapshot;
    _Atomic ls_status status;
    ls_error *error; /* of the piece that failed first */
} copy_work;

static ls_status copy_part(const ls_snapshot *snapshot, size_t index, int64_t from, int64_t to,
                           ls_error *error)
{
    const ls_state *state = snapshot->state;
    ls_value_id value = state->tensors[index].value;
    ls_range part = ls_state_saved(state->assembly, value, ls_executor_rank(snapshot->executor));
    if (from < 0) from = 0;
    if (to > part.end - part.begin) to = part.end - part.begin;
    if (from >= to) return LS_OK;
    return ls_executor_get(snapshot->executor, value, part.begin + from, to - from,
                           snapshot->elements + snapshot->offsets[index] + from, error);
}

/* Pieces are cut at the snapshot's own places, so that all threads have as much to do. */
static void copy_piece(void *context, int64_t piece, int thread)
{
    copy_work *work = context;
    const int64_t *offsets = work->snapshot->offsets;
    int64_t begin = piece * PIECE, end = begin + PIECE;
    (void)thread;
    for (size_t i = 0; i < work->snapshot->state->count && offsets[i] < end; i++) {
        ls_error error;
        ls_status none = LS_OK;
        if (offsets[i + 1] <= begin) continue;
        ls_status status =
            copy_part(work->snapshot, i, begin - offsets[i], end - offsets[i], &error);
        if (status != LS_OK && atomic_compare_exchange_strong(&work->status, &none, status))
            *work->error = error;
    }
}

ls_status ls_snapshot_take(ls_snapshot *snapshot, ls_error *error)
{
    ls_error failure;
    copy_work work = {.snapshot = snapshot, .status = LS_OK, .error = &failure};
    int64_t pieces = (snapshot->offsets[snapshot->state->count] + PIECE - 1) / PIECE;
    /* What is offloaded is read by one thread at a time. */
    if (ls_executor_offload(snapshot->executor))
        for (int64_t piece = 0; piece < pieces; piece++)
            copy_piece(&work, piece, 0);
    else
        ls_threads_run(ls_cpu_device_pool(ls_executor_device(snapshot->executor)), pieces,
                       copy_piece, &work);
    if (work.status != LS_OK && error) *error = failure;
    return work.status;
}

const float *ls_snapshot_part(const ls_snapshot *snapshot, size_t index)
{
    return snapshot->elements + snapshot->offsets[index];
}

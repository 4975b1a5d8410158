/* A copy of what one rank saves of parameters and moments, taken between two steps: a checkpoint is
 * written from it while training goes on. */
#ifndef LS_ENGINE_SNAPSHOT_H
#define LS_ENGINE_SNAPSHOT_H

#include "engine/state.h"

typedef struct ls_snapshot {
    ls_executor *executor;
    const ls_state *state;
    float *elements;  /* of the device's memory: the plan's LS_PLAN_SNAPSHOT bytes */
    int64_t *offsets; /* [state->count] where each tensor's part begins, in elements */
} ls_snapshot;

ls_status ls_snapshot_new(ls_snapshot *snapshot, const ls_state *state, ls_executor *executor,
                          ls_error *error) LS_MUST_CHECK;
void ls_snapshot_deinit(ls_snapshot *snapshot); /* safe on an all-zero one and twice */

/* Have the system find its pages, on the calling thread and beside anything: the first copy then
 * takes no longer than others. */
void ls_snapshot_touch(const ls_snapshot *snapshot);
/* Copy, on all threads of the rank's device. Allocates nothing. Fails where what is offloaded
 * cannot be read. */
ls_status ls_snapshot_take(ls_snapshot *snapshot, ls_error *error) LS_MUST_CHECK;
/* The rank's part of tensor `index`, see ls_state_saved. */
const float *ls_snapshot_part(const ls_snapshot *snapshot, size_t index);

#endif

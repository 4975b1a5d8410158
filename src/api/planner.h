/* What one layout of a run after the other would take and move, without allocating it. */
#ifndef LS_API_PLANNER_H
#define LS_API_PLANNER_H

#include "api/candidates.h"
#include "api/session.h"
#include "engine/forecast.h"
#include "engine/memory.h"

typedef struct ls_plan_row {
    ls_candidate candidate;
    char refused[1000]; /* why there is no such run; empty: there is, and the rest is filled in */
    int64_t bytes[LS_PLAN_ARENA_COUNT], evaluation_bytes, total; /* of a device */
    int64_t samples_per_pass, passes, elements, longest_row;
    int gradient_slots;
    bool fits;               /* total is within the budget */
    ls_step_seconds seconds; /* with rates */
} ls_plan_row;

typedef struct ls_planner {
    const ls_session *session;
    ls_run_memory_options base;    /* what all rows share */
    double row_tokens;             /* of a usual row */
    const ls_machine_rates *rates; /* NULL: no seconds */
    ls_device *device;             /* asked for its scratch; of `threads` threads */
    int threads;
} ls_planner;

/* `base` of ls_training_memory_options; everything is borrowed. */
void ls_planner_init(ls_planner *planner, const ls_session *session,
                     const ls_run_memory_options *base);
void ls_planner_deinit(ls_planner *planner);

/* What a run cannot be is no error: row->refused says why. */
ls_status ls_planner_row(ls_planner *planner, ls_plan_row *row, const ls_candidate *candidate,
                         ls_error *error) LS_MUST_CHECK;

/* Bytes of a row that the table names together: all but parameters, gradients, optimizer state,
 * activations and communication buffers. */
int64_t ls_plan_row_others(const ls_plan_row *row);
double ls_plan_row_seconds(const ls_plan_row *row);

#endif

/* What the files of the executor share: executor.c takes the memory, prepares the calls and knows
 * where values lie; executor_run.c walks the calls. */
#ifndef LS_ENGINE_EXECUTOR_INTERNAL_H
#define LS_ENGINE_EXECUTOR_INTERNAL_H

#include "engine/executor.h"

typedef struct ls_prepared_op {
    ls_device_function function; /* NULL: a collective or a copy */
    int32_t fetch;               /* await: the op that it waits for */
    long number;                 /* fetch: of its last run, in the copy queue */
    ls_op_call call;
} ls_prepared_op;

struct ls_executor {
    const ls_program *program;
    const ls_plan *plan;
    ls_device *device;
    const ls_executor *host;
    int rank;
    bool poison;
    void *arenas[LS_PLAN_ARENA_COUNT];
    ls_prepared_op *ops;
    const void **bound;  /* [values] address of each host value */
    ls_offload *offload; /* NULL: everything is on the device */
    ls_exchange_function exchange;
    void *exchange_context;
    ls_extents extents;      /* of the run that goes on; the calls point here */
    ls_op_measure *measures; /* NULL: nothing is measured */
    ls_track *track;         /* NULL: nothing is recorded */
    ls_op_observer observer; /* NULL: nobody looks */
    void *observer_context;
    int32_t backward_begin; /* first backward op, op_count if there is none */
    ls_run_times times;
};

#endif

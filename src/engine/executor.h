/* Runs a planned program on a device: takes the memory, prepares the calls once, then walks them.
 * A run allocates nothing and decides nothing. */
#ifndef LS_ENGINE_EXECUTOR_H
#define LS_ENGINE_EXECUTOR_H

#include "devices/device.h"
#include "program/plan.h"

typedef struct ls_executor ls_executor;

typedef struct ls_executor_options {
    const ls_program *program; /* borrowed, like the plan and the device */
    const ls_plan *plan;
    ls_device *device;
    ls_device_limits limits; /* for the device's scratch; taken unless `host` has done it */
    /* Another executor on the same device whose parameters, activations and scratch this one uses
     * as well (never at the same time): evaluation beside training. Its parameters must be the same
     * ones and its other arenas at least as large. */
    const ls_executor *host;
    int rank; /* among those that run the program together */
} ls_executor_options;

ls_status ls_executor_new(ls_executor **out, const ls_executor_options *options,
                          ls_error *error) LS_MUST_CHECK;
void ls_executor_free(ls_executor *executor); /* NULL is allowed */

ls_device *ls_executor_device(const ls_executor *executor);
int ls_executor_rank(const ls_executor *executor);

/* Device address of a value, NULL if it has none. */
void *ls_executor_address(const ls_executor *executor, ls_value_id value);
/* Base address of an arena. Ranks with the same plan have a value at the same distance from it. */
void *ls_executor_arena(const ls_executor *executor, ls_plan_arena arena);
/* Give a host value its address, once, before the first run. LS_NO_VALUE does nothing. */
void ls_executor_bind(ls_executor *executor, ls_value_id value, void *address);

/* What ls_executor_bind gave a host value. */
const void *ls_executor_bound(const ls_executor *executor, ls_value_id value);

/* Copy whole values between host and device, at the given pass's sizes. */
void ls_executor_write(ls_executor *executor, ls_value_id value, const void *from,
                       const ls_extents *extents);
void ls_executor_read(ls_executor *executor, ls_value_id value, void *to,
                      const ls_extents *extents);

/* What an op has taken so far. */
typedef struct ls_op_measure {
    double seconds, flops, bytes;
    int64_t runs;
} ls_op_measure;

/* From now on add to measures[op] each time op `op` of the program runs; NULL stops it. The queue
 * is waited for after each op, so that a time is the op's own. */
void ls_executor_measure(ls_executor *executor, ls_op_measure *measures);

/* Called with each op of a run after it is done, until it says false; NULL stops it. */
typedef bool (*ls_op_observer)(void *context, const ls_op_call *call);
void ls_executor_observe(ls_executor *executor, ls_op_observer observer, void *context);

/* Who runs the exchanges: called in their place in the order of ops, it must only enqueue. */
typedef void (*ls_exchange_function)(void *context, const ls_op_call *call);
void ls_executor_set_exchange(ls_executor *executor, ls_exchange_function function, void *context);

/* Run the ops of some segments in their order, and wait for all but the exchanges. Sizes must be
 * within the plan's capacity. */
enum {
    LS_RUN_PASS = 1u << LS_SEGMENT_PASS,
    LS_RUN_EXCHANGE = 1u << LS_SEGMENT_EXCHANGE,
    LS_RUN_UPDATE = 1u << LS_SEGMENT_UPDATE,
};
void ls_executor_run(ls_executor *executor, unsigned segments, const ls_extents *extents);

#endif

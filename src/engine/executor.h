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
} ls_executor_options;

ls_status ls_executor_new(ls_executor **out, const ls_executor_options *options,
                          ls_error *error) LS_MUST_CHECK;
void ls_executor_free(ls_executor *executor); /* NULL is allowed */

ls_device *ls_executor_device(const ls_executor *executor);

/* Device address of a value, NULL if it has none. */
void *ls_executor_address(const ls_executor *executor, ls_value_id value);
/* Give a host value its address, once, before the first run. LS_NO_VALUE does nothing. */
void ls_executor_bind(ls_executor *executor, ls_value_id value, void *address);

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

/* Run the ops of one segment and wait for them. Sizes must be within the plan's capacity. */
void ls_executor_run(ls_executor *executor, ls_segment segment, const ls_extents *extents);

#endif

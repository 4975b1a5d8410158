/* Runs a planned program on a device: takes the memory, prepares the calls once, then walks them.
 * A run allocates nothing and decides nothing. */
#ifndef LS_ENGINE_EXECUTOR_H
#define LS_ENGINE_EXECUTOR_H

#include "base/trace.h"
#include "devices/device.h"
#include "engine/offload.h"
#include "program/plan.h"

typedef struct ls_executor ls_executor;

typedef struct ls_executor_options {
    const ls_program *program; /* borrowed, like the plan and the device */
    const ls_plan *plan;
    ls_device *device;
    ls_device_limits limits; /* for the device's scratch; taken unless `host` has done it */
    unsigned shared_arenas;  /* bit a: ranks in other processes read arena a */
    /* Another executor on the same device whose parameters, activations and scratch this one uses
     * as well (never at the same time): evaluation beside training. Its parameters must be the same
     * ones and its other arenas at least as large. */
    const ls_executor *host;
    const char *offload_folder; /* of a program with values in a file */
    int rank; /* whose shards it holds, in a program that is divided among ranks */
    /* For tests: bytes of values that are not alive are not numbers, so that a use of them shows.
     */
    bool poison;
} ls_executor_options;

ls_status ls_executor_new(ls_executor **out, const ls_executor_options *options,
                          ls_error *error) LS_MUST_CHECK;
void ls_executor_free(ls_executor *executor); /* NULL is allowed */

ls_device *ls_executor_device(const ls_executor *executor);
int ls_executor_rank(const ls_executor *executor);

/* Device address of a value, NULL if it has none: of a shard, that of the first element that the
 * rank owns. */
void *ls_executor_address(const ls_executor *executor, ls_value_id value);
/* Base address of an arena. Ranks with the same plan have a value at the same distance from it. */
void *ls_executor_arena(const ls_executor *executor, ls_plan_arena arena);
/* Give a host value its address, once, before the first run. LS_NO_VALUE does nothing. */
void ls_executor_bind(ls_executor *executor, ls_value_id value, void *address);

/* What ls_executor_bind gave a host value. */
const void *ls_executor_bound(const ls_executor *executor, ls_value_id value);

/* What is not on the device, NULL if everything is. */
ls_offload *ls_executor_offload(const ls_executor *executor);
/* The first failure of a copy so far: what the ops after it have computed is worth nothing. */
ls_status ls_executor_check(const ls_executor *executor, ls_error *error) LS_MUST_CHECK;

/* Copy whole values between host and device, at the given pass's sizes. */
void ls_executor_write(ls_executor *executor, ls_value_id value, const void *from,
                       const ls_extents *extents);
void ls_executor_read(ls_executor *executor, ls_value_id value, void *to,
                      const ls_extents *extents);

/* `count` elements from element `first` on of a parameter or a moment, all of which the rank holds
 * (ls_executor_held), wherever they lie. */
ls_status ls_executor_get(ls_executor *executor, ls_value_id value, int64_t first, int64_t count,
                          float *to, ls_error *error) LS_MUST_CHECK;
ls_status ls_executor_put(ls_executor *executor, ls_value_id value, int64_t first, int64_t count,
                          const float *from, ls_error *error) LS_MUST_CHECK;

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

/* From now on a span on `track` for each op that runs, waited for as above; NULL stops it. */
void ls_executor_trace(ls_executor *executor, ls_track *track);

/* Of the last ls_executor_run: when the first backward op began (the end, if none did), and the
 * time that was spent in exchange calls before and after that. */
typedef struct ls_run_times {
    double backward_began; /* ls_seconds */
    double exchange_before, exchange_after;
} ls_run_times;
ls_run_times ls_executor_times(const ls_executor *executor);

/* Floating-point operations of a run of some segments, by the ops' own costs. */
double ls_executor_flops(const ls_executor *executor, unsigned segments, const ls_extents *extents);

/* The elements of `value` (a parameter, a gradient or a moment) that lie at its address: all, or of
 * a shard those that the rank owns. */
ls_range ls_executor_held(const ls_executor *executor, ls_value_id value);

/* Who runs the collectives: called in their place in the order of ops, it must only enqueue, but
 * for a wait. */
typedef void (*ls_exchange_function)(void *context, const ls_op_call *call);
void ls_executor_set_exchange(ls_executor *executor, ls_exchange_function function, void *context);

/* Run the ops of some segments in their order, and wait for all but the collectives and what the
 * copy queue has to store. Sizes must be within the plan's capacity. With LS_RUN_COLLECTIVES the
 * rank has no samples in this pass: only what it does together with others runs. */
enum {
    LS_RUN_PASS = 1u << LS_SEGMENT_PASS,
    LS_RUN_EXCHANGE = 1u << LS_SEGMENT_EXCHANGE,
    LS_RUN_UPDATE = 1u << LS_SEGMENT_UPDATE,
    LS_RUN_COLLECTIVES = 1u << LS_SEGMENT_COUNT,
};
void ls_executor_run(ls_executor *executor, unsigned segments, const ls_extents *extents);

#endif

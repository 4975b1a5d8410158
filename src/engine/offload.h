/* What a program keeps in host memory or in a file, and the queue that copies blocks of it to the
 * device and back while the update goes on. */
#ifndef LS_ENGINE_OFFLOAD_H
#define LS_ENGINE_OFFLOAD_H

#include "devices/device.h"
#include "program/plan.h"

typedef struct ls_offload ls_offload;

/* Takes memory and file at once: LS_NO_MEMORY, or LS_IO that names the folder. Program, plan and
 * device are borrowed. `folder` is for a file, if the plan has one: it is gone when the run ends.
 */
ls_status ls_offload_new(ls_offload **out, const ls_program *program, const ls_plan *plan, int rank,
                         ls_device *device, const char *folder, ls_error *error) LS_MUST_CHECK;
void ls_offload_free(ls_offload *offload); /* after what was enqueued is done; NULL is allowed */

/* Enqueue a fetch or a store, which are done in their order; call->owned is the part of the runs.
 * Returns its number, to wait for. After a failure nothing more is copied. */
long ls_offload_enqueue(ls_offload *offload, const ls_op_call *call);
void ls_offload_wait_for(ls_offload *offload, long number);
/* The first failure so far: what is on the device may be wrong then. */
ls_status ls_offload_check(ls_offload *offload, ls_error *error) LS_MUST_CHECK;

/* `count` elements of an offloaded value from element `first` on, all of which the rank owns, after
 * all that was enqueued. */
ls_status ls_offload_read(ls_offload *offload, ls_value_id value, int64_t first, int64_t count,
                          float *into, ls_error *error) LS_MUST_CHECK;
ls_status ls_offload_write(ls_offload *offload, ls_value_id value, int64_t first, int64_t count,
                           const float *from, ls_error *error) LS_MUST_CHECK;

/* Bytes that were taken in host memory (LS_PLAN_HOST_MEMORY) or in the file (LS_PLAN_FILE). */
int64_t ls_offload_bytes(const ls_offload *offload, ls_plan_arena arena);
/* Whether the file's blocks pass by the page cache, as they should; true without a file. */
bool ls_offload_is_direct(const ls_offload *offload);

#endif

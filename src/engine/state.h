/* What training carries from step to step: parameters and their moments, as whole tensors with
 * names, wherever their elements lie. Saving and comparing go through here, so that who saves what
 * is known in one place; reading and writing elements is ls_executor_get and ls_executor_put. */
#ifndef LS_ENGINE_STATE_H
#define LS_ENGINE_STATE_H

#include "base/arena.h"
#include "engine/assembly.h"
#include "engine/executor.h"

/* Numbers travel between devices and files in pieces of so many. */
enum { LS_STATE_PIECE = 1 << 16 };

/* The rank's part of a file that all ranks write together, in elements of the whole tensor: what it
 * owns of a divided one, an even part of one that all hold. The parts of all ranks cover it once.
 */
ls_range ls_state_saved(const ls_assembly *assembly, ls_value_id tensor, int rank);

/* The ranks of this process. */
typedef struct ls_state_owners {
    const ls_assembly *assembly;
    ls_executor *const *executors; /* [count] */
    int count;
} ls_state_owners;

typedef struct ls_state_tensor {
    const char *name; /* in a file: of a moment "<parameter>.first_moment" */
    ls_value_id value;
    int64_t elements;
} ls_state_tensor;

/* Parameters in the model's order, then the moments in the program's. */
typedef struct ls_state {
    const ls_assembly *assembly;
    ls_state_tensor *tensors;
    size_t count, parameters; /* the first `parameters` of `count` */
    ls_arena names;
} ls_state;

ls_status ls_state_list(ls_state *state, const ls_assembly *assembly,
                        ls_error *error) LS_MUST_CHECK;
void ls_state_deinit(ls_state *state); /* safe on an all-zero one and twice */

/* Bytes of a copy of what the rank with the largest part saves, each tensor's 64-byte aligned. */
int64_t ls_state_snapshot_bytes(const ls_assembly *assembly);

#endif

/* What training carries from step to step: parameters and their moments, as whole tensors with
 * names, wherever their elements lie. Saving, loading and comparing go through here, so that who
 * holds what is known in one place. Today every rank holds all of every tensor. */
#ifndef LS_ENGINE_STATE_H
#define LS_ENGINE_STATE_H

#include "engine/assembly.h"
#include "engine/executor.h"

/* Elements [begin, end) of a tensor in row-major order. */
typedef struct ls_state_range {
    int64_t begin, end;
} ls_state_range;

/* What a rank has in its memory, and needs when a run is resumed. */
ls_state_range ls_state_held(const ls_assembly *assembly, ls_value_id tensor, int rank);
/* The rank's part of a file that all ranks write together: inside what it holds; the parts of all
 * ranks cover the tensor once. */
ls_state_range ls_state_saved(const ls_assembly *assembly, ls_value_id tensor, int rank);

/* Elements [first, first + count) of the tensor, which the executor's rank must hold, into host
 * memory. */
void ls_state_read(ls_executor *executor, const ls_assembly *assembly, ls_value_id tensor,
                   int64_t first, int64_t count, float *into);
/* The reverse; what the rank does not hold is passed over. */
void ls_state_write(ls_executor *executor, const ls_assembly *assembly, ls_value_id tensor,
                    int64_t first, int64_t count, const float *from);

/* Numbers travel between devices and files in pieces of so many. */
enum { LS_STATE_PIECE = 1 << 16 };

/* The ranks of this process. */
typedef struct ls_state_owners {
    const ls_assembly *assembly;
    ls_executor *const *executors; /* [count] */
    int count;
    float *buffer; /* [LS_STATE_PIECE]: a run that had the memory to train has it to save */
} ls_state_owners;

/* --- the list of them ------------------------------------------------------------------------ */

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

/* A safetensors file of a run's tensors, written by all ranks of all processes together: each
 * writes its parts at their places. The layout of ranks is not in it. */
#ifndef LS_ENGINE_TENSOR_FILE_H
#define LS_ENGINE_TENSOR_FILE_H

#include <stdatomic.h>

#include "base/staging.h"
#include "engine/snapshot.h"
#include "engine/state.h"
#include "formats/safetensors.h"

typedef struct ls_tensor_file {
    ls_sized_file file;
    ls_safetensors_layout layout;
    const ls_state *state;
    size_t first, count; /* tensors first .. first + count - 1 of the state */
} ls_tensor_file;

/* Made with room for all of it, the header written. */
ls_status ls_tensor_file_create(ls_tensor_file *file, const char *path, const ls_state *state,
                                size_t first, size_t count, ls_error *error) LS_MUST_CHECK;
/* The same file, made by another process. */
ls_status ls_tensor_file_open(ls_tensor_file *file, const char *path, const ls_state *state,
                              size_t first, size_t count, ls_error *error) LS_MUST_CHECK;
/* One rank's parts: from its snapshot, or else (NULL) from its device, through `buffer`
 * [LS_STATE_PIECE]. `done` (may be NULL) is
 * raised by the bytes as they are written. Ranks may write at the same time. */
ls_status ls_tensor_file_write(const ls_tensor_file *file, ls_executor *executor,
                               const ls_snapshot *snapshot, float *buffer, atomic_llong *done,
                               ls_error *error) LS_MUST_CHECK;
ls_status ls_tensor_file_finish(ls_tensor_file *file,
                                ls_error *error) LS_MUST_CHECK; /* sync, close */
void ls_tensor_file_deinit(ls_tensor_file *file); /* safe on an all-zero one and twice */

#endif

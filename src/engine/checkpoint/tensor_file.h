/* A safetensors file of a run's tensors. The layout of ranks is not in it. One process writes it
 * from its beginning to its end, with its checksums; several write it together, the parts of their
 * ranks at their places. */
#ifndef LS_ENGINE_TENSOR_FILE_H
#define LS_ENGINE_TENSOR_FILE_H

#include <stdatomic.h>

#include "base/staging.h"
#include "base/stream_file.h"
#include "engine/checkpoint/snapshot.h"
#include "engine/state.h"
#include "formats/safetensors.h"

typedef struct ls_tensor_file {
    ls_sized_file file;
    ls_safetensors_layout layout;
    const ls_state *state;
    size_t first, count; /* tensors first .. first + count - 1 of the state */
    /* In the file's order; the checksums are there once it is streamed. */
    size_t *order; /* [count] */
    const char **names;
    ls_checksum_part *parts;
    char checksum[LS_CHECKSUM_CHARACTERS]; /* of the file; "" if it was not streamed */
} ls_tensor_file;

/* Made with room for all of it. */
ls_status ls_tensor_file_create(ls_tensor_file *file, const char *path, const ls_state *state,
                                size_t first, size_t count, ls_error *error) LS_MUST_CHECK;
/* The same file, made by another process. */
ls_status ls_tensor_file_open(ls_tensor_file *file, const char *path, const ls_state *state,
                              size_t first, size_t count, ls_error *error) LS_MUST_CHECK;
/* All of it, by the only process: from the snapshots of its ranks, or else (NULL) their devices.
 * `done` is raised by the bytes of tensors as they are handed on. */
ls_status ls_tensor_file_stream(ls_tensor_file *file, const ls_state_owners *owners,
                                const ls_snapshot *snapshots, ls_stream *stream, atomic_llong *done,
                                ls_error *error) LS_MUST_CHECK;
/* By several: the first one writes the header. */
ls_status ls_tensor_file_write_header(const ls_tensor_file *file, ls_error *error) LS_MUST_CHECK;
/* One rank's parts: from its snapshot, or else (NULL) from its device, through `buffer`
 * [LS_STATE_PIECE]. `done` is raised by the bytes as they are written. Ranks may write at the same
 * time. */
ls_status ls_tensor_file_write(const ls_tensor_file *file, ls_executor *executor,
                               const ls_snapshot *snapshot, float *buffer, atomic_llong *done,
                               ls_error *error) LS_MUST_CHECK;
ls_status ls_tensor_file_finish(ls_tensor_file *file,
                                ls_error *error) LS_MUST_CHECK; /* sync, close */
void ls_tensor_file_deinit(ls_tensor_file *file); /* safe on an all-zero one and twice */

#endif

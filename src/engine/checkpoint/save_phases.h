/* What saver.c and save_phases.c share: a saver's memory, and the phases of one save. */
#ifndef LS_ENGINE_SAVE_PHASES_H
#define LS_ENGINE_SAVE_PHASES_H

#include <stdatomic.h>

#include "base/queue.h"
#include "base/staging.h"
#include "base/stream_file.h"
#include "engine/checkpoint/saver.h"
#include "engine/checkpoint/tensor_file.h"

enum { LS_SAVED_FILES = 2 }; /* the model's, the optimizer's */

typedef enum ls_save_phase { LS_SAVE_MAKE, LS_SAVE_WRITE, LS_SAVE_FINISH } ls_save_phase;

struct ls_saver {
    ls_saver_options options;
    ls_state state;
    ls_snapshot *snapshots; /* [owners.count]; NULL: none */
    ls_queue *queue;        /* with snapshots, or with other processes */
    ls_stream *stream;      /* of a process that is alone */
    float *buffer;          /* [LS_STATE_PIECE], of one that is not */
    bool first, alone;      /* of all processes */
    int64_t folder_maker;   /* number of the first process, for the folder's temporary name */

    bool saving;
    /* The save that goes on, or went last. Belongs to the queue's thread while `busy`. */
    ls_checkpoint_contents contents;
    bool from_snapshot;
    ls_save_phase phase;
    ls_staging staging; /* of the first process */
    ls_tensor_file files[LS_SAVED_FILES];
    double start;
    ls_saved saved; /* so far */
    atomic_bool busy;
    atomic_llong done;
    int64_t total; /* of this process */
};

/* This process's part of the phase that the saver is at. */
ls_status ls_save_phase_run(ls_saver *saver, ls_error *error) LS_MUST_CHECK;

#endif

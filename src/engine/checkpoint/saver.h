/* Writes checkpoints: the folder whole or not at all, from the ranks' memory between two steps, or
 * beside training from a copy of it.
 *
 * A save has three phases: the first process makes the folder and its files, all write the parts
 * that their ranks save, the first one writes the rest and puts the folder in its place. Between
 * phases the processes agree on what came of them, on the caller's thread, since MPI has one caller
 * at a time: in the background that is at the borders of steps. */
#ifndef LS_ENGINE_SAVER_H
#define LS_ENGINE_SAVER_H

#include "comm/processes.h"
#include "data/labels.h"
#include "engine/model_folder.h"
#include "engine/rank_group.h"
#include "engine/state.h"

typedef struct ls_saver ls_saver;

/* Everything borrowed for the saver's life. */
typedef struct ls_saver_options {
    const char *output; /* the folder for the checkpoints */
    ls_state_owners owners;
    ls_rank_group *group;          /* of the owners */
    ls_processes *processes;       /* NULL: there are no other ones */
    const ls_model_folder *folder; /* whose configuration and tokenizer are copied */
    const ls_labels *labels;
    int64_t max_length;
    int64_t limit;   /* checkpoints to keep */
    bool background; /* takes the snapshots' memory: see LS_PLAN_SNAPSHOT */
} ls_saver_options;

/* Collective. */
ls_status ls_saver_new(ls_saver **out, const ls_saver_options *options,
                       ls_error *error) LS_MUST_CHECK;
/* Waits for what this process is writing. NULL is allowed. */
void ls_saver_free(ls_saver *saver);

/* Of processes that are not the first one only the step counts. */
typedef struct ls_checkpoint_contents {
    int64_t step;
    int64_t best;          /* step of the best checkpoint, which is kept; -1: none */
    int64_t metrics_bytes; /* of whole lines in the folder's metrics.jsonl so far */
    char *trainer;         /* text of trainer.json; the saver frees it */
    size_t trainer_length;
    ls_status status; /* of making these; what is not LS_OK makes the save fail with `error` */
    ls_error error;
} ls_checkpoint_contents;

/* What came of a save, the same on all processes. */
typedef struct ls_saved {
    int64_t step;
    double seconds;
    ls_status status, pruned; /* of the checkpoint; of removing older ones */
    ls_error error;           /* of the one that failed */
} ls_saved;

/* Between steps; collective. In the background: copies and returns; else the calls write. The
 * former one must have ended. What comes of it is told by ls_saver_poll; a failure here is one of
 * the ranks or of the other processes, which ends the run. */
ls_status ls_saver_save(ls_saver *saver, const ls_checkpoint_contents *contents, bool background,
                        ls_error *error) LS_MUST_CHECK;
/* A save has begun and is not told of yet: on all processes or on none. */
bool ls_saver_is_saving(const ls_saver *saver);
/* Whether this process is at its part of it now; how far it is, for showing. */
bool ls_saver_is_busy(ls_saver *saver);
void ls_saver_progress(const ls_saver *saver, int64_t *done, int64_t *total);
/* Between steps; collective. Moves a save on that has begun; *ended: this is what came of it. */
ls_status ls_saver_poll(ls_saver *saver, bool *ended, ls_saved *saved,
                        ls_error *error) LS_MUST_CHECK;

#endif

/* Writes checkpoints: the folder whole or not at all, from the ranks' memory between two steps, or
 * beside training from a copy of it. */
#ifndef LS_ENGINE_SAVER_H
#define LS_ENGINE_SAVER_H

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
    const ls_model_folder *folder; /* whose configuration and tokenizer are copied */
    const ls_labels *labels;
    int64_t max_length;
    int64_t limit;   /* checkpoints to keep */
    bool background; /* takes the snapshots' memory: see LS_PLAN_SNAPSHOT */
} ls_saver_options;

ls_status ls_saver_new(ls_saver **out, const ls_saver_options *options,
                       ls_error *error) LS_MUST_CHECK;
/* Waits for what is being written. NULL is allowed. */
void ls_saver_free(ls_saver *saver);

typedef struct ls_checkpoint_contents {
    int64_t step;
    int64_t best;          /* step of the best checkpoint, which is kept; -1: none */
    int64_t metrics_bytes; /* of whole lines in the folder's metrics.jsonl so far */
    char *trainer;         /* text of trainer.json; the saver frees it */
    size_t trainer_length;
} ls_checkpoint_contents;

/* What came of a save. */
typedef struct ls_saved {
    int64_t step;
    double seconds;
    ls_status status, pruned; /* of the checkpoint; of removing older ones */
    ls_error error;           /* of the one that failed */
} ls_saved;

/* Between steps. In the background: copies and returns; else writes. The former one must have been
 * waited for. What comes of it is told by ls_saver_poll. */
void ls_saver_save(ls_saver *saver, const ls_checkpoint_contents *contents, bool background);
/* Whether one is being written; how far it is, for showing. */
bool ls_saver_is_busy(ls_saver *saver);
void ls_saver_progress(const ls_saver *saver, int64_t *done, int64_t *total);
/* Tells of a save that has ended, once. */
bool ls_saver_poll(ls_saver *saver, ls_saved *saved);
void ls_saver_wait(ls_saver *saver);

#endif

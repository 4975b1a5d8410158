/* The checkpoints of an output folder: OUTPUT/checkpoint-STEP. Which there are, which are whole,
 * which are no longer needed. docs/file-formats.md says what is in one. */
#ifndef LS_ENGINE_CHECKPOINT_FOLDER_H
#define LS_ENGINE_CHECKPOINT_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/threads.h"

#define LS_CHECKPOINT_MODEL "model.safetensors"
#define LS_CHECKPOINT_OPTIMIZER "optimizer.safetensors"
#define LS_CHECKPOINT_TRAINER "trainer.json"
#define LS_CHECKPOINT_METRICS "metrics.jsonl"

/* The name of a checkpoint, or of one that was being written or removed. */
bool ls_checkpoint_is_one(const char *name);

/* OUTPUT/checkpoint-STEP in fresh memory. */
ls_status ls_checkpoint_path(char **out, const char *output, int64_t step,
                             ls_error *error) LS_MUST_CHECK;

/* Steps of the checkpoints of a folder, rising, whole or not; none if there is no such folder. */
typedef struct ls_checkpoint_list {
    int64_t *steps;
    size_t count, capacity;
} ls_checkpoint_list;
ls_status ls_checkpoint_list_read(ls_checkpoint_list *list, const char *output,
                                  ls_error *error) LS_MUST_CHECK;
void ls_checkpoint_list_deinit(ls_checkpoint_list *list);

/* Everything in the folder is as its manifest says, and its step is `step` (-1: any). LS_INVALID
 * names the first file or tensor that is not, and why. `threads`: see ls_manifest_check. */
ls_status ls_checkpoint_check(const char *folder, int64_t step, ls_threads *threads,
                              ls_error *error) LS_MUST_CHECK;

/* Remove what killed processes left half-written or half-removed. */
ls_status ls_checkpoint_clean(const char *output, ls_error *error) LS_MUST_CHECK;

/* Keep the `limit` newest up to step `newest` (that one counts), those after it, and `best` (-1:
 * none); remove the others. */
ls_status ls_checkpoint_prune(const char *output, int64_t newest, int64_t best, int64_t limit,
                              ls_error *error) LS_MUST_CHECK;

#endif

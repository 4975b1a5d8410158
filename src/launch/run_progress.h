/* How far a run has come, by what it leaves in its output folder. */
#ifndef LS_LAUNCH_RUN_PROGRESS_H
#define LS_LAUNCH_RUN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ls_run_progress {
    int64_t checkpoint; /* of the newest OUTPUT/checkpoint-STEP, -1 if there is none */
    int64_t step;       /* in the last line of OUTPUT/metrics.jsonl, 0 if there is none */
    int64_t changed[2]; /* when metrics.jsonl was written: seconds, nanoseconds */
    int64_t bytes;      /* of metrics.jsonl */
} ls_run_progress;

/* What cannot be read counts as not there; `folder` may be NULL. */
ls_run_progress ls_run_progress_read(const char *folder);
/* The last step that is known, by either. */
int64_t ls_run_progress_step(const ls_run_progress *progress);
/* Whether a run that started at `before` made a step: a new checkpoint, or new lines in
 * metrics.jsonl beyond the checkpoint from which it went on. */
bool ls_run_progress_made(const ls_run_progress *before, const ls_run_progress *after);

#endif

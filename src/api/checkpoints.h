/* When a run saves and what it goes on from. */
#ifndef LS_API_CHECKPOINTS_H
#define LS_API_CHECKPOINTS_H

#include <jansson.h>

#include "api/run_monitor.h"
#include "engine/checkpoint/folder.h"
#include "engine/checkpoint/saver.h"
#include "formats/weights.h"
#include "lockstep.h"

struct ls_training_run;

/* The best validation so far. */
typedef struct ls_best {
    double value;
    int64_t step; /* -1: there was none */
    bool lost;    /* its checkpoint could not be written */
} ls_best;

/* Where a resumed run stands. */
typedef struct ls_position {
    int64_t step;
    int64_t skipped_steps, samples, tokens; /* so far */
    double seconds;                         /* of the steps before */
    bool validation_done;                   /* the evaluation that was due after the step */
    ls_best best;
} ls_position;

typedef struct ls_checkpoints {
    /* What the run goes on from; NULL: it starts at the beginning. */
    char *folder;
    json_t *trainer; /* its trainer.json */
    ls_weights *model, *optimizer;
    ls_position position;
    ls_checkpoint_list broken; /* skipped by "auto": removed after the first good save */

    ls_saver *saver;
    ls_best best;
    int64_t started; /* step of the save that went on last */
    int64_t saved;   /* step of the last good checkpoint of this run, -1: none */
    ls_saves saves;  /* since this start */
    int64_t failed;  /* saves that failed since then */
    ls_status why;   /* of the last one */
    ls_error failure;
    int64_t evaluated; /* step of the last validation, -1: none */
} ls_checkpoints;

/* Find, check and read what --resume names. Without --resume an output folder that holds
 * checkpoints is refused: they would be lost. Of several processes the first one chooses, and all
 * agree that they see the same; after a failure all have it. */
ls_status ls_checkpoints_choose(struct ls_training_run *run, ls_error *error) LS_MUST_CHECK;
/* Everything that changes numbers is as it was; LS_USAGE names the first difference. Sets the run's
 * position. */
ls_status ls_checkpoints_match(struct ls_training_run *run, ls_error *error) LS_MUST_CHECK;
/* The moments, after the ranks have the weights. */
ls_status ls_checkpoints_load(struct ls_training_run *run, ls_error *error) LS_MUST_CHECK;
/* The output folder for a run that goes on: metrics.jsonl as it was at the checkpoint. */
ls_status ls_checkpoints_restore(struct ls_training_run *run, ls_error *error) LS_MUST_CHECK;

/* Whether a run with these options writes checkpoints from snapshots. */
bool ls_checkpoints_use_snapshots(const ls_options *options);
/* Before the first step; takes the snapshots' memory. */
ls_status ls_checkpoints_open(struct ls_training_run *run, ls_error *error) LS_MUST_CHECK;
/* After a step and what was evaluated then: tell of a save that has ended, start one that is due. A
 * save that fails is told in a message, and is no failure here; the loss of a process is. */
ls_status ls_checkpoints_step(struct ls_training_run *run, bool stopping,
                              ls_error *error) LS_MUST_CHECK;
/* A validation was done after the present step. */
void ls_checkpoints_validated(struct ls_training_run *run, const ls_evaluation_report *report);
/* Wait for the last one. Fails as it did, or one before it that nothing has made good. */
ls_status ls_checkpoints_finish(struct ls_training_run *run, ls_error *error) LS_MUST_CHECK;
/* "checkpoint-STEP" of the best validation, into `name`; NULL if there is none. */
const char *ls_checkpoints_best_name(const struct ls_training_run *run, char name[64]);
void ls_checkpoints_close(struct ls_training_run *run);

/* trainer.json (api/trainer_record.c, trainer_position.c). The text is the caller's: ls_free. */
enum { LS_TRAINER_VERSION = 1 };
ls_status ls_trainer_record_print(const struct ls_training_run *run, char **text, size_t *length,
                                  ls_error *error) LS_MUST_CHECK;
ls_status ls_trainer_record_read(const json_t *document, const char *path, ls_position *position,
                                 ls_error *error) LS_MUST_CHECK;
/* Compare what changes numbers with the present run; LS_USAGE lists the differences. */
ls_status ls_trainer_record_match(const struct ls_training_run *run, const json_t *document,
                                  const char *path, ls_error *error) LS_MUST_CHECK;

#endif

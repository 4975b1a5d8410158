/* A fine-tuning run from checked options to written model; ls_train walks these steps. */
#ifndef LS_API_TRAINING_RUN_H
#define LS_API_TRAINING_RUN_H

#include "api/auto_strategy.h"
#include "api/checkpoints.h"
#include "api/run_monitor.h"
#include "api/run_profile.h"
#include "api/session.h"
#include "base/folder_lock.h"
#include "data/reader.h"
#include "data/sampler.h"
#include "engine/memory.h"
#include "engine/ranks.h"
#include "monitor/rank_log.h"

typedef struct ls_training_run {
    ls_session session;
    const ls_sources *sources;
    ls_options used; /* the options with what the run resolved */
    ls_train_report report;
    size_t made_output;             /* see ls_output_check; 0 once the folder holds something */
    ls_folder_lock output_lock;     /* of the first process: one run at a time in the folder */
    ls_shared_memory shared_memory; /* of the host's processes */
    ls_dataset *train, *validation, *test;
    const char **label_names;
    ls_auto_choice choice; /* with --strategy auto */
    ls_run_programs programs;
    ls_ranks *ranks;
    int64_t *confusion;
    ls_sampler *sampler;
    ls_reader *reader;      /* of the batches of all steps */
    ls_run_monitor monitor; /* of the first process; its peak on all */
    ls_run_profile profile;
    ls_rank_log **rank_logs; /* [devices], with --log-ranks all */
    int64_t steps_per_epoch, total_steps;
    double seconds_before; /* of the steps before those of this process */
    ls_checkpoints checkpoints;
    void *reserve; /* memory that writing the model will need, held while the steps run */
} ls_training_run;

/* Everything that can fail on bad input or for want of memory, before anything in the output folder
 * is changed; without options->output (benchmarks) there is none. `command`: the LS_COMMAND_ bit to
 * check for. */
ls_status ls_training_run_open(ls_training_run *run, const ls_options *options,
                               const ls_callbacks *callbacks, unsigned command,
                               ls_error *error) LS_MUST_CHECK;
/* Hold what writing the model will need, clear the output folder, open metrics.jsonl and the like
 * and write the first run.json. */
ls_status ls_training_run_start(ls_training_run *run, const ls_sources *sources,
                                ls_error *error) LS_MUST_CHECK;
void ls_training_run_close(ls_training_run *run);
/* What it starts from: the checkpoint's, where it goes on from one. */
const ls_weights *ls_training_run_weights(const ls_training_run *run);
/* The result of this process becomes that of all; one that failed is no longer waited for. */
ls_status ls_training_run_agree(ls_training_run *run, ls_status mine, const char *task,
                                ls_error *error) LS_MUST_CHECK;
/* Give back the memory that was held for writing the model. */
void ls_training_run_release(ls_training_run *run);

/* Of all steps, those before a resumed one too. */
double ls_training_run_seconds(const ls_training_run *run);
/* Evaluate, report, and tell the sinks. */
ls_status ls_training_run_evaluate(ls_training_run *run, const ls_dataset *dataset,
                                   const char *name, double epoch, ls_error *error) LS_MUST_CHECK;

#endif

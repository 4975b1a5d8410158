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

enum { LS_TRAINING_LENGTH = 128 }; /* --max-length when none is given */

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
/* With --log-ranks all, after the start: a log for each rank of the process; and its lines. Without
 * they do nothing. */
ls_status ls_rank_logs_open(ls_training_run *run, ls_error *error) LS_MUST_CHECK;
ls_status ls_rank_logs_step(ls_training_run *run, const ls_batch *batch, int64_t step,
                            const ls_step_result *result, ls_error *error) LS_MUST_CHECK;
ls_status ls_rank_logs_line(ls_training_run *run, const char *line, ls_error *error) LS_MUST_CHECK;
void ls_rank_logs_close(ls_training_run *run);
/* Check the output folder and keep other runs out of it (api/run_output.c). Collective. */
ls_status ls_training_run_take_output(ls_training_run *run, ls_error *error) LS_MUST_CHECK;
/* LS_INVALID unless all processes have the same program, settings that change numbers, rows,
 * weights and exchanges. */
ls_status ls_training_run_compare(const ls_training_run *run, ls_error *error) LS_MUST_CHECK;
/* What it starts from: the checkpoint's, where it goes on from one. */
const ls_weights *ls_training_run_weights(const ls_training_run *run);
/* The result of this process becomes that of all; one that failed is no longer waited for. */
ls_status ls_training_run_agree(ls_training_run *run, ls_status mine, const char *task,
                                ls_error *error) LS_MUST_CHECK;
/* Give back the memory that was held for writing the model. */
void ls_training_run_release(ls_training_run *run);

/* The assembly options of a run on a model with `classes` on these files. Without training rows
 * they are taken to be as long as they may be; validation and test may be NULL. */
ls_run_memory_options ls_training_memory_options(const ls_session *session, int64_t classes,
                                                 const ls_dataset *train,
                                                 const ls_dataset *validation,
                                                 const ls_dataset *test);

/* LS_NO_MEMORY if all devices of this host together take more than this process can ever have. */
ls_status ls_training_check_memory(const ls_session *session, const ls_run_programs *programs,
                                   ls_error *error) LS_MUST_CHECK;

/* Set what a strategy and a number of ranks say. `strategy` is borrowed. */
void ls_training_use_strategy(ls_assembly_options *training, const ls_options *options,
                              const ls_strategy *strategy, int64_t ranks);

/* Tokens of a usual row: the mean of the training rows, without them the longest there may be. */
double ls_training_row_tokens(const ls_dataset *train, const ls_run_memory_options *memory);

/* LS_USAGE if a full batch has fewer leaves than there are ranks; "--devices 9 is" of how many. */
ls_status ls_training_check_leaves(const ls_run_memory_options *memory, const char *ranks,
                                   ls_error *error) LS_MUST_CHECK;
/* The same for the ranks of this run; and LS_USAGE if the strategy cannot have as many. */
ls_status ls_training_check_ranks(const ls_session *session, const ls_run_memory_options *memory,
                                  ls_error *error) LS_MUST_CHECK;
/* Evaluate, report, and tell the sinks. */
ls_status ls_training_run_evaluate(ls_training_run *run, const ls_dataset *dataset,
                                   const char *name, double epoch, ls_error *error) LS_MUST_CHECK;
/* Of all steps, those before a resumed one too. */
double ls_training_run_seconds(const ls_training_run *run);
/* Write run.json; with `finished` the results too. */
ls_status ls_training_run_record(ls_training_run *run, bool finished,
                                 ls_error *error) LS_MUST_CHECK;

#endif

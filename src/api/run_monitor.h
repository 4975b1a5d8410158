/* What a training run tells of itself: sinks, statistics of its steps, and what run.json says of
 * them. */
#ifndef LS_API_RUN_MONITOR_H
#define LS_API_RUN_MONITOR_H

#include "base/usage.h"
#include "data/batch.h"
#include "engine/machine_peak.h"
#include "engine/memory.h"
#include "engine/ranks.h"
#include "lockstep.h"
#include "monitor/sink.h"
#include "monitor/step_statistics.h"

enum { LS_MONITORED_EVALUATIONS = 2 };

typedef struct ls_run_monitor {
    ls_sinks sinks;
    ls_step_statistics *statistics;
    ls_usage_meter usage;
    ls_machine_peak peak; /* zero: not measured */
    int64_t host_peak;    /* bytes, before the peak was measured */
    int64_t samples, tokens, skipped, elements;
    bool keep; /* of a run that goes on: its sinks write after what is there */
    ls_evaluation_report evaluations[LS_MONITORED_EVALUATIONS]; /* the last of each name */
    int evaluation_count;
} ls_run_monitor;

typedef struct ls_run_monitor_options {
    const ls_run_programs *programs;  /* borrowed, as the ranks */
    int ranks, threads;               /* threads: of a rank */
    int64_t total_steps, step_tokens; /* step_tokens: of a usual step, over all ranks */
} ls_run_monitor_options;

/* On every process: the peak of its threads, all processes at the same time, where the run wants
 * it. */
ls_status ls_run_monitor_measure_peak(ls_run_monitor *monitor,
                                      const ls_run_monitor_options *options,
                                      ls_error *error) LS_MUST_CHECK;
/* Of the first process: memory for all that is recorded. Writes nothing. */
ls_status ls_run_monitor_open(ls_run_monitor *monitor, const ls_run_monitor_options *options,
                              ls_error *error) LS_MUST_CHECK;
/* Open the files: those outside the output folder, and metrics.jsonl once that is the run's. */
ls_status ls_run_monitor_start(ls_run_monitor *monitor, const ls_options *options,
                               ls_error *error) LS_MUST_CHECK;
ls_status ls_run_monitor_start_metrics(ls_run_monitor *monitor, const ls_options *options,
                                       ls_error *error) LS_MUST_CHECK;
void ls_run_monitor_close(ls_run_monitor *monitor); /* safe on an all-zero one and twice */

/* Around a step: `begin` before its batch is asked for. */
typedef struct ls_monitored_step {
    int64_t number;
    double begin;
} ls_monitored_step;
/* Where the time went from `begin` on: data is what the result counts and the wait for the batch.
 */
ls_step_times ls_monitored_times(const ls_monitored_step *step, const ls_step_result *result);
/* Fills in what `report` says of the step's size, time and memory, and writes it to all sinks;
 * `updated`: not skipped. */
ls_status ls_run_monitor_step_end(ls_run_monitor *monitor, const ls_monitored_step *step,
                                  const ls_batch *batch, const ls_step_result *result,
                                  int64_t elements, bool updated, ls_step_report *report,
                                  ls_error *error) LS_MUST_CHECK;
ls_status ls_run_monitor_evaluation(ls_run_monitor *monitor, const ls_evaluation_report *report,
                                    ls_error *error) LS_MUST_CHECK;
/* Close the sinks, reporting what the file system kept back until then. */
ls_status ls_run_monitor_finish(ls_run_monitor *monitor, ls_error *error) LS_MUST_CHECK;

/* The facts of run.json's "results": `facts` points at memory that lives in `results`. */
typedef struct ls_saves {
    int64_t count; /* good ones */
    double seconds;
} ls_saves;
enum { LS_RESULT_FACTS = 32 };
typedef struct ls_run_results {
    struct ls_run_fact *facts;
    size_t count;
    void *memory;
} ls_run_results;
ls_status ls_run_results_make(ls_run_results *results, ls_run_monitor *monitor,
                              const ls_run_programs *programs, const ls_train_report *report,
                              const ls_saves *saves, ls_error *error) LS_MUST_CHECK;
void ls_run_results_deinit(ls_run_results *results);

#endif

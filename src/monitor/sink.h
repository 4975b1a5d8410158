/* Where the numbers of a run go while it goes on: one interface for each kind of file, and the list
 * of those that a run writes. */
#ifndef LS_MONITOR_SINK_H
#define LS_MONITOR_SINK_H

#include <stdbool.h>

#include "base/status.h"
#include "lockstep/reports.h"

typedef struct ls_sink ls_sink;

typedef struct ls_sink_operations {
    const char *name;
    /* A failure is that of the file system and names the file. A step allocates nothing. */
    ls_status (*step)(ls_sink *sink, const ls_step_report *report, ls_error *error);
    ls_status (*evaluation)(ls_sink *sink, const ls_evaluation_report *report, ls_error *error);
    /* Write what was held back, and report what the file system kept back until then. */
    ls_status (*finish)(ls_sink *sink, ls_error *error);
    void (*free)(ls_sink *sink); /* at any time, after finish too */
} ls_sink_operations;

/* The first member of each kind's own struct. */
struct ls_sink {
    const ls_sink_operations *operations;
};

typedef struct ls_sinks_options {
    const char *folder;                         /* of metrics.jsonl */
    const char *tensorboard, *csv, *prometheus; /* NULL: none */
    const char *job_name;                       /* of the CSV files' folder */
    bool keep; /* write after what a former run wrote instead of dropping it */
} ls_sinks_options;

enum { LS_MAX_SINKS = 4 };

/* All zero is an empty list. */
typedef struct ls_sinks {
    ls_sink *each[LS_MAX_SINKS];
    int count;
} ls_sinks;

/* What was asked for beside metrics.jsonl: nothing in `folder` is touched. */
ls_status ls_sinks_open(ls_sinks *sinks, const ls_sinks_options *options,
                        ls_error *error) LS_MUST_CHECK;
/* And metrics.jsonl, once the folder is the run's. */
ls_status ls_sinks_open_metrics(ls_sinks *sinks, const ls_sinks_options *options,
                                ls_error *error) LS_MUST_CHECK;
/* To all of them; the first failure is the call's. */
ls_status ls_sinks_step(ls_sinks *sinks, const ls_step_report *report,
                        ls_error *error) LS_MUST_CHECK;
ls_status ls_sinks_evaluation(ls_sinks *sinks, const ls_evaluation_report *report,
                              ls_error *error) LS_MUST_CHECK;
/* Finish and free all; the first failure is the call's. */
ls_status ls_sinks_close(ls_sinks *sinks, ls_error *error) LS_MUST_CHECK;
void ls_sinks_free(ls_sinks *sinks); /* for failed runs; safe on an empty one and twice */

#endif

/* metrics.jsonl: a line a step and a line an evaluation, for programs that plot or compare runs.
 *
 *   {"step", "epoch", "loss", "learning_rate", "gradient_norm", "samples", "tokens",
 *    "step_seconds", "tokens_per_second"}
 *   {"step", "epoch", "evaluation": "validation", "loss", "accuracy", "macro_f1", "samples",
 *    "seconds", "confusion": [[...], ...]}
 *
 * Loss, norm, rate and metrics have all digits of their doubles (15 to 17); times have six
 * decimals. JSON has no numbers that are not finite: they are the strings "NaN", "Infinity" and
 * "-Infinity". The confusion matrix has one list a true class, in the order of the label ids. */
#ifndef LS_MONITOR_METRICS_H
#define LS_MONITOR_METRICS_H

#include <stdbool.h>

#include "base/status.h"
#include "lockstep/reports.h"

typedef struct ls_metrics ls_metrics;

/* Open `folder`/metrics.jsonl, which is made if it is not there. `keep`: write after the lines of a
 * former run instead of dropping them. */
ls_status ls_metrics_open(ls_metrics **out, const char *folder, bool keep,
                          ls_error *error) LS_MUST_CHECK;

/* Each is one write of one whole line; a line that does not fit on the disk is taken back, so that
 * the file holds whole lines at any time. A step's line allocates nothing. */
ls_status ls_metrics_step(ls_metrics *metrics, const ls_step_report *report,
                          ls_error *error) LS_MUST_CHECK;
ls_status ls_metrics_evaluation(ls_metrics *metrics, const ls_evaluation_report *report,
                                ls_error *error) LS_MUST_CHECK;

/* Bytes of whole lines in the file so far. */
int64_t ls_metrics_bytes(const ls_metrics *metrics);
const char *ls_metrics_path(const ls_metrics *metrics);

/* Close and free, reporting what the file system kept back until then; `metrics` is gone whatever
 * comes of it. `free` alone is for failed runs. */
ls_status ls_metrics_close(ls_metrics *metrics, ls_error *error) LS_MUST_CHECK;
void ls_metrics_free(ls_metrics *metrics); /* NULL is allowed */

#endif

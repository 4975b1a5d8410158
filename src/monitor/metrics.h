/* metrics.jsonl: a line a step and a line an evaluation, for programs that plot or compare runs.
 *
 *   {"step", "epoch", "loss", "learning_rate", "gradient_norm", "samples", "tokens",
 * "skipped_steps", "step_seconds", "tokens_per_second", "data_seconds", "forward_seconds",
 * "backward_seconds", "exchange_seconds", "optimizer_seconds", "cores_busy", "host_bytes",
 * "device_bytes"}
 *   {"step", "epoch", "evaluation": "validation", "loss", "accuracy", "macro_f1", "samples",
 *    "seconds", "confusion": [[...], ...]}
 *
 * Loss, norm, rate and metrics have all digits of their doubles (15 to 17); times have six
 * decimals. JSON has no numbers that are not finite: they are the strings "NaN", "Infinity" and
 * "-Infinity". The confusion matrix has one list a true class, in the order of the label ids. */
#ifndef LS_MONITOR_METRICS_H
#define LS_MONITOR_METRICS_H

#include "monitor/sink.h"

/* Open `folder`/metrics.jsonl, which is made if it is not there. `keep`: write after the lines of a
 * former run instead of dropping them. */
ls_status ls_metrics_open(ls_sink **out, const char *folder, bool keep,
                          ls_error *error) LS_MUST_CHECK;

#endif

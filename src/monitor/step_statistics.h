/* What the steps of a run came to: rates, times, and where the time went. */
#ifndef LS_MONITOR_STEP_STATISTICS_H
#define LS_MONITOR_STEP_STATISTICS_H

#include <stdint.h>

#include "base/status.h"
#include "engine/trainer.h"

/* One step. */
typedef struct ls_step_sample {
    double seconds; /* the sum of `times` */
    ls_step_times times;
    int64_t samples, tokens;
    int64_t elements; /* read by ranks from one another */
    double flops;
} ls_step_sample;

enum { LS_WARM_UP_STEPS = 3, LS_REMEMBERED_STEPS = 1 << 16 };

typedef struct ls_step_statistics ls_step_statistics;

/* All memory is taken here. */
ls_status ls_step_statistics_new(ls_step_statistics **out, int64_t total_steps,
                                 ls_error *error) LS_MUST_CHECK;
void ls_step_statistics_free(ls_step_statistics *statistics); /* NULL is allowed */
void ls_step_statistics_add(ls_step_statistics *statistics, const ls_step_sample *sample);

/* Of the steps after the first LS_WARM_UP_STEPS, or of all where there are no more. Median and 95th
 * percentile are those of the last LS_REMEMBERED_STEPS of them. All NaN without a step. */
typedef struct ls_step_summary {
    int64_t steps;
    double seconds;
    double samples_per_second, tokens_per_second, flops_per_second;
    double step_seconds_median, step_seconds_p95;
    double elements_per_step, flops_per_step;
    ls_step_times mean;  /* seconds a step */
    ls_step_times share; /* of the mean step's time: the five add up to 1 */
} ls_step_summary;
ls_step_summary ls_step_statistics_summary(ls_step_statistics *statistics);

#endif

#include "monitor/step_statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

typedef struct sum {
    int64_t steps;
    ls_step_sample total;
} sum;

struct ls_step_statistics {
    sum all, warm;   /* warm: without the first steps */
    double *seconds; /* [capacity] the first steps', then a ring of the warm ones */
    int64_t capacity;
    double *sorted; /* [capacity] */
};

ls_status ls_step_statistics_new(ls_step_statistics **out, int64_t total_steps, ls_error *error)
{
    ls_step_statistics *statistics = NULL;
    ls_status status;
    LS_TRY(LS_NEW(statistics, 1, "step statistics", error));
    statistics->capacity = total_steps < LS_WARM_UP_STEPS      ? LS_WARM_UP_STEPS
                           : total_steps > LS_REMEMBERED_STEPS ? LS_REMEMBERED_STEPS
                                                               : total_steps;
    LS_TRY_GOTO(status, LS_NEW(statistics->seconds, statistics->capacity, "step statistics", error),
                fail);
    LS_TRY_GOTO(status, LS_NEW(statistics->sorted, statistics->capacity, "step statistics", error),
                fail);
    *out = statistics;
    return LS_OK;
fail:
    ls_step_statistics_free(statistics);
    return status;
}

void ls_step_statistics_free(ls_step_statistics *statistics)
{
    if (!statistics) return;
    ls_free(statistics->seconds);
    ls_free(statistics->sorted);
    ls_free(statistics);
}

static void add(sum *into, const ls_step_sample *sample)
{
    ls_step_sample *total = &into->total;
    into->steps++;
    total->seconds += sample->seconds;
    total->times.data += sample->times.data;
    total->times.forward += sample->times.forward;
    total->times.backward += sample->times.backward;
    total->times.exchange += sample->times.exchange;
    total->times.optimizer += sample->times.optimizer;
    total->samples += sample->samples;
    total->tokens += sample->tokens;
    total->elements += sample->elements;
    total->flops += sample->flops;
}

void ls_step_statistics_add(ls_step_statistics *statistics, const ls_step_sample *sample)
{
    bool warm = statistics->all.steps >= LS_WARM_UP_STEPS;
    int64_t at = warm ? statistics->warm.steps : statistics->all.steps;
    statistics->seconds[at % statistics->capacity] = sample->seconds;
    add(&statistics->all, sample);
    if (warm) add(&statistics->warm, sample);
}

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static ls_step_times divide(const ls_step_times *times, double by)
{
    return (ls_step_times){times->data / by, times->forward / by, times->backward / by,
                           times->exchange / by, times->optimizer / by};
}

ls_step_summary ls_step_statistics_summary(ls_step_statistics *statistics)
{
    const sum *used = statistics->warm.steps ? &statistics->warm : &statistics->all;
    const ls_step_sample *total = &used->total;
    double steps = used->steps ? (double)used->steps : NAN;
    double seconds = total->seconds > 0 ? total->seconds : NAN;
    ls_step_summary summary = {
        .steps = used->steps,
        .seconds = total->seconds,
        .samples_per_second = (double)total->samples / seconds,
        .tokens_per_second = (double)total->tokens / seconds,
        .flops_per_second = total->flops / seconds,
        .step_seconds_median = NAN,
        .step_seconds_p95 = NAN,
        .elements_per_step = (double)total->elements / steps,
        .flops_per_step = total->flops / steps,
        .mean = divide(&total->times, steps),
        .share = divide(&total->times, seconds),
    };
    int64_t count = used->steps < statistics->capacity ? used->steps : statistics->capacity;
    if (count == 0) return summary;
    double *sorted = statistics->sorted;
    memcpy(sorted, statistics->seconds, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, by_size);
    summary.step_seconds_median = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
    summary.step_seconds_p95 = sorted[(count * 95 + 99) / 100 - 1];
    return summary;
}

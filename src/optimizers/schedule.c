#include "optimizers/schedule.h"

#include <stdbool.h>
#include <string.h>

#include "base/scalar_math.h"

static const char *const names[] = {
    [LS_SCHEDULE_LINEAR] = "linear",
    [LS_SCHEDULE_COSINE] = "cosine",
    [LS_SCHEDULE_CONSTANT] = "constant",
    [LS_SCHEDULE_CONSTANT_WITH_WARMUP] = "constant_with_warmup",
    [LS_SCHEDULE_WARMUP] = "warmup",
    [LS_SCHEDULE_WARMUP_DECAY] = "warmup_decay",
    [LS_SCHEDULE_WARMUP_COSINE] = "warmup_cosine",
};

ls_status ls_schedule_kind_of(ls_schedule_kind *kind, const char *name, ls_error *error)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) != 0) continue;
        *kind = (ls_schedule_kind)i;
        return LS_OK;
    }
    return ls_fail(error, LS_USAGE,
                   "--lr-scheduler-type %s is not known: use linear, cosine, constant, "
                   "constant_with_warmup, warmup, warmup_decay or warmup_cosine",
                   name);
}

ls_status ls_warmup_kind_of(ls_warmup_kind *kind, const char *name, ls_error *error)
{
    bool linear = strcmp(name, "linear") == 0;
    if (!linear && strcmp(name, "log") != 0)
        return ls_fail(error, LS_USAGE, "--warmup-type %s is not known: use log or linear", name);
    *kind = linear ? LS_WARMUP_LINEAR : LS_WARMUP_LOG;
    return LS_OK;
}

/* --- DeepSpeed's, t from 0 ------------------------------------------------------------------- */

static const double pi = 3.14159265358979323846;

static double warmup_part(const ls_schedule *schedule, int64_t t, int64_t steps)
{
    if (schedule->warmup == LS_WARMUP_LINEAR) return (double)t / (double)steps;
    return ls_math_log((double)t + 1) / ls_math_log((double)steps);
}

/* The part of the way from the least to the peak rate. */
static double warmup_decay_part(const ls_schedule *schedule, int64_t t, int64_t steps)
{
    if (t < steps) return warmup_part(schedule, t, steps);
    if (schedule->kind == LS_SCHEDULE_WARMUP) return 1;
    double length = (double)(schedule->total_steps - steps);
    double part = (double)(schedule->total_steps - t) / (length > 1 ? length : 1);
    return part > 0 ? part : 0;
}

/* The part of the peak. Past the last step, and where there is none after the warm-up, the cosine
 * stays at its end. */
static double warmup_cosine_part(const ls_schedule *schedule, int64_t t, int64_t steps)
{
    double least = schedule->warmup_least_ratio;
    if (t < steps) return least + (1 - least) * warmup_part(schedule, t, steps);
    double length = (double)(schedule->total_steps - steps);
    double progress = (double)(t - steps + 1) / (length > 1 ? length : 1);
    if (progress > 1) progress = 1;
    least = schedule->cosine_least_ratio;
    return least + (1 - least) * (1 + ls_math_cos(pi * progress)) / 2;
}

static double deepspeed_rate(const ls_schedule *schedule, int64_t done)
{
    int64_t steps = schedule->warmup_steps > 2 ? schedule->warmup_steps : 2, t = done - 1;
    double least = schedule->warmup_least_rate;
    if (schedule->kind == LS_SCHEDULE_WARMUP_COSINE)
        return t < 0 ? 0 : schedule->peak * warmup_cosine_part(schedule, t, steps);
    if (t < 0) return least;
    return least + (schedule->peak - least) * warmup_decay_part(schedule, t, steps);
}

/* --- the Trainer's --------------------------------------------------------------------------- */

static double decay(const ls_schedule *schedule, int64_t done)
{
    double length = (double)(schedule->total_steps - schedule->warmup_steps);
    double progress = (double)(done - schedule->warmup_steps) / (length > 1 ? length : 1);
    if (progress > 1) progress = 1;
    if (schedule->kind == LS_SCHEDULE_LINEAR) return 1 - progress;
    return 0.5 * (1 + ls_math_cos(pi * progress));
}

double ls_schedule_rate(const ls_schedule *schedule, int64_t done)
{
    if (schedule->kind >= LS_SCHEDULE_WARMUP) return deepspeed_rate(schedule, done);
    if (schedule->kind == LS_SCHEDULE_CONSTANT) return schedule->peak;
    if (done < schedule->warmup_steps)
        return schedule->peak * (double)done / (double)schedule->warmup_steps;
    if (schedule->kind == LS_SCHEDULE_CONSTANT_WITH_WARMUP) return schedule->peak;
    return schedule->peak * decay(schedule, done);
}

#include "optimizers/schedule.h"

#include <string.h>

#include "base/scalar_math.h"

static const char *const names[] = {
    [LS_SCHEDULE_LINEAR] = "linear",
    [LS_SCHEDULE_COSINE] = "cosine",
    [LS_SCHEDULE_CONSTANT] = "constant",
    [LS_SCHEDULE_CONSTANT_WITH_WARMUP] = "constant_with_warmup",
};

ls_status ls_schedule_kind_of(ls_schedule_kind *kind, const char *name, ls_error *error)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) != 0) continue;
        *kind = (ls_schedule_kind)i;
        return LS_OK;
    }
    return ls_fail(error, LS_USAGE,
                   "--lr-scheduler-type %s is not known: use linear, cosine, constant or "
                   "constant_with_warmup",
                   name);
}

static double decay(const ls_schedule *schedule, int64_t done)
{
    double length = (double)(schedule->total_steps - schedule->warmup_steps);
    double progress = (double)(done - schedule->warmup_steps) / (length > 1 ? length : 1);
    if (progress > 1) progress = 1;
    if (schedule->kind == LS_SCHEDULE_LINEAR) return 1 - progress;
    return 0.5 * (1 + ls_math_cos(3.14159265358979323846 * progress));
}

double ls_schedule_rate(const ls_schedule *schedule, int64_t done)
{
    if (schedule->kind == LS_SCHEDULE_CONSTANT) return schedule->peak;
    if (done < schedule->warmup_steps)
        return schedule->peak * (double)done / (double)schedule->warmup_steps;
    if (schedule->kind == LS_SCHEDULE_CONSTANT_WITH_WARMUP) return schedule->peak;
    return schedule->peak * decay(schedule, done);
}

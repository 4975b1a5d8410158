/* Learning-rate schedules, with the names and formulas of the Hugging Face Trainer. */
#ifndef LS_OPTIMIZERS_SCHEDULE_H
#define LS_OPTIMIZERS_SCHEDULE_H

#include <stdint.h>

#include "base/status.h"

typedef enum ls_schedule_kind {
    LS_SCHEDULE_LINEAR,   /* warm-up, then down to 0 at the last step */
    LS_SCHEDULE_COSINE,   /* warm-up, then half a cosine down to 0 */
    LS_SCHEDULE_CONSTANT, /* no warm-up */
    LS_SCHEDULE_CONSTANT_WITH_WARMUP
} ls_schedule_kind;

typedef struct ls_schedule {
    ls_schedule_kind kind;
    double peak; /* learning rate after warm-up */
    int64_t warmup_steps, total_steps;
} ls_schedule;

/* By the Trainer's name; another name is LS_USAGE and the text lists those there are. */
ls_status ls_schedule_kind_of(ls_schedule_kind *kind, const char *name,
                              ls_error *error) LS_MUST_CHECK;

/* Rate of the step after `done` steps: the first step (done 0) of a warm-up has rate 0, as there.
 */
double ls_schedule_rate(const ls_schedule *schedule, int64_t done);

#endif

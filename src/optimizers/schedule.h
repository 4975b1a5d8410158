/* Learning-rate schedules: with the names and formulas of the Hugging Face Trainer, and those of
 * DeepSpeed (deepspeed/runtime/lr_schedules.py: WarmupLR, WarmupDecayLR, WarmupCosineLR). */
#ifndef LS_OPTIMIZERS_SCHEDULE_H
#define LS_OPTIMIZERS_SCHEDULE_H

#include <stdint.h>

#include "base/status.h"

typedef enum ls_schedule_kind {
    LS_SCHEDULE_LINEAR,   /* warm-up, then down to 0 at the last step */
    LS_SCHEDULE_COSINE,   /* warm-up, then half a cosine down to 0 */
    LS_SCHEDULE_CONSTANT, /* no warm-up */
    LS_SCHEDULE_CONSTANT_WITH_WARMUP,
    LS_SCHEDULE_WARMUP,       /* WarmupLR: warm-up, then constant */
    LS_SCHEDULE_WARMUP_DECAY, /* WarmupDecayLR: warm-up, then down to 0 after the last step */
    LS_SCHEDULE_WARMUP_COSINE /* WarmupCosineLR: warm-up, then half a cosine */
} ls_schedule_kind;

/* How DeepSpeed's warm-ups rise, from 0 to 1 over W = max(2, warmup_steps) steps, t from 0. */
typedef enum ls_warmup_kind {
    LS_WARMUP_LOG,   /* ln(t + 1) / ln W */
    LS_WARMUP_LINEAR /* t / W */
} ls_warmup_kind;

typedef struct ls_schedule {
    ls_schedule_kind kind;
    double peak; /* learning rate after warm-up */
    int64_t warmup_steps, total_steps;
    /* DeepSpeed's only. */
    ls_warmup_kind warmup;
    double warmup_least_rate;  /* warmup, warmup_decay: where the warm-up starts */
    double warmup_least_ratio; /* warmup_cosine: the same as a part of the peak */
    double cosine_least_ratio; /* warmup_cosine: where the cosine ends */
} ls_schedule;

/* By name; another name is LS_USAGE and the text lists those there are. */
ls_status ls_schedule_kind_of(ls_schedule_kind *kind, const char *name,
                              ls_error *error) LS_MUST_CHECK;

/* "log" or "linear"; another name is LS_USAGE. */
ls_status ls_warmup_kind_of(ls_warmup_kind *kind, const char *name, ls_error *error) LS_MUST_CHECK;

/* Rate of the step after `done` steps: the first step (done 0) of a warm-up has rate 0, as there.
 * DeepSpeed's schedules count from the second step on, and so do these: the first step has the rate
 * that they set before they start (warmup_least_rate; 0 for warmup_cosine), the step after `done`
 * steps is their t = done - 1. */
double ls_schedule_rate(const ls_schedule *schedule, int64_t done);

#endif

/* The profile of a training run: each process records its ranks, the first one writes. */
#ifndef LS_API_RUN_PROFILE_H
#define LS_API_RUN_PROFILE_H

#include "api/run_monitor.h"
#include "api/session.h"
#include "monitor/profile.h"

typedef struct ls_run_profile {
    ls_profile *profile; /* NULL: none, and all calls below do nothing */
    char *folder;
    char notes[400]; /* what to tell the user, or "" */
} ls_run_profile;

/* --profile, and a folder to write to: benchmarks have none. */
bool ls_run_profile_is_wanted(const ls_options *options);
/* If it is wanted, memory for all that will be recorded. */
ls_status ls_run_profile_open(ls_run_profile *profile, const ls_session *session,
                              const ls_run_programs *programs, const ls_machine_peak *peak,
                              int64_t total_steps, ls_error *error) LS_MUST_CHECK;
void ls_run_profile_close(ls_run_profile *profile); /* safe on an all-zero one and twice */

/* Around a step, as of ls_run_monitor; `batch` when the step has its batch. */
void ls_run_profile_step_begin(ls_run_profile *profile, const ls_monitored_step *step);
void ls_run_profile_batch(ls_run_profile *profile, const ls_monitored_step *step);
void ls_run_profile_step_end(ls_run_profile *profile, const ls_monitored_step *step,
                             const ls_batch *batch, const ls_step_result *result);
/* After each step: writes the files when the last one is done that they are about. Collective. */
ls_status ls_run_profile_write_if_due(ls_run_profile *profile, const ls_session *session,
                                      ls_error *error) LS_MUST_CHECK;

#endif

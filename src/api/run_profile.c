#include "api/run_profile.h"

#include <stdio.h>

#include "api/settings.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/topology.h"
#include "devices/device.h"

bool ls_run_profile_is_wanted(const ls_options *options)
{
    return options->profile && options->output;
}

/* The steps that were asked for, or as many at the end of a run that is shorter. */
static ls_status find_steps(ls_run_profile *profile, ls_profile_options *options,
                            const char *wanted, int64_t total_steps, ls_error *error)
{
    int64_t *first = &options->first_step, *last = &options->last_step;
    LS_TRY(ls_profile_steps_parse(wanted, first, last, error));
    if (*last <= total_steps) return LS_OK;
    *first -= *last - total_steps;
    *last = total_steps;
    if (*first < 1) *first = 1;
    snprintf(profile->notes, sizeof profile->notes,
             "profile: the run has %lld steps: --profile-steps %lld:%lld are recorded instead of "
             "%s",
             (long long)total_steps, (long long)*first, (long long)*last, wanted);
    return LS_OK;
}

ls_status ls_run_profile_open(ls_run_profile *profile, const ls_session *session,
                              const ls_run_programs *programs, const ls_machine_peak *peak,
                              int64_t total_steps, ls_error *error)
{
    const ls_options *given = session->options;
    *profile = (ls_run_profile){0};
    if (!ls_run_profile_is_wanted(given)) return LS_OK;
    ls_profile_options options = {.assembly = &programs->training,
                                  .devices = session->device_count,
                                  .threads = ls_cpu_device_threads(session->device),
                                  .peak = *peak,
                                  .processes = session->processes};
    LS_TRY(ls_core_count(&options.cores, error));
    LS_TRY(find_steps(profile, &options, given->profile_steps, total_steps, error));
    LS_TRY(ls_path_join(&profile->folder, given->output, "profile", error));
    options.folder = profile->folder;
    LS_TRY(ls_profile_new(&profile->profile, &options, error));
    if (*profile->notes) ls_session_message(session, "%s", profile->notes);
    return LS_OK;
}

void ls_run_profile_close(ls_run_profile *profile)
{
    ls_profile_free(profile->profile);
    ls_free(profile->folder);
    *profile = (ls_run_profile){0};
}

void ls_run_profile_step_begin(ls_run_profile *profile, const ls_monitored_step *step)
{
    ls_profile_step_begin(profile->profile, step->number);
}

void ls_run_profile_batch(ls_run_profile *profile, const ls_monitored_step *step)
{
    if (profile->profile) ls_profile_waited(profile->profile, step->begin, ls_seconds());
}

void ls_run_profile_step_end(ls_run_profile *profile, const ls_monitored_step *step,
                             const ls_batch *batch, const ls_step_result *result)
{
    ls_step_times times = ls_monitored_times(step, result);
    ls_profile_step_end(profile->profile, result, &times, step->begin,
                        batch->offsets[batch->samples]);
}

ls_status ls_run_profile_write_if_due(ls_run_profile *profile, const ls_session *session,
                                      ls_error *error)
{
    if (!ls_profile_is_due(profile->profile)) return LS_OK;
    LS_TRY(ls_profile_gather(profile->profile, error));
    if (!ls_session_is_first(session)) return LS_OK;
    LS_TRY(ls_profile_write(profile->profile, profile->notes, error));
    if (*profile->notes) ls_session_message(session, "%s", profile->notes);
    ls_session_message(session, "profile: %s/summary.txt, and trace.json for Perfetto",
                       profile->folder);
    return LS_OK;
}

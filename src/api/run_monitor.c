#include "api/run_monitor.h"

#include <stdio.h>
#include <string.h>

#include "api/settings.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/threads.h"
#include "base/topology.h"

static ls_status measure_peak(ls_run_monitor *monitor, const ls_run_monitor_options *options,
                              ls_error *error)
{
    const ls_model_config *config = options->programs->training.model.config;
    monitor->host_peak = ls_usage_now().peak_bytes;
    ls_status status =
        ls_machine_peak_measure(&monitor->peak, options->ranks * options->threads,
                                options->step_tokens > 0 ? options->step_tokens : 1,
                                config->intermediate_size, config->hidden_size, error);
    ls_usage_forget_peak(); /* the test's own memory is not the run's */
    return status;
}

/* The steps that were asked for, or as many at the end of a run that is shorter. */
static ls_status open_profile(ls_run_monitor *monitor, const ls_run_monitor_options *options,
                              ls_error *error)
{
    ls_profile_options profile = {.assembly = &options->programs->training,
                                  .ranks = options->ranks,
                                  .threads = options->threads,
                                  .peak = monitor->peak};
    int64_t *first = &profile.first_step, *last = &profile.last_step;
    LS_TRY(ls_core_count(&profile.cores, error));
    LS_TRY(ls_profile_steps_parse(options->options->profile_steps, first, last, error));
    if (*last > options->total_steps) {
        *first -= *last - options->total_steps;
        *last = options->total_steps;
        if (*first < 1) *first = 1;
        snprintf(monitor->profile_notes, sizeof monitor->profile_notes,
                 "profile: the run has %lld steps: --profile-steps %lld:%lld are recorded instead "
                 "of %s",
                 (long long)options->total_steps, (long long)*first, (long long)*last,
                 options->options->profile_steps);
    }
    LS_TRY(ls_path_join(&monitor->profile_folder, options->options->output, "profile", error));
    profile.folder = monitor->profile_folder;
    return ls_profile_new(&monitor->profile, &profile, error);
}

ls_status ls_run_monitor_open(ls_run_monitor *monitor, const ls_run_monitor_options *options,
                              ls_error *error)
{
    bool profile = options->options->profile && options->options->output;
    *monitor = (ls_run_monitor){0};
    LS_TRY(ls_step_statistics_new(&monitor->statistics, options->total_steps, error));
    if (profile || options->options->measure_peak) LS_TRY(measure_peak(monitor, options, error));
    return profile ? open_profile(monitor, options, error) : LS_OK;
}

static ls_sinks_options sinks_of(const ls_run_monitor *monitor, const ls_options *options)
{
    return (ls_sinks_options){.folder = options->output,
                              .keep = monitor->keep,
                              .tensorboard = options->tensorboard,
                              .csv = options->csv,
                              .prometheus = options->prometheus,
                              .job_name = options->job_name};
}

ls_status ls_run_monitor_start(ls_run_monitor *monitor, const ls_options *options, ls_error *error)
{
    ls_sinks_options sinks = sinks_of(monitor, options);
    return ls_sinks_open(&monitor->sinks, &sinks, error);
}

ls_status ls_run_monitor_start_metrics(ls_run_monitor *monitor, const ls_options *options,
                                       ls_error *error)
{
    ls_sinks_options sinks = sinks_of(monitor, options);
    return ls_sinks_open_metrics(&monitor->sinks, &sinks, error);
}

void ls_run_monitor_close(ls_run_monitor *monitor)
{
    ls_sinks_free(&monitor->sinks);
    ls_step_statistics_free(monitor->statistics);
    ls_profile_free(monitor->profile);
    ls_free(monitor->profile_folder);
    monitor->statistics = NULL;
    monitor->profile = NULL;
    monitor->profile_folder = NULL;
}

ls_monitored_step ls_run_monitor_step_begin(ls_run_monitor *monitor, int64_t number)
{
    ls_profile_step_begin(monitor->profile, number);
    return (ls_monitored_step){number, ls_seconds()};
}

void ls_run_monitor_batch(ls_run_monitor *monitor, const ls_monitored_step *step)
{
    if (monitor->profile) ls_profile_waited(monitor->profile, step->begin, ls_seconds());
}

static void fill_report(ls_run_monitor *monitor, const ls_step_sample *sample,
                        ls_step_report *report)
{
    report->samples = sample->samples;
    report->tokens = sample->tokens;
    report->step_seconds = sample->seconds;
    report->tokens_per_second = sample->seconds > 0 ? (double)sample->tokens / sample->seconds : 0;
    report->samples_done = monitor->samples;
    report->tokens_done = monitor->tokens;
    report->skipped_steps = monitor->skipped;
    report->data_seconds = sample->times.data;
    report->forward_seconds = sample->times.forward;
    report->backward_seconds = sample->times.backward;
    report->exchange_seconds = sample->times.exchange;
    report->optimizer_seconds = sample->times.optimizer;
    report->cores_busy = monitor->usage.cores;
    report->host_bytes = monitor->usage.usage.resident_bytes;
}

ls_status ls_run_monitor_step_end(ls_run_monitor *monitor, const ls_monitored_step *step,
                                  const ls_batch *batch, const ls_step_result *result,
                                  int64_t elements, bool updated, ls_step_report *report,
                                  ls_error *error)
{
    ls_step_sample sample = {.seconds = result->end - step->begin,
                             .times = result->times,
                             .samples = batch->samples,
                             .tokens = batch->offsets[batch->samples],
                             .elements = elements - monitor->elements,
                             .flops = result->flops};
    sample.times.data += result->begin - step->begin;
    monitor->elements = elements;
    monitor->samples += sample.samples;
    monitor->tokens += sample.tokens;
    monitor->skipped += !updated;
    ls_step_statistics_add(monitor->statistics, &sample);
    ls_profile_step_end(monitor->profile, result, &sample.times, step->begin, sample.tokens);
    ls_usage_meter_update(&monitor->usage);
    fill_report(monitor, &sample, report);
    return ls_sinks_step(&monitor->sinks, report, error);
}

ls_status ls_run_monitor_profile(ls_run_monitor *monitor, bool *written, ls_error *error)
{
    *written = ls_profile_is_due(monitor->profile);
    if (!*written) return LS_OK;
    return ls_profile_write(monitor->profile, monitor->profile_notes, error);
}

ls_status ls_run_monitor_evaluation(ls_run_monitor *monitor, const ls_evaluation_report *report,
                                    ls_error *error)
{
    int at = 0;
    while (at < monitor->evaluation_count &&
           strcmp(monitor->evaluations[at].name, report->name) != 0)
        at++;
    if (at < LS_MONITORED_EVALUATIONS) {
        monitor->evaluations[at] = *report;
        if (at == monitor->evaluation_count) monitor->evaluation_count++;
    }
    return ls_sinks_evaluation(&monitor->sinks, report, error);
}

ls_status ls_run_monitor_finish(ls_run_monitor *monitor, ls_error *error)
{
    return ls_sinks_close(&monitor->sinks, error);
}

#include "api/run_monitor.h"

#include <stdio.h>
#include <string.h>

#include "api/settings.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/threads.h"
#include "base/topology.h"

ls_status ls_run_monitor_measure_peak(ls_run_monitor *monitor,
                                      const ls_run_monitor_options *options, ls_error *error)
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

ls_status ls_run_monitor_open(ls_run_monitor *monitor, const ls_run_monitor_options *options,
                              ls_error *error)
{
    return ls_step_statistics_new(&monitor->statistics, options->total_steps, error);
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
    monitor->statistics = NULL;
}

ls_step_times ls_monitored_times(const ls_monitored_step *step, const ls_step_result *result)
{
    ls_step_times times = result->times;
    times.data += result->begin - step->begin;
    return times;
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
                             .times = ls_monitored_times(step, result),
                             .samples = batch->samples,
                             .tokens = batch->offsets[batch->samples],
                             .elements = elements - monitor->elements,
                             .flops = result->flops};
    monitor->elements = elements;
    monitor->samples += sample.samples;
    monitor->tokens += sample.tokens;
    monitor->skipped += !updated;
    ls_step_statistics_add(monitor->statistics, &sample);
    ls_usage_meter_update(&monitor->usage);
    fill_report(monitor, &sample, report);
    return ls_sinks_step(&monitor->sinks, report, error);
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

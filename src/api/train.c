/* ls_train: the steps of a run, and writing what came of it. */
#include "api/training_run.h"
#include "base/alloc.h"
#include "base/digest.h"
#include "base/files.h"

/* Also of a step that was not finite and ends the run: what it found is worth a line. */
static ls_status report_step(ls_training_run *run, const ls_monitored_step *step,
                             const ls_batch *batch, const ls_step_result *result, bool updated,
                             ls_error *error)
{
    const ls_callbacks *callbacks = run->session.callbacks;
    ls_step_report report = {
        .step = step->number,
        .total_steps = run->total_steps,
        .epoch = (double)step->number / (double)run->steps_per_epoch,
        .loss = result->loss,
        .learning_rate = result->learning_rate,
        .gradient_norm = result->gradient_norm,
        .device_bytes = run->report.measured_bytes,
    };
    run->report.seconds += result->end - step->begin;
    report.seconds_left =
        run->report.seconds / (double)step->number * (double)(run->total_steps - step->number);
    LS_TRY(ls_run_monitor_step_end(&run->monitor, step, batch, result,
                                   ls_ranks_elements(run->ranks), updated, &report, error));
    if (callbacks->step) callbacks->step(callbacks->context, &report);
    return LS_OK;
}

static ls_status write_profile_if_due(ls_training_run *run, ls_error *error)
{
    bool written;
    LS_TRY(ls_run_monitor_profile(&run->monitor, &written, error));
    if (!written) return LS_OK;
    if (*run->monitor.profile_notes)
        ls_session_message(&run->session, "%s", run->monitor.profile_notes);
    ls_session_message(&run->session, "profile: %s/summary.txt, and trace.json for Perfetto",
                       run->monitor.profile_folder);
    return LS_OK;
}

static ls_status run_step(ls_training_run *run, ls_error *error)
{
    const ls_batch *batch;
    ls_step_result result;
    bool more;
    ls_monitored_step step = ls_run_monitor_step_begin(&run->monitor, run->report.steps + 1);
    LS_TRY(ls_reader_next(run->reader, &batch, &more, error));
    if (!more) return ls_fail(error, LS_INTERNAL, "the reader ended before the run");
    ls_run_monitor_batch(&run->monitor, &step);
    ls_status status = ls_ranks_step(run->ranks, step.number, batch, &result, error);
    if (status == LS_NOT_FINITE) LS_TRY(report_step(run, &step, batch, &result, false, error));
    if (status != LS_OK) return status;
    run->report.steps++;
    LS_TRY(report_step(run, &step, batch, &result, true, error));
    return write_profile_if_due(run, error);
}

static ls_status evaluate_if_due(ls_training_run *run, ls_error *error)
{
    int64_t step = run->report.steps;
    bool due = step % run->steps_per_epoch == 0 || step == run->total_steps;
    if (!run->validation || !due) return LS_OK;
    return ls_training_run_evaluate(run, run->validation, "validation",
                                    (double)step / (double)run->steps_per_epoch, error);
}

ls_status ls_training_run_steps(ls_training_run *run, ls_error *error)
{
    const ls_callbacks *callbacks = run->session.callbacks;
    while (run->report.steps < run->total_steps) {
        LS_TRY(run_step(run, error));
        bool more_steps = run->report.steps < run->total_steps;
        if (more_steps && callbacks->should_stop && callbacks->should_stop(callbacks->context)) {
            run->report.stopped = true;
            return LS_OK;
        }
        LS_TRY(evaluate_if_due(run, error));
    }
    return LS_OK;
}

static ls_status write_results(ls_training_run *run, ls_error *error)
{
    char *weights = NULL;
    const char *output = run->session.options->output;
    ls_tensor_reader reader = ls_ranks_reader(run->ranks);
    ls_session_stage(&run->session, "saving the model");
    ls_training_run_release(run);
    LS_TRY(ls_output_write_model(output, &run->session.folder, run->session.labels,
                                 run->session.max_length, &reader, &run->programs.training, error));
    LS_TRY(ls_path_join(&weights, output, "model.safetensors", error));
    ls_status status = ls_file_sha256(weights, run->report.weights_sha256, error);
    ls_free(weights);
    return status;
}

static ls_status train(ls_training_run *run, const ls_sources *sources, ls_error *error)
{
    LS_TRY(ls_training_run_start(run, sources, error));
    LS_TRY(ls_training_run_steps(run, error));
    LS_TRY(write_results(run, error));
    if (run->test && !run->report.stopped)
        LS_TRY(ls_training_run_evaluate(run, run->test, "test",
                                        (double)run->report.steps / (double)run->steps_per_epoch,
                                        error));
    LS_TRY(ls_run_monitor_finish(&run->monitor, error));
    return ls_training_run_record(run, true, error);
}

ls_status ls_train(const ls_options *options, const ls_callbacks *callbacks,
                   const ls_sources *sources, ls_train_report *report, ls_error *error)
{
    ls_training_run run;
    if (report) *report = (ls_train_report){0};
    LS_TRY(ls_training_run_open(&run, options, callbacks, LS_COMMAND_TRAIN, error));
    ls_status status = train(&run, sources, error);
    if (report) *report = run.report;
    bool stopped = run.report.stopped;
    long long steps = (long long)run.report.steps;
    ls_training_run_close(&run);
    if (status != LS_OK || !stopped) return status;
    return ls_fail(error, LS_INTERRUPTED,
                   "stopped by request after step %lld; the model so far is in %s", steps,
                   options->output);
}

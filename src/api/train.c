/* ls_train: the steps of a run, and writing what came of it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/rank_logs.h"
#include "api/run_facts.h"
#include "api/training_run.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/files.h"
#include "base/numbers.h"

/* Loss or norm is not finite: the step has updated nothing on any rank. */
static ls_status skip_or_stop(ls_training_run *run, int64_t step, const ls_step_result *result,
                              ls_error *error)
{
    char loss[LS_NUMBER_BYTES], norm[LS_NUMBER_BYTES], what[200];
    const char *separator = *result->finding ? "; " : "";
    snprintf(what, sizeof what, "step %" PRId64 ": loss %s, gradient norm %s", step,
             ls_number_print(loss, result->loss), ls_number_print(norm, result->gradient_norm));
    if (strcmp(run->used.on_nan, "skip") != 0)
        return ls_fail(error, LS_NOT_FINITE,
                       "%s: nothing was updated in this step%s%s. Try a lower --learning-rate or "
                       "more --warmup-steps, or leave such steps out with --on-nan skip",
                       what, separator, result->finding);
    run->report.skipped_steps++;
    ls_session_message(&run->session, "%s: the step is skipped%s%s", what, separator,
                       result->finding);
    return LS_OK;
}

/* Also of a step that was not finite and ends the run: what it found is worth a line. */
static ls_status report_step(ls_training_run *run, const ls_monitored_step *step,
                             const ls_batch *batch, const ls_step_result *result, ls_error *error)
{
    const ls_callbacks *callbacks = run->session.callbacks;
    run->report.seconds += result->end - step->begin;
    LS_TRY(ls_rank_logs_step(run, batch, step->number, result, error));
    if (!ls_session_is_first(&run->session)) return LS_OK;
    ls_step_report report = {
        .step = step->number,
        .total_steps = run->total_steps,
        .epoch = (double)step->number / (double)run->steps_per_epoch,
        .loss = result->loss,
        .learning_rate = result->learning_rate,
        .gradient_norm = result->gradient_norm,
        .skipped = !result->finite,
        .samples_digest = result->samples_digest,
        .device_bytes = run->report.measured_bytes,
    };
    report.seconds_left = run->report.seconds / (double)(step->number - run->report.resumed_step) *
                          (double)(run->total_steps - step->number);
    LS_TRY(ls_run_monitor_step_end(&run->monitor, step, batch, result,
                                   ls_ranks_elements(run->ranks), result->finite, &report, error));
    if (callbacks->step) callbacks->step(callbacks->context, &report);
    return LS_OK;
}

static ls_status run_step(ls_training_run *run, ls_error *error)
{
    const ls_batch *batch;
    ls_step_result result;
    bool more;
    ls_monitored_step step = {run->report.steps + 1, ls_seconds()};
    ls_run_profile_step_begin(&run->profile, &step);
    LS_TRY(ls_reader_next(run->reader, &batch, &more, error));
    if (!more) return ls_fail(error, LS_INTERNAL, "the reader ended before the run");
    ls_run_profile_batch(&run->profile, &step);
    if (run->used.audit_every > 0 && step.number % run->used.audit_every == 0)
        LS_TRY(ls_ranks_step_audited(run->ranks, step.number, batch, &result, error));
    else
        LS_TRY(ls_ranks_step(run->ranks, step.number, batch, &result, error));
    ls_run_profile_step_end(&run->profile, &step, batch, &result);
    LS_TRY(report_step(run, &step, batch, &result, error));
    if (!result.finite) LS_TRY(skip_or_stop(run, step.number, &result, error));
    run->report.steps++;
    run->report.stopped = result.stop && run->report.steps < run->total_steps;
    return ls_run_profile_write_if_due(&run->profile, &run->session, error);
}

static ls_status evaluate_if_due(ls_training_run *run, ls_error *error)
{
    int64_t step = run->report.steps;
    bool due = step % run->steps_per_epoch == 0 || step == run->total_steps;
    if (!run->validation || !due || run->checkpoints.evaluated == step) return LS_OK;
    return ls_training_run_evaluate(run, run->validation, "validation",
                                    (double)step / (double)run->steps_per_epoch, error);
}

/* A stop may have come between a step and its evaluation. */
static ls_status catch_up(ls_training_run *run, ls_error *error)
{
    if (run->report.steps == 0) return LS_OK;
    int64_t evaluated = run->checkpoints.evaluated;
    LS_TRY(evaluate_if_due(run, error));
    if (run->checkpoints.evaluated == evaluated) return LS_OK;
    return ls_checkpoints_step(run, false, error);
}

/* All steps, with an evaluation after each epoch and at the end. */
static ls_status run_steps(ls_training_run *run, ls_error *error)
{
    LS_TRY(catch_up(run, error));
    while (run->report.steps < run->total_steps && !run->report.stopped) {
        LS_TRY(run_step(run, error));
        if (!run->report.stopped) LS_TRY(evaluate_if_due(run, error));
        LS_TRY(ls_checkpoints_step(run, run->report.stopped, error));
    }
    return LS_OK;
}

/* What is read to be saved, with the percentage of it. */
typedef struct saving {
    ls_session_progress progress;
    ls_tensor_reader reader;
    int64_t done, total; /* elements */
} saving;

static int64_t parameter_elements(const ls_assembly *assembly)
{
    int64_t sum = 0;
    for (size_t i = 0; i < assembly->model.parameter_count; i++) {
        ls_value_id id = assembly->model.parameters[i].value;
        sum += ls_value_elements(ls_value_of(assembly->program, id), &ls_fixed_extents);
    }
    return sum;
}

static ls_status read_and_show(void *context, ls_value_id value, int64_t first, int64_t count,
                               float *to, ls_error *error)
{
    saving *s = context;
    LS_TRY(s->reader.read(s->reader.context, value, first, count, to, error));
    s->done += count;
    ls_session_show(&s->progress, s->done, s->total);
    return LS_OK;
}

static ls_status write_results(ls_training_run *run, ls_error *error)
{
    char *weights = NULL;
    const char *output = run->session.options->output;
    saving shown = {.progress = {&run->session, "saving the model"},
                    .reader = ls_ranks_reader(run->ranks)};
    ls_tensor_reader reader = {read_and_show, &shown};
    shown.total = parameter_elements(&run->programs.training);
    ls_session_stage(&run->session, shown.progress.what);
    ls_training_run_release(run);
    LS_TRY(ls_output_write_model(output, &run->session.folder, run->session.labels,
                                 run->session.max_length, &reader, &run->programs.training, error));
    LS_TRY(ls_path_join(&weights, output, "model.safetensors", error));
    ls_status status = ls_file_sha256(weights, run->report.weights_sha256, error);
    ls_free(weights);
    return status;
}

/* The first process writes, the others send it what they hold. The model is there for all when they
 * go on. */
static ls_status write_results_once(ls_training_run *run, ls_error *error)
{
    ls_status status, served = LS_OK;
    if (ls_session_place(&run->session)->count == 1) return write_results(run, error);
    if (ls_session_is_first(&run->session)) {
        status = write_results(run, error);
        served = ls_ranks_end_serving(run->ranks, status == LS_OK ? error : NULL);
    } else {
        status = ls_ranks_serve(run->ranks, error);
    }
    return ls_training_run_agree(run, status == LS_OK ? served : status, "the writing of the model",
                                 error);
}

static ls_status finish_record(ls_training_run *run, ls_error *error)
{
    if (!ls_session_is_first(&run->session)) return LS_OK;
    LS_TRY(ls_run_monitor_finish(&run->monitor, error));
    return ls_training_run_record(run, true, error);
}

static ls_status train(ls_training_run *run, const ls_sources *sources, ls_error *error)
{
    ls_status status = ls_training_run_start(run, sources, error);
    LS_TRY(ls_session_agree(&run->session, status, "the start of the run", error));
    LS_TRY(ls_rank_logs_open(run, error));
    LS_TRY(run_steps(run, error));
    LS_TRY(write_results_once(run, error));
    if (run->test && !run->report.stopped)
        LS_TRY(ls_training_run_evaluate(run, run->test, "test",
                                        (double)run->report.steps / (double)run->steps_per_epoch,
                                        error));
    ls_error unsaved;
    ls_status saved = ls_checkpoints_finish(run, &unsaved);
    LS_TRY(finish_record(run, error));
    /* The model is there all the same. */
    if (saved != LS_OK && error) *error = unsaved;
    return saved;
}

void ls_finish_processes(void)
{
    ls_processes_finish();
}

ls_status ls_train(const ls_options *options, const ls_callbacks *callbacks,
                   const ls_sources *sources, ls_train_report *report, ls_error *error)
{
    ls_training_run run;
    if (report) *report = (ls_train_report){0};
    LS_TRY(ls_training_run_open(&run, options, callbacks, LS_COMMAND_TRAIN, error));
    ls_status status = train(&run, sources, error);
    /* The first failure is told, not that of the log about it. */
    ls_status logged = ls_rank_logs_line(&run, status == LS_OK || !error ? "end" : error->text,
                                         status == LS_OK ? error : NULL);
    if (status == LS_OK) status = logged;
    status = ls_training_run_agree(&run, status, "the end of the run", error);
    if (report) *report = run.report;
    bool stopped = run.report.stopped, saved = run.checkpoints.saved == run.report.steps;
    bool first = ls_session_is_first(&run.session);
    long long steps = (long long)run.report.steps;
    ls_training_run_close(&run);
    if (status != LS_OK || !stopped) return status;
    ls_fail(error, LS_INTERRUPTED,
            "stopped by request after step %lld; the model so far is in %s%s", steps,
            options->output, saved ? ", --resume auto goes on from there" : "");
    if (!first && error) error->text[0] = '\0';
    return LS_INTERRUPTED;
}

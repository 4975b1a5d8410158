#include "api/training_run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/comparison.h"
#include "api/fitting.h"
#include "api/rank_logs.h"
#include "api/run_facts.h"
#include "api/run_output.h"
#include "api/training_memory.h"
#include "base/alloc.h"
#include "base/clock.h"

enum {
    WRITING_BYTES = 2 << 20, /* buffers of a file, its digest, run.json */
};

static ls_status open_datasets(ls_training_run *run, ls_error *error)
{
    const ls_options *options = run->session.options;
    const char *cache = options->output;
    LS_TRY(ls_session_dataset(&run->session, &run->train, options->train, true, cache, error));
    if (options->validation)
        LS_TRY(ls_session_dataset(&run->session, &run->validation, options->validation, true, cache,
                                  error));
    if (options->test)
        LS_TRY(ls_session_dataset(&run->session, &run->test, options->test, true, cache, error));
    return LS_OK;
}

const ls_weights *ls_training_run_weights(const ls_training_run *run)
{
    const ls_weights *saved = run->checkpoints.model;
    return saved ? saved : run->session.folder.weights;
}

static ls_status describe_memory(ls_training_run *run, ls_run_memory_options *memory,
                                 ls_error *error)
{
    *memory = ls_training_memory_options(&run->session, ls_labels_count(run->session.labels),
                                         run->train, run->validation, run->test);
    return ls_session_message_bytes(&run->session, &memory->training.message_bytes, error);
}

/* The strategy of the run is the one that was chosen from here on. All processes choose together.
 */
static ls_status choose_strategy(ls_training_run *run, ls_error *error)
{
    ls_session *session = &run->session;
    ls_run_memory_options memory;
    if (session->strategy.kind) return LS_OK;
    ls_session_stage(session, "measuring this machine to choose a strategy");
    LS_TRY(describe_memory(run, &memory, error));
    LS_TRY(ls_auto_choose(&run->choice, session, &memory,
                          ls_training_row_tokens(run->train, &memory), error));
    for (int i = 0; i < run->choice.count; i++)
        ls_session_message(session, "%s", run->choice.lines[i]);
    session->strategy = run->choice.chosen.strategy;
    return LS_OK;
}

static ls_status make_programs(ls_training_run *run, ls_error *error)
{
    ls_run_memory_options memory;
    LS_TRY(describe_memory(run, &memory, error));
    LS_TRY(ls_run_programs_find(&run->programs, &memory, run->session.device, error));
    if (!ls_run_programs_fit(&run->programs, run->session.device))
        return ls_fitting_refuse(&run->session, &memory, error);
    LS_TRY(ls_parameters_check(&run->programs.training, ls_training_run_weights(run), error));
    LS_TRY(ls_training_check_memory(&run->session, &run->programs, error));
    run->used.samples_per_pass = run->programs.training.samples_per_pass;
    run->used.bucket_size = memory.training.bucket_bytes;
    run->used.threads = ls_cpu_device_threads(run->session.device);
    ls_strategy_used(&run->used, &run->session.strategy);
    if (run->choice.count) run->used.strategy = run->session.strategy.kind->name;
    return LS_OK;
}

static void plan_steps(ls_training_run *run)
{
    ls_options *used = &run->used;
    int64_t count = ls_dataset_count(run->train);
    run->steps_per_epoch = (count + used->batch_size - 1) / used->batch_size;
    run->total_steps = (int64_t)ceil(used->epochs * (double)run->steps_per_epoch);
    if (used->max_steps > 0) run->total_steps = used->max_steps;
    if (used->warmup_steps == 0)
        used->warmup_steps = (int64_t)ceil(used->warmup_ratio * (double)run->total_steps);
    if (used->lr_scheduler_steps == 0) used->lr_scheduler_steps = run->total_steps;
}

static void report_offload(ls_training_run *run)
{
    const int64_t *planned = run->programs.training.plan.bytes;
    ls_train_report *report = &run->report;
    report->planned_host_bytes = planned[LS_PLAN_HOST_MEMORY];
    report->planned_file_bytes = planned[LS_PLAN_FILE];
    report->measured_host_bytes = ls_ranks_offloaded(run->ranks, LS_PLAN_HOST_MEMORY);
    report->measured_file_bytes = ls_ranks_offloaded(run->ranks, LS_PLAN_FILE);
    if (!ls_ranks_are_direct(run->ranks))
        ls_session_message(&run->session,
                           "--offload-path %s: no direct access to files there; they pass through "
                           "the page cache, which is told to drop them",
                           run->used.offload_path);
}

static ls_status allocate_shared(void *context, int64_t bytes, const char *what, void **out,
                                 ls_error *error)
{
    return ls_processes_allocate(context, bytes, what, out, error);
}

static void share_memory(ls_training_run *run)
{
    run->shared_memory = (ls_shared_memory){run->session.processes, allocate_shared};
    for (int i = 0; i < run->session.device_count; i++)
        if (ls_session_place(&run->session)->local_count > 1)
            run->session.devices[i]->shared = &run->shared_memory;
}

static ls_status make_ranks(ls_training_run *run, ls_error *error)
{
    const ls_options *used = &run->used;
    const ls_callbacks *callbacks = run->session.callbacks;
    share_memory(run);
    ls_ranks_options ranks = {
        .programs = &run->programs,
        .devices = run->session.devices,
        .count = run->session.device_count,
        .processes = run->session.processes,
        .should_stop = callbacks->should_stop,
        .context = callbacks->context,
        .trainer = {.leaf_size = used->leaf_size,
                    .seed = used->seed,
                    .audit = used->audit_every > 0,
                    .exchange_last = !used->overlap_communication,
                    .skipped = run->report.skipped_steps,
                    .schedule = {.peak = used->learning_rate,
                                 .warmup_steps = used->warmup_steps,
                                 .total_steps = used->lr_scheduler_steps,
                                 .warmup_least_rate = used->warmup_min_lr,
                                 .warmup_least_ratio = used->warmup_min_ratio,
                                 .cosine_least_ratio = used->cosine_min_ratio},
                    .offload_folder = used->offload_path,
                    .beta1 = used->adam_beta1,
                    .beta2 = used->adam_beta2},
    };
    int64_t classes = ls_labels_count(run->session.labels);
    LS_TRY(ls_schedule_kind_of(&ranks.trainer.schedule.kind, used->lr_scheduler_type, error));
    LS_TRY(ls_warmup_kind_of(&ranks.trainer.schedule.warmup, used->warmup_type, error));
    LS_TRY(ls_ranks_new(&run->ranks, &ranks, error));
    LS_TRY(ls_checkpoints_open(run, error));
    LS_TRY(LS_NEW(run->confusion, classes * classes, "confusion counts", error));
    report_offload(run);
    run->report.rank = ls_session_place(&run->session)->index * run->session.device_count;
    run->report.ranks = ls_session_ranks(&run->session);
    run->report.planned_bytes = ls_run_programs_bytes(&run->programs);
    for (int i = 0; i < run->session.device_count; i++)
        if (run->session.devices[i]->allocated_bytes > run->report.measured_bytes)
            run->report.measured_bytes = run->session.devices[i]->allocated_bytes;
    return ls_session_label_names(&run->session, &run->label_names, error);
}

static void go_on_counting(ls_training_run *run)
{
    run->monitor.samples = run->checkpoints.position.samples;
    run->monitor.tokens = run->checkpoints.position.tokens;
    run->monitor.skipped = run->checkpoints.position.skipped_steps;
    run->monitor.keep = run->checkpoints.folder != NULL;
}

static ls_status open_monitor(ls_training_run *run, ls_error *error)
{
    const ls_options *options = run->session.options;
    bool first = ls_session_is_first(&run->session), profile = ls_run_profile_is_wanted(options);
    int64_t tokens = (int64_t)ls_dataset_tokens(run->train) / (int64_t)ls_dataset_count(run->train);
    ls_run_monitor_options monitored = {.programs = &run->programs,
                                        .ranks = run->session.device_count,
                                        .threads = ls_cpu_device_threads(run->session.device),
                                        .total_steps = run->total_steps,
                                        .step_tokens = tokens * run->used.batch_size};
    if (first) LS_TRY(ls_run_monitor_open(&run->monitor, &monitored, error));
    if (profile || (first && options->measure_peak)) {
        ls_session_stage(&run->session, "measuring this machine's peak");
        LS_TRY(ls_run_monitor_measure_peak(&run->monitor, &monitored, error));
    }
    go_on_counting(run);
    LS_TRY(ls_run_profile_open(&run->profile, &run->session, &run->programs, &run->monitor.peak,
                               run->total_steps, error));
    ls_ranks_trace(run->ranks, ls_profile_trace(run->profile.profile));
    return LS_OK;
}

static ls_status load_weights(ls_training_run *run, ls_error *error)
{
    ls_parameters_notes notes = {0};
    ls_session_stage(&run->session, "loading the weights");
    ls_status status =
        ls_ranks_load(run->ranks, ls_training_run_weights(run), run->used.seed, &notes, error);
    if (status == LS_OK && notes.initialised.length)
        ls_session_message(&run->session, "new weights, drawn from the seed: %s",
                           notes.initialised.data);
    if (status == LS_OK && notes.unused.length)
        ls_session_message(&run->session, "tensors that this model does not use: %s",
                           notes.unused.data);
    ls_parameters_notes_deinit(&notes);
    return status == LS_OK ? ls_checkpoints_load(run, error) : status;
}

static ls_status start_reading(ls_training_run *run, ls_error *error)
{
    ls_sampler_options order = {
        .count = ls_dataset_count(run->train),
        .lengths = ls_dataset_lengths(run->train),
        .batch_size = (int32_t)run->used.batch_size,
        .leaf_size = (int32_t)run->used.leaf_size,
        .seed = run->used.seed,
    };
    LS_TRY(ls_sampler_new(&run->sampler, &order, error));
    ls_reader_options reading = {
        .dataset = run->train,
        .sampler = run->sampler,
        .epoch = run->report.steps / run->steps_per_epoch,
        .batch = run->report.steps % run->steps_per_epoch,
        .track = ls_trace_track(ls_profile_trace(run->profile.profile), 0, LS_TRACE_DATA)};
    return ls_reader_new(&run->reader, &reading, error);
}

/* Goyal et al. 2017 (linear), Krizhevsky 2014 (sqrt). */
static void scale_learning_rate(ls_training_run *run)
{
    ls_options *used = &run->used;
    if (strcmp(used->learning_rate_scaling, "none") == 0) return;
    double factor = (double)used->batch_size / (double)used->base_batch_size;
    if (strcmp(used->learning_rate_scaling, "sqrt") == 0) factor = sqrt(factor);
    used->learning_rate *= factor;
    ls_session_message(&run->session,
                       "learning rate %g: %g for a batch of %lld, times %g for one of %lld",
                       used->learning_rate, run->session.options->learning_rate,
                       (long long)used->base_batch_size, factor, (long long)used->batch_size);
}

/* What each process does by itself: checks and data. */
static ls_status prepare(ls_training_run *run, ls_error *error)
{
    scale_learning_rate(run);
    LS_TRY(open_datasets(run, error));
    plan_steps(run);
    run->used.max_length = run->session.max_length;
    LS_TRY(ls_checkpoints_match(run, error));
    ls_run_memory_options memory;
    LS_TRY(describe_memory(run, &memory, error));
    return ls_training_check_ranks(&run->session, &memory, error);
}

static ls_status start(ls_training_run *run, ls_error *error)
{
    LS_TRY(make_ranks(run, error));
    LS_TRY(open_monitor(run, error));
    LS_TRY(load_weights(run, error));
    return start_reading(run, error);
}

/* What all agreed on is said by the first process; of a loss each says what it knows. */
static void leave_text_to_the_first(const ls_training_run *run, ls_status status, ls_error *error)
{
    if (error && status != LS_OK && status != LS_LOST && !ls_session_is_first(&run->session))
        error->text[0] = '\0';
}

ls_status ls_training_run_agree(ls_training_run *run, ls_status mine, const char *task,
                                ls_error *error)
{
    if (mine != LS_OK && run->ranks) ls_ranks_abort(run->ranks, error);
    ls_status status = ls_session_agree(&run->session, mine, task, error);
    leave_text_to_the_first(run, status, error);
    return status;
}

ls_status ls_training_run_open(ls_training_run *run, const ls_options *options,
                               const ls_callbacks *callbacks, unsigned command, ls_error *error)
{
    *run = (ls_training_run){.used = *options};
    ls_status status =
        ls_session_open(&run->session, options, callbacks, command, LS_TRAINING_LENGTH, error);
    status = ls_session_agree(&run->session, status, "the opening of the model", error);
    if (status == LS_OK) status = ls_training_run_take_output(run, error);
    if (status == LS_OK) status = ls_checkpoints_choose(run, error);
    if (status == LS_OK) {
        status = prepare(run, error);
        status = ls_session_agree(&run->session, status, "the reading of the data", error);
    }
    if (status == LS_OK) status = choose_strategy(run, error);
    if (status == LS_OK) {
        status = make_programs(run, error);
        status = ls_session_agree(&run->session, status, "the plan", error);
    }
    if (status == LS_OK) status = ls_training_run_compare(run, error);
    if (status == LS_OK) {
        status = start(run, error);
        status = ls_training_run_agree(run, status, "the start of the ranks", error);
    }
    if (status != LS_OK) {
        /* One that failed alone, between two agreements, says so before it leaves. */
        status = ls_session_agree(&run->session, status, "the start of the run", error);
        leave_text_to_the_first(run, status, error);
        ls_training_run_close(run);
    }
    return status;
}

/* In an order in which a full disk does not take a former run's model along. */
ls_status ls_training_run_start(ls_training_run *run, const ls_sources *sources, ls_error *error)
{
    const char *output = run->session.options->output;
    run->sources = sources;
    if (!ls_session_is_first(&run->session)) return LS_OK;
    run->reserve = ls_allocate_pages(WRITING_BYTES, false);
    if (!run->reserve)
        return ls_fail(error, LS_NO_MEMORY, "out of memory: %d bytes for writing the model",
                       WRITING_BYTES);
    LS_TRY(ls_run_monitor_start(&run->monitor, run->session.options, error));
    LS_TRY(ls_training_run_record(run, false, error));
    ls_status status = ls_output_clear(output, "run.json", error);
    if (status == LS_OK) status = ls_checkpoints_restore(run, error);
    if (status == LS_OK)
        status = ls_run_monitor_start_metrics(&run->monitor, run->session.options, error);
    if (status == LS_OK)
        run->made_output = 0;
    else
        (void)ls_output_clear(output, NULL, NULL);
    return status;
}

void ls_training_run_release(ls_training_run *run)
{
    ls_free_pages(run->reserve, WRITING_BYTES);
    run->reserve = NULL;
}

void ls_training_run_close(ls_training_run *run)
{
    ls_training_run_release(run);
    ls_checkpoints_close(run);
    ls_rank_logs_close(run);
    ls_reader_free(run->reader);
    ls_sampler_free(run->sampler);
    ls_ranks_free(run->ranks);
    ls_run_profile_close(&run->profile); /* after the threads that record */
    ls_run_monitor_close(&run->monitor);
    ls_run_programs_deinit(&run->programs);
    ls_auto_choice_deinit(&run->choice);
    ls_free(run->confusion);
    ls_free(run->label_names);
    ls_dataset_free(run->train);
    ls_dataset_free(run->validation);
    ls_dataset_free(run->test);
    ls_folder_lock_release(&run->output_lock);
    if (run->session.options->output)
        ls_output_unmake(run->session.options->output, run->made_output);
    ls_session_close(&run->session);
}

double ls_training_run_seconds(const ls_training_run *run)
{
    return run->seconds_before + run->report.seconds;
}

ls_status ls_training_run_evaluate(ls_training_run *run, const ls_dataset *dataset,
                                   const char *name, double epoch, ls_error *error)
{
    const ls_callbacks *callbacks = run->session.callbacks;
    ls_session_progress progress = {.session = &run->session};
    ls_evaluation evaluation = {
        .confusion = run->confusion, .progress = ls_session_show, .progress_context = &progress};
    double start = ls_seconds();
    snprintf(progress.what, sizeof progress.what, "evaluating the %s file", name);
    ls_session_stage(&run->session, progress.what);
    LS_TRY(ls_ranks_evaluate(run->ranks, dataset, run->used.leaf_size, &evaluation, error));
    int32_t classes = ls_labels_count(run->session.labels);
    ls_evaluation_report report = {
        .name = name,
        .epoch = epoch,
        .step = run->report.steps,
        .samples = evaluation.samples,
        .tokens = evaluation.tokens,
        .classes = classes,
        .labels = run->label_names,
        .confusion = run->confusion,
        .loss = evaluation.loss,
        .accuracy = ls_accuracy(run->confusion, classes),
        .macro_f1 = ls_macro_f1(run->confusion, classes),
        .seconds = ls_seconds() - start,
    };
    char line[200];
    snprintf(line, sizeof line, "%s, step %lld: accuracy %.4f, loss %.6g, %.3f s", name,
             (long long)report.step, report.accuracy, report.loss, report.seconds);
    LS_TRY(ls_rank_logs_line(run, line, error));
    if (dataset == run->validation) ls_checkpoints_validated(run, &report);
    if (!ls_session_is_first(&run->session)) return LS_OK;
    LS_TRY(ls_run_monitor_evaluation(&run->monitor, &report, error));
    if (callbacks->evaluation) callbacks->evaluation(callbacks->context, &report);
    return LS_OK;
}

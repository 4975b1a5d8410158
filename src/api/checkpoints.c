/* When a run saves, and what it tells of it. */
#include "api/checkpoints.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/training_run.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/staging.h"
#include "formats/json.h"

/* Whether a run writes checkpoints by itself; a stop may ask for one in any. */
static bool saves(const ls_options *options)
{
    return options->save_every > 0 || options->keep_best;
}

bool ls_checkpoints_use_snapshots(const ls_options *options)
{
    return options->save_async && saves(options);
}

ls_status ls_checkpoints_open(ls_training_run *run, ls_error *error)
{
    const ls_options *options = run->session.options;
    if (!options->output || !(saves(options) || options->save_on_signal)) return LS_OK;
    ls_saver_options saver = {
        .output = options->output,
        .owners = ls_ranks_owners(run->ranks),
        .group = ls_ranks_group(run->ranks),
        .processes = run->session.processes,
        .folder = &run->session.folder,
        .labels = run->session.labels,
        .max_length = run->session.max_length,
        .limit = options->save_total_limit,
        .background = ls_checkpoints_use_snapshots(options),
    };
    return ls_saver_new(&run->checkpoints.saver, &saver, error);
}

/* --- what came of it ------------------------------------------------------------------------- */

/* What "auto" had to skip is of no use to anyone once there is a whole one. */
static void remove_broken(ls_training_run *run)
{
    ls_checkpoints *checkpoints = &run->checkpoints;
    const char *output = run->session.options->output;
    for (size_t i = 0; i < checkpoints->broken.count; i++) {
        char *path = NULL;
        ls_status status = LS_OK;
        ls_error error;
        if (checkpoints->broken.steps[i] == checkpoints->saved) continue;
        status = ls_checkpoint_path(&path, output, checkpoints->broken.steps[i], &error);
        if (status == LS_OK) status = ls_folder_remove(path, &error);
        if (status != LS_OK) ls_session_message(&run->session, "%s", error.text);
        ls_free(path);
    }
    ls_checkpoint_list_deinit(&checkpoints->broken);
}

static void tell(ls_training_run *run, const ls_saved *saved)
{
    ls_checkpoints *checkpoints = &run->checkpoints;
    if (saved->status != LS_OK) {
        checkpoints->failed++;
        checkpoints->why = saved->status;
        checkpoints->failure = saved->error;
        if (checkpoints->best.step == saved->step) checkpoints->best.lost = true;
        ls_session_message(&run->session,
                           "checkpoint-%" PRId64 " was not saved, training goes on: %s",
                           saved->step, saved->error.text);
        return;
    }
    checkpoints->saved = saved->step;
    checkpoints->saves.count++;
    checkpoints->saves.seconds += saved->seconds;
    checkpoints->failed = 0;
    if (saved->pruned != LS_OK)
        ls_session_message(&run->session, "checkpoints that are no longer needed stay: %s",
                           saved->error.text);
    remove_broken(run);
}

/* Moves a save on that has begun. */
static ls_status poll(ls_training_run *run, ls_error *error)
{
    ls_saver *saver = run->checkpoints.saver;
    ls_saved saved;
    bool ended;
    if (!ls_saver_is_saving(saver)) return LS_OK;
    LS_TRY(ls_saver_poll(saver, &ended, &saved, error));
    if (ended) tell(run, &saved);
    return LS_OK;
}

static void show(const ls_training_run *run, int64_t step)
{
    const ls_callbacks *callbacks = run->session.callbacks;
    char what[64];
    int64_t done, total;
    if (!callbacks->stage) return;
    snprintf(what, sizeof what, "saving checkpoint-%" PRId64, step);
    ls_saver_progress(run->checkpoints.saver, &done, &total);
    callbacks->stage(callbacks->context, what, done, total);
}

/* Until what has begun is written; meanwhile the thread has the machine for itself. */
static ls_status wait_for_save(ls_training_run *run, ls_error *error)
{
    ls_saver *saver = run->checkpoints.saver;
    while (ls_saver_is_saving(saver)) {
        show(run, run->checkpoints.started);
        if (ls_saver_is_busy(saver)) ls_sleep(0.02);
        LS_TRY(poll(run, error));
    }
    return LS_OK;
}

/* --- saving ---------------------------------------------------------------------------------- */

/* Whole lines of metrics.jsonl so far. */
static ls_status metrics_bytes(const ls_training_run *run, int64_t *bytes, ls_error *error)
{
    char *path = NULL;
    ls_file file = {0};
    LS_TRY(ls_path_join(&path, run->session.options->output, LS_CHECKPOINT_METRICS, error));
    ls_status status = ls_file_open(&file, path, error);
    *bytes = (int64_t)file.bytes;
    ls_file_close(&file);
    ls_free(path);
    return status;
}

/* What the first process alone knows. */
static ls_status put_texts(const ls_training_run *run, ls_checkpoint_contents *contents,
                           ls_error *error)
{
    if (!ls_session_is_first(&run->session)) return LS_OK;
    LS_TRY(metrics_bytes(run, &contents->metrics_bytes, error));
    return ls_trainer_record_print(run, &contents->trainer, &contents->trainer_length, error);
}

static ls_status save(ls_training_run *run, bool background, ls_error *error)
{
    ls_checkpoints *checkpoints = &run->checkpoints;
    const ls_best *best = &checkpoints->best;
    LS_TRY(wait_for_save(run, error));
    ls_checkpoint_contents contents = {
        .step = run->report.steps,
        .best = best->lost ? -1 : best->step,
    };
    contents.status = put_texts(run, &contents, &contents.error);
    checkpoints->started = contents.step;
    LS_TRY(ls_saver_save(checkpoints->saver, &contents, background, error));
    show(run, contents.step);
    if (!ls_checkpoints_use_snapshots(run->session.options) || !background)
        return wait_for_save(run, error);
    return LS_OK;
}

static bool is_better(const ls_training_run *run, double value)
{
    const ls_best *best = &run->checkpoints.best;
    bool lower = strcmp(run->session.options->keep_best, "loss") == 0;
    if (!__builtin_isfinite(value)) return false;
    return best->step < 0 || (lower ? value < best->value : value > best->value);
}

void ls_checkpoints_validated(ls_training_run *run, const ls_evaluation_report *report)
{
    ls_checkpoints *checkpoints = &run->checkpoints;
    const char *metric = run->session.options->keep_best;
    checkpoints->evaluated = report->step;
    if (!metric) return;
    double value = report->accuracy;
    if (strcmp(metric, "macro_f1") == 0) value = report->macro_f1;
    if (strcmp(metric, "loss") == 0) value = report->loss;
    if (is_better(run, value)) checkpoints->best = (ls_best){.value = value, .step = report->step};
}

ls_status ls_checkpoints_step(ls_training_run *run, bool stopping, ls_error *error)
{
    const ls_options *options = run->session.options;
    ls_checkpoints *checkpoints = &run->checkpoints;
    int64_t step = run->report.steps;
    if (!checkpoints->saver) return LS_OK;
    LS_TRY(poll(run, error));
    bool due = options->save_every > 0 && step % options->save_every == 0;
    bool best = options->keep_best && checkpoints->best.step == step;
    bool asked = stopping && options->save_on_signal;
    return due || best || asked ? save(run, !stopping, error) : LS_OK;
}

ls_status ls_checkpoints_finish(ls_training_run *run, ls_error *error)
{
    ls_checkpoints *checkpoints = &run->checkpoints;
    if (!checkpoints->saver) return LS_OK;
    LS_TRY(wait_for_save(run, error));
    if (checkpoints->failed == 0) return LS_OK;
    return ls_fail(error, checkpoints->why,
                   "the last %" PRId64 " checkpoint%s could not be saved: %s", checkpoints->failed,
                   checkpoints->failed == 1 ? "" : "s", checkpoints->failure.text);
}

const char *ls_checkpoints_best_name(const ls_training_run *run, char name[64])
{
    const ls_best *best = &run->checkpoints.best;
    if (best->step < 0 || best->lost || !run->session.options->keep_best) return NULL;
    snprintf(name, 64, "checkpoint-%" PRId64, best->step);
    return name;
}

void ls_checkpoints_close(ls_training_run *run)
{
    ls_checkpoints *checkpoints = &run->checkpoints;
    ls_saver_free(checkpoints->saver);
    ls_json_free(checkpoints->trainer);
    ls_weights_free(checkpoints->model);
    ls_weights_free(checkpoints->optimizer);
    ls_checkpoint_list_deinit(&checkpoints->broken);
    ls_free(checkpoints->folder);
    *checkpoints = (ls_checkpoints){0};
}

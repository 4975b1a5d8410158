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
    if (ls_session_place(&run->session)->count > 1) return LS_OK;
    ls_saver_options saver = {
        .output = options->output,
        .owners = ls_ranks_owners(run->ranks),
        .group = ls_ranks_group(run->ranks),
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
    checkpoints->failed = 0;
    if (saved->pruned != LS_OK)
        ls_session_message(&run->session, "checkpoints that are no longer needed stay: %s",
                           saved->error.text);
    remove_broken(run);
}

static void poll(ls_training_run *run)
{
    ls_saved saved;
    if (ls_saver_poll(run->checkpoints.saver, &saved)) tell(run, &saved);
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

/* Until the former one is written; meanwhile the thread has the machine for itself. */
static void wait_for_former(ls_training_run *run)
{
    ls_saver *saver = run->checkpoints.saver;
    while (ls_saver_is_busy(saver)) {
        show(run, run->checkpoints.started);
        ls_sleep(0.02);
    }
    ls_saver_wait(saver);
    poll(run);
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

static void save(ls_training_run *run, bool background)
{
    ls_checkpoints *checkpoints = &run->checkpoints;
    const ls_best *best = &checkpoints->best;
    wait_for_former(run);
    ls_checkpoint_contents contents = {
        .step = run->report.steps,
        .best = best->lost ? -1 : best->step,
    };
    ls_saved saved = {.step = contents.step};
    checkpoints->started = contents.step;
    saved.status = metrics_bytes(run, &contents.metrics_bytes, &saved.error);
    if (saved.status == LS_OK)
        saved.status =
            ls_trainer_record_print(run, &contents.trainer, &contents.trainer_length, &saved.error);
    if (saved.status != LS_OK) {
        tell(run, &saved);
        return;
    }
    ls_saver_save(checkpoints->saver, &contents, background);
    show(run, contents.step);
    poll(run);
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
    (void)error;
    const ls_options *options = run->session.options;
    ls_checkpoints *checkpoints = &run->checkpoints;
    int64_t step = run->report.steps;
    if (!checkpoints->saver) return LS_OK;
    poll(run);
    bool due = options->save_every > 0 && step % options->save_every == 0;
    bool best = options->keep_best && checkpoints->best.step == step;
    bool asked = stopping && options->save_on_signal;
    if (due || best || asked) save(run, !stopping);
    return LS_OK;
}

ls_status ls_checkpoints_finish(ls_training_run *run, ls_error *error)
{
    ls_checkpoints *checkpoints = &run->checkpoints;
    if (!checkpoints->saver) return LS_OK;
    wait_for_former(run);
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

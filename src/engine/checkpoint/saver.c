#include "engine/checkpoint/saver.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "engine/checkpoint/save_phases.h"

/* The thread that writes takes what the ranks' threads leave of the cores. Not SCHED_IDLE: where
 * they leave nothing for long, a save would never end. */
enum { WRITER_NICE = 19 };

/* One phase; a process that is alone has nobody to agree with between them. */
static void work(ls_saver *saver)
{
    ls_saved *saved = &saver->saved;
    saved->status = ls_save_phase_run(saver, &saved->error);
    while (saver->alone && saved->status == LS_OK && saver->phase != LS_SAVE_FINISH) {
        saver->phase++;
        saved->status = ls_save_phase_run(saver, &saved->error);
    }
    atomic_store(&saver->busy, false);
}

/* Of this thread and those that it starts. In a batch: that a write has ended wakes it, but never
 * takes a core from a thread that computes. Only speed depends on it. */
static void lower_priority(void)
{
    static const struct sched_param none = {0};
    (void)sched_setscheduler(0, SCHED_BATCH, &none);
    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), WRITER_NICE);
}

/* The first item is none: the thread makes itself ready. */
static void work_queued(void *context, const void *item)
{
    ls_saver *saver = context;
    if (item) {
        work(saver);
        return;
    }
    lower_priority();
    for (int i = 0; saver->snapshots && i < saver->options.owners.count; i++)
        ls_snapshot_touch(&saver->snapshots[i]);
}

/* With other processes on the queue's thread in any case: the caller's goes on agreeing, so that
 * nobody is late while a disk is slow. */
static void start_phase(ls_saver *saver, ls_save_phase next)
{
    saver->phase = next;
    atomic_store(&saver->busy, true);
    if (saver->from_snapshot || !saver->alone)
        ls_queue_push(saver->queue, saver);
    else
        work(saver);
}

/* --- agreeing on it --------------------------------------------------------------------------- */

/* What came of the phase anywhere becomes what came of it here. */
static ls_status agree(ls_saver *saver, ls_error *error)
{
    ls_saved *saved = &saver->saved;
    int who;
    if (saver->alone) return LS_OK;
    LS_TRY(ls_processes_share_result(saver->options.processes, &saved->status, &saved->error, &who,
                                     "the writing of a checkpoint", error));
    if (who < 0) return LS_OK;
    saved->error.rank = who * saver->options.owners.count;
    ls_fail_context(&saved->error, saved->status, "rank %d on %s", saved->error.rank,
                    ls_processes_host_name(saver->options.processes, who));
    return LS_OK;
}

static void end(ls_saver *saver)
{
    for (int which = 0; which < LS_SAVED_FILES; which++)
        ls_tensor_file_deinit(&saver->files[which]);
    ls_staging_deinit(&saver->staging);
    ls_free(saver->contents.trainer);
    saver->contents.trainer = NULL;
    saver->saving = false;
}

/* --- the saver ------------------------------------------------------------------------------- */

static ls_status new_snapshots(ls_saver *saver, ls_error *error)
{
    const ls_state_owners *owners = &saver->options.owners;
    LS_TRY(LS_NEW(saver->snapshots, owners->count, "snapshots", error));
    for (int i = 0; i < owners->count; i++)
        LS_TRY(ls_snapshot_new(&saver->snapshots[i], &saver->state, owners->executors[i], error));
    return LS_OK;
}

/* Bytes that the ranks of this process write. */
static int64_t own_bytes(const ls_saver *saver)
{
    const ls_state_owners *owners = &saver->options.owners;
    int64_t bytes = 0;
    for (size_t i = 0; i < saver->state.count; i++)
        for (int k = 0; k < owners->count; k++) {
            ls_range part = ls_state_saved(owners->assembly, saver->state.tensors[i].value,
                                           ls_executor_rank(owners->executors[k]));
            bytes += (part.end - part.begin) * (int64_t)sizeof(float);
        }
    return bytes;
}

static ls_status find_folder_maker(ls_saver *saver, ls_error *error)
{
    int64_t own = getpid(), *all = NULL;
    ls_processes *processes = saver->options.processes;
    int count = processes ? ls_processes_here(processes)->count : 1;
    saver->alone = count == 1;
    saver->first = saver->alone || ls_processes_here(processes)->index == 0;
    if (saver->alone) return LS_OK;
    LS_TRY(LS_NEW(all, count, "saver of checkpoints", error));
    ls_status status =
        ls_processes_gather(processes, &own, sizeof own, all, "the start of the ranks", error);
    saver->folder_maker = all[0];
    ls_free(all);
    return status;
}

ls_status ls_saver_new(ls_saver **out, const ls_saver_options *options, ls_error *error)
{
    ls_saver *saver = NULL;
    ls_status status;
    LS_TRY(LS_NEW(saver, 1, "saver of checkpoints", error));
    saver->options = *options;
    LS_TRY_GOTO(status, ls_state_list(&saver->state, options->owners.assembly, error), fail);
    LS_TRY_GOTO(status, find_folder_maker(saver, error), fail);
    if (saver->alone)
        LS_TRY_GOTO(status, ls_stream_new(&saver->stream, error), fail);
    else
        LS_TRY_GOTO(status, LS_NEW(saver->buffer, LS_STATE_PIECE, "numbers on their way", error),
                    fail);
    if (options->background) LS_TRY_GOTO(status, new_snapshots(saver, error), fail);
    if (options->background || !saver->alone)
        LS_TRY_GOTO(status, ls_queue_new(&saver->queue, 2, work_queued, saver, error), fail);
    if (saver->queue) ls_queue_push(saver->queue, NULL);
    saver->total = own_bytes(saver);
    *out = saver;
    return LS_OK;
fail:
    ls_saver_free(saver);
    return status;
}

void ls_saver_free(ls_saver *saver)
{
    if (!saver) return;
    ls_queue_free(saver->queue);
    end(saver);
    for (int i = 0; saver->snapshots && i < saver->options.owners.count; i++)
        ls_snapshot_deinit(&saver->snapshots[i]);
    ls_free(saver->snapshots);
    ls_stream_free(saver->stream);
    ls_free(saver->buffer);
    ls_state_deinit(&saver->state);
    ls_free(saver);
}

static ls_status take_snapshot(void *context, int rank, ls_error *error)
{
    ls_saver *saver = context;
    return ls_snapshot_take(&saver->snapshots[rank], error);
}

ls_status ls_saver_save(ls_saver *saver, const ls_checkpoint_contents *contents, bool background,
                        ls_error *error)
{
    saver->contents = *contents;
    saver->from_snapshot = background && saver->snapshots;
    saver->saved = (ls_saved){.step = contents->step};
    saver->start = ls_seconds();
    atomic_store(&saver->done, 0);
    if (saver->from_snapshot)
        LS_TRY(ls_rank_group_run(saver->options.group, take_snapshot, saver, error));
    saver->saving = true;
    start_phase(saver, LS_SAVE_MAKE);
    return LS_OK;
}

bool ls_saver_is_saving(const ls_saver *saver)
{
    return saver->saving;
}

bool ls_saver_is_busy(ls_saver *saver)
{
    return atomic_load(&saver->busy);
}

void ls_saver_progress(const ls_saver *saver, int64_t *done, int64_t *total)
{
    *done = atomic_load(&saver->done);
    *total = saver->total;
}

/* Where all have done their part: on to the next one, or the end. */
ls_status ls_saver_poll(ls_saver *saver, bool *ended, ls_saved *saved, ls_error *error)
{
    bool busy = ls_saver_is_busy(saver);
    *ended = false;
    if (!saver->alone)
        LS_TRY(ls_processes_any(saver->options.processes, busy, &busy,
                                "the writing of a checkpoint", error));
    if (busy) return LS_OK;
    LS_TRY(agree(saver, error));
    if (saver->saved.status == LS_OK && saver->phase != LS_SAVE_FINISH) {
        start_phase(saver, saver->phase + 1);
        return LS_OK;
    }
    end(saver);
    *saved = saver->saved;
    saved->seconds = ls_seconds() - saver->start;
    *ended = true;
    return LS_OK;
}

#include "engine/saver.h"

#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/queue.h"
#include "base/staging.h"
#include "engine/checkpoint_folder.h"
#include "engine/tensor_file.h"
#include "formats/manifest.h"

enum { MODEL, OPTIMIZER, FILES };
static const char *const tensor_files[FILES] = {LS_CHECKPOINT_MODEL, LS_CHECKPOINT_OPTIMIZER};

/* The thread that writes takes what the ranks' threads leave of the cores. */
enum { WRITER_NICE = 10 };

struct ls_saver {
    ls_saver_options options;
    ls_state state;
    ls_snapshot *snapshots; /* [owners.count]; NULL: none */
    ls_queue *queue;        /* with snapshots */
    float *buffer;          /* [LS_STATE_PIECE] */
    bool lowered;           /* the queue's thread has its priority */

    /* The save that goes on, or went last. */
    ls_checkpoint_contents contents;
    bool from_snapshot;
    atomic_bool busy, untold;
    atomic_llong done;
    int64_t total;
    ls_saved saved;
};

/* --- one checkpoint -------------------------------------------------------------------------- */

static ls_status write_tensors(ls_saver *saver, const char *folder, int which, ls_error *error)
{
    char *path = NULL;
    ls_tensor_file file = {.file = {.descriptor = -1}};
    const ls_state *state = &saver->state;
    const ls_state_owners *owners = &saver->options.owners;
    size_t first = which == MODEL ? 0 : state->parameters;
    size_t count = which == MODEL ? state->parameters : state->count - state->parameters;
    ls_status status;
    LS_TRY_GOTO(status, ls_path_join(&path, folder, tensor_files[which], error), done);
    LS_TRY_GOTO(status, ls_tensor_file_create(&file, path, state, first, count, error), done);
    for (int i = 0; i < owners->count; i++)
        LS_TRY_GOTO(status,
                    ls_tensor_file_write(&file, owners->executors[i],
                                         saver->from_snapshot ? &saver->snapshots[i] : NULL,
                                         saver->buffer, &saver->done, error),
                    done);
    status = ls_tensor_file_finish(&file, error);
done:
    ls_tensor_file_deinit(&file);
    ls_free(path);
    return status;
}

static ls_status write_texts(const ls_saver *saver, const char *folder, ls_error *error)
{
    const ls_saver_options *options = &saver->options;
    char *from = NULL, *metrics = NULL, *trainer = NULL;
    ls_status status;
    LS_TRY_GOTO(
        status,
        ls_output_write_files(folder, options->folder, options->labels, options->max_length, error),
        done);
    LS_TRY_GOTO(status, ls_path_join(&from, options->output, LS_CHECKPOINT_METRICS, error), done);
    LS_TRY_GOTO(status, ls_path_join(&metrics, folder, LS_CHECKPOINT_METRICS, error), done);
    LS_TRY_GOTO(status, ls_path_join(&trainer, folder, LS_CHECKPOINT_TRAINER, error), done);
    LS_TRY_GOTO(status,
                ls_file_copy_start(from, metrics, (uint64_t)saver->contents.metrics_bytes, error),
                done);
    status = ls_file_write(trainer, saver->contents.trainer, saver->contents.trainer_length, error);
done:
    ls_free(from);
    ls_free(metrics);
    ls_free(trainer);
    return status;
}

/* Everything that is in the folder, so that a file which only some models have is covered too. */
static ls_status write_manifest(const ls_saver *saver, const char *folder, ls_error *error)
{
    static const char *const names[] = {LS_CHECKPOINT_MODEL,
                                        LS_CHECKPOINT_OPTIMIZER,
                                        "config.json",
                                        "tokenizer_config.json",
                                        LS_CHECKPOINT_METRICS,
                                        LS_CHECKPOINT_TRAINER,
                                        "tokenizer.json",
                                        "vocab.txt",
                                        "special_tokens_map.json",
                                        "added_tokens.json"};
    const char *there[sizeof names / sizeof *names];
    size_t count = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *path = NULL;
        LS_TRY(ls_path_join(&path, folder, names[i], error));
        if (ls_path_exists(path)) there[count++] = names[i];
        ls_free(path);
    }
    return ls_manifest_write(folder, saver->contents.step, there, count, error);
}

static ls_status write_folder(ls_saver *saver, const char *path, ls_error *error)
{
    ls_staging staging;
    ls_status status;
    LS_TRY(ls_staging_open(&staging, path, error));
    for (int which = 0; which < FILES; which++)
        LS_TRY_GOTO(status, write_tensors(saver, staging.temporary, which, error), done);
    LS_TRY_GOTO(status, write_texts(saver, staging.temporary, error), done);
    LS_TRY_GOTO(status, write_manifest(saver, staging.temporary, error), done);
    status = ls_staging_commit(&staging, error);
done:
    ls_staging_deinit(&staging);
    return status;
}

static void end(ls_saver *saver, const ls_saved *saved)
{
    ls_free(saver->contents.trainer);
    saver->contents.trainer = NULL;
    saver->saved = *saved;
    atomic_store(&saver->untold, true);
    atomic_store(&saver->busy, false);
}

static void write_checkpoint(ls_saver *saver)
{
    const ls_checkpoint_contents *contents = &saver->contents;
    const char *output = saver->options.output;
    char *path = NULL;
    double start = ls_seconds();
    ls_saved saved = {.step = contents->step};
    saved.status = ls_checkpoint_path(&path, output, contents->step, &saved.error);
    if (saved.status == LS_OK) saved.status = write_folder(saver, path, &saved.error);
    if (saved.status == LS_OK)
        saved.pruned = ls_checkpoint_prune(output, contents->step, contents->best,
                                           saver->options.limit, &saved.error);
    ls_free(path);
    saved.seconds = ls_seconds() - start;
    end(saver, &saved);
}

static void write_queued(void *context, const void *item)
{
    ls_saver *saver = context;
    (void)item;
    if (!saver->lowered) (void)setpriority(PRIO_PROCESS, (id_t)gettid(), WRITER_NICE);
    saver->lowered = true;
    write_checkpoint(saver);
}

/* --- the saver ------------------------------------------------------------------------------- */

static ls_status new_snapshots(ls_saver *saver, ls_error *error)
{
    const ls_state_owners *owners = &saver->options.owners;
    LS_TRY(LS_NEW(saver->snapshots, owners->count, "snapshots", error));
    for (int i = 0; i < owners->count; i++)
        LS_TRY(ls_snapshot_new(&saver->snapshots[i], &saver->state, owners->executors[i], error));
    return ls_queue_new(&saver->queue, 1, write_queued, saver, error);
}

ls_status ls_saver_new(ls_saver **out, const ls_saver_options *options, ls_error *error)
{
    ls_saver *saver = NULL;
    ls_status status;
    LS_TRY(LS_NEW(saver, 1, "saver of checkpoints", error));
    saver->options = *options;
    LS_TRY_GOTO(status, ls_state_list(&saver->state, options->owners.assembly, error), fail);
    LS_TRY_GOTO(status, LS_NEW(saver->buffer, LS_STATE_PIECE, "numbers on their way", error), fail);
    if (options->background) LS_TRY_GOTO(status, new_snapshots(saver, error), fail);
    for (size_t i = 0; i < saver->state.count; i++)
        saver->total += saver->state.tensors[i].elements * (int64_t)sizeof(float);
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
    for (int i = 0; saver->snapshots && i < saver->options.owners.count; i++)
        ls_snapshot_deinit(&saver->snapshots[i]);
    ls_free(saver->snapshots);
    ls_free(saver->buffer);
    ls_free(saver->contents.trainer);
    ls_state_deinit(&saver->state);
    ls_free(saver);
}

static ls_status take_snapshot(void *context, int rank, ls_error *error)
{
    ls_saver *saver = context;
    return ls_snapshot_take(&saver->snapshots[rank], error);
}

void ls_saver_save(ls_saver *saver, const ls_checkpoint_contents *contents, bool background)
{
    saver->contents = *contents;
    saver->from_snapshot = background && saver->snapshots;
    atomic_store(&saver->done, 0);
    atomic_store(&saver->busy, true);
    if (!saver->from_snapshot) {
        write_checkpoint(saver);
        return;
    }
    ls_saved failed = {.step = contents->step};
    failed.status = ls_rank_group_run(saver->options.group, take_snapshot, saver, &failed.error);
    if (failed.status == LS_OK)
        ls_queue_push(saver->queue, saver);
    else
        end(saver, &failed);
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

bool ls_saver_poll(ls_saver *saver, ls_saved *saved)
{
    if (atomic_load(&saver->busy) || !atomic_exchange(&saver->untold, false)) return false;
    *saved = saver->saved;
    return true;
}

void ls_saver_wait(ls_saver *saver)
{
    if (saver->queue) ls_queue_wait(saver->queue);
}

/* The phases of one checkpoint. */
#include "engine/checkpoint/save_phases.h"

#include "base/alloc.h"
#include "base/files.h"
#include "engine/checkpoint/folder.h"
#include "formats/manifest.h"

enum { MODEL, OPTIMIZER, FILES = LS_SAVED_FILES };
static const char *const tensor_files[FILES] = {LS_CHECKPOINT_MODEL, LS_CHECKPOINT_OPTIMIZER};

static size_t first_tensor(const ls_saver *saver, int which)
{
    return which == MODEL ? 0 : saver->state.parameters;
}

static size_t tensor_count(const ls_saver *saver, int which)
{
    size_t parameters = saver->state.parameters;
    return which == MODEL ? parameters : saver->state.count - parameters;
}

typedef ls_status (*file_opener)(ls_tensor_file *file, const char *path, const ls_state *state,
                                 size_t first, size_t count, ls_error *error);

static ls_status open_files(ls_saver *saver, const char *folder, file_opener opener,
                            ls_error *error)
{
    for (int which = 0; which < FILES; which++) {
        char *path = NULL;
        LS_TRY(ls_path_join(&path, folder, tensor_files[which], error));
        ls_status status = opener(&saver->files[which], path, &saver->state,
                                  first_tensor(saver, which), tensor_count(saver, which), error);
        ls_free(path);
        LS_TRY(status);
    }
    return LS_OK;
}

static ls_status make(ls_saver *saver, ls_error *error)
{
    const ls_checkpoint_contents *contents = &saver->contents;
    char *path = NULL;
    if (!saver->first) return LS_OK;
    if (contents->status != LS_OK) {
        if (error) *error = contents->error;
        return contents->status;
    }
    LS_TRY(ls_checkpoint_path(&path, saver->options.output, contents->step, error));
    ls_status status = ls_staging_open(&saver->staging, path, error);
    ls_free(path);
    if (status == LS_OK)
        status = open_files(saver, saver->staging.temporary, ls_tensor_file_create, error);
    for (int which = 0; which < FILES && status == LS_OK && !saver->alone; which++)
        status = ls_tensor_file_write_header(&saver->files[which], error);
    return status;
}

static ls_status join_files(ls_saver *saver, ls_error *error)
{
    char *path = NULL, *folder = NULL;
    LS_TRY(ls_checkpoint_path(&path, saver->options.output, saver->contents.step, error));
    ls_status status = ls_staging_name(&folder, path, (long)saver->folder_maker, error);
    if (status == LS_OK) status = open_files(saver, folder, ls_tensor_file_open, error);
    ls_free(folder);
    ls_free(path);
    return status;
}

/* Of one process: the files as wholes. */
static ls_status write_files(ls_saver *saver, ls_error *error)
{
    ls_status status = LS_OK;
    ls_stream_start(saver->stream);
    for (int which = 0; which < FILES && status == LS_OK; which++)
        status = ls_tensor_file_stream(&saver->files[which], &saver->options.owners,
                                       saver->from_snapshot ? saver->snapshots : NULL,
                                       saver->stream, &saver->done, error);
    ls_stream_stop(saver->stream);
    return status;
}

/* Of one among several: what its ranks save. */
static ls_status write_parts(ls_saver *saver, ls_error *error)
{
    const ls_state_owners *owners = &saver->options.owners;
    if (!saver->first) LS_TRY(join_files(saver, error));
    for (int which = 0; which < FILES; which++)
        for (int i = 0; i < owners->count; i++)
            LS_TRY(ls_tensor_file_write(&saver->files[which], owners->executors[i],
                                        saver->from_snapshot ? &saver->snapshots[i] : NULL,
                                        saver->buffer, &saver->done, error));
    return LS_OK;
}

static ls_status write_tensors(ls_saver *saver, ls_error *error)
{
    LS_TRY(saver->alone ? write_files(saver, error) : write_parts(saver, error));
    for (int which = 0; which < FILES; which++)
        LS_TRY(ls_tensor_file_finish(&saver->files[which], error));
    return LS_OK;
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
    ls_manifest_file known[FILES];
    for (int which = 0; which < FILES; which++) {
        const ls_tensor_file *file = &saver->files[which];
        known[which] = (ls_manifest_file){.name = tensor_files[which],
                                          .bytes = file->layout.bytes,
                                          .checksum = file->checksum,
                                          .tensors = file->names,
                                          .parts = file->parts,
                                          .count = file->count};
    }
    return ls_manifest_write(folder, saver->contents.step, there, count, known,
                             saver->alone ? FILES : 0, error);
}

/* What several have written is read back here for its checksums: no process has seen all of it. */
static ls_status finish(ls_saver *saver, ls_error *error)
{
    const ls_checkpoint_contents *contents = &saver->contents;
    if (!saver->first) return LS_OK;
    LS_TRY(write_texts(saver, saver->staging.temporary, error));
    LS_TRY(write_manifest(saver, saver->staging.temporary, error));
    LS_TRY(ls_staging_commit(&saver->staging, error));
    saver->saved.pruned = ls_checkpoint_prune(saver->options.output, contents->step, contents->best,
                                              saver->options.limit, error);
    return LS_OK;
}

ls_status ls_save_phase_run(ls_saver *saver, ls_error *error)
{
    switch (saver->phase) {
    case LS_SAVE_MAKE:
        return make(saver, error);
    case LS_SAVE_WRITE:
        return write_tensors(saver, error);
    case LS_SAVE_FINISH:
        break;
    }
    return finish(saver, error);
}

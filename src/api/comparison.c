/* What must be equal on all processes of a run before its first step. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "api/comparison.h"
#include "base/alloc.h"
#include "base/files.h"
#include "base/text.h"

/* Settings that change neither a number nor what is sent: they may differ. What a path leads to is
 * compared by its digest. */
static const char *const free_settings[] = {
    "model",         "train",         "validation",
    "test",          "output",        "resume",
    "skip-bad-rows", "threads",       "device-memory",
    "offload-path",  "timeout",       "log-ranks",
    "tensorboard",   "csv",           "job-name",
    "prometheus",    "log-every",     "wall-clock-breakdown",
    "profile",       "profile-steps", "measure-peak",
};

static bool may_differ(const char *name)
{
    for (size_t i = 0; i < sizeof free_settings / sizeof *free_settings; i++)
        if (strcmp(free_settings[i], name) == 0) return true;
    return false;
}

static ls_status put_settings(const ls_options *used, ls_text *lines, ls_error *error)
{
    char buffer[64];
    for (const ls_setting *setting = ls_settings(); setting->name; setting++) {
        if (!(setting->commands & LS_COMMAND_TRAIN) || may_differ(setting->name)) continue;
        const char *value = ls_options_get(used, setting->name, buffer);
        LS_TRY(ls_text_print(lines, error, "--%s %s\n", setting->name, value ? value : "(none)"));
    }
    return LS_OK;
}

static ls_status put_data(const char *name, const ls_dataset *dataset, ls_text *lines,
                          ls_error *error)
{
    char digest[LS_DIGEST_CHARACTERS] = "(none)";
    if (dataset) ls_dataset_digest(dataset, digest);
    return ls_text_print(lines, error, "rows of --%s: digest %s\n", name, digest);
}

/* The running program, whole: a few megabytes. */
static ls_status put_program_file(ls_text *lines, ls_error *error)
{
    enum { MOST_BYTES = 1 << 30 };
    char *bytes = NULL;
    size_t count;
    LS_TRY(ls_file_read(&bytes, &count, "/proc/self/exe", MOST_BYTES, error));
    XXH64_hash_t hash = XXH3_64bits(bytes, count);
    ls_free(bytes);
    return ls_text_print(lines, error, "program: version %s, digest %016" PRIx64 "\n", ls_version(),
                         (uint64_t)hash);
}

enum { PIECE_ELEMENTS = 1 << 18 };

static ls_status hash_tensor(const ls_weights *weights, const ls_safetensors_tensor *tensor,
                             unsigned char *piece, uint64_t *hash, ls_error *error)
{
    int64_t size = (int64_t)(tensor->bytes / (uint64_t)(tensor->elements ? tensor->elements : 1));
    *hash = XXH3_64bits_withSeed(tensor->name, strlen(tensor->name), *hash);
    for (int64_t first = 0; first < tensor->elements; first += PIECE_ELEMENTS) {
        int64_t count = tensor->elements - first;
        if (count > PIECE_ELEMENTS) count = PIECE_ELEMENTS;
        LS_TRY(ls_weights_read_raw(weights, tensor, first, count, piece, error));
        *hash = XXH3_64bits_withSeed(piece, (size_t)(count * size), *hash);
    }
    return LS_OK;
}

/* What training starts from; a new head follows from the seed. */
static ls_status put_weights(const ls_weights *weights, ls_text *lines, ls_error *error)
{
    unsigned char *piece = NULL;
    uint64_t hash = 0;
    ls_status status = LS_NEW(piece, PIECE_ELEMENTS * sizeof(double), "weights", error);
    for (size_t i = 0; status == LS_OK && i < ls_weights_count(weights); i++)
        status = hash_tensor(weights, ls_weights_at(weights, i), piece, &hash, error);
    ls_free(piece);
    LS_TRY(status);
    return ls_text_print(lines, error, "weights of --model: digest %016" PRIx64 "\n", hash);
}

/* Kinds, names and bytes of what is sent, in order. */
static ls_status put_exchanges(const ls_program *program, ls_text *lines, ls_error *error)
{
    for (int32_t i = 0; i < program->op_count; i++) {
        const ls_op *op = &program->ops[i];
        if (!ls_op_is_collective(op->kind) || op->kind == LS_OP_WAIT) continue;
        const ls_bucket *bucket = &program->buckets[op->attributes.bucket];
        LS_TRY(ls_text_print(lines, error, "exchange: %s %s, %lld bytes\n", ls_op_name(op->kind),
                             op->name, (long long)bucket->bytes));
    }
    return LS_OK;
}

static ls_status put_all(const ls_training_run *run, ls_text *lines, ls_error *error)
{
    /* Everything else follows from how many ranks there are. */
    LS_TRY(ls_text_print(lines, error, "--devices %lld\n", (long long)run->used.devices));
    LS_TRY(put_program_file(lines, error));
    LS_TRY(put_settings(&run->used, lines, error));
    LS_TRY(put_data("train", run->train, lines, error));
    LS_TRY(put_data("validation", run->validation, lines, error));
    LS_TRY(put_data("test", run->test, lines, error));
    LS_TRY(put_weights(ls_training_run_weights(run), lines, error));
    return put_exchanges(run->programs.training.program, lines, error);
}

ls_status ls_training_run_compare(const ls_training_run *run, ls_error *error)
{
    ls_text lines = {0};
    if (ls_session_place(&run->session)->count == 1) return LS_OK;
    ls_status status = put_all(run, &lines, error);
    status = ls_session_agree(&run->session, status, "the comparison of settings", error);
    if (status == LS_OK) status = ls_processes_compare(run->session.processes, lines.data, error);
    ls_text_deinit(&lines);
    return status;
}

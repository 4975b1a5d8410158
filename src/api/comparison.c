/* What must be equal on all processes of a run before its first step. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "api/training_run.h"
#include "base/alloc.h"
#include "base/files.h"
#include "base/text.h"

/* Settings that change neither a number nor what is sent: they may differ. What a path leads to is
 * compared by its digest. */
static const char *const free_settings[] = {
    "model",   "train",         "validation", "test",      "output",
    "threads", "device-memory", "timeout",    "log-ranks", "skip-bad-rows",
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

/* As they lie in memory, with the head that was drawn: what training starts from. */
static ls_status put_weights(const ls_training_run *run, ls_text *lines, ls_error *error)
{
    const ls_executor *executor = ls_ranks_executor(run->ranks);
    int64_t bytes = run->programs.training.plan.bytes[LS_PLAN_PARAMETERS];
    XXH64_hash_t hash = XXH3_64bits(ls_executor_arena(executor, LS_PLAN_PARAMETERS), (size_t)bytes);
    return ls_text_print(lines, error, "weights at the start: digest %016" PRIx64 "\n",
                         (uint64_t)hash);
}

/* Kinds, names and bytes of what is sent, in order. */
static ls_status put_exchanges(const ls_program *program, ls_text *lines, ls_error *error)
{
    for (int32_t i = 0; i < program->op_count; i++) {
        const ls_op *op = &program->ops[i];
        if (op->segment != LS_SEGMENT_EXCHANGE) continue;
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
    return put_exchanges(run->programs.training.program, lines, error);
}

typedef ls_status (*put_function)(const ls_training_run *run, ls_text *lines, ls_error *error);

static ls_status compare(const ls_training_run *run, put_function put, ls_error *error)
{
    ls_text lines = {0};
    if (ls_session_place(&run->session)->count == 1) return LS_OK;
    ls_status status = put(run, &lines, error);
    status = ls_session_agree(&run->session, status, "the comparison of settings", error);
    if (status == LS_OK) status = ls_processes_compare(run->session.processes, lines.data, error);
    ls_text_deinit(&lines);
    return status;
}

ls_status ls_training_run_compare(const ls_training_run *run, ls_error *error)
{
    return compare(run, put_all, error);
}

ls_status ls_training_run_compare_weights(const ls_training_run *run, ls_error *error)
{
    return compare(run, put_weights, error);
}

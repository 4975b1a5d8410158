#include "compare/runs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/numbers.h"
#include "compare/process.h"

enum { LINE_BYTES = 512 };
static const double seconds_between_looks = 0.5;

/* The words of a command line; each is freed with the list. */
typedef struct word_list {
    const char **words; /* ended by NULL */
    size_t count, capacity;
} word_list;

static ls_status add_word(word_list *list, const char *flag, const char *value, ls_error *error)
{
    char *word;
    size_t length = strlen(flag) + strlen(value) + 1;
    LS_TRY(LS_GROW(list->words, list->capacity, list->count + 2, "a command line", error));
    LS_TRY(LS_NEW(word, length, "a command line", error));
    snprintf(word, length, "%s%s", flag, value);
    list->words[list->count++] = word;
    return LS_OK;
}

static ls_status add_integer(word_list *list, const char *flag, int64_t value, ls_error *error)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRId64, value);
    return add_word(list, flag, digits, error);
}

static void free_words(word_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        ls_free((void *)(uintptr_t)list->words[i]);
    ls_free(list->words);
}

int64_t ls_compare_steps(const ls_compare_options *options, int64_t batch_size)
{
    if (options->max_steps < 0) return -1;
    int64_t samples = options->max_steps * options->batch_size;
    return (samples + batch_size - 1) / batch_size;
}

/* What all runs of a row have in common. */
static ls_status add_row(word_list *list, const ls_compare_options *options,
                         const ls_compare_row *row, int64_t seed, const char *output,
                         ls_error *error)
{
    LS_TRY(add_word(list, options->program, "", error));
    LS_TRY(add_word(list, "train", "", error));
    for (size_t i = 0; i < row->strategy->flag_count; i++)
        LS_TRY(add_word(list, row->strategy->flags[i], "", error));
    LS_TRY(add_word(list, "--strategy=", row->strategy->name, error));
    LS_TRY(add_integer(list, "--devices=", row->devices, error));
    LS_TRY(add_integer(list, "--threads=", row->threads, error));
    LS_TRY(add_integer(list, "--batch-size=", row->batch_size, error));
    LS_TRY(add_integer(list, "--seed=", seed, error));
    return add_word(list, "--output=", output, error);
}

static ls_status add_length(word_list *list, const ls_compare_options *options,
                            const ls_compare_row *row, ls_error *error)
{
    char digits[LS_NUMBER_BYTES];
    LS_TRY(add_integer(list, "--max-steps=", ls_compare_steps(options, row->batch_size), error));
    LS_TRY(add_word(list, "--epochs=", ls_number_print(digits, options->epochs), error));
    if (options->validation) LS_TRY(add_word(list, "--validation=", options->validation, error));
    if (options->test) LS_TRY(add_word(list, "--test=", options->test, error));
    return LS_OK;
}

/* --- while a run goes on ------------------------------------------------------------------------
 */

typedef struct watch {
    const ls_compare_options *options;
    const char *log;
    double last; /* when its log was last looked at, seconds */
} watch;

static void tell_last_line(const watch *run)
{
    char tail[LINE_BYTES + 1];
    int file = open(run->log, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    off_t end = lseek(file, 0, SEEK_END), start = end > LINE_BYTES ? end - LINE_BYTES : 0;
    ssize_t count = pread(file, tail, LINE_BYTES, start);
    close(file);
    while (count > 0 && tail[count - 1] == '\n')
        count--;
    if (count <= 0) return;
    tail[count] = '\0';
    const char *line = strrchr(tail, '\n');
    run->options->progress(run->options->context, line ? line + 1 : tail);
}

/* Also asks whether to stop. */
static bool look_on(void *context)
{
    watch *run = context;
    const ls_compare_options *options = run->options;
    double now = ls_seconds();
    if (options->progress && now - run->last > seconds_between_looks) {
        run->last = now;
        tell_last_line(run);
    }
    return options->should_stop && options->should_stop(options->context);
}

/* Run the list. A run that did not end well sets the row's state; `what` opens the reason. */
static ls_status run(const ls_compare_options *options, ls_compare_row *row, const char *what,
                     const word_list *list, const char *log, int64_t *peak_bytes, ls_error *error)
{
    ls_process_result result;
    char reason[LS_COMPARE_REASON_BYTES - 100];
    watch looking = {options, log, ls_seconds()};
    LS_TRY(ls_process_run(&result, list->words, log, look_on, &looking, error));
    *peak_bytes = result.peak_bytes;
    if (result.exit_status == 0) return LS_OK;
    row->state = result.signal             ? LS_COMPARE_KILLED
                 : result.exit_status == 2 ? LS_COMPARE_REFUSED
                                           : LS_COMPARE_FAILED;
    ls_process_reason(reason, sizeof reason, &result, log);
    snprintf(row->reason, sizeof row->reason, "%s%s%s", what, *what ? ": " : "", reason);
    return LS_OK;
}

/* Records that cannot be read are the row's failure, lack of memory the comparison's. */
static ls_status read_facts(ls_run_facts *facts, ls_compare_row *row, const char *output,
                            int64_t warm_up, ls_error *error)
{
    ls_error problem;
    ls_status status = ls_run_facts_read(facts, output, warm_up, &problem);
    if (status == LS_OK) return LS_OK;
    ls_run_facts_deinit(facts);
    if (status == LS_NO_MEMORY) {
        if (error) *error = problem;
        return status;
    }
    row->state = LS_COMPARE_FAILED;
    snprintf(row->reason, sizeof row->reason, "%.*s", LS_COMPARE_REASON_BYTES - 1, problem.text);
    return LS_OK;
}

/* FROM/NAME becomes TO/NAME, where it is there. */
static ls_status keep(const char *from, const char *to, const char *name, ls_error *error)
{
    char *old = NULL, *new = NULL;
    ls_status status = ls_path_join(&old, from, name, error);
    if (status == LS_OK) status = ls_path_join(&new, to, name, error);
    if (status == LS_OK && rename(old, new) != 0 && errno != ENOENT)
        status = ls_fail(error, LS_IO, "%s: cannot be moved to %s: %s", old, new, strerror(errno));
    ls_free(old);
    ls_free(new);
    return status;
}

/* The weights are as many bytes as the model and equal for all strategies: their hash is enough. */
static ls_status keep_records(const ls_compare_folder *folder, const ls_compare_row *row,
                              int64_t seed, const char *output, const char *log, ls_error *error)
{
    static const char *const kept[] = {"run.json", "metrics.jsonl", "profile"};
    char name[LS_COMPARE_FOLDER_BYTES], *target = NULL, *target_log = NULL;
    ls_compare_folder_name(name, row->name, row->batch_size, seed);
    ls_status status;
    LS_TRY_GOTO(status, ls_compare_folder_run(folder, name, &target, error), done);
    LS_TRY_GOTO(status, ls_folder_make(target, error), done);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        LS_TRY_GOTO(status, keep(output, target, kept[i], error), done);
    LS_TRY_GOTO(status, ls_path_join(&target_log, target, "log.txt", error), done);
    if (rename(log, target_log) != 0)
        status = ls_fail(error, LS_IO, "%s: cannot be moved to %s: %s", log, target_log,
                         strerror(errno));
done:
    ls_free(target);
    ls_free(target_log);
    return status;
}

/* The first seed's facts are the row's. */
static void take_full(ls_compare_row *row, int64_t seed, ls_run_facts *facts, int64_t peak_bytes)
{
    ls_compare_seed *entry = &row->seeds[row->seed_count];
    *entry = (ls_compare_seed){.seed = seed,
                               .same_bits = -1,
                               .final_loss = facts->loss,
                               .accuracy = facts->accuracy,
                               .macro_f1 = facts->macro_f1};
    memcpy(entry->weights_sha256, facts->weights_sha256, sizeof entry->weights_sha256);
    if (isnan(facts->values[LS_MEASURE_HOST_PEAK_BYTES]))
        facts->values[LS_MEASURE_HOST_PEAK_BYTES] = (double)peak_bytes;
    if (row->seed_count++ == 0)
        row->full = *facts;
    else
        ls_run_facts_deinit(facts);
}

ls_status ls_compare_run_full(const ls_compare_options *options, const ls_compare_folder *folder,
                              ls_compare_row *row, int64_t seed, ls_error *error)
{
    char what[40] = "", *output = NULL, *log = NULL;
    word_list list = {0};
    ls_run_facts facts = {0};
    int64_t peak_bytes = 0;
    ls_status status;
    if (options->seed_count > 1) snprintf(what, sizeof what, "seed %" PRId64, seed);
    LS_TRY_GOTO(status, ls_compare_folder_run(folder, "now", &output, error), done);
    LS_TRY_GOTO(status, ls_compare_folder_run(folder, "now.txt", &log, error), done);
    LS_TRY_GOTO(status, add_row(&list, options, row, seed, output, error), done);
    LS_TRY_GOTO(status, add_length(&list, options, row, error), done);
    /* The first run of a row says where its time goes, too. */
    if (row->seed_count == 0) LS_TRY_GOTO(status, add_word(&list, "--profile", "", error), done);
    LS_TRY_GOTO(status, run(options, row, what, &list, log, &peak_bytes, error), done);
    if (row->state == LS_COMPARE_DONE)
        LS_TRY_GOTO(status, read_facts(&facts, row, output, 0, error), done);
    if (row->state == LS_COMPARE_DONE) take_full(row, seed, &facts, peak_bytes);
    LS_TRY_GOTO(status, keep_records(folder, row, seed, output, log, error), done);
    status = ls_remove_tree(output, error);
done:
    free_words(&list);
    ls_free(output);
    ls_free(log);
    return status;
}

ls_status ls_compare_run_timing(const ls_compare_options *options, const ls_compare_folder *folder,
                                ls_compare_row *row, ls_error *error)
{
    char *output = NULL, *log = NULL;
    word_list list = {0};
    int64_t peak_bytes = 0;
    ls_status status;
    LS_TRY_GOTO(status, ls_compare_folder_run(folder, "now", &output, error), done);
    LS_TRY_GOTO(status, ls_compare_folder_run(folder, "now.txt", &log, error), done);
    LS_TRY_GOTO(status, add_row(&list, options, row, options->seeds[0], output, error), done);
    LS_TRY_GOTO(
        status,
        add_integer(&list, "--max-steps=", options->round_steps + LS_COMPARE_WARM_UP_STEPS, error),
        done);
    LS_TRY_GOTO(status, run(options, row, "timing", &list, log, &peak_bytes, error), done);
    if (row->state == LS_COMPARE_DONE)
        LS_TRY_GOTO(status,
                    read_facts(&row->rounds[row->round_count], row, output,
                               LS_COMPARE_WARM_UP_STEPS, error),
                    done);
    if (row->state == LS_COMPARE_DONE) row->round_count++;
    if (remove(log) != 0 && errno != ENOENT)
        status = ls_fail(error, LS_IO, "%s: cannot remove the file: %s", log, strerror(errno));
    if (status == LS_OK) status = ls_remove_tree(output, error);
done:
    free_words(&list);
    ls_free(output);
    ls_free(log);
    return status;
}

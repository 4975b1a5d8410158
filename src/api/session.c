#include "api/session.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/settings.h"
#include "base/alloc.h"
#include "base/topology.h"
#include "engine/exchange/message_bytes.h"

ls_status ls_session_threads(const ls_options *options, int64_t devices, int *threads,
                             ls_error *error)
{
    int cores = 1;
    LS_TRY(ls_core_count(&cores, error));
    *threads = (int)options->threads;
    if (*threads == 0) *threads = (int)(cores / devices);
    if (*threads < 1) *threads = 1;
    return LS_OK;
}

/* `count` devices of as many threads each as `share` of them would have. Processes of a host that
 * bind to nothing share its cores. */
static ls_status open_devices(ls_session *session, int count, int64_t share, ls_error *error)
{
    const ls_processes_place *here = ls_session_place(session);
    int together = here->shares_cores ? here->local_count : 1, cores = 1, threads;
    LS_TRY(ls_core_count(&cores, error));
    LS_TRY(ls_session_threads(session->options, share * together, &threads, error));
    int sharing = count * together;
    if (sharing * threads > cores)
        ls_session_message(session, "%d device%s of %d thread%s on %d core%s: they take turns",
                           sharing, sharing == 1 ? "" : "s", threads, threads == 1 ? "" : "s",
                           cores, cores == 1 ? "" : "s");
    LS_TRY(LS_NEW(session->devices, count, "devices", error));
    for (; session->device_count < count; session->device_count++)
        LS_TRY(ls_cpu_device_new(&session->devices[session->device_count], threads,
                                 session->options->device_memory, error));
    session->device = session->devices[0];
    if (count == 1) return LS_OK;
    int all = count * threads;
    return ls_threads_new(&session->reading_threads, all < cores ? all : cores, error);
}

ls_status ls_session_open_devices(ls_session *session, int count, ls_error *error)
{
    return open_devices(session, count, count, error);
}

/* Only training is spread over devices; a plan needs one to ask. */
static ls_status open_for(ls_session *session, unsigned command, ls_error *error)
{
    int64_t devices = session->options->devices;
    if (command & (LS_COMMAND_TRAIN | LS_COMMAND_BENCH_STEP))
        return open_devices(session, (int)devices, devices, error);
    return open_devices(session, 1, command & LS_COMMAND_PLAN ? devices : 1, error);
}

const ls_processes_place *ls_session_place(const ls_session *session)
{
    static const ls_processes_place alone = {.count = 1, .hosts = 1, .local_count = 1};
    return session->processes ? ls_processes_here(session->processes) : &alone;
}

int ls_session_ranks(const ls_session *session)
{
    return ls_session_place(session)->count * (int)session->options->devices;
}

ls_status ls_session_message_bytes(const ls_session *session, int64_t *bytes, ls_error *error)
{
    int hosts = ls_session_place(session)->hosts, *begin = NULL;
    *bytes = 0;
    if (hosts == 1) return LS_OK;
    LS_TRY(LS_NEW(begin, hosts + 1, "hosts", error));
    for (int host = 0; host <= hosts; host++)
        begin[host] =
            ls_processes_host_first(session->processes)[host] * (int)session->options->devices;
    *bytes = ls_collectives_message_bytes(begin, hosts);
    ls_free(begin);
    return LS_OK;
}

bool ls_session_is_first(const ls_session *session)
{
    return ls_session_place(session)->index == 0;
}

ls_status ls_session_agree(const ls_session *session, ls_status mine, const char *task,
                           ls_error *error)
{
    return session->processes ? ls_processes_agree(session->processes, mine, task, error) : mine;
}

/* All processes but the first one say nothing. */
static ls_status join(ls_session *session, ls_error *error)
{
    const ls_callbacks *callbacks = session->callbacks;
    ls_processes_options options = {.timeout = session->options->timeout,
                                    .peer_is_gone = callbacks->peer_is_gone,
                                    .warn = callbacks->late,
                                    .context = callbacks->context};
    LS_TRY(ls_processes_join(&session->processes, &options, error));
    if (ls_session_is_first(session)) return LS_OK;
    session->own_callbacks = (ls_callbacks){.context = callbacks->context,
                                            .should_stop = callbacks->should_stop,
                                            .late = callbacks->late,
                                            .peer_is_gone = callbacks->peer_is_gone};
    session->callbacks = &session->own_callbacks;
    return LS_OK;
}

static void close_all_but_processes(ls_session *session);

/* The commands that several processes run together. */
enum { SPREAD = LS_COMMAND_TRAIN | LS_COMMAND_PLAN | LS_COMMAND_BENCH_STEP };

ls_status ls_session_open(ls_session *session, const ls_options *options,
                          const ls_callbacks *callbacks, unsigned command, int64_t default_length,
                          ls_error *error)
{
    static const ls_callbacks silent = {0};
    ls_status status;
    *session = (ls_session){.options = options, .callbacks = callbacks ? callbacks : &silent};
    LS_TRY(ls_options_check(options, command, error));
    if (command & SPREAD) {
        LS_TRY(ls_strategy_of(&session->strategy, options, command != LS_COMMAND_PLAN, error));
        LS_TRY(join(session, error));
    }
    LS_TRY_GOTO(status, open_for(session, command, error), fail);
    LS_TRY_GOTO(status, ls_model_folder_open(&session->folder, options->model, error), fail);
    int64_t fallback = default_length ? default_length : session->folder.max_length;
    LS_TRY_GOTO(status,
                ls_model_folder_length(&session->folder, options->max_length, fallback,
                                       &session->max_length, error),
                fail);
    LS_TRY_GOTO(status, ls_labels_new(&session->labels, error), fail);
    if (session->folder.head_classes)
        LS_TRY_GOTO(status, ls_model_folder_labels(&session->folder, session->labels, error), fail);
    return LS_OK;
fail:
    close_all_but_processes(session);
    return status;
}

void ls_session_close(ls_session *session)
{
    close_all_but_processes(session);
    ls_processes_leave(session->processes);
    session->processes = NULL;
}

static void close_all_but_processes(ls_session *session)
{
    ls_labels_free(session->labels);
    ls_model_folder_close(&session->folder);
    for (int i = 0; i < session->device_count; i++)
        ls_device_free(session->devices[i]);
    ls_threads_free(session->reading_threads);
    ls_free(session->devices);
    session->reading_threads = NULL;
    session->labels = NULL;
    session->devices = NULL;
    session->device = NULL;
    session->device_count = 0;
}

ls_status ls_session_open_ranks(ls_session *session, const ls_options *options, ls_error *error)
{
    static const ls_callbacks silent = {0};
    *session = (ls_session){.options = options, .callbacks = &silent};
    LS_TRY(join(session, error));
    ls_status status = LS_NEW(session->devices, options->devices, "devices", error);
    for (; status == LS_OK && session->device_count < options->devices; session->device_count++) {
        status = ls_cpu_device_new(&session->devices[session->device_count], 1, 0, error);
        if (status != LS_OK) break;
    }
    return ls_session_agree(session, status, "the start of the devices", error);
}

ls_status ls_session_need_head(const ls_session *session, ls_error *error)
{
    if (session->folder.head_classes) return LS_OK;
    return ls_fail(error, LS_INVALID,
                   "%s: this model has no classification head (no tensor classifier.weight): "
                   "fine-tune it first, with lockstep train",
                   session->options->model);
}

typedef struct reading {
    const ls_session *session;
    char what[256];
} reading;

static bool report_reading(void *context, uint64_t rows, uint64_t bytes, uint64_t total)
{
    const reading *r = context;
    (void)rows;
    const ls_callbacks *callbacks = r->session->callbacks;
    if (callbacks->stage)
        callbacks->stage(callbacks->context, r->what, (int64_t)bytes, (int64_t)total);
    return !callbacks->should_stop || !callbacks->should_stop(callbacks->context);
}

static void report_left_out(void *context, const char *why)
{
    const reading *r = context;
    ls_session_message(r->session, "row left out: %s", why);
}

ls_threads *ls_session_reading_threads(const ls_session *session)
{
    return session->reading_threads ? session->reading_threads
                                    : ls_cpu_device_pool(session->device);
}

/* The second text of a pair has token type 1. */
static ls_status check_pairs(const ls_session *session, ls_dataset **dataset, ls_error *error)
{
    const char *pair = ls_dataset_text_pair_column(*dataset);
    if (!pair || session->folder.config.type_vocab_size != 1) return LS_OK;
    ls_status status =
        ls_fail(error, LS_INVALID,
                "%s: column %s makes pairs of texts, but the model knows one token type only "
                "(type_vocab_size in %s is 1): name one column with --text-column",
                ls_dataset_path(*dataset), pair, session->folder.config.path);
    ls_dataset_free(*dataset);
    *dataset = NULL;
    return status;
}

ls_status ls_session_dataset(ls_session *session, ls_dataset **out, const char *path,
                             bool need_labels, const char *cache_folder, ls_error *error)
{
    const ls_options *options = session->options;
    const char *temporary = getenv("TMPDIR");
    reading r = {.session = session};
    snprintf(r.what, sizeof r.what, "reading %s", path);
    if (!cache_folder) cache_folder = temporary && *temporary ? temporary : "/tmp";
    ls_dataset_options reading_options = {
        .path = path,
        .text_column = options->text_column,
        .text_pair_column = options->text_pair_column,
        .label_column = options->label_column,
        .tokenizer = session->folder.tokenizer,
        .max_length = (int)session->max_length,
        .labels = session->labels,
        .need_labels = need_labels,
        .skip_bad_rows = options->skip_bad_rows,
        .cache_folder = cache_folder,
        .threads = ls_session_reading_threads(session),
        .progress = report_reading,
        .left_out = report_left_out,
        .context = &r,
    };
    LS_TRY(ls_dataset_open(out, &reading_options, error));
    LS_TRY(check_pairs(session, out, error));
    uint64_t skipped = ls_dataset_skipped(*out);
    if (skipped)
        ls_session_message(session, "%s: %llu bad row%s left out", path,
                           (unsigned long long)skipped, skipped == 1 ? "" : "s");
    return LS_OK;
}

void ls_session_stage(const ls_session *session, const char *what)
{
    if (session->callbacks->stage)
        session->callbacks->stage(session->callbacks->context, what, 0, 0);
}

void ls_session_show(void *progress, int64_t done, int64_t total)
{
    const ls_session_progress *shown = progress;
    const ls_callbacks *callbacks = shown->session->callbacks;
    if (callbacks->stage) callbacks->stage(callbacks->context, shown->what, done, total);
}

void ls_session_message(const ls_session *session, const char *format, ...)
{
    if (!session->callbacks->message) return;
    char line[1000];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    session->callbacks->message(session->callbacks->context, line);
}

ls_status ls_session_label_names(const ls_session *session, const char ***names, ls_error *error)
{
    int count = ls_labels_count(session->labels);
    LS_TRY(LS_NEW(*names, count + 1, "label names", error));
    for (int i = 0; i < count; i++)
        (*names)[i] = ls_labels_name(session->labels, i);
    return LS_OK;
}

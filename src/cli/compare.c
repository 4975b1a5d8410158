#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/columns.h"
#include "cli/command.h"
#include "cli/compare_options.h"
#include "cli/compare_table.h"
#include "cli/exit_status.h"
#include "cli/format.h"
#include "cli/signals.h"
#include "compare/compare.h"

enum { LINE_BYTES = 1024 };

typedef struct shown {
    bool quiet, live;
    bool standing;        /* a live line stands on the terminal */
    char run[LINE_BYTES]; /* the run that goes on */
} shown;

static void clear(shown *progress)
{
    if (progress->standing) fputs("\r\033[K", stderr);
    progress->standing = false;
}

static void draw(shown *progress, const char *line)
{
    char fitted[LINE_BYTES];
    int columns = progress->live ? ls_terminal_columns(STDERR_FILENO) - 1 : LS_NO_LIMIT;
    ls_columns_fit(fitted, sizeof fitted, line, columns);
    fprintf(stderr, progress->live ? "\r%s\033[K" : "%s\n", fitted);
    fflush(stderr);
    progress->standing = progress->live;
}

static void show_run(void *context, const char *what, int64_t done, int64_t total)
{
    shown *progress = context;
    if (progress->quiet) return;
    snprintf(progress->run, sizeof progress->run, "[%" PRId64 "/%" PRId64 "] %.200s", done, total,
             what);
    draw(progress, progress->run);
}

/* How far it has come, behind its name; a log has enough with the names. */
static void show_progress(void *context, const char *line)
{
    char both[2 * LINE_BYTES];
    shown *progress = context;
    if (progress->quiet || !progress->live) return;
    snprintf(both, sizeof both, "%s: %s", progress->run, line);
    draw(progress, both);
}

static void show_message(void *context, const char *line)
{
    char fitted[LINE_BYTES];
    clear(context);
    ls_columns_fit(fitted, sizeof fitted, line, LS_NO_LIMIT);
    fprintf(stderr, "%s\n", fitted);
}

static void print_comparison(const ls_comparison *comparison)
{
    int columns = ls_terminal_columns(STDOUT_FILENO);
    ls_compare_table_print(stdout, columns, comparison);
    ls_compare_verdicts_print(stdout, columns, comparison);
}

static void warn_of_cores(const ls_compare_options *options)
{
    if (options->devices > options->cores)
        fprintf(stderr,
                "%" PRId64 " devices on %" PRId64 " cores: they take turns, speeds say little\n",
                options->devices, options->cores);
    if (options->devices == 1)
        fputs("all strategies run on one device: --devices 2 spreads them\n", stderr);
}

static int compare(const ls_invocation *invocation)
{
    ls_compare_request request;
    ls_comparison *comparison = NULL;
    ls_error error;
    shown progress = {.quiet = invocation->quiet, .live = ls_terminal_is_live(STDERR_FILENO)};
    ls_status status = ls_compare_request_init(&request, invocation, &error);
    if (status == LS_OK) {
        if (*request.note && !progress.quiet) show_message(&progress, request.note);
        request.options.running = show_run;
        request.options.progress = show_progress;
        request.options.message = show_message;
        request.options.should_stop = ls_signals_stop_requested;
        request.options.context = &progress;
        warn_of_cores(&request.options);
        ls_signals_install();
        status = ls_compare(&comparison, &request.options, &error);
        clear(&progress);
    }
    int result = LS_EXIT_FAILED;
    if (comparison && comparison->judged) print_comparison(comparison);
    if (status == LS_OK) {
        printf("\nreport  %s/report.html\n", invocation->options.output);
        result = comparison->any_different ? LS_EXIT_DIFFERENT
                 : comparison->any_failed  ? LS_EXIT_SOME_FAILED
                                           : LS_EXIT_DONE;
    } else {
        /* 75 promises a result. */
        result = ls_exit_report(status == LS_INTERRUPTED ? LS_INVALID : status, &error);
    }
    ls_comparison_free(comparison);
    ls_compare_request_deinit(&request);
    return result;
}

const ls_command ls_command_compare = {
    .name = "compare",
    .bit = LS_COMMAND_COMPARE | LS_COMMAND_TRAIN,
    .left_out = ls_compare_left_out,
    .summary = "speed, memory, accuracy and bits of strategies, side by side",
    .usage = "--model FOLDER --train FILE --output FOLDER [flags]",
    .example = "lockstep compare --model m --train t.tsv --devices 2 --output compared",
    .details =
        "Trains with each strategy in a process of its own on the same data, seeds and global "
        "batch, then times all of them in turns. Prints tables and verdicts and writes "
        "compare.json, compare.csv and report.html, a page to look at. Settings of train hold for "
        "every run, those that count only where parameters are divided for the strategies that do "
        "so. A DeepSpeed file says the settings of all runs, but for its stage and its "
        "monitors.\n"
        "single is one device of the same size (--threads, or the cores divided by --devices), and "
        "the base of speed-up and efficiency; beside it stands a row with all these cores in one "
        "device. A strategy that fails is a row with its reason.",
    .needed = {"model", "train", "output"},
    .can_be_quiet = true,
    .takes_deepspeed = true,
    .run = compare,
};

#include "cli/progress.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/columns.h"
#include "cli/evaluation.h"
#include "cli/progress_line.h"

enum { LINE_BYTES = 1024 };

/* A live line at most ten times a second; a plain line of a stage not sooner than this. */
static const double live_seconds = 0.1, plain_stage_seconds = 5;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

void ls_progress_init(ls_progress *progress, bool quiet)
{
    *progress = (ls_progress){.mode = LS_PROGRESS_PLAIN, .last_part = -1};
    if (ls_terminal_is_live(STDERR_FILENO)) progress->mode = LS_PROGRESS_LIVE;
    if (quiet) progress->mode = LS_PROGRESS_NONE;
}

void ls_progress_clear(ls_progress *progress)
{
    if (!progress->shown) return;
    fputs("\r\x1b[K", stderr);
    fflush(stderr);
    progress->shown = false;
}

/* In one write, so that the line never stands half drawn. */
static void redraw(ls_progress *progress, const char *line)
{
    char whole[LINE_BYTES + 8];
    int length = snprintf(whole, sizeof whole, "\r%s\x1b[K", line);
    fflush(stdout);
    fwrite(whole, 1, (size_t)length, stderr);
    fflush(stderr);
    progress->shown = true;
    progress->last = now();
}

static void print_plain(ls_progress *progress, const char *line)
{
    fflush(stdout);
    fprintf(stderr, "%s\n", line);
    progress->last = now();
}

/* The last column stays free: a terminal may wrap there. */
static int live_columns(void)
{
    return ls_terminal_columns(STDERR_FILENO) - 1;
}

static void show_stage(void *context, const char *what, int64_t done, int64_t total)
{
    ls_progress *progress = context;
    char line[LINE_BYTES];
    bool same = strncmp(progress->stage, what, sizeof progress->stage - 1) == 0;
    double age = now() - progress->last;
    if (progress->mode == LS_PROGRESS_NONE) return;
    bool live = progress->mode == LS_PROGRESS_LIVE, whole = total > 0 && done >= total;
    if (same && age < (live ? live_seconds : plain_stage_seconds) && !(live && whole)) return;
    snprintf(progress->stage, sizeof progress->stage, "%s", what);
    if (progress->mode == LS_PROGRESS_LIVE) {
        ls_progress_stage_line(line, sizeof line, live_columns(), what, done, total);
        redraw(progress, line);
    } else {
        ls_progress_stage_line(line, sizeof line, LS_NO_LIMIT, what, done, same ? total : 0);
        print_plain(progress, line);
    }
}

/* A plain line. */
static bool is_due(ls_progress *progress, const ls_step_report *report)
{
    if (progress->log_every) return report->step % progress->log_every == 0;
    int part = ls_progress_percent(report->step, report->total_steps) / 5;
    if (part == progress->last_part) return false;
    progress->last_part = part;
    return true;
}

static void show_step(void *context, const ls_step_report *report)
{
    ls_progress *progress = context;
    char line[LINE_BYTES];
    bool last = report->step >= report->total_steps;
    ls_step_report smooth = *report;
    progress->tokens += report->tokens;
    progress->speed +=
        (progress->speed > 0 ? 0.1 : 1) * (report->tokens_per_second - progress->speed);
    smooth.tokens_per_second = progress->speed;
    progress->stage[0] = '\0';
    if (progress->mode == LS_PROGRESS_NONE) return;
    bool due = is_due(progress, report) || last;
    if (due && progress->breakdown) {
        ls_progress_clear(progress);
        ls_progress_breakdown_line(line, sizeof line, report);
        print_plain(progress, line);
    }
    if (progress->mode == LS_PROGRESS_LIVE) {
        if (!last && now() - progress->last < live_seconds) return;
        ls_progress_live_line(line, sizeof line, live_columns(), &smooth);
        redraw(progress, line);
    } else if (due) {
        ls_progress_plain_line(line, sizeof line, &smooth);
        print_plain(progress, line);
    }
}

static void show_evaluation(void *context, const ls_evaluation_report *report)
{
    ls_progress *progress = context;
    ls_progress_clear(progress);
    ls_evaluation_print(stdout, report);
    fflush(stdout);
    progress->stage[0] = '\0';
}

static void show_message(void *context, const char *line)
{
    char shown[LINE_BYTES];
    ls_progress_clear(context);
    fflush(stdout);
    ls_columns_fit(shown, sizeof shown, line, LS_NO_LIMIT);
    fprintf(stderr, "%s\n", shown);
}

/* From any thread: nothing of `context` is touched but the terminal. */
static void show_late(void *context, const char *line)
{
    char shown[LINE_BYTES];
    (void)context;
    ls_columns_fit(shown, sizeof shown, line, LS_NO_LIMIT);
    fprintf(stderr, "\nlockstep: %s\n", shown);
}

ls_callbacks ls_progress_callbacks(ls_progress *progress)
{
    return (ls_callbacks){.context = progress,
                          .stage = show_stage,
                          .step = show_step,
                          .evaluation = show_evaluation,
                          .message = show_message,
                          .late = show_late};
}

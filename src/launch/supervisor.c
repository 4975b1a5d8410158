#include "launch/supervisor.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "launch/capture.h"
#include "launch/cause.h"
#include "launch/job.h"
#include "launch/run_progress.h"

enum { LONGEST_DELAY = 60, MOST_WITHOUT_STEP = 2, EXIT_LOST = 4 };

static const double probe_seconds = 15;

typedef struct supervised {
    const ls_launch_context *context;
    ls_interrupts interrupts;
    ls_hosts left; /* those that are not gone, once one was lost */
    const ls_hosts *hosts;
    int processes;
    int restarts, without_step;
    ls_run_progress before;
    ls_cause cause;
    bool resume;
} supervised;

double ls_restart_delay(int restarts)
{
    return restarts < 6 ? 1 << restarts : LONGEST_DELAY;
}

/* --- hosts ----------------------------------------------------------------------------------- */

static ls_status is_alive(const ls_host *host, const char *agent, bool *alive, ls_error *error)
{
    char said[256];
    int wait_status = 0;
    ls_words words = {0};
    ls_status status = LS_OK;
    *alive = ls_host_is_here(host->name);
    if (*alive) return LS_OK;
    LS_TRY_GOTO(status, ls_words_add(&words, error, "%s", agent), end);
    if (strcmp(agent, "ssh") == 0) {
        char *const options[] = {"-o", "BatchMode=yes", "-o", "ConnectTimeout=10"};
        LS_TRY_GOTO(status, ls_words_add_all(&words, options, 4, error), end);
    }
    LS_TRY_GOTO(status, ls_words_add(&words, error, "%s", host->name), end);
    LS_TRY_GOTO(status, ls_words_add(&words, error, "true"), end);
    status = ls_capture(words.list, probe_seconds, said, sizeof said, &wait_status, error);
    *alive = status == LS_OK && WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
end:
    ls_words_deinit(&words);
    return status;
}

ls_status ls_hosts_alive(const ls_hosts *all, const char *agent, ls_hosts *left, ls_error *error)
{
    *left = (ls_hosts){0};
    LS_TRY(LS_GROW(left->list, left->capacity, all->count, "hosts", error));
    for (size_t i = 0; i < all->count; i++) {
        bool alive = false;
        LS_TRY(is_alive(&all->list[i], agent, &alive, error));
        if (alive)
            left->list[left->count++] = all->list[i];
        else
            fprintf(stderr, "lockstep launch: host %s does not answer\n", all->list[i].name);
    }
    return LS_OK;
}

/* Hosts and processes for the next attempt; *possible false where too few are left. */
static ls_status choose_hosts(supervised *run, bool *possible, ls_error *error)
{
    const ls_launch_options *options = run->context->options;
    int least = options->min_processes ? options->min_processes : options->processes;
    *possible = true;
    if (!run->context->hosts) return LS_OK;
    ls_hosts_deinit(&run->left);
    LS_TRY(ls_hosts_alive(run->context->hosts, ls_launcher_agent(), &run->left, error));
    int slots = ls_hosts_slots(&run->left);
    run->hosts = &run->left;
    run->processes = slots < options->processes ? slots : options->processes;
    if (run->processes >= least) return LS_OK;
    *possible = false;
    fprintf(stderr,
            "lockstep launch: the hosts that are left have %d slot%s, and the run needs %d "
            "processes (%s)\n",
            slots, slots == 1 ? "" : "s", least,
            options->min_processes ? "--min-processes" : "--min-processes allows fewer");
    return LS_OK;
}

/* --- one attempt ----------------------------------------------------------------------------- */

/* Rank 0 draws its progress line as if our terminal were its own. */
static ls_status describe_terminal(bool *live, ls_error *error)
{
    const char *kind = getenv("TERM");
    struct winsize size = {0};
    char columns[16];
    *live = isatty(STDERR_FILENO) && !(kind && strcmp(kind, "dumb") == 0);
    if (!*live) return LS_OK;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) size.ws_col = 80;
    snprintf(columns, sizeof columns, "%d", size.ws_col);
    if (setenv("LOCKSTEP_TERMINAL_COLUMNS", columns, 1) != 0)
        return ls_fail(error, LS_NO_MEMORY, "out of memory for the environment");
    return LS_OK;
}

/* What mpirun said, without its borders and empty lines. */
static void print_launcher_text(const char *text)
{
    while (*text) {
        int length = (int)strcspn(text, "\n");
        bool border = strspn(text, "-=") >= 10;
        if (length > 0 && !border) fprintf(stderr, "mpirun: %.*s\n", length, text);
        text += length + (text[length] == '\n');
    }
}

/* The rank's own words stand above already where it runs alone and said why it failed. */
static ls_status print_cause(const supervised *run, const ls_output *output, ls_error *error)
{
    ls_text text = {0};
    bool direct = run->context->launcher.kind == LS_LAUNCHER_DIRECT;
    if (run->cause.kind == LS_CAUSE_NONE || run->interrupts.count > 1) return LS_OK;
    if (direct && run->cause.kind == LS_CAUSE_EXITED) return LS_OK;
    if (run->cause.kind == LS_CAUSE_EXITED && run->interrupts.count > 0) return LS_OK;
    ls_status status = ls_cause_print(&run->cause, output, &text, error);
    if (run->cause.kind == LS_CAUSE_LAUNCHER) print_launcher_text(ls_output_launcher_text(output));
    if (status == LS_OK) fprintf(stderr, "lockstep launch: %s\n", text.data);
    ls_text_deinit(&text);
    return status;
}

static ls_status attempt_once(supervised *run, ls_error *error)
{
    const ls_launch_context *context = run->context;
    bool direct = context->launcher.kind == LS_LAUNCHER_DIRECT;
    ls_attempt attempt;
    ls_text text = {0};
    ls_output *output = NULL;
    ls_output_options options = {
        .ranks = run->processes, .tagged = !direct, .into = {STDOUT_FILENO, STDERR_FILENO}};
    int wait_status = 0;
    ls_status status = describe_terminal(&options.live, error);
    if (status != LS_OK) return status;
    LS_TRY_GOTO(
        status,
        ls_attempt_prepare(&attempt, context, run->hosts, run->processes, run->resume, error), end);
    LS_TRY_GOTO(status, ls_attempt_print(&attempt, &text, error), end);
    if (!direct) fputs(text.data, stderr);
    LS_TRY_GOTO(status, ls_output_new(&output, &options, error), end);
    ls_job job = {.words = &attempt.words,
                  .environment = &attempt.environment,
                  .stop_signal = direct ? SIGTERM : SIGUSR1,
                  .output = output};
    LS_TRY_GOTO(status, ls_job_run(&job, &run->interrupts, &wait_status, error), end);
    ls_cause_find(&run->cause, output, run->processes, direct, wait_status);
    status = print_cause(run, output, error);
end:
    ls_output_free(output);
    ls_text_deinit(&text);
    ls_attempt_deinit(&attempt);
    return status;
}

/* --- again ----------------------------------------------------------------------------------- */

/* Whether another attempt is to be made, after the wait that goes before it. */
static ls_status may_restart(supervised *run, bool *again, ls_error *error)
{
    const ls_launch_options *options = run->context->options;
    ls_run_progress now = ls_run_progress_read(options->output);
    *again = false;
    /* What once started and now does not has lost something in between. */
    bool loss = ls_cause_is_loss(&run->cause) ||
                (run->restarts > 0 && run->cause.kind == LS_CAUSE_LAUNCHER);
    if (!loss || run->interrupts.count > 0 || options->max_restarts == 0) return LS_OK;
    if (run->restarts > 0) {
        bool made = ls_run_progress_made(&run->before, &now);
        run->without_step = made ? 0 : run->without_step + 1;
    }
    if (run->restarts == options->max_restarts || run->without_step == MOST_WITHOUT_STEP) {
        fprintf(stderr, "lockstep launch: given up after %d restart%s%s, at step %lld\n",
                run->restarts, run->restarts == 1 ? "" : "s",
                run->without_step == MOST_WITHOUT_STEP ? ", the last two without a step" : "",
                (long long)ls_run_progress_step(&now));
        return LS_OK;
    }
    double delay = ls_restart_delay(run->restarts);
    run->resume = now.checkpoint >= 0;
    if (run->resume)
        fprintf(stderr, "lockstep launch: restart %d of %d in %.0f s from checkpoint-%lld\n",
                run->restarts + 1, options->max_restarts, delay, (long long)now.checkpoint);
    else
        fprintf(stderr,
                "lockstep launch: restart %d of %d in %.0f s from the start: there is no "
                "checkpoint\n",
                run->restarts + 1, options->max_restarts, delay);
    ls_interrupts_wait(&run->interrupts, delay);
    if (run->interrupts.count > 0) {
        fprintf(stderr, "\nlockstep launch: stopped before the restart\n");
        return LS_OK;
    }
    LS_TRY(choose_hosts(run, again, error));
    run->before = now;
    run->restarts++;
    return LS_OK;
}

ls_status ls_supervise(const ls_launch_context *context, int *exit_status, ls_error *error)
{
    supervised run = {
        .context = context, .hosts = context->hosts, .processes = context->options->processes};
    bool again = true;
    ls_status status = ls_interrupts_open(&run.interrupts, error);
    while (status == LS_OK && again) {
        status = attempt_once(&run, error);
        if (status == LS_OK) status = may_restart(&run, &again, error);
    }
    ls_interrupts_close(&run.interrupts);
    ls_hosts_deinit(&run.left);
    *exit_status = ls_cause_exit_status(&run.cause);
    if (run.restarts > 0 && run.cause.kind == LS_CAUSE_LAUNCHER) *exit_status = EXIT_LOST;
    /* Ended at once, or before the run could listen: as if the signal had been ours. */
    int asked = context->launcher.kind == LS_LAUNCHER_DIRECT ? SIGTERM : SIGUSR1;
    bool unheard = run.cause.signal == asked;
    if (run.interrupts.count > 1 || (run.interrupts.count > 0 && unheard))
        *exit_status = 128 + run.interrupts.last;
    return status;
}

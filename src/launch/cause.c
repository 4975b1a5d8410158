#include "launch/cause.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* Exit statuses of lockstep itself that stand for a loss; see cli/exit_status.h. */
enum { EXIT_FAILED = 1, EXIT_LOST = 4 };

const char *ls_signal_print(char into[LS_SIGNAL_BYTES], int signal)
{
    const char *name = sigabbrev_np(signal);
    if (name)
        snprintf(into, LS_SIGNAL_BYTES, "SIG%s", name);
    else
        snprintf(into, LS_SIGNAL_BYTES, "signal %d", signal);
    return into;
}

/* The number after `key` at or after `text`; -1 if there is none. */
static long number_after(const char *text, const char *key)
{
    const char *found = strstr(text, key);
    if (!found) return -1;
    found += strlen(key);
    found += strspn(found, " ");
    return *found >= '0' && *found <= '9' ? strtol(found, NULL, 10) : -1;
}

static void copy_word_after(char into[LS_HOST_NAME_BYTES], const char *text, const char *key)
{
    const char *found = strstr(text, key);
    if (!found) return;
    found += strlen(key);
    found += strspn(found, " ");
    snprintf(into, LS_HOST_NAME_BYTES, "%.*s", (int)strcspn(found, " \t\r\n"), found);
}

/* "mpirun noticed that process rank 1 with PID 0 on node alpha exited on signal 9 (Killed)." */
static bool find_signal(ls_cause *cause, const char *text)
{
    const char *start = strstr(text, "noticed that process rank");
    if (!start || number_after(start, "exited on signal") < 0) return false;
    cause->kind = LS_CAUSE_KILLED;
    cause->rank = (int)number_after(start, "process rank");
    cause->signal = (int)number_after(start, "exited on signal");
    copy_word_after(cause->host, start, "on node");
    return true;
}

/* "Process name: [[6372,1],1]" and "Exit code:    3" */
static bool find_exit(ls_cause *cause, const char *text)
{
    const char *start = strstr(text, "Process name:");
    if (!start || number_after(start, "Exit code:") < 0) return false;
    cause->kind = LS_CAUSE_EXITED;
    cause->rank = (int)number_after(start, "],");
    cause->code = (int)number_after(start, "Exit code:");
    return true;
}

/* Open MPI's daemons: one that was there and is gone, or one that never came. */
static bool find_lost_host(ls_cause *cause, const char *text)
{
    const char *lost = strstr(text, "lost communication with a remote daemon");
    if (lost) {
        const char *remote = strstr(lost, "Remote daemon:");
        copy_word_after(cause->host, remote ? remote : lost, "on node");
    } else if (!strstr(text, "ORTE was unable to reliably start one or more daemons") &&
               !strstr(text, "ORTE does not know how to route a message")) {
        return false;
    }
    cause->kind = LS_CAUSE_HOST_LOST;
    return true;
}

/* MPICH: "PID 123 RUNNING AT alpha", "EXIT CODE: 9", "EXIT STRING: Killed (signal 9)". The process
 * is the first in the order of ranks that did not end well; MPICH ends all of them when one fails,
 * so that it need not be the one. */
static bool find_mpich(ls_cause *cause, const char *text)
{
    const char *start = strstr(text, "BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES");
    if (!start) return false;
    long signal = number_after(start, "(signal");
    copy_word_after(cause->host, start, "RUNNING AT");
    cause->kind = signal > 0 ? LS_CAUSE_KILLED : LS_CAUSE_EXITED;
    cause->signal = signal > 0 ? (int)signal : 0;
    cause->code = (int)number_after(start, "EXIT CODE:");
    return true;
}

static void find_in_status(ls_cause *cause, bool direct, int wait_status)
{
    if (WIFSIGNALED(wait_status)) {
        cause->kind = direct ? LS_CAUSE_KILLED : LS_CAUSE_LAUNCHER;
        cause->signal = WTERMSIG(wait_status);
    } else if (!direct && WEXITSTATUS(wait_status) > 128 && WEXITSTATUS(wait_status) <= 128 + 64) {
        /* A rank's signal by way of the exit status. */
        cause->kind = LS_CAUSE_KILLED;
        cause->signal = WEXITSTATUS(wait_status) - 128;
    } else if (WEXITSTATUS(wait_status) > 0) {
        cause->kind = LS_CAUSE_EXITED;
        cause->code = WEXITSTATUS(wait_status);
    }
}

void ls_cause_find(ls_cause *cause, const ls_output *output, int ranks, bool direct,
                   int wait_status)
{
    const char *text = ls_output_launcher_text(output);
    *cause = (ls_cause){.rank = direct ? 0 : -1};
    if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0) return;
    bool found = !direct && (find_signal(cause, text) || find_lost_host(cause, text) ||
                             find_exit(cause, text) || find_mpich(cause, text));
    if (!found) find_in_status(cause, direct, wait_status);
    bool started = direct;
    for (int rank = 0; rank < ranks; rank++)
        started = started || ls_output_note(output, rank)->pid > 0;
    if (!started) {
        cause->kind = LS_CAUSE_LAUNCHER;
        cause->signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
    }
    if (cause->rank >= ranks) cause->rank = -1;
    if (!*cause->host && cause->rank >= 0)
        snprintf(cause->host, sizeof cause->host, "%s", ls_output_note(output, cause->rank)->host);
}

int ls_cause_exit_status(const ls_cause *cause)
{
    switch (cause->kind) {
    case LS_CAUSE_NONE:
        return 0;
    case LS_CAUSE_EXITED:
        /* Above that mpirun speaks for itself. */
        return cause->code <= 128 ? cause->code : EXIT_FAILED;
    case LS_CAUSE_KILLED:
    case LS_CAUSE_HOST_LOST:
        return EXIT_LOST;
    case LS_CAUSE_LAUNCHER:
        break;
    }
    return cause->signal ? EXIT_LOST : EXIT_FAILED;
}

bool ls_cause_is_loss(const ls_cause *cause)
{
    return ls_cause_exit_status(cause) == EXIT_LOST;
}

static ls_status print_what(const ls_cause *cause, ls_text *text, ls_error *error)
{
    char name[LS_SIGNAL_BYTES];
    switch (cause->kind) {
    case LS_CAUSE_NONE:
        return ls_text_print(text, error, "ended well");
    case LS_CAUSE_EXITED:
        return ls_text_print(text, error, "ended with exit status %d", cause->code);
    case LS_CAUSE_HOST_LOST:
        return ls_text_print(text, error, "no longer answers");
    case LS_CAUSE_KILLED:
    case LS_CAUSE_LAUNCHER:
        break;
    }
    if (!cause->signal) return ls_text_print(text, error, "failed");
    return ls_text_print(text, error, "was ended by %s (%s)", ls_signal_print(name, cause->signal),
                         strsignal(cause->signal));
}

ls_status ls_cause_print(const ls_cause *cause, const ls_output *output, ls_text *text,
                         ls_error *error)
{
    if (cause->kind == LS_CAUSE_LAUNCHER)
        LS_TRY(ls_text_print(text, error, "mpirun "));
    else if (cause->kind == LS_CAUSE_HOST_LOST)
        LS_TRY(
            ls_text_print(text, error, "host %s ", *cause->host ? cause->host : "(one of them)"));
    else if (cause->rank >= 0 && *cause->host)
        LS_TRY(ls_text_print(text, error, "rank %d on %s ", cause->rank, cause->host));
    else if (cause->rank >= 0)
        LS_TRY(ls_text_print(text, error, "rank %d ", cause->rank));
    else
        LS_TRY(ls_text_print(text, error, "a rank%s%s ", *cause->host ? " on " : "", cause->host));
    LS_TRY(print_what(cause, text, error));
    const char *last = cause->rank >= 0 ? ls_output_last_line(output, cause->rank) : "";
    return *last ? ls_text_print(text, error, "; its last line: %s", last) : LS_OK;
}

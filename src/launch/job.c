#include "launch/job.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "launch/guard.h"

/* When nothing is left that could write, the streams end at once. */
enum { LAST_BYTES_MILLISECONDS = 1000 };

static sigset_t interrupt_set(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGUSR1);
    return set;
}

ls_status ls_interrupts_open(ls_interrupts *interrupts, ls_error *error)
{
    sigset_t set = interrupt_set();
    *interrupts = (ls_interrupts){0};
    sigprocmask(SIG_BLOCK, &set, NULL);
    interrupts->descriptor = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (interrupts->descriptor < 0)
        return ls_fail(error, LS_IO, "cannot wait for signals: %s", strerror(errno));
    return LS_OK;
}

void ls_interrupts_close(ls_interrupts *interrupts)
{
    sigset_t set = interrupt_set();
    close(interrupts->descriptor);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* Whether there was a new one. */
static bool read_interrupts(ls_interrupts *interrupts)
{
    struct signalfd_siginfo signal;
    bool any = false;
    while (read(interrupts->descriptor, &signal, sizeof signal) == sizeof signal) {
        interrupts->count++;
        interrupts->last = (int)signal.ssi_signo;
        any = true;
    }
    return any;
}

void ls_interrupts_wait(ls_interrupts *interrupts, double seconds)
{
    struct pollfd wait = {.fd = interrupts->descriptor, .events = POLLIN};
    if (poll(&wait, 1, (int)(seconds * 1000)) > 0) read_interrupts(interrupts);
}

/* The request to stop itself is sent once all ranks can take it; before, it would kill mpirun. */
static void obey(ls_interrupts *interrupts, const ls_guard *guard)
{
    int before = interrupts->count;
    if (!read_interrupts(interrupts)) return;
    if (interrupts->count == 1) {
        fprintf(stderr, "\nlockstep launch: stopping after this step; again to end at once\n");
    } else if (before < 2) {
        fprintf(stderr, "\nlockstep launch: ending all processes\n");
        ls_guard_end(guard);
    }
}

/* *open becomes false at the end of the stream. */
static ls_status pass_on(const ls_job *job, ls_guard *guard, int stream, bool *open,
                         ls_error *error)
{
    char bytes[1 << 14];
    ssize_t count = read(guard->streams[stream], bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) return LS_OK;
    if (count > 0) return ls_output_take(job->output, stream, bytes, (size_t)count, error);
    *open = false;
    return LS_OK;
}

static ls_status watch(const ls_job *job, ls_interrupts *interrupts, ls_guard *guard,
                       ls_guard_report *report, ls_error *error)
{
    bool open[2] = {true, true}, reported = false, stopped = false;
    while (!reported || open[0] || open[1]) {
        struct pollfd waits[] = {
            {.fd = interrupts->descriptor, .events = POLLIN},
            {.fd = open[0] ? guard->streams[0] : -1, .events = POLLIN},
            {.fd = open[1] ? guard->streams[1] : -1, .events = POLLIN},
            {.fd = reported ? -1 : guard->report, .events = POLLIN},
        };
        int ready = poll(waits, 4, reported ? LAST_BYTES_MILLISECONDS : -1);
        if (ready == 0) break;
        if (ready < 0) continue;
        if (waits[0].revents) obey(interrupts, guard);
        for (int stream = 0; stream < 2; stream++)
            if (waits[1 + stream].revents)
                LS_TRY(pass_on(job, guard, stream, &open[stream], error));
        if (interrupts->count == 1 && !stopped && ls_output_all_started(job->output)) {
            stopped = true;
            ls_guard_stop(guard);
        }
        if (waits[3].revents) {
            LS_TRY(ls_guard_read(guard, report, error));
            reported = true;
        }
    }
    return ls_output_finish(job->output, error);
}

ls_status ls_job_run(const ls_job *job, ls_interrupts *interrupts, int *wait_status,
                     ls_error *error)
{
    ls_guard guard;
    ls_guard_report report = {0};
    LS_TRY(ls_guard_start(&guard, job->words, job->environment, job->stop_signal, error));
    ls_status status = watch(job, interrupts, &guard, &report, error);
    ls_guard_close(&guard);
    if (status == LS_OK && report.exec_error)
        status = ls_fail(error, LS_IO, "cannot start %s: %s", job->words->list[0],
                         strerror(report.exec_error));
    *wait_status = report.wait_status;
    return status;
}

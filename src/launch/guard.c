#include "launch/guard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum { ORDER_STOP = 's', ORDER_END = 'e' };

/* How long mpirun has to end its ranks, and orphans to end by themselves. */
static const double end_seconds = 2, orphan_seconds = 1;

/* --- in the guard process -------------------------------------------------------------------- */

typedef struct watched {
    pid_t program;
    int control, signals, stop_signal;
    bool ended; /* the program */
    double deadline;
    ls_guard_report report;
} watched;

static pid_t parent_of(pid_t pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t count = descriptor < 0 ? -1 : read(descriptor, text, sizeof text - 1);
    if (descriptor >= 0) close(descriptor);
    if (count <= 0) return 0;
    text[count] = '\0';
    /* The name, in parentheses, may hold anything; state and parent follow its last one. */
    const char *end = strrchr(text, ')');
    long parent = 0;
    return end && sscanf(end + 1, " %*c %ld", &parent) == 1 ? (pid_t)parent : 0;
}

static bool descends_from(pid_t pid, pid_t ancestor)
{
    for (int depth = 0; pid > 1 && depth < 1000; depth++) {
        pid = parent_of(pid);
        if (pid == ancestor) return true;
    }
    return false;
}

static void kill_descendants(void)
{
    DIR *folder = opendir("/proc");
    pid_t self = getpid();
    if (!folder) return;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid > 1 && pid != self && descends_from(pid, self)) kill(pid, SIGKILL);
    }
    closedir(folder);
}

/* False when no child is left. */
static bool reap(watched *watch)
{
    int wait_status;
    pid_t pid;
    while ((pid = waitpid(-1, &wait_status, WNOHANG)) > 0) {
        if (pid != watch->program) continue;
        watch->ended = true;
        watch->report.wait_status = wait_status;
        watch->deadline = ls_seconds() + orphan_seconds;
    }
    return pid == 0;
}

static void begin_end(watched *watch)
{
    double deadline = ls_seconds() + end_seconds;
    if (!watch->ended) {
        kill(watch->program, SIGTERM);
        kill(watch->program, SIGCONT);
    }
    if (watch->deadline == 0 || deadline < watch->deadline) watch->deadline = deadline;
}

static void read_orders(watched *watch)
{
    char order;
    ssize_t count = read(watch->control, &order, 1);
    if (count < 0 && errno == EINTR) return;
    if (count == 1 && order == ORDER_STOP) {
        if (!watch->ended) kill(watch->program, watch->stop_signal);
        return;
    }
    begin_end(watch);
    if (count <= 0) watch->control = -1; /* whom we guard for is gone */
}

static void watch_program(watched *watch)
{
    while (reap(watch)) {
        struct pollfd waits[] = {{.fd = watch->control, .events = POLLIN},
                                 {.fd = watch->signals, .events = POLLIN}};
        int milliseconds = -1;
        if (watch->deadline > 0) {
            double left = watch->deadline - ls_seconds();
            if (left <= 0) kill_descendants();
            milliseconds = left <= 0 ? 10 : (int)(left * 1000) + 1;
        }
        if (poll(waits, 2, milliseconds) <= 0) continue;
        if (waits[0].revents) read_orders(watch);
        struct signalfd_siginfo signal;
        while (read(watch->signals, &signal, sizeof signal) == sizeof signal)
            if (signal.ssi_signo != SIGCHLD) begin_end(watch);
    }
}

/* Becomes the program; what fails is told to the guard by errno. */
static _Noreturn void become_program(const ls_words *words, const ls_words *environment,
                                     pid_t guard, int failure)
{
    sigset_t none;
    sigemptyset(&none);
    signal(SIGPIPE, SIG_DFL);
    for (size_t i = 0; i < environment->count; i++)
        putenv(environment->list[i]);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == guard) {
        sigprocmask(SIG_SETMASK, &none, NULL);
        execvp(words->list[0], words->list);
    }
    int kept = errno;
    ssize_t ignored = write(failure, &kept, sizeof kept);
    (void)ignored;
    _exit(127);
}

/* The program's process, or 0 with the reason in the report. */
static pid_t start_program(const ls_words *words, const ls_words *environment,
                           ls_guard_report *report)
{
    int ends[2];
    pid_t guard = getpid();
    if (pipe2(ends, O_CLOEXEC) != 0) {
        report->exec_error = errno;
        return 0;
    }
    pid_t program = fork();
    if (program == 0) become_program(words, environment, guard, ends[1]);
    if (program < 0) report->exec_error = errno;
    close(ends[1]);
    if (program > 0 && read(ends[0], &report->exec_error, sizeof report->exec_error) > 0) {
        waitpid(program, NULL, 0);
        program = 0;
    }
    close(ends[0]);
    return program > 0 ? program : 0;
}

static void use_as(int descriptor, int number)
{
    if (descriptor == number) return;
    dup2(descriptor, number);
    close(descriptor);
}

/* The guard's life. Signals come through a descriptor; all of them mean the end. */
static _Noreturn void be_guard(const ls_words *words, const ls_words *environment, int stop_signal,
                               int control, int report, const int streams[2])
{
    watched watch = {.control = control, .stop_signal = stop_signal};
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    sigprocmask(SIG_SETMASK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    setsid();
    prctl(PR_SET_NAME, "lockstep-guard");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    use_as(open("/dev/null", O_RDONLY), 0);
    use_as(streams[0], 1);
    use_as(streams[1], 2);
    watch.signals = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    watch.program = start_program(words, environment, &watch.report);
    /* The streams end when the program and its children have closed them. */
    use_as(open("/dev/null", O_WRONLY), 1);
    dup2(1, 2);
    if (watch.program) watch_program(&watch);
    ssize_t ignored = write(report, &watch.report, sizeof watch.report);
    (void)ignored;
    _exit(0);
}

/* --- in ours --------------------------------------------------------------------------------- */

static void close_end(int *descriptor)
{
    if (*descriptor >= 0) close(*descriptor);
    *descriptor = -1;
}

ls_status ls_guard_start(ls_guard *guard, const ls_words *words, const ls_words *environment,
                         int stop_signal, ls_error *error)
{
    int pipes[4][2] = {{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}}; /* control, report, two streams */
    enum { CONTROL, REPORT, OUTPUT, ERRORS, PIPES };
    *guard = (ls_guard){.control = -1, .report = -1, .streams = {-1, -1}};
    /* A socket for orders: writing to a pipe that nobody reads would end us. */
    bool made = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pipes[CONTROL]) == 0;
    for (int i = REPORT; i < PIPES; i++)
        made = made && pipe2(pipes[i], O_CLOEXEC) == 0;
    if (made) guard->pid = fork();
    if (made && guard->pid == 0) {
        close_end(&pipes[CONTROL][1]);
        close_end(&pipes[REPORT][0]);
        close_end(&pipes[OUTPUT][0]);
        close_end(&pipes[ERRORS][0]);
        const int streams[2] = {pipes[OUTPUT][1], pipes[ERRORS][1]};
        be_guard(words, environment, stop_signal, pipes[CONTROL][0], pipes[REPORT][1], streams);
    }
    bool failed = !made || guard->pid < 0;
    int kept = errno;
    close_end(&pipes[CONTROL][0]);
    for (int i = REPORT; i < PIPES; i++)
        close_end(&pipes[i][1]);
    guard->control = pipes[CONTROL][1];
    guard->report = pipes[REPORT][0];
    guard->streams[0] = pipes[OUTPUT][0];
    guard->streams[1] = pipes[ERRORS][0];
    if (!failed) return LS_OK;
    guard->pid = 0;
    ls_guard_close(guard);
    return ls_fail(error, LS_IO, "cannot start %s: %s", words->list[0], strerror(kept));
}

static void send_order(const ls_guard *guard, char order)
{
    /* A guard that is gone shows in its report. */
    ssize_t ignored = send(guard->control, &order, 1, MSG_NOSIGNAL);
    (void)ignored;
}

void ls_guard_stop(const ls_guard *guard)
{
    send_order(guard, ORDER_STOP);
}

void ls_guard_end(const ls_guard *guard)
{
    send_order(guard, ORDER_END);
}

ls_status ls_guard_read(const ls_guard *guard, ls_guard_report *report, ls_error *error)
{
    ssize_t count;
    do
        count = read(guard->report, report, sizeof *report);
    while (count < 0 && errno == EINTR);
    if (count == sizeof *report) return LS_OK;
    return ls_fail(error, LS_IO, "the process that guards the run was killed, and the run with it");
}

void ls_guard_close(ls_guard *guard)
{
    close_end(&guard->control);
    if (guard->pid > 0) waitpid(guard->pid, NULL, 0);
    guard->pid = 0;
    close_end(&guard->report);
    close_end(&guard->streams[0]);
    close_end(&guard->streams[1]);
}

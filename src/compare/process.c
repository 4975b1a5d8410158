#include "compare/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/files.h"

enum { POLL_NANOSECONDS = 20000000, EXEC_FAILED = 127, LARGEST_LOG = 64 << 20 };
static const double patience = 3; /* seconds from SIGTERM to SIGKILL */

/* In the child, where only what is safe after a fork in a threaded program may be called. */
static void become(const char *const *words, int log, pid_t parent)
{
    int empty = open("/dev/null", O_RDONLY);
    setpgid(0, 0);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    /* A parent that died before the request is not told of: it is looked for after it. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(EXEC_FAILED);
    if (empty < 0 || dup2(empty, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0) _exit(EXEC_FAILED);
    execv(words[0], (char *const *)(uintptr_t)words);
    static const char note[] = "lockstep: cannot start the program\n";
    ssize_t ignored = write(2, note, sizeof note - 1);
    (void)ignored;
    _exit(EXEC_FAILED);
}

static void pause_a_little(void)
{
    const struct timespec moment = {.tv_nsec = POLL_NANOSECONDS};
    nanosleep(&moment, NULL);
}

/* The child's wait status; *stopped tells whether it was asked to end. */
static int wait_for(pid_t child, bool (*should_stop)(void *), void *context, bool *stopped,
                    struct rusage *usage)
{
    double since = 0;
    int status = 0;
    bool killed = false;
    *stopped = false;
    for (;;) {
        pid_t ended = wait4(child, &status, WNOHANG, usage);
        if (ended == child || (ended < 0 && errno != EINTR)) return status;
        if (!*stopped && should_stop && should_stop(context)) {
            *stopped = true;
            since = ls_seconds();
            kill(-child, SIGTERM);
        }
        if (*stopped && !killed && ls_seconds() - since > patience) {
            killed = true;
            kill(-child, SIGKILL);
        }
        pause_a_little();
    }
}

ls_status ls_process_run(ls_process_result *result, const char *const *words, const char *log,
                         bool (*should_stop)(void *context), void *context, ls_error *error)
{
    struct rusage usage = {0};
    bool stopped;
    *result = (ls_process_result){.exit_status = -1};
    int file = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0)
        return ls_fail(error, LS_IO, "%s: cannot make the log file: %s", log, strerror(errno));
    pid_t parent = getpid(), child = fork();
    if (child == 0) become(words, file, parent);
    int code = errno;
    close(file);
    if (child < 0)
        return ls_fail(error, LS_IO, "cannot start a process for %s: %s", log, strerror(code));
    /* Either side may be first: both name the group. */
    setpgid(child, child);
    int status = wait_for(child, should_stop, context, &stopped, &usage);
    if (WIFEXITED(status)) result->exit_status = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) result->signal = WTERMSIG(status);
    result->peak_bytes = (int64_t)usage.ru_maxrss * 1024;
    return stopped ? ls_fail(error, LS_INTERRUPTED, "stopped by request") : LS_OK;
}

/* The last line of `text` that begins with `prefix`, without it; NULL if there is none. */
static char *last_line_with(char *text, const char *prefix)
{
    char *found = NULL;
    for (char *at = text; *at;) {
        char *end = strchr(at, '\n');
        if (strncmp(at, prefix, strlen(prefix)) == 0) found = at + strlen(prefix);
        if (!end) break;
        at = end + 1;
    }
    if (found) found[strcspn(found, "\n")] = '\0';
    return found;
}

void ls_process_reason(char *into, size_t bytes, const ls_process_result *result, const char *log)
{
    char *text = NULL;
    size_t count = 0;
    if (result->signal) {
        snprintf(into, bytes, "killed by signal %d (%s)", result->signal,
                 strsignal(result->signal));
        return;
    }
    const char *line = NULL;
    if (ls_file_read(&text, &count, log, LARGEST_LOG, NULL) == LS_OK)
        line = last_line_with(text, "lockstep: ");
    if (line)
        snprintf(into, bytes, "%s", line);
    else
        snprintf(into, bytes, "ended with exit status %d and without a reason",
                 result->exit_status);
    ls_free(text);
}

#include "launch/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

extern char **environ;

/* In a process group of its own, with no signal blocked. */
static int start(char *const *words, int output, pid_t *child)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    if (posix_spawn_file_actions_init(&files) != 0) return ENOMEM;
    if (posix_spawnattr_init(&attributes) != 0) {
        posix_spawn_file_actions_destroy(&files);
        return ENOMEM;
    }
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    int failed = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    if (!failed) failed = posix_spawn_file_actions_adddup2(&files, output, 1);
    if (!failed) failed = posix_spawn_file_actions_adddup2(&files, output, 2);
    if (!failed) failed = posix_spawnp(child, words[0], &files, &attributes, words, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return failed;
}

/* Until the end of what it says, or the time. */
static void read_all(int descriptor, double deadline, char *into, size_t bytes)
{
    size_t used = 0;
    char spare[512];
    for (;;) {
        double left = deadline - ls_seconds();
        struct pollfd wait = {.fd = descriptor, .events = POLLIN};
        if (left <= 0 || poll(&wait, 1, (int)(left * 1000) + 1) < 0) break;
        if (!wait.revents) continue;
        size_t room = bytes - 1 - used;
        ssize_t count = read(descriptor, room ? into + used : spare, room ? room : sizeof spare);
        if (count <= 0) break;
        if (room) used += (size_t)count;
    }
    into[used] = '\0';
}

ls_status ls_capture(char *const *words, double seconds, char *into, size_t bytes, int *wait_status,
                     ls_error *error)
{
    int ends[2];
    pid_t child = 0;
    double deadline = ls_seconds() + seconds;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return ls_fail(error, LS_IO, "cannot start %s: %s", words[0], strerror(errno));
    int failed = start(words, ends[1], &child);
    close(ends[1]);
    if (failed) {
        close(ends[0]);
        return ls_fail(error, LS_IO, "cannot start %s: %s", words[0], strerror(failed));
    }
    read_all(ends[0], deadline, into, bytes);
    close(ends[0]);
    while (waitpid(child, wait_status, WNOHANG) == 0) {
        if (ls_seconds() > deadline) kill(-child, SIGKILL);
        const struct timespec pause = {.tv_nsec = 5000000};
        nanosleep(&pause, NULL);
    }
    return LS_OK;
}

/* Preloaded into a run (see limits.sh). The wall clock jumps by years, back and forth, with every
 * look at it. With DISTURB_LIST=FILE a thread forks all the time: every other child becomes a
 * program that writes down which files it was given, the rest end at once. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { YEAR = 365 * 24 * 3600, FORKS = 60 };

static time_t jump(void)
{
    static atomic_int looks;
    static const int years[] = {0, 3, -20, 1, -1, 7};
    return (time_t)years[atomic_fetch_add(&looks, 1) % 6] * YEAR;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) now->tv_sec += jump();
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    int result = (int)syscall(SYS_gettimeofday, now, zone);
    now->tv_sec += jump();
    return result;
}

time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}

static void *fork_often(void *list)
{
    static char command[4096];
    static char *const words[] = {"sh", "-c", command, NULL};
    static char *const environment[] = {"PATH=/usr/bin:/bin", NULL};
    snprintf(command, sizeof command, "ls -l /proc/self/fd >>'%s'", (const char *)list);
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork();
        if (child == 0 && i % 2 == 0) execve("/bin/sh", words, environment);
        if (child == 0) _exit(0);
        if (child > 0) waitpid(child, NULL, 0);
        usleep(2000);
    }
    return NULL;
}

__attribute__((constructor)) static void begin(void)
{
    pthread_t thread;
    char *list = getenv("DISTURB_LIST");
    if (list && pthread_create(&thread, NULL, fork_often, list) == 0) pthread_detach(thread);
}

#include "base/fail_point.h"

#ifdef LS_FAIL_POINTS

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_RULES = 8 };

/* How often each rule's site was passed: a fail point cannot be handed an object to count in. */
static atomic_long passed[MOST_RULES];

static bool is_at(const char *rule, size_t length, const char *site)
{
    if (length == 0) return true;
    return strncmp(rule, site, length) == 0 && (site[length] == '\0' || site[length] == '.');
}

static int act(const char *action, size_t length)
{
    static const struct {
        const char *name;
        int code;
    } actions[] = {{"EIO", EIO},           {"ENOSPC", ENOSPC},   {"EROFS", EROFS},
                   {"EDQUOT", EDQUOT},     {"EACCES", EACCES},   {"EINVAL", EINVAL},
                   {"ENOMEM", ENOMEM},     {"EAGAIN", EAGAIN},   {"short", LS_FAIL_SHORT},
                   {"flip", LS_FAIL_FLIP}, {"nan", LS_FAIL_NAN}, {"inf", LS_FAIL_INFINITY}};
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (strlen(actions[i].name) == length && strncmp(action, actions[i].name, length) == 0)
            return actions[i].code;
    if (length == 4 && strncmp(action, "stop", 4) == 0) {
        kill(getpid(), SIGSTOP);
        return 0;
    }
    if (length == 4 && strncmp(action, "slow", 4) == 0) {
        usleep(1000);
        return 0;
    }
    /* Anything else is a mistake in the test, which shows as well as what it asked for. */
    kill(getpid(), SIGKILL);
    return 0;
}

int ls_fail_point(const char *site)
{
    const char *rule = getenv("LOCKSTEP_FAIL");
    for (int index = 0; rule && *rule && index < MOST_RULES; index++) {
        const char *count = strchr(rule, ':'), *end = strchr(rule, ',');
        const char *action = count ? strchr(count + 1, ':') : NULL;
        if (!action) return 0;
        if (is_at(rule, (size_t)(count - rule), site)) {
            char *after;
            long wanted = strtol(count + 1, &after, 10);
            long now = atomic_fetch_add(&passed[index], 1) + 1;
            size_t length = end ? (size_t)(end - action - 1) : strlen(action + 1);
            if (now == wanted || (*after == '+' && now > wanted)) return act(action + 1, length);
        }
        rule = end ? end + 1 : NULL;
    }
    return 0;
}

#else

/* ISO C wants something in every file. */
typedef int nothing_fails_here;

#endif

#include "launch/launch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch/attempt.h"
#include "launch/job.h"
#include "launch/rank.h"
#include "launch/supervisor.h"

enum { PATH_BYTES = 4096 };

static ls_status check(const ls_launch_options *options, ls_error *error)
{
    if (options->min_processes > options->processes)
        return ls_fail(error, LS_USAGE, "--min-processes %d is more than --processes %d",
                       options->min_processes, options->processes);
    if (options->min_processes > 0 && options->max_restarts == 0)
        return ls_fail(error, LS_USAGE,
                       "--min-processes is for restarts: it needs --max-restarts K");
    if (options->min_processes > 0 && !options->hosts)
        return ls_fail(error, LS_USAGE,
                       "--min-processes is for when a host is gone: it needs "
                       "--hosts FILE");
    return LS_OK;
}

static ls_status find_self(char into[PATH_BYTES], ls_error *error)
{
    ssize_t length = readlink("/proc/self/exe", into, PATH_BYTES - 1);
    if (length <= 0)
        return ls_fail(error, LS_IO, "cannot tell this program's path: %s", strerror(errno));
    into[length] = '\0';
    return LS_OK;
}

static ls_status dry_run(const ls_launch_context *context, ls_error *error)
{
    ls_attempt attempt;
    ls_text text = {0};
    ls_status status = ls_attempt_prepare(&attempt, context, context->hosts,
                                          context->options->processes, false, error);
    if (status == LS_OK) status = ls_attempt_print(&attempt, &text, error);
    if (status == LS_OK) status = ls_text_print(&text, error, "\n");
    for (size_t i = 0; status == LS_OK && i < attempt.environment.count; i++)
        status = ls_text_print(&text, error, "%s ", attempt.environment.list[i]);
    if (status == LS_OK) status = ls_words_print(&attempt.words, &text, error);
    if (status == LS_OK) puts(text.data);
    ls_text_deinit(&text);
    ls_attempt_deinit(&attempt);
    return status;
}

ls_status ls_launch(const ls_launch_options *options, int *exit_status, ls_error *error)
{
    char self[PATH_BYTES];
    ls_hosts hosts = {0};
    ls_launch_context context = {.options = options, .self = self};
    ls_status status;
    *exit_status = 0;
    LS_TRY(check(options, error));
    LS_TRY(find_self(self, error));
    if (options->hosts) {
        LS_TRY_GOTO(status, ls_hosts_read(&hosts, options->hosts, error), end);
        context.hosts = &hosts;
    }
    /* One process here needs no mpirun. */
    if (options->processes > 1 || options->hosts)
        LS_TRY_GOTO(status, ls_launcher_find(&context.launcher, error), end);
    if (options->dry_run)
        status = dry_run(&context, error);
    else
        status = ls_supervise(&context, exit_status, error);
end:
    ls_hosts_deinit(&hosts);
    return status;
}

ls_status ls_launch_rank(char *const *words, ls_error *error)
{
    return ls_rank_become(words, error);
}

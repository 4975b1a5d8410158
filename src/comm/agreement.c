/* What processes must agree on: results, settings, when to stop. */
#include <string.h>

#include "base/alloc.h"
#include "comm/processes.h"
#include "comm/processes_internal.h"

/* --- results ---------------------------------------------------------------------------------- */

/* A failure of its own tells more than that of a process that stopped because of it. */
static int first_failure(const ls_process_result *all, int count)
{
    int first = -1;
    for (int i = 0; i < count; i++) {
        if (all[i].status == LS_OK) continue;
        bool own = all[i].status != LS_INTERRUPTED;
        if (first < 0 || (own && all[first].status == LS_INTERRUPTED)) first = i;
    }
    return first;
}

ls_status ls_processes_agree(ls_processes *processes, ls_status mine, const char *task,
                             ls_error *error)
{
    ls_process_result own = {.status = mine}, *all = processes->results;
    int count = processes->place.count;
    if (count == 1 || mine == LS_LOST || processes->failed) return mine;
    if (mine != LS_OK && error) own.error = *error;
    /* Others may stand in a call that this process does not get to. */
    if (mine != LS_OK && mine != LS_INTERRUPTED)
        processes->operations->give_up(processes, &own.error);
    ls_status status =
        processes->operations->gather(processes, &own, sizeof own, all, task, true, error);
    int first = status == LS_OK ? first_failure(all, count) : -1;
    if (first >= 0) {
        status = (ls_status)all[first].status;
        processes->failed = true;
        if (error) *error = all[first].error;
    }
    return status;
}

ls_status ls_processes_share_result(ls_processes *processes, ls_status *result, ls_error *why,
                                    int *who, const char *task, ls_error *error)
{
    ls_process_result own = {.status = *result}, *all = processes->results;
    int count = processes->place.count;
    *who = *result == LS_OK ? -1 : 0;
    if (count == 1) return LS_OK;
    if (*result != LS_OK) own.error = *why;
    ls_status status =
        processes->operations->gather(processes, &own, sizeof own, all, task, false, error);
    if (status == LS_OK) {
        *who = first_failure(all, count);
        *result = *who < 0 ? LS_OK : (ls_status)all[*who].status;
        if (*who >= 0) *why = all[*who].error;
    }
    return status;
}

ls_status ls_processes_any(ls_processes *processes, bool mine, bool *any, const char *task,
                           ls_error *error)
{
    enum { MOST_PROCESSES = 4096 };
    unsigned char own = mine, all[MOST_PROCESSES];
    *any = mine;
    if (processes->place.count == 1) return LS_OK;
    if (processes->place.count > MOST_PROCESSES)
        return ls_fail(error, LS_UNSUPPORTED, "more than %d processes", (int)MOST_PROCESSES);
    LS_TRY(ls_processes_gather(processes, &own, 1, all, task, error));
    for (int i = 0; i < processes->place.count; i++)
        *any = *any || all[i];
    return LS_OK;
}

/* --- the same lines --------------------------------------------------------------------------- */

enum { LINE_BYTES = 240 };

static const char *line_end(const char *line)
{
    const char *end = strchr(line, '\n');
    return end ? end : line + strlen(line);
}

/* Line `index` of this process, "" after the last one; long ones are cut at their end. */
static void copy_line(char into[LINE_BYTES], const char **rest)
{
    const char *end = line_end(*rest);
    size_t length = (size_t)(end - *rest);
    if (length >= LINE_BYTES) length = LINE_BYTES - 1;
    memset(into, 0, LINE_BYTES);
    memcpy(into, *rest, length);
    *rest = *end ? end + 1 : end;
}

static ls_status fail_difference(const ls_processes *processes, int other, const char *there,
                                 const char *here, ls_error *error)
{
    return ls_fail(error, LS_INVALID,
                   "process %d on %s and process 0 on %s do not do the same: '%s' there, '%s' on "
                   "process 0; start all processes with the same program, settings, model and data",
                   other, ls_processes_host_name(processes, other),
                   ls_processes_host_name(processes, 0), *there ? there : "nothing",
                   *here ? here : "nothing");
}

/* All see the same lines, so that all stop at the same one. */
static ls_status compare_lines(ls_processes *processes, const char *lines, char (*all)[LINE_BYTES],
                               ls_error *error)
{
    char mine[LINE_BYTES];
    bool more = true;
    while (more) {
        copy_line(mine, &lines);
        LS_TRY(ls_processes_gather(processes, mine, LINE_BYTES, all, "the comparison of settings",
                                   error));
        more = false;
        for (int i = 0; i < processes->place.count; i++) {
            if (memcmp(all[i], all[0], LINE_BYTES) != 0)
                return fail_difference(processes, i, all[i], all[0], error);
            more = more || *all[i];
        }
    }
    return LS_OK;
}

ls_status ls_processes_compare(ls_processes *processes, const char *lines, ls_error *error)
{
    char(*all)[LINE_BYTES] = NULL;
    if (processes->place.count == 1) return LS_OK;
    LS_TRY(LS_NEW(all, processes->place.count, "settings of all processes", error));
    ls_status status = compare_lines(processes, lines, all, error);
    ls_free(all);
    return status;
}

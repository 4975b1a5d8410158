/* Which rank runs where: ranks fill the hosts in the file's order, each up to its slots, so that
 * ranks of a host are neighbours. */
#ifndef LS_LAUNCH_LAYOUT_H
#define LS_LAUNCH_LAYOUT_H

#include <stdbool.h>

#include "base/status.h"
#include "base/text.h"
#include "base/topology.h"
#include "launch/hosts.h"

typedef struct ls_layout_host {
    const char *name; /* borrowed from the hosts */
    int first, count; /* ranks first .. first + count - 1, at least one */
    bool here;
} ls_layout_host;

typedef struct ls_layout {
    ls_layout_host *list;
    size_t host_count;
    int processes;
} ls_layout;

/* Deal `processes` ranks out. More than the hosts have slots is LS_USAGE with the numbers. NULL
 * hosts: all on this machine, however many cores it has. Free with deinit. */
ls_status ls_layout_make(ls_layout *layout, const ls_hosts *hosts, int processes,
                         ls_error *error) LS_MUST_CHECK;
void ls_layout_deinit(ls_layout *layout);

/* A table of ranks, hosts and cores, a line a rank. Cores of another host are its own affair: there
 * stands which part of them a rank gets. `within`: the cores that processes here may use. */
ls_status ls_layout_print(const ls_layout *layout, const ls_topology *topology,
                          const ls_cores *within, ls_text *text, ls_error *error) LS_MUST_CHECK;

/* "alpha:2,beta:4", as both mpiruns take it. */
ls_status ls_layout_host_list(const ls_layout *layout, ls_text *text,
                              ls_error *error) LS_MUST_CHECK;

#endif

/* A host file: which hosts there are, and how many processes each takes.
 *
 *   # a comment
 *   alpha slots=2
 *   beta  slots=4
 *
 * The form that DeepSpeed and Open MPI have in common. Lines end in LF or CRLF. */
#ifndef LS_LAUNCH_HOSTS_H
#define LS_LAUNCH_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* More slots, of one host or of all together, are a slip of the pen. */
enum { LS_HOST_NAME_BYTES = 256, LS_MOST_SLOTS = 65536 };

typedef struct ls_host {
    char name[LS_HOST_NAME_BYTES]; /* letters, digits, '.', '-', '_'; never starts with '-' */
    int slots;                     /* 1 .. LS_MOST_SLOTS */
    int line;                      /* of the file, from 1 */
} ls_host;

typedef struct ls_hosts {
    ls_host *list;
    size_t count, capacity;
} ls_hosts;

/* A host that stands twice, slots that are no number, a line that is none of the above, and a file
 * without hosts are LS_INVALID with the file's `name`, line and text. Call deinit in any case. */
ls_status ls_hosts_parse(ls_hosts *hosts, const char *text, size_t bytes, const char *name,
                         ls_error *error) LS_MUST_CHECK;
ls_status ls_hosts_read(ls_hosts *hosts, const char *path, ls_error *error) LS_MUST_CHECK;
void ls_hosts_deinit(ls_hosts *hosts);

int ls_hosts_slots(const ls_hosts *hosts); /* of all together */

/* Whether a name stands for the machine that this runs on. */
bool ls_host_is_here(const char *name);

#endif

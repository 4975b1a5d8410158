/* How much memory this process can ever have: the machine's, or what a control group leaves of it.
 * More is not refused by the system but ended by it (SIGKILL), in the middle of a run. */
#ifndef LS_BASE_MEMORY_LIMIT_H
#define LS_BASE_MEMORY_LIMIT_H

#include <stdint.h>

enum { LS_MEMORY_LIMIT_BYTES = 600 };

typedef struct ls_memory_limit {
    int64_t bytes; /* INT64_MAX: nothing says */
    /* "this machine has", or "the control group of FILE allows" */
    char who[LS_MEMORY_LIMIT_BYTES];
} ls_memory_limit;

/* The lowest of memory and swap of the machine (proc(5), meminfo) and the limits of the process's
 * control group and of those above it, version 2 (memory.max, with memory.swap.max) or 1
 * (memory.limit_in_bytes); see the kernel's admin-guide/cgroup-v2 and cgroup-v1/memory. `root` is
 * put before all paths: "", or a test's folder. Files that are not there limit nothing. */
ls_memory_limit ls_memory_limit_read(const char *root);

#endif

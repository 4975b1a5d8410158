/* What stands behind an ls_processes: one process alone, or MPI. */
#ifndef LS_COMM_PROCESSES_INTERNAL_H
#define LS_COMM_PROCESSES_INTERNAL_H

#include "comm/processes.h"

enum { LS_HOST_NAME_BYTES = 64 };

typedef struct ls_processes_operations {
    void (*leave)(ls_processes *processes);
    /* `last`: made even after an abort, to agree on what went wrong. */
    ls_status (*gather)(ls_processes *processes, const void *mine, int64_t bytes, void *all,
                        const char *task, bool last, ls_error *error);
    /* Tell all others that this process fails: whatever they wait for but `last` ends. */
    void (*give_up)(ls_processes *processes, const ls_error *why);
    ls_status (*allocate)(ls_processes *processes, int64_t bytes, const char *what, void **out,
                          ls_error *error);
    ls_status (*comms)(ls_processes *processes, ls_comm **comms, int devices, ls_error *error);
    ls_status (*all_reduce)(ls_processes *processes, const float *from, float *to, int64_t elements,
                            ls_error *error);
} ls_processes_operations;

/* What came of something in one process. */
typedef struct ls_process_result {
    int32_t status;
    ls_error error;
} ls_process_result;

struct ls_processes {
    const ls_processes_operations *operations;
    ls_processes_options options;
    ls_processes_place place;
    const int *host_first; /* [hosts + 1] first process of each host */
    bool failed;           /* all have agreed that something failed: nothing more to agree on */
    ls_process_result *results;             /* [count], taken early: to fail needs no memory */
    char (*host_names)[LS_HOST_NAME_BYTES]; /* [count] */
};

/* comm/mpi/: MPI's world, of one process or more; and its end. */
void ls_mpi_finish(void);
ls_status ls_mpi_join(ls_processes **out, const ls_processes_options *options,
                      ls_error *error) LS_MUST_CHECK;

#endif

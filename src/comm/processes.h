/* The processes of a run: who they are, what they agree on before and after the steps, and the
 * memory that those of one host read from one another. MPI starts and connects them; without it, or
 * started alone, a process is the only one. */
#ifndef LS_COMM_PROCESSES_H
#define LS_COMM_PROCESSES_H

#include <stdbool.h>

#include "comm/comm.h"

typedef struct ls_processes ls_processes;

typedef struct ls_processes_options {
    double timeout; /* seconds that a rank may keep others waiting; 0: for ever */
    /* Asked from any thread, several times a second while something waits: true when who started
     * the processes says that one is gone. NULL: never. */
    bool (*peer_is_gone)(void *context);
    /* A rank is late: one line, from any thread of one process. NULL: nobody is told. */
    void (*warn)(void *context, const char *line);
    void *context;
} ls_processes_options;

/* Join the other processes if this one was started as one of several, by mpirun or srun; else there
 * is one. LS_UNSUPPORTED where it was but cannot: the text says what is missing. A collective call
 * like all below: every process makes the same ones in the same order. */
ls_status ls_processes_join(ls_processes **out, const ls_processes_options *options,
                            ls_error *error) LS_MUST_CHECK;
/* NULL is allowed. After LS_LOST nobody is waited for. */
void ls_processes_leave(ls_processes *processes);

/* Ends MPI if it was started: the last thing that a program does, when all its processes do. */
void ls_processes_finish(void);

/* What mpirun or srun told this process in its environment: known before anything is joined, and
 * without MPI's initialisation. */
typedef struct ls_processes_started {
    long index, count; /* 0 and 1 for a process that was started alone */
} ls_processes_started;
ls_processes_started ls_processes_as_started(void);

/* Processes in the order of their ranks: host after host. */
typedef struct ls_processes_place {
    int index, count;             /* of this process, among all */
    int host, hosts;              /* its host */
    int local_index, local_count; /* among those of its host */
    bool shares_cores;            /* with the host's others: nobody bound them to some */
} ls_processes_place;
const ls_processes_place *ls_processes_here(const ls_processes *processes);
/* First process of each host, then their number: [hosts + 1]. */
const int *ls_processes_host_first(const ls_processes *processes);
/* Name of a process's host. */
const char *ls_processes_host_name(const ls_processes *processes, int index);

/* all[i * bytes ...] becomes process i's `mine`. */
ls_status ls_processes_gather(ls_processes *processes, const void *mine, int64_t bytes, void *all,
                              const char *task, ls_error *error) LS_MUST_CHECK;
/* One result for all: LS_OK if everyone has it, else that of the first process that failed of
 * itself, with its text. Made by every process even if it has failed; after the first failure that
 * all know of it does nothing. */
ls_status ls_processes_agree(ls_processes *processes, ls_status mine, const char *task,
                             ls_error *error) LS_MUST_CHECK;
/* The same of what the run survives, as often as wanted: *result and *why become those of all, *who
 * the process that failed first (-1: none). Fails only where nobody can be asked. */
ls_status ls_processes_share_result(ls_processes *processes, ls_status *result, ls_error *why,
                                    int *who, const char *task, ls_error *error) LS_MUST_CHECK;
/* LS_INVALID if not all have the same lines ("what: value", each ended by a newline): the text
 * names the first line that differs, both values, and their processes. */
ls_status ls_processes_compare(ls_processes *processes, const char *lines,
                               ls_error *error) LS_MUST_CHECK;
/* Does any process say so? The same answer for all. */
ls_status ls_processes_any(ls_processes *processes, bool mine, bool *any, const char *task,
                           ls_error *error) LS_MUST_CHECK;

/* MPI_Allreduce of `from` into `to`, [elements], to be measured against: it adds in an order of its
 * own. LS_UNSUPPORTED without MPI. */
ls_status ls_processes_mpi_all_reduce(ls_processes *processes, const float *from, float *to,
                                      int64_t elements, ls_error *error) LS_MUST_CHECK;

/* Memory that all processes of the host can read, zeroed, at the beginning of a page, until they
 * leave. LS_NO_MEMORY where the system's shared memory is too small. */
ls_status ls_processes_allocate(ls_processes *processes, int64_t bytes, const char *what,
                                void **out, ls_error *error) LS_MUST_CHECK;

/* The ranks of this process, `devices` of as many on each: comms[d] is that of its device d, number
 * index * devices + d of all. Free them before leaving. */
ls_status ls_processes_comms(ls_processes *processes, ls_comm **comms, int devices,
                             ls_error *error) LS_MUST_CHECK;

#endif

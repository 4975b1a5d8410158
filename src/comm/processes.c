/* Which way of starting processes this one was started by, and a process that is alone. */
#include "comm/processes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "comm/processes_internal.h"

/* The largest number that any of these variables has; `least` where none has a larger one. */
static long largest_of(const char *const *names, int count, long least)
{
    for (int i = 0; i < count; i++) {
        const char *text = getenv(names[i]);
        long number = text ? strtol(text, NULL, 10) : 0;
        if (number > least) least = number;
    }
    return least;
}

/* Of mpirun (Open MPI, MPICH) and srun. */
ls_processes_started ls_processes_as_started(void)
{
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};
    static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"};
    ls_processes_started started = {.count = largest_of(sizes, 3, 1)};
    if (started.count > 1) started.index = largest_of(ranks, 3, 0);
    return started;
}

/* MPI's initialisation takes a second: not for a plain run. */
static bool started_by_mpi(void)
{
    return getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMIX_RANK") || getenv("PMI_RANK") ||
           ls_processes_as_started().count > 1;
}

/* --- one process ------------------------------------------------------------------------------ */

static void alone_leave(ls_processes *processes)
{
    ls_free(processes->host_names);
    ls_free(processes);
}

static ls_status alone_gather(ls_processes *processes, const void *mine, int64_t bytes, void *all,
                              const char *task, bool last, ls_error *error)
{
    (void)processes, (void)task, (void)last, (void)error;
    memcpy(all, mine, (size_t)bytes);
    return LS_OK;
}

static ls_status alone_allocate(ls_processes *processes, int64_t bytes, const char *what,
                                void **out, ls_error *error)
{
    (void)processes, (void)bytes, (void)out;
    return ls_fail(error, LS_INTERNAL, "one process shares no memory for %s", what);
}

static ls_status alone_comms(ls_processes *processes, ls_comm **comms, int devices, ls_error *error)
{
    (void)processes;
    return ls_comm_threads_new(comms, devices, error);
}

static ls_status alone_all_reduce(ls_processes *processes, const float *from, float *to,
                                  int64_t elements, ls_error *error)
{
    (void)processes, (void)from, (void)to, (void)elements;
    return ls_fail(error, LS_UNSUPPORTED, "one process needs no MPI_Allreduce");
}

static const ls_processes_operations alone_operations = {
    .leave = alone_leave,
    .gather = alone_gather,
    .allocate = alone_allocate,
    .comms = alone_comms,
    .all_reduce = alone_all_reduce,
};

static ls_status alone_join(ls_processes **out, const ls_processes_options *options,
                            ls_error *error)
{
    ls_processes *alone = NULL;
    LS_TRY(LS_NEW(alone, 1, "process", error));
    ls_status status = LS_NEW(alone->host_names, 1, "process", error);
    if (status != LS_OK) {
        ls_free(alone);
        return status;
    }
    alone->operations = &alone_operations;
    static const int host_first[] = {0, 1};
    alone->host_first = host_first;
    alone->options = *options;
    alone->place = (ls_processes_place){.count = 1, .hosts = 1, .local_count = 1};
    snprintf(alone->host_names[0], LS_HOST_NAME_BYTES, "this host");
    *out = alone;
    return LS_OK;
}

/* --- joining ---------------------------------------------------------------------------------- */

#ifdef LS_HAVE_MPI
void ls_processes_finish(void)
{
    ls_mpi_finish();
}

static ls_status join_started(ls_processes **out, const ls_processes_options *options,
                              ls_error *error)
{
    LS_TRY(ls_mpi_join(out, options, error));
    long wanted = ls_processes_as_started().count;
    if ((*out)->place.count > 1 || wanted < 2) return LS_OK;
    ls_processes_leave(*out);
    *out = NULL;
    bool slurm = getenv("SLURM_STEP_NUM_TASKS") != NULL;
    return ls_fail(error, LS_UNSUPPORTED,
                   "this process was started as one of %ld, but MPI knows of no other: %s", wanted,
                   slurm ? "start it with srun --mpi=pmix"
                         : "start it with the mpirun of the MPI that lockstep was built with");
}
#else
void ls_processes_finish(void)
{
}

static ls_status join_started(ls_processes **out, const ls_processes_options *options,
                              ls_error *error)
{
    long count = ls_processes_as_started().count;
    if (count < 2) return alone_join(out, options, error);
    return ls_fail(error, LS_UNSUPPORTED,
                   "this process was started as one of %ld, but this lockstep was built without "
                   "MPI: install libopenmpi-dev and openmpi-bin and build it again, or use "
                   "--devices for ranks in one process",
                   count);
}
#endif

ls_status ls_processes_join(ls_processes **out, const ls_processes_options *options,
                            ls_error *error)
{
    return started_by_mpi() ? join_started(out, options, error) : alone_join(out, options, error);
}

void ls_processes_leave(ls_processes *processes)
{
    if (processes) processes->operations->leave(processes);
}

const ls_processes_place *ls_processes_here(const ls_processes *processes)
{
    return &processes->place;
}

const int *ls_processes_host_first(const ls_processes *processes)
{
    return processes->host_first;
}

const char *ls_processes_host_name(const ls_processes *processes, int index)
{
    return processes->host_names[index];
}

ls_status ls_processes_gather(ls_processes *processes, const void *mine, int64_t bytes, void *all,
                              const char *task, ls_error *error)
{
    return processes->operations->gather(processes, mine, bytes, all, task, false, error);
}

ls_status ls_processes_allocate(ls_processes *processes, int64_t bytes, const char *what,
                                void **out, ls_error *error)
{
    return processes->operations->allocate(processes, bytes, what, out, error);
}

ls_status ls_processes_mpi_all_reduce(ls_processes *processes, const float *from, float *to,
                                      int64_t elements, ls_error *error)
{
    return processes->operations->all_reduce(processes, from, to, elements, error);
}

ls_status ls_processes_comms(ls_processes *processes, ls_comm **comms, int devices, ls_error *error)
{
    return processes->operations->comms(processes, comms, devices, error);
}

/* Joining and leaving MPI's world, and who is where in it. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/threads.h"
#include "comm/mpi/internal.h"

static const ls_processes_operations operations;

ls_status mpi_status(mpi_processes *m, int code, const char *what, ls_error *error)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (code == MPI_SUCCESS) return LS_OK;
    MPI_Error_string(code, text, &length);
    atomic_store(&m->lost, 1);
    return ls_fail(error, LS_LOST, "MPI failed in %s: %.300s", what, text);
}

static ls_status start_mpi(mpi_processes *m, ls_error *error)
{
    int initialised = 0, finalised = 0, provided = 0;
    MPI_Finalized(&finalised);
    if (finalised)
        return ls_fail(error, LS_UNSUPPORTED,
                       "MPI has ended in this process and cannot start again");
    MPI_Initialized(&initialised);
    if (initialised) {
        MPI_Query_thread(&provided);
    } else {
        int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
        LS_TRY(mpi_status(m, code, "MPI_Init_thread", error));
    }
    if (provided >= MPI_THREAD_SERIALIZED) return LS_OK;
    return ls_fail(error, LS_UNSUPPORTED,
                   "this MPI gives thread level %d only; MPI_THREAD_SERIALIZED is needed",
                   provided);
}

static ls_status take_tables(mpi_processes *m, ls_error *error)
{
    int count;
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    m->base.place.count = count;
    LS_TRY(LS_NEW(m->host_of, count, "processes", error));
    LS_TRY(LS_NEW(m->host_first, count + 1, "processes", error));
    LS_TRY(LS_NEW(m->base.host_names, count, "processes", error));
    LS_TRY(LS_NEW(m->base.results, count, "processes", error));
    LS_TRY(LS_NEW(m->lives, count, "processes", error));
    LS_TRY(LS_NEW(m->cores, count, "processes", error));
    return LS_NEW(m->requests, 2 * count, "processes", error);
}

ls_status mpi_together(ls_status mine, ls_error *error)
{
    int well = mine == LS_OK, all = 0;
    MPI_Allreduce(&well, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (mine != LS_OK || all) return mine;
    return ls_fail(error, LS_NO_MEMORY, "another process of this run could not start");
}

/* The world's processes sorted by host; a host is named by its lowest process. */
static ls_status order_world(mpi_processes *m, ls_error *error)
{
    int rank, count = m->base.place.count, leader, code;
    MPI_Comm shared, ordered;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    code = MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &shared);
    LS_TRY(mpi_status(m, code, "MPI_Comm_split_type", error));
    leader = rank;
    MPI_Bcast(&leader, 1, MPI_INT, 0, shared);
    int *leaders = m->host_of;
    MPI_Allgather(&leader, 1, MPI_INT, leaders, 1, MPI_INT, MPI_COMM_WORLD);
    int key = 0;
    for (int i = 0; i < count; i++)
        key += leaders[i] < leader || (leaders[i] == leader && i < rank);
    code = MPI_Comm_split(MPI_COMM_WORLD, 0, key, &ordered);
    LS_TRY(mpi_status(m, code, "MPI_Comm_split", error));
    m->world = ordered;
    m->local = shared;
    MPI_Comm_dup(ordered, &m->ranks);
    MPI_Comm_set_errhandler(m->world, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(m->ranks, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(m->local, MPI_ERRORS_RETURN);
    return LS_OK;
}

static void find_place(mpi_processes *m)
{
    ls_processes_place *place = &m->base.place;
    int index, local, local_count, own;
    MPI_Comm_rank(m->world, &index);
    MPI_Comm_rank(m->local, &local);
    MPI_Comm_size(m->local, &local_count);
    own = index - local; /* the host's first process, in the new order */
    MPI_Allgather(&own, 1, MPI_INT, m->host_of, 1, MPI_INT, m->world);
    int hosts = 0;
    for (int i = 0; i < place->count; i++) {
        if (m->host_of[i] == i) m->host_first[hosts++] = i;
        m->host_of[i] = hosts - 1;
    }
    m->host_first[hosts] = place->count;
    m->base.host_first = m->host_first;
    place->index = index;
    place->host = m->host_of[index];
    place->hosts = hosts;
    place->local_index = local;
    place->local_count = local_count;
    char name[MPI_MAX_PROCESSOR_NAME] = "", short_name[LS_HOST_NAME_BYTES];
    int length;
    MPI_Get_processor_name(name, &length);
    snprintf(short_name, sizeof short_name, "%.*s", LS_HOST_NAME_BYTES - 1, name);
    MPI_Allgather(short_name, LS_HOST_NAME_BYTES, MPI_BYTE, m->base.host_names, LS_HOST_NAME_BYTES,
                  MPI_BYTE, m->world);
}

/* Bound to cores of its own, or to the same ones as its neighbours? And who can see whom. */
static void look_at_neighbours(mpi_processes *m)
{
    ls_processes_place *place = &m->base.place;
    ls_cores own = ls_cores_own();
    process_life life = process_life_own();
    MPI_Allgather(&own, sizeof own, MPI_BYTE, m->cores, sizeof own, MPI_BYTE, m->local);
    MPI_Allgather(&life, sizeof life, MPI_BYTE, m->lives, sizeof life, MPI_BYTE, m->local);
    place->shares_cores = place->local_count > 1;
    for (int i = 0; i < place->local_count; i++) {
        if (memcmp(&m->cores[i], &own, sizeof own) != 0) place->shares_cores = false;
        if (!process_alive(&m->lives[i])) m->lives[i].pid = 0; /* in a container of its own */
    }
}

ls_status ls_mpi_join(ls_processes **out, const ls_processes_options *options, ls_error *error)
{
    mpi_processes *m = NULL;
    ls_status status;
    LS_TRY(LS_NEW(m, 1, "processes", error));
    m->base.operations = &operations;
    m->base.options = *options;
    m->world = m->ranks = m->local = MPI_COMM_NULL;
    m->abort_request = MPI_REQUEST_NULL;
    pthread_mutex_init(&m->mutex, NULL);
    pthread_mutex_init(&m->watched_mutex, NULL);
    pthread_mutex_init(&m->neighbours_mutex, NULL);
    m->neighbours[0] = m->neighbours[1] = (neighbour){.process = -1, .socket = -1};
    LS_TRY_GOTO(status, start_mpi(m, error), fail);
    LS_TRY_GOTO(status, mpi_together(take_tables(m, error), error), fail);
    LS_TRY_GOTO(status, order_world(m, error), fail);
    find_place(m);
    look_at_neighbours(m);
    LS_TRY_GOTO(status, neighbours_connect(m, error), fail);
    LS_TRY_GOTO(status, mpi_together(watcher_start(m, error), error), fail);
    *out = &m->base;
    return LS_OK;
fail:
    ls_processes_leave(&m->base);
    return status;
}

void ls_mpi_finish(void)
{
    int initialised = 0, finalised = 0;
    MPI_Initialized(&initialised);
    MPI_Finalized(&finalised);
    if (initialised && !finalised) MPI_Finalize();
}

/* Freeing what is shared waits for all: not after a loss. */
static void leave(ls_processes *processes)
{
    mpi_processes *m = (mpi_processes *)processes;
    bool lost = atomic_load(&m->lost) != 0;
    watcher_stop(m);
    neighbours_leave(m, lost);
    while (m->groups) {
        rank_group *group = m->groups;
        m->groups = group->next;
        free_group(group);
    }
    if (lost) {
        /* The windows stay mapped until the process ends. */
    } else {
        free_windows(m);
        MPI_Comm *comms[] = {&m->ranks, &m->world, &m->local};
        for (int i = 0; i < 3; i++)
            if (*comms[i] != MPI_COMM_NULL) MPI_Comm_free(comms[i]);
    }
    while (m->windows) {
        window *next = m->windows->next;
        ls_free(m->windows->bases);
        ls_free(m->windows);
        m->windows = next;
    }
    pthread_mutex_destroy(&m->mutex);
    pthread_mutex_destroy(&m->watched_mutex);
    pthread_mutex_destroy(&m->neighbours_mutex);
    ls_free(m->host_of);
    ls_free(m->host_first);
    ls_free(m->lives);
    ls_free(m->requests);
    ls_free(m->cores);
    ls_free(m->base.results);
    ls_free(m->base.host_names);
    ls_free(m);
}

/* A benchmark's alone: it spins, and nobody looks after it. */
static ls_status all_reduce(ls_processes *processes, const float *from, float *to, int64_t elements,
                            ls_error *error)
{
    mpi_processes *m = (mpi_processes *)processes;
    int code;
    if (m->groups && m->groups->devices > 1)
        return ls_fail(error, LS_UNSUPPORTED, "MPI_Allreduce takes one rank a process");
    MPI_DO(m, code = MPI_Allreduce(from, to, (int)elements, MPI_FLOAT, MPI_SUM, m->world));
    return mpi_status(m, code, "MPI_Allreduce", error);
}

static const ls_processes_operations operations = {
    .leave = leave,
    .gather = mpi_gather,
    .give_up = mpi_give_up,
    .allocate = mpi_allocate,
    .comms = mpi_comms,
    .all_reduce = all_reduce,
};

/* Ranks that are threads of one process: memory is in reach, a barrier is a counter. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <xmmintrin.h>

#include "base/alloc.h"
#include "comm/comm.h"

/* Ranks that wait poll this often before they sleep: about 10 microseconds, since ranks of equal
 * work arrive together, and no longer, since there may be more threads than cores. */
enum { SPIN_POLLS = 1000 };

typedef struct group {
    int size;
    _Atomic int users; /* comms that are not freed */
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    int arrived;                 /* under mutex */
    _Atomic uint64_t generation; /* barriers that are over */
    _Atomic int failed_rank;     /* -1: none */
    void **addresses;            /* [size] for share */
} group;

typedef struct thread_comm {
    ls_comm comm;
    group *group;
} thread_comm;

static const ls_comm_operations operations;

static group *group_of(ls_comm *comm)
{
    return ((thread_comm *)comm)->group;
}

static bool passed(const group *g, uint64_t generation)
{
    return atomic_load(&g->generation) != generation || atomic_load(&g->failed_rank) >= 0;
}

static void wait_for(group *g, uint64_t generation)
{
    for (int poll = 0; poll < SPIN_POLLS; poll++) {
        if (passed(g, generation)) return;
        _mm_pause();
    }
    pthread_mutex_lock(&g->mutex);
    while (!passed(g, generation))
        pthread_cond_wait(&g->wake, &g->mutex);
    pthread_mutex_unlock(&g->mutex);
}

static ls_status threads_barrier(ls_comm *comm, ls_error *error)
{
    group *g = group_of(comm);
    pthread_mutex_lock(&g->mutex);
    uint64_t generation = atomic_load(&g->generation);
    bool last = ++g->arrived == g->size;
    if (last) {
        g->arrived = 0;
        atomic_fetch_add(&g->generation, 1);
        pthread_cond_broadcast(&g->wake);
    }
    pthread_mutex_unlock(&g->mutex);
    if (!last) wait_for(g, generation);
    int failed = atomic_load(&g->failed_rank);
    if (failed < 0) return LS_OK;
    return ls_fail(error, LS_INTERRUPTED, "rank %d stops because rank %d has failed", comm->rank,
                   failed);
}

static ls_status threads_share(ls_comm *comm, void *mine, void **everyone, ls_error *error)
{
    group *g = group_of(comm);
    g->addresses[comm->rank] = mine;
    LS_TRY(threads_barrier(comm, error));
    for (int rank = 0; rank < g->size; rank++)
        everyone[rank] = g->addresses[rank];
    return threads_barrier(comm, error); /* nobody writes the next address while this one is read */
}

static void threads_abort(ls_comm *comm)
{
    group *g = group_of(comm);
    int none = -1;
    pthread_mutex_lock(&g->mutex);
    atomic_compare_exchange_strong(&g->failed_rank, &none, comm->rank);
    pthread_cond_broadcast(&g->wake);
    pthread_mutex_unlock(&g->mutex);
}

/* The last user frees it. */
static void leave(group *g)
{
    if (atomic_fetch_sub(&g->users, 1) > 1) return;
    pthread_cond_destroy(&g->wake);
    pthread_mutex_destroy(&g->mutex);
    ls_free(g->addresses);
    ls_free(g);
}

static void threads_free(ls_comm *comm)
{
    group *g = group_of(comm);
    ls_free(comm);
    leave(g);
}

void ls_comm_free(ls_comm *comm)
{
    if (comm) comm->operations->free(comm);
}

static ls_status new_group(group **out, int size, ls_error *error)
{
    group *g = NULL;
    LS_TRY(LS_NEW(g, 1, "group of ranks", error));
    ls_status status = LS_NEW(g->addresses, size, "group of ranks", error);
    if (status != LS_OK) {
        ls_free(g);
        return status;
    }
    g->size = size;
    atomic_store(&g->failed_rank, -1);
    pthread_mutex_init(&g->mutex, NULL);
    pthread_cond_init(&g->wake, NULL);
    *out = g;
    return LS_OK;
}

ls_status ls_comm_threads_new(ls_comm **comms, int size, ls_error *error)
{
    group *g = NULL;
    for (int rank = 0; rank < size; rank++)
        comms[rank] = NULL;
    LS_TRY(new_group(&g, size, error));
    atomic_store(&g->users, 1); /* this function's own, until all comms are there */
    ls_status status = LS_OK;
    int made = 0;
    for (; made < size; made++) {
        thread_comm *one = NULL;
        status = LS_NEW(one, 1, "rank", error);
        if (status != LS_OK) break;
        one->comm = (ls_comm){&operations, made, size};
        one->group = g;
        atomic_fetch_add(&g->users, 1);
        comms[made] = &one->comm;
    }
    while (status != LS_OK && made > 0) {
        ls_comm_free(comms[--made]);
        comms[made] = NULL;
    }
    leave(g);
    return status;
}

static const ls_comm_operations operations = {
    .name = "threads",
    .free = threads_free,
    .barrier = threads_barrier,
    .share = threads_share,
    .abort = threads_abort,
};

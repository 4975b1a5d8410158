/* Ranks that are threads of one process: memory is in reach, a barrier is a counter. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <xmmintrin.h>

#include "base/alloc.h"
#include "comm/comm.h"
#include "comm/threads/mailbox.h"

/* Ranks that wait poll this often before they sleep: about 10 microseconds, since ranks of equal
 * work arrive together, and no longer, since there may be more threads than cores. */
enum { SPIN_POLLS = 1000 };

/* The ranks of one (supposed) host: they meet in its barrier. */
typedef struct meeting {
    int size, arrived;           /* arrived: under the group's mutex */
    _Atomic uint64_t generation; /* barriers that are over */
} meeting;

typedef struct group {
    int size, hosts;
    _Atomic int users; /* comms that are not freed */
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    meeting *meetings;                    /* [LS_COMM_LANES][hosts] */
    _Atomic int failed_rank;              /* -1: none */
    ls_error why;                         /* of the failed rank, written before failed_rank */
    void **addresses;                     /* [LS_COMM_LANES][size] for share */
    int *host_begin;                      /* [hosts + 1] */
    ls_mailbox *mailboxes[LS_COMM_LANES]; /* with several hosts */
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

static bool passed(const group *g, const meeting *m, uint64_t generation)
{
    return atomic_load(&m->generation) != generation || atomic_load(&g->failed_rank) >= 0;
}

static void wait_for(group *g, const meeting *m, uint64_t generation)
{
    for (int poll = 0; poll < SPIN_POLLS; poll++) {
        if (passed(g, m, generation)) return;
        _mm_pause();
    }
    pthread_mutex_lock(&g->mutex);
    while (!passed(g, m, generation))
        pthread_cond_wait(&g->wake, &g->mutex);
    pthread_mutex_unlock(&g->mutex);
}

static ls_status check_failed(ls_comm *comm, ls_error *error)
{
    group *g = group_of(comm);
    int failed = atomic_load(&g->failed_rank);
    if (failed < 0) return LS_OK;
    if (g->why.code == LS_LOST) return ls_fail(error, LS_LOST, "%s", g->why.text);
    return ls_fail(error, LS_INTERRUPTED, "rank %d stops because rank %d has failed", comm->rank,
                   failed);
}

static ls_status threads_barrier(ls_comm *comm, ls_error *error)
{
    group *g = group_of(comm);
    meeting *m = &g->meetings[comm->lane * g->hosts + comm->host];
    pthread_mutex_lock(&g->mutex);
    uint64_t generation = atomic_load(&m->generation);
    bool last = ++m->arrived == m->size;
    if (last) {
        m->arrived = 0;
        atomic_fetch_add(&m->generation, 1);
        pthread_cond_broadcast(&g->wake);
    }
    pthread_mutex_unlock(&g->mutex);
    if (!last) wait_for(g, m, generation);
    return check_failed(comm, error);
}

static ls_status threads_share(ls_comm *comm, void *mine, void **everyone, ls_error *error)
{
    group *g = group_of(comm);
    void **addresses = g->addresses + comm->lane * g->size;
    addresses[comm->rank] = mine;
    LS_TRY(threads_barrier(comm, error));
    for (int rank = 0; rank < g->size; rank++) {
        bool near = rank >= g->host_begin[comm->host] && rank < g->host_begin[comm->host + 1];
        everyone[rank] = near ? addresses[rank] : NULL;
    }
    return threads_barrier(comm, error); /* nobody writes the next address while this one is read */
}

static ls_status no_messages(ls_error *error)
{
    return ls_fail(error, LS_INTERNAL, "ranks of one process send no messages");
}

static ls_status threads_send(ls_comm *comm, int request, int to, const void *bytes, int64_t count,
                              ls_error *error)
{
    ls_mailbox *mailbox = group_of(comm)->mailboxes[comm->lane];
    if (!mailbox) return no_messages(error);
    ls_mailbox_send(mailbox, comm->rank, request, to, bytes, count);
    return LS_OK;
}

static ls_status threads_receive(ls_comm *comm, int request, int from, void *bytes, int64_t room,
                                 ls_error *error)
{
    ls_mailbox *mailbox = group_of(comm)->mailboxes[comm->lane];
    if (!mailbox) return no_messages(error);
    ls_mailbox_receive(mailbox, comm->rank, request, from, bytes, room);
    return LS_OK;
}

static ls_status threads_wait(ls_comm *comm, int request, ls_error *error)
{
    ls_mailbox *mailbox = group_of(comm)->mailboxes[comm->lane];
    if (!mailbox) return LS_OK;
    ls_mailbox_wait(mailbox, comm->rank, request);
    return check_failed(comm, error);
}

static void threads_abort(ls_comm *comm, const ls_error *why)
{
    group *g = group_of(comm);
    pthread_mutex_lock(&g->mutex);
    if (atomic_load(&g->failed_rank) < 0) {
        if (why) g->why = *why;
        atomic_store(&g->failed_rank, comm->rank);
    }
    pthread_cond_broadcast(&g->wake);
    pthread_mutex_unlock(&g->mutex);
    for (int lane = 0; lane < LS_COMM_LANES; lane++)
        if (g->mailboxes[lane]) ls_mailbox_close(g->mailboxes[lane]);
}

static void free_group(group *g)
{
    pthread_cond_destroy(&g->wake);
    pthread_mutex_destroy(&g->mutex);
    for (int lane = 0; lane < LS_COMM_LANES; lane++)
        ls_mailbox_free(g->mailboxes[lane]);
    ls_free(g->meetings);
    ls_free(g->host_begin);
    ls_free(g->addresses);
    ls_free(g);
}

/* The last user frees it. */
static void leave(group *g)
{
    if (atomic_fetch_sub(&g->users, 1) == 1) free_group(g);
}

static void threads_free(ls_comm *comm)
{
    group *g = group_of(comm);
    ls_free(comm);
    leave(g);
}

static ls_status threads_second_lane(ls_comm *comm, ls_comm **out, ls_error *error)
{
    group *g = group_of(comm);
    thread_comm *second = NULL;
    LS_TRY(LS_NEW(second, 1, "rank", error));
    *second = (thread_comm){.comm = *comm, .group = g};
    second->comm.lane = 1;
    atomic_fetch_add(&g->users, 1);
    *out = &second->comm;
    return LS_OK;
}

static ls_status new_group(group **out, const int *host_ranks, int hosts, ls_error *error)
{
    group *g = NULL;
    ls_status status;
    LS_TRY(LS_NEW(g, 1, "group of ranks", error));
    pthread_mutex_init(&g->mutex, NULL);
    pthread_cond_init(&g->wake, NULL);
    atomic_store(&g->failed_rank, -1);
    g->hosts = hosts;
    LS_TRY_GOTO(status, LS_NEW(g->host_begin, hosts + 1, "group of ranks", error), fail);
    LS_TRY_GOTO(status, LS_NEW(g->meetings, LS_COMM_LANES * hosts, "group of ranks", error), fail);
    for (int host = 0; host < hosts; host++) {
        g->meetings[host].size = g->meetings[hosts + host].size = host_ranks[host];
        g->size += host_ranks[host];
        g->host_begin[host + 1] = g->size;
    }
    LS_TRY_GOTO(status, LS_NEW(g->addresses, LS_COMM_LANES * g->size, "group of ranks", error),
                fail);
    for (int lane = 0; lane < LS_COMM_LANES && hosts > 1; lane++)
        LS_TRY_GOTO(status, ls_mailbox_new(&g->mailboxes[lane], g->size, error), fail);
    *out = g;
    return LS_OK;
fail:
    free_group(g);
    return status;
}

ls_status ls_comm_threads_apart_new(ls_comm **comms, const int *host_ranks, int hosts,
                                    ls_error *error)
{
    group *g = NULL;
    int made = 0;
    for (int host = 0, rank = 0; host < hosts; host++)
        for (int i = 0; i < host_ranks[host]; i++)
            comms[rank++] = NULL;
    LS_TRY(new_group(&g, host_ranks, hosts, error));
    atomic_store(&g->users, 1); /* this function's own, until all comms are there */
    ls_status status = LS_OK;
    for (int host = 0; made < g->size; made++) {
        thread_comm *one = NULL;
        status = LS_NEW(one, 1, "rank", error);
        if (status != LS_OK) break;
        while (made >= g->host_begin[host + 1])
            host++;
        one->comm = (ls_comm){.operations = &operations,
                              .rank = made,
                              .size = g->size,
                              .host = host,
                              .hosts = hosts,
                              .host_begin = g->host_begin};
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

ls_status ls_comm_threads_new(ls_comm **comms, int size, ls_error *error)
{
    return ls_comm_threads_apart_new(comms, &size, 1, error);
}

static const ls_comm_operations operations = {
    .name = "threads",
    .free = threads_free,
    .second_lane = threads_second_lane,
    .barrier = threads_barrier,
    .share = threads_share,
    .send = threads_send,
    .receive = threads_receive,
    .wait = threads_wait,
    .abort = threads_abort,
};

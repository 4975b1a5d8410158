/* Ranks in several processes: a barrier and addresses in the host's shared memory, messages by MPI.
 */
#include <limits.h>
#include <string.h>
#include <xmmintrin.h>

#include "base/alloc.h"
#include "comm/mpi/internal.h"

/* As comm/threads: ranks of equal work arrive together. */
enum { SPIN_POLLS = 1000 };

static const double longest_sleep = 0.05;

typedef struct rank_comm {
    ls_comm comm;
    rank_group *group;
    rank_slot *slot;
    MPI_Request requests[LS_COMM_REQUESTS];
    int peers[LS_COMM_REQUESTS]; /* whom a request waits for */
} rank_comm;

static const ls_comm_operations operations;

static rank_comm *of(ls_comm *comm)
{
    return (rank_comm *)comm;
}

static wait_site site_of(rank_comm *c)
{
    wait_site site =
        wait_begin(c->group->processes, c->group, c->comm.rank, c->comm.step, c->comm.task);
    site.lane = c->comm.lane;
    return site;
}

/* --- the barrier ------------------------------------------------------------------------------ */

static ls_status wait_for_all(rank_comm *c, uint32_t generation, ls_error *error)
{
    barrier *shared = &c->group->control->barriers[c->comm.lane];
    for (int poll = 0; poll < SPIN_POLLS; poll++) {
        if (atomic_load(&shared->generation) != generation) return LS_OK;
        _mm_pause();
    }
    wait_site site = site_of(c);
    while (atomic_load(&shared->generation) == generation) {
        futex_wait(&shared->generation, generation, longest_sleep);
        if (atomic_load(&shared->generation) != generation) break;
        LS_TRY(wait_check(&site, error));
    }
    return LS_OK;
}

static ls_status rank_barrier(ls_comm *comm, ls_error *error)
{
    rank_comm *c = of(comm);
    barrier *shared = &c->group->control->barriers[comm->lane];
    atomic_store(&c->slot->step, comm->step);
    uint32_t generation = atomic_load(&shared->generation);
    atomic_fetch_add(&c->slot->entered[comm->lane], 1);
    if (atomic_fetch_add(&shared->arrived, 1) + 1 == (uint32_t)c->group->local_count) {
        atomic_store(&shared->arrived, 0);
        atomic_fetch_add(&shared->generation, 1);
        futex_wake(&shared->generation);
    } else {
        LS_TRY(wait_for_all(c, generation, error));
        /* The thread sanitizer sees one process: to it the others' part in the barrier is none, and
         * this is where its threads meet. */
        (void)atomic_load(&shared->arrived);
    }
    if (!atomic_load(&c->group->control->failed)) return LS_OK;
    wait_site site = site_of(c);
    return wait_check(&site, error);
}

static ls_status rank_share(ls_comm *comm, void *mine, void **everyone, ls_error *error)
{
    rank_comm *c = of(comm);
    const rank_group *group = c->group;
    const mpi_processes *m = group->processes;
    c->slot->address = mine;
    c->slot->window = mine ? window_find(m, mine, &c->slot->offset) : -1;
    LS_TRY(rank_barrier(comm, error));
    for (int rank = 0; rank < comm->size; rank++) {
        int local = rank - group->first;
        everyone[rank] = NULL;
        if (local < 0 || local >= group->local_count) continue;
        const rank_slot *slot = &group->control->ranks[local];
        int process = local / group->devices;
        if (process == m->base.place.local_index)
            everyone[rank] = slot->address;
        else if (slot->window >= 0)
            everyone[rank] = window_address(m, slot->window, process, slot->offset);
    }
    return rank_barrier(comm, error); /* nobody writes the next address while this one is read */
}

/* --- messages --------------------------------------------------------------------------------- */

static ls_status check_size(int64_t count, ls_error *error)
{
    if (count <= INT_MAX) return LS_OK;
    return ls_fail(error, LS_INTERNAL, "a message of more than 2 GB");
}

static int tag_of(const rank_comm *c, int from, int to)
{
    int devices = c->group->devices;
    return (c->comm.lane * MOST_DEVICES + from % devices) * MOST_DEVICES + to % devices;
}

static ls_status rank_send(ls_comm *comm, int request, int to, const void *bytes, int64_t count,
                           ls_error *error)
{
    rank_comm *c = of(comm);
    mpi_processes *m = c->group->processes;
    int code;
    LS_TRY(check_size(count, error));
    c->peers[request] = to;
    MPI_DO(m, code = MPI_Isend(bytes, (int)count, MPI_BYTE, to / c->group->devices,
                               tag_of(c, comm->rank, to), m->ranks, &c->requests[request]));
    return mpi_status(m, code, "a message", error);
}

static ls_status rank_receive(ls_comm *comm, int request, int from, void *bytes, int64_t room,
                              ls_error *error)
{
    rank_comm *c = of(comm);
    mpi_processes *m = c->group->processes;
    int code;
    LS_TRY(check_size(room, error));
    c->peers[request] = from;
    MPI_DO(m, code = MPI_Irecv(bytes, (int)room, MPI_BYTE, from / c->group->devices,
                               tag_of(c, from, comm->rank), m->ranks, &c->requests[request]));
    return mpi_status(m, code, "a message", error);
}

/* After a loss they stay as they are: MPI is not called any more. */
static void drop_requests(rank_comm *c)
{
    for (int i = 0; i < LS_COMM_REQUESTS; i++)
        if (!atomic_load(&c->group->processes->lost))
            drop_request(c->group->processes, &c->requests[i]);
}

static ls_status rank_wait(ls_comm *comm, int request, ls_error *error)
{
    rank_comm *c = of(comm);
    if (c->requests[request] == MPI_REQUEST_NULL) return LS_OK;
    wait_site site = site_of(c);
    atomic_store(&c->slot->waits_for[comm->lane], c->peers[request] + 1);
    ls_status status = wait_request(&site, &c->requests[request], c->peers[request], error);
    atomic_store(&c->slot->waits_for[comm->lane], 0);
    if (status != LS_OK) drop_requests(c); /* their memory need not stay */
    return status;
}

static void rank_abort(ls_comm *comm, const ls_error *why)
{
    rank_comm *c = of(comm);
    spread_failure(c->group->processes, c->group, comm->rank, why);
}

static void start_requests(rank_comm *c)
{
    for (int request = 0; request < LS_COMM_REQUESTS; request++)
        c->requests[request] = MPI_REQUEST_NULL;
}

static ls_status rank_second_lane(ls_comm *comm, ls_comm **out, ls_error *error)
{
    const rank_comm *first = of(comm);
    rank_comm *second = NULL;
    LS_TRY(LS_NEW(second, 1, "rank", error));
    second->comm = *comm;
    second->comm.lane = 1;
    second->group = first->group;
    second->slot = first->slot;
    start_requests(second);
    *out = &second->comm;
    return LS_OK;
}

/* --- making them ------------------------------------------------------------------------------ */

static void rank_free(ls_comm *comm)
{
    drop_requests(of(comm));
    ls_free(comm);
}

void free_group(rank_group *group)
{
    if (group->processes->base.place.local_count == 1) ls_free(group->control);
    ls_free(group->host_begin);
    ls_free(group);
}

/* The host's first process has it in its part of a window. */
static ls_status new_control(rank_group *group, ls_error *error)
{
    mpi_processes *m = group->processes;
    size_t bytes = sizeof(control) + (size_t)group->local_count * sizeof(rank_slot);
    if (m->base.place.local_count == 1) {
        group->control = ls_allocate(bytes);
        return group->control ? LS_OK : ls_fail(error, LS_NO_MEMORY, "out of memory: ranks");
    }
    void *mine;
    int64_t offset = 0;
    LS_TRY(mpi_allocate(&m->base, (int64_t)bytes, "the ranks' barrier", &mine, error));
    int index = window_find(m, mine, &offset);
    unsigned char *first = window_address(m, index, 0, 0);
    /* Parts begin at pages, but for the first one: its own offset is not mine. */
    MPI_DO(m, MPI_Bcast(&offset, sizeof offset, MPI_BYTE, 0, m->local));
    group->control = (control *)(first + offset);
    return LS_OK;
}

static ls_status new_group(mpi_processes *m, int devices, rank_group **out, ls_error *error)
{
    const ls_processes_place *place = &m->base.place;
    rank_group *group = NULL;
    LS_TRY(LS_NEW(group, 1, "ranks", error));
    group->processes = m;
    group->devices = devices;
    group->size = place->count * devices;
    group->first = m->host_first[place->host] * devices;
    group->local_count = place->local_count * devices;
    ls_status status = LS_NEW(group->host_begin, place->hosts + 1, "ranks", error);
    if (status == LS_OK) status = new_control(group, error);
    if (status != LS_OK) {
        ls_free(group->host_begin);
        ls_free(group);
        return status;
    }
    for (int host = 0; host <= place->hosts; host++)
        group->host_begin[host] = m->host_first[host] * devices;
    group->next = m->groups;
    m->groups = group;
    *out = group;
    return LS_OK;
}

ls_status mpi_comms(ls_processes *processes, ls_comm **comms, int devices, ls_error *error)
{
    mpi_processes *m = (mpi_processes *)processes;
    rank_group *group = NULL;
    ls_status status = LS_OK;
    for (int i = 0; i < devices; i++)
        comms[i] = NULL;
    if (devices > MOST_DEVICES)
        return ls_fail(error, LS_UNSUPPORTED, "at most %d devices a process", (int)MOST_DEVICES);
    LS_TRY(new_group(m, devices, &group, error));
    for (int i = 0; i < devices; i++) {
        rank_comm *one = NULL;
        LS_TRY_GOTO(status, LS_NEW(one, 1, "rank", error), fail);
        one->comm = (ls_comm){.operations = &operations,
                              .rank = m->base.place.index * devices + i,
                              .size = group->size,
                              .host = m->base.place.host,
                              .hosts = m->base.place.hosts,
                              .host_begin = group->host_begin};
        one->group = group;
        one->slot = &group->control->ranks[one->comm.rank - group->first];
        start_requests(one);
        comms[i] = &one->comm;
    }
    return LS_OK;
fail:
    for (int i = 0; i < devices; i++) {
        ls_comm_free(comms[i]);
        comms[i] = NULL;
    }
    return status;
}

static const ls_comm_operations operations = {
    .name = "mpi",
    .free = rank_free,
    .second_lane = rank_second_lane,
    .barrier = rank_barrier,
    .share = rank_share,
    .send = rank_send,
    .receive = rank_receive,
    .wait = rank_wait,
    .abort = rank_abort,
};

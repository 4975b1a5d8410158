/* Messages between processes: started, then polled, never blocking. */
#include <string.h>

#include "base/alloc.h"
#include "comm/mpi/internal.h"

void drop_request(mpi_processes *m, MPI_Request *request)
{
    if (*request == MPI_REQUEST_NULL) return;
    MPI_DO(m, {
        MPI_Cancel(request);
        MPI_Request_free(request);
    });
}

static ls_status poll_request(wait_site *site, MPI_Request *request, ls_error *error)
{
    mpi_processes *m = site->processes;
    for (;;) {
        int done = 0, code;
        /* After that MPI may not come back. */
        if (atomic_load(&m->gone)) LS_TRY(wait_check(site, error));
        MPI_DO(m, code = MPI_Test(request, &done, MPI_STATUS_IGNORE));
        LS_TRY(mpi_status(m, code, "a message", error));
        if (done) return LS_OK;
        LS_TRY(wait_more(site, error));
    }
}

ls_status wait_request(wait_site *site, MPI_Request *request, int awaited, ls_error *error)
{
    site->awaited = awaited;
    watch_begin(site);
    ls_status status = poll_request(site, request, error);
    watch_end(site);
    return status;
}

static ls_status gather_messages(mpi_processes *m, const void *mine, int64_t bytes, void *all,
                                 int tag, wait_site *site, ls_error *error)
{
    int count = m->base.place.count, own = m->base.place.index, code = MPI_SUCCESS;
    int ranks = m->groups ? m->groups->devices : 1;
    unsigned char *to = all;
    for (int step = 1; step < count && code == MPI_SUCCESS; step++) {
        int other = (own + step) % count;
        MPI_DO(m, code = MPI_Irecv(to + other * bytes, (int)bytes, MPI_BYTE, other, tag, m->world,
                                   &m->requests[other]));
        if (code == MPI_SUCCESS)
            MPI_DO(m, code = MPI_Isend(mine, (int)bytes, MPI_BYTE, other, tag, m->world,
                                       &m->requests[count + other]));
    }
    LS_TRY(mpi_status(m, code, "a message", error));
    for (int step = 1; step < count; step++) {
        int other = (own + step) % count;
        LS_TRY(wait_request(site, &m->requests[other], other * ranks, error));
        LS_TRY(wait_request(site, &m->requests[count + other], other * ranks, error));
    }
    return LS_OK;
}

/* Named by the process's first rank, once there are ranks. */
static wait_site site_of_process(mpi_processes *m, const char *task)
{
    const rank_group *group = m->groups;
    int index = m->base.place.index;
    int64_t step = 0;
    if (group) {
        index *= group->devices;
        step = atomic_load(&group->control->ranks[index - group->first].step);
    }
    wait_site site = wait_begin(m, group, index, step, task);
    site.processes_wait = true;
    return site;
}

ls_status mpi_all_well(mpi_processes *m, bool *well, const char *task, ls_error *error)
{
    int count = m->base.place.local_count, own = m->base.place.local_index, code = MPI_SUCCESS;
    int first = m->base.place.index - own;
    wait_site site = site_of_process(m, task);
    m->well_sent = *well;
    for (int step = 1; step < count; step++) {
        int to = (own + step) % count, from = (own + count - step) % count;
        MPI_Request *requests = m->requests;
        requests[0] = requests[1] = MPI_REQUEST_NULL;
        MPI_DO(m, code = MPI_Irecv(&m->well_received, 1, MPI_INT, first + from, TAG_WELL, m->world,
                                   &requests[0]));
        if (code == MPI_SUCCESS)
            MPI_DO(m, code = MPI_Isend(&m->well_sent, 1, MPI_INT, first + to, TAG_WELL, m->world,
                                       &requests[1]));
        ls_status status = mpi_status(m, code, "a message", error);
        if (status == LS_OK) status = wait_request(&site, &requests[0], first + from, error);
        if (status == LS_OK) status = wait_request(&site, &requests[1], first + to, error);
        for (int i = 0; status != LS_OK && i < 2; i++)
            drop_request(m, &requests[i]);
        LS_TRY(status);
        *well = *well && m->well_received;
    }
    return LS_OK;
}

ls_status mpi_gather(ls_processes *processes, const void *mine, int64_t bytes, void *all,
                     const char *task, bool last, ls_error *error)
{
    mpi_processes *m = (mpi_processes *)processes;
    int count = m->base.place.count;
    if (bytes > INT32_MAX)
        return ls_fail(error, LS_UNSUPPORTED, "more than 2 GB at once from each process (%s)",
                       task);
    wait_site site = site_of_process(m, task);
    site.last = last;
    for (int i = 0; i < 2 * count; i++)
        m->requests[i] = MPI_REQUEST_NULL;
    memcpy((unsigned char *)all + m->base.place.index * bytes, mine, (size_t)bytes);
    ls_status status =
        gather_messages(m, mine, bytes, all, last ? TAG_AGREE : TAG_GATHER, &site, error);
    for (int i = 0; status != LS_OK && i < 2 * count; i++)
        drop_request(m, &m->requests[i]);
    return status;
}

/* --- giving up -------------------------------------------------------------------------------- */

void look_for_aborts(mpi_processes *m)
{
    int here = 0, none = 0, code;
    if (atomic_load(&m->aborting)) return;
    pthread_mutex_lock(&m->mutex);
    code = MPI_Iprobe(MPI_ANY_SOURCE, TAG_ABORT, m->world, &here, MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS && here && atomic_compare_exchange_strong(&m->aborting, &none, 1)) {
        MPI_Recv(&m->abort_received, sizeof m->abort_received, MPI_BYTE, MPI_ANY_SOURCE, TAG_ABORT,
                 m->world, MPI_STATUS_IGNORE);
        atomic_store(&m->aborted, 1);
    }
    pthread_mutex_unlock(&m->mutex);
}

/* To every process of other hosts, once; those of this one see what ranks fail of in shared memory
 * (`here`: there may be none yet). */
static void send_aborts(mpi_processes *m, const failure *why, bool here)
{
    int none = 0;
    if (!atomic_compare_exchange_strong(&m->giving_up, &none, 1)) return;
    m->abort_sent = *why;
    if (m->base.place.hosts > 1) neighbours_tell(m, why);
    pthread_mutex_lock(&m->mutex);
    for (int i = 0; i < m->base.place.count; i++) {
        if (i == m->base.place.index || (!here && m->host_of[i] == m->base.place.host)) continue;
        MPI_Request request;
        int code = MPI_Isend(&m->abort_sent, sizeof m->abort_sent, MPI_BYTE, i, TAG_ABORT, m->world,
                             &request);
        if (code == MPI_SUCCESS) MPI_Request_free(&request);
    }
    pthread_mutex_unlock(&m->mutex);
}

void spread_failure(mpi_processes *m, rank_group *group, int rank, const ls_error *why)
{
    control *c = group->control;
    int none = 0;
    if (!atomic_compare_exchange_strong(&c->failing, &none, 1)) return;
    c->why.rank = rank;
    c->why.status = why ? why->code : LS_INTERNAL;
    if (why) memcpy(c->why.text, why->text, sizeof c->why.text - 1);
    atomic_store(&c->failed, 1);
    for (int lane = 0; lane < LS_COMM_LANES; lane++)
        futex_wake(&c->barriers[lane].generation);
    if (m->base.place.hosts > 1) send_aborts(m, &c->why, false);
}

void mpi_give_up(ls_processes *processes, const ls_error *why)
{
    mpi_processes *m = (mpi_processes *)processes;
    int devices = m->groups ? m->groups->devices : 1;
    failure own = {.rank = m->base.place.index * devices, .status = why->code};
    memcpy(own.text, why->text, sizeof own.text - 1);
    if (!atomic_load(&m->lost)) send_aborts(m, &own, true);
}

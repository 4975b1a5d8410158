/* MPI's shared windows: memory that all processes of a host have in their address spaces. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "comm/mpi/internal.h"

/* What MPI has beside a window's bytes in its file, and more than that: where it has no room after
 * all, one process fails and the others wait for it. */
enum { ALIGNMENT = 4096, MPI_SHARED_BYTES = 256 << 10 };

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static int64_t free_shared_bytes(void)
{
    struct statvfs system;
    if (statvfs("/dev/shm", &system) != 0) return INT64_MAX;
    return (int64_t)system.f_bavail * (int64_t)system.f_frsize;
}

static ls_status fail_room(const mpi_processes *m, int64_t bytes, const char *what, ls_error *error)
{
    return ls_fail(error, LS_NO_MEMORY,
                   "the shared memory of %s is too small: %d processes need %lld bytes there for "
                   "%s, /dev/shm has %lld free: enlarge it (docker run --shm-size, mount -o "
                   "remount,size=) or use --devices in one process",
                   ls_processes_host_name(&m->base, m->base.place.index), m->base.place.local_count,
                   (long long)bytes, what, (long long)free_shared_bytes());
}

/* Takes the pages now: later a full file system would be a signal. Old kernels cannot; there the
 * count of free bytes has to do. */
static ls_status take_pages(const mpi_processes *m, void *base, int64_t bytes, const char *what,
                            ls_error *error)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = (uintptr_t)base / page * page;
    uintptr_t end = ((uintptr_t)base + (uintptr_t)bytes + page - 1) / page * page;
    if (madvise((void *)begin, end - begin, MADV_POPULATE_WRITE) == 0 || errno == EINVAL)
        return LS_OK;
    return fail_room(m, bytes * m->base.place.local_count, what, error);
}

/* One result for the host: the calls that follow are made by all of its processes or by none. */
static ls_status all_of_host(mpi_processes *m, ls_status mine, const char *what, ls_error *error)
{
    bool well = mine == LS_OK;
    ls_error own;
    ls_status status = mpi_all_well(m, &well, what, &own);
    if (mine != LS_OK || (status == LS_OK && well)) return mine;
    if (status != LS_OK)
        *error = own;
    else
        status = ls_fail(error, LS_INTERRUPTED, "another process has no memory for %s", what);
    return status;
}

static ls_status query(mpi_processes *m, window *w, void *mine, ls_error *error)
{
    int own = m->base.place.local_index;
    for (int i = 0; i < m->base.place.local_count; i++) {
        MPI_Aint bytes;
        int unit, code;
        MPI_DO(m, code = MPI_Win_shared_query(w->mpi, i, &bytes, &unit, &w->bases[i]));
        LS_TRY(mpi_status(m, code, "MPI_Win_shared_query", error));
    }
    w->bases[own] = mine;
    return LS_OK;
}

static ls_status new_window(mpi_processes *m, window *w, const char *what, ls_error *error)
{
    void *mine = NULL;
    int code;
    MPI_Info info;
    int64_t whole = w->bytes * m->base.place.local_count + MPI_SHARED_BYTES;
    ls_status status = LS_NEW(w->bases, m->base.place.local_count, "shared memory", error);
    if (status == LS_OK && whole > free_shared_bytes()) status = fail_room(m, whole, what, error);
    LS_TRY(all_of_host(m, status, what, error));
    pthread_mutex_lock(&m->mutex);
    MPI_Info_create(&info);
    MPI_Info_set(info, "alloc_shared_noncontig", "true");
    code = MPI_Win_allocate_shared((MPI_Aint)w->bytes, 1, info, m->local, &mine, &w->mpi);
    MPI_Info_free(&info);
    pthread_mutex_unlock(&m->mutex);
    if (code != MPI_SUCCESS) return fail_room(m, whole, what, error);
    LS_TRY(query(m, w, mine, error));
    return all_of_host(m, take_pages(m, mine, w->bytes, what, error), what, error);
}

ls_status mpi_allocate(ls_processes *processes, int64_t bytes, const char *what, void **out,
                       ls_error *error)
{
    mpi_processes *m = (mpi_processes *)processes;
    window *w = NULL;
    LS_TRY(LS_NEW(w, 1, "shared memory", error));
    w->bytes = bytes + ALIGNMENT;
    w->mpi = MPI_WIN_NULL;
    ls_status status = new_window(m, w, what, error);
    if (status != LS_OK && w->mpi == MPI_WIN_NULL) {
        ls_free(w->bases);
        ls_free(w);
        return status;
    }
    w->next = m->windows;
    m->windows = w;
    m->window_count++;
    if (status != LS_OK) return status;
    unsigned char *mine = w->bases[m->base.place.local_index];
    uintptr_t aligned = ((uintptr_t)mine + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    memset((void *)aligned, 0, (size_t)bytes);
    *out = (void *)aligned;
    return LS_OK;
}

/* A collective call of the host's processes. */
void free_windows(mpi_processes *m)
{
    for (window *w = m->windows; w; w = w->next)
        if (w->mpi != MPI_WIN_NULL) MPI_Win_free(&w->mpi);
}

static const window *window_of(const mpi_processes *m, int index)
{
    const window *w = m->windows;
    for (int i = m->window_count - 1; i > index; i--)
        w = w->next;
    return w;
}

void *window_address(const mpi_processes *m, int index, int local, int64_t offset)
{
    return window_of(m, index)->bases[local] + offset;
}

int window_find(const mpi_processes *m, const void *address, int64_t *offset)
{
    int index = m->window_count - 1;
    for (const window *w = m->windows; w; w = w->next, index--) {
        const unsigned char *mine = w->bases[m->base.place.local_index];
        int64_t distance = (int64_t)((uintptr_t)address - (uintptr_t)mine);
        if (distance < 0 || distance >= w->bytes) continue;
        *offset = distance;
        return index;
    }
    return -1;
}

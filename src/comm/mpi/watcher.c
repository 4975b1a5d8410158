/* A thread that looks when nobody else can: a call into MPI may itself not come back after a peer
 * is gone (Open MPI asks mpirun to tell the user, and waits). Then the waiting thread cannot say
 * for what it waits, and mpirun ends the process a second after it has told it. */
#include <stdbool.h>

#include "base/calls.h"
#include "comm/mpi/internal.h"

/* Looks so often; speaks when what waits has not ended by itself for so many looks. */
enum { LOOK_MS = 50, PATIENCE_LOOKS = 6 };

void watch_begin(wait_site *site)
{
    mpi_processes *m = site->processes;
    pthread_mutex_lock(&m->watched_mutex);
    site->next = m->watched;
    m->watched = site;
    pthread_mutex_unlock(&m->watched_mutex);
}

void watch_end(const wait_site *site)
{
    mpi_processes *m = site->processes;
    pthread_mutex_lock(&m->watched_mutex);
    wait_site **at = &m->watched;
    while (*at != site)
        at = &(*at)->next;
    *at = site->next;
    pthread_mutex_unlock(&m->watched_mutex);
}

static bool speak(mpi_processes *m)
{
    const ls_processes_options *options = &m->base.options;
    char line[WAIT_TEXT_BYTES];
    pthread_mutex_lock(&m->watched_mutex);
    const wait_site *site = m->watched;
    if (site) wait_describe_loss(site, line);
    pthread_mutex_unlock(&m->watched_mutex);
    if (site && options->warn) options->warn(options->context, line);
    return site != NULL;
}

static void *watch(void *argument)
{
    mpi_processes *m = argument;
    const ls_processes_options *options = &m->base.options;
    int looks = 0;
    while (!atomic_load(&m->leaving)) {
        neighbours_look(m, LOOK_MS);
        bool gone = atomic_load(&m->gone) ||
                    (options->peer_is_gone && options->peer_is_gone(options->context));
        looks = gone && !atomic_load(&m->lost) ? looks + 1 : 0;
        if (looks >= PATIENCE_LOOKS && speak(m)) return NULL;
    }
    return NULL;
}

ls_status watcher_start(mpi_processes *m, ls_error *error)
{
    if (!m->base.options.peer_is_gone && m->base.place.hosts == 1) return LS_OK;
    if (ls_call_thread(&m->watcher, watch, m) != 0)
        return ls_fail(error, LS_NO_MEMORY, "cannot start the thread that watches the processes");
    m->watching = true;
    return LS_OK;
}

void watcher_stop(mpi_processes *m)
{
    atomic_store(&m->leaving, 1);
    if (m->watching) pthread_join(m->watcher, NULL);
    m->watching = false;
}

/* A group of ranks that move bytes. It adds nothing: sums are the devices' work, in the order that
 * tree.h gives. Calls of the ranks of a group must match, one after the other; a rank makes them
 * from one thread at a time, or two threads, each in a lane of its own: barriers and messages of
 * the lanes know nothing of each other.
 *
 * Ranks of one host are in reach: they read each other's memory. Ranks of different hosts send each
 * other messages. */
#ifndef LS_COMM_COMM_H
#define LS_COMM_COMM_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct ls_comm ls_comm;

typedef struct ls_comm_operations {
    const char *name;
    void (*free)(ls_comm *comm);
    /* The rank's second lane, for calls of a second thread. Freed before the first one, and made as
     * often as wanted, but used by one thread at a time. An abort is that of both. */
    ls_status (*second_lane)(ls_comm *comm, ls_comm **out, ls_error *error);
    /* Wait until all ranks in reach are here. LS_INTERRUPTED after an abort, LS_LOST if one of them
     * is gone or too late. */
    ls_status (*barrier)(ls_comm *comm, ls_error *error);
    /* everyone[r] becomes the address under which this rank can read rank r's `mine`, NULL where
     * that is out of reach. */
    ls_status (*share)(ls_comm *comm, void *mine, void **everyone, ls_error *error);
    /* Start a message between two ranks, any two that are not the same; the bytes must stay until
     * `wait` for the same request, 0 .. LS_COMM_REQUESTS - 1, has returned. Messages between two
     * ranks arrive in the order of sending; one that is shorter than the room is fine. */
    ls_status (*send)(ls_comm *comm, int request, int to, const void *bytes, int64_t count,
                      ls_error *error);
    ls_status (*receive)(ls_comm *comm, int request, int from, void *bytes, int64_t room,
                         ls_error *error);
    /* Until the request is done; at once if there is none. */
    ls_status (*wait)(ls_comm *comm, int request, ls_error *error);
    /* Any thread: waiting and later calls of all ranks fail: with LS_LOST and the text of `why` if
     * that is its code, else with LS_INTERRUPTED, naming this rank. */
    void (*abort)(ls_comm *comm, const ls_error *why);
} ls_comm_operations;

enum { LS_COMM_REQUESTS = 256, LS_COMM_LANES = 2 };

struct ls_comm {
    const ls_comm_operations *operations;
    int rank, size;
    int lane; /* 0 or 1 */
    /* Ranks are numbered host after host: those of host h are host_begin[h] .. host_begin[h + 1] -
     * 1. This rank is on `host`. */
    int host, hosts;
    const int *host_begin; /* [hosts + 1], lives as long as the comm */
    /* What the rank is at, for the text of a wait that fails; borrowed, written by who calls. */
    int64_t step;
    const char *task;
};

/* `size` ranks that are threads of this process, on one host; comms[r] is rank r's, all are NULL
 * after a failure. Free each of them. */
ls_status ls_comm_threads_new(ls_comm **comms, int size, ls_error *error) LS_MUST_CHECK;
/* The same as if they were on `hosts` hosts, host h with host_ranks[h] of them: only those of one
 * host find each other's memory. For tests of what runs between hosts. */
ls_status ls_comm_threads_apart_new(ls_comm **comms, const int *host_ranks, int hosts,
                                    ls_error *error) LS_MUST_CHECK;
void ls_comm_free(ls_comm *comm); /* NULL is allowed */

#endif

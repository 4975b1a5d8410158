/* A group of ranks that move bytes. It adds nothing: sums are the devices' work, in the order that
 * tree.h gives. Calls of the ranks of a group must match, one after the other. */
#ifndef LS_COMM_COMM_H
#define LS_COMM_COMM_H

#include <stddef.h>

#include "base/status.h"

typedef struct ls_comm ls_comm;

typedef struct ls_comm_operations {
    const char *name;
    void (*free)(ls_comm *comm);
    /* Wait until all ranks are here. LS_INTERRUPTED after an abort. */
    ls_status (*barrier)(ls_comm *comm, ls_error *error);
    /* everyone[r] becomes the address under which this rank can read rank r's `mine`. */
    ls_status (*share)(ls_comm *comm, void *mine, void **everyone, ls_error *error);
    /* Any thread: waiting and later calls of all ranks fail, naming `rank`. */
    void (*abort)(ls_comm *comm);
} ls_comm_operations;

struct ls_comm {
    const ls_comm_operations *operations;
    int rank, size;
};

/* `size` ranks that are threads of this process; comms[r] is rank r's, all are NULL after a
 * failure. Free each of them. */
ls_status ls_comm_threads_new(ls_comm **comms, int size, ls_error *error) LS_MUST_CHECK;
void ls_comm_free(ls_comm *comm); /* NULL is allowed */

#endif

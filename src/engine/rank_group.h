/* The ranks of one process: a thread each, which run the same function at the same time. */
#ifndef LS_ENGINE_RANK_GROUP_H
#define LS_ENGINE_RANK_GROUP_H

#include "base/status.h"
#include "base/threads.h"
#include "comm/comm.h"

typedef struct ls_rank_group ls_rank_group;

/* A thread for each of `size` comms, which the group frees even if it fails; the first one is the
 * caller's. With ranks in other processes as well these are this process's. `cores`: [size] where
 * each rank's thread runs (the caller's while it is in ls_rank_group_run); NULL: anywhere. */
ls_status ls_rank_group_new(ls_rank_group **out, ls_comm *const *comms, int size,
                            const ls_cores *cores, ls_error *error) LS_MUST_CHECK;
void ls_rank_group_free(ls_rank_group *group); /* NULL is allowed */
int ls_rank_group_size(const ls_rank_group *group);
ls_comm *ls_rank_group_comm(ls_rank_group *group, int index);

/* Run it on all ranks of the process and wait; `index` counts these from 0. A rank that fails
 * aborts the others' waits; the first failure that is no consequence of another rank's is returned,
 * with the rank in *error. */
typedef ls_status (*ls_rank_function)(void *context, int index, ls_error *error);
ls_status ls_rank_group_run(ls_rank_group *group, ls_rank_function function, void *context,
                            ls_error *error) LS_MUST_CHECK;

#endif

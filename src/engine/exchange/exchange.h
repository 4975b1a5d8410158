/* Runs the collectives of a program beside the passes, on a thread of their own, one after the
 * other; with several hosts on two, one for sums and one for gathers. Exchanges sum partial sums
 * over the ranks in the tree's order, gathers spread what each rank owns. pieces.h says who owns
 * what, collectives.h moves and adds. */
#ifndef LS_ENGINE_EXCHANGE_H
#define LS_ENGINE_EXCHANGE_H

#include "comm/comm.h"
#include "engine/executor.h"

typedef struct ls_exchange ls_exchange;

/* Takes the place of the executor's collective ops. A collective call: all ranks of the group make
 * it, with executors of the same program and plan. */
ls_status ls_exchange_new(ls_exchange **out, ls_comm *comm, ls_executor *executor,
                          const ls_program *program, const ls_plan *plan,
                          ls_error *error) LS_MUST_CHECK;
void ls_exchange_free(ls_exchange *exchange); /* NULL is allowed */

/* Wait until all that was enqueued is done on all ranks: then what they have exchanged may be
 * overwritten. Fails if another rank has. */
ls_status ls_exchange_finish(ls_exchange *exchange, ls_error *error) LS_MUST_CHECK;

/* Record from now on what the thread does, on `sums`, and the one for gathers on `gathers`; NULL
 * stops it. While nothing is enqueued. */
void ls_exchange_trace(ls_exchange *exchange, ls_track *sums, ls_track *gathers);

/* Elements that this rank has read from others since it was made. */
int64_t ls_exchange_elements(const ls_exchange *exchange);

#endif

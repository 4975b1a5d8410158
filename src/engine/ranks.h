/* The ranks of this process: a device, a trainer and an evaluator each, on a thread each. One rank
 * is the plain case, not a special one. With ranks in other processes every function but the first
 * getters is a collective call: all processes make it. */
#ifndef LS_ENGINE_RANKS_H
#define LS_ENGINE_RANKS_H

#include "comm/processes.h"
#include "engine/evaluator.h"
#include "engine/memory.h"
#include "engine/parameters.h"
#include "engine/trainer.h"

typedef struct ls_ranks ls_ranks;

typedef struct ls_ranks_options {
    const ls_run_programs *programs; /* borrowed; made for all ranks of all processes */
    ls_device *const *devices;       /* [count], borrowed */
    int count;                       /* of this process */
    ls_comm *const *comms;           /* [count], taken over even after a failure; NULL: made here, of
                                        the processes or of threads */
    ls_processes *processes;         /* borrowed; NULL: there are no other ones */
    ls_trainer_options trainer;      /* but for assembly and device */
} ls_ranks_options;

ls_status ls_ranks_new(ls_ranks **out, const ls_ranks_options *options,
                       ls_error *error) LS_MUST_CHECK;
void ls_ranks_free(ls_ranks *ranks); /* NULL is allowed */

/* The executor of the process's first rank, which holds the same parameters as all others. */
ls_executor *ls_ranks_executor(ls_ranks *ranks);

/* As ls_parameters_load, on every rank; `notes` of the first one. */
ls_status ls_ranks_load(ls_ranks *ranks, const ls_weights *weights, uint64_t seed,
                        ls_parameters_notes *notes, ls_error *error) LS_MUST_CHECK;

/* As ls_trainer_step, all ranks at once. */
ls_status ls_ranks_step(ls_ranks *ranks, int64_t step, const ls_batch *batch,
                        ls_step_result *result, ls_error *error) LS_MUST_CHECK;
/* Elements that the process's ranks have had from others so far. */
int64_t ls_ranks_elements(const ls_ranks *ranks);

/* This process goes no further: the ranks of the others stop waiting for its own. */
void ls_ranks_abort(ls_ranks *ranks, const ls_error *why);

/* As ls_evaluator_dataset, each batch divided among the ranks. */
ls_status ls_ranks_evaluate(ls_ranks *ranks, const ls_dataset *dataset, int64_t leaf_size,
                            ls_evaluation *evaluation, ls_error *error) LS_MUST_CHECK;

#endif

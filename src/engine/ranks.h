/* The ranks of this process: a device, a trainer and an evaluator each, on a thread each. One rank
 * is the plain case, not a special one. With ranks in other processes these run at the same time:
 * what is said to be collective is called by all processes. */
#ifndef LS_ENGINE_RANKS_H
#define LS_ENGINE_RANKS_H

#include "comm/processes.h"
#include "engine/evaluator.h"
#include "engine/memory.h"
#include "engine/parameters.h"
#include "engine/rank_group.h"
#include "engine/state.h"
#include "engine/trainer.h"

typedef struct ls_ranks ls_ranks;

typedef struct ls_ranks_options {
    const ls_run_programs *programs; /* borrowed; made for all ranks of all processes */
    ls_device *const *devices;       /* [count], borrowed */
    int count;                       /* of this process */
    ls_comm *const *comms;           /* [count], taken over; NULL: made here, of the processes or of
                                        threads */
    ls_processes *processes;         /* borrowed; NULL: there are no other ones */
    ls_trainer_options trainer;      /* but for assembly, device and rank */
    /* Asked at the end of each step; may be NULL. */
    bool (*should_stop)(void *context);
    void *context;
} ls_ranks_options;

/* Collective. */
ls_status ls_ranks_new(ls_ranks **out, const ls_ranks_options *options,
                       ls_error *error) LS_MUST_CHECK;
void ls_ranks_free(ls_ranks *ranks); /* NULL is allowed */

/* What rank number `index` of this process holds. */
ls_executor *ls_ranks_executor(ls_ranks *ranks, int index);

/* Elements [first, first + count) of a whole parameter or moment of the training program, wherever
 * its owners hold them; and the same from the host to all of this process that hold some. Between
 * steps. With several processes the first one reads while all others serve, see below. */
ls_status ls_ranks_read(ls_ranks *ranks, ls_value_id value, int64_t first, int64_t count, float *to,
                        ls_error *error) LS_MUST_CHECK;
ls_status ls_ranks_write(ls_ranks *ranks, ls_value_id value, int64_t first, int64_t count,
                         const float *from, ls_error *error) LS_MUST_CHECK;
/* Whether a rank of this process holds some of them. */
bool ls_ranks_hold(const ls_ranks *ranks, ls_value_id value, int64_t first, int64_t count);
/* On all processes but the first: send it what it reads, until it says that it is done. On the
 * first: say so, whatever came of it. */
ls_status ls_ranks_serve(ls_ranks *ranks, ls_error *error) LS_MUST_CHECK;
ls_status ls_ranks_end_serving(ls_ranks *ranks, ls_error *error) LS_MUST_CHECK;
/* ls_ranks_read for ls_parameters_save. */
ls_tensor_reader ls_ranks_reader(ls_ranks *ranks);

/* What the rank of this process that takes most has taken in an arena that is not on its device. */
int64_t ls_ranks_offloaded(const ls_ranks *ranks, ls_plan_arena arena);
/* Whether what lies in files passes by the page cache; true where nothing does. */
bool ls_ranks_are_direct(const ls_ranks *ranks);

/* The executors of this process's ranks, for saving. Valid as long as `ranks`. */
ls_state_owners ls_ranks_owners(const ls_ranks *ranks);
ls_rank_group *ls_ranks_group(const ls_ranks *ranks);

/* As ls_parameters_load, on every rank; `notes` of the first one. */
ls_status ls_ranks_load(ls_ranks *ranks, const ls_weights *weights, uint64_t seed,
                        ls_parameters_notes *notes, ls_error *error) LS_MUST_CHECK;

/* As ls_trainer_step, all ranks at once; collective. The result is the first rank's, its times
 * those from call to return on average over the ranks, its FLOPs those of all, `stop` whether
 * anyone was asked to. */
ls_status ls_ranks_step(ls_ranks *ranks, int64_t step, const ls_batch *batch,
                        ls_step_result *result, ls_error *error) LS_MUST_CHECK;
/* Record every rank's threads from now on, on tracks of `trace`; NULL stops it. */
void ls_ranks_trace(ls_ranks *ranks, ls_trace *trace);
/* The same with an audit, see audit.h: LS_DIFFERENT, on all processes. */
ls_status ls_ranks_step_audited(ls_ranks *ranks, int64_t step, const ls_batch *batch,
                                ls_step_result *result, ls_error *error) LS_MUST_CHECK;
/* Elements that all ranks have had from one another, up to the last step. */
int64_t ls_ranks_elements(const ls_ranks *ranks);

/* This process goes no further: the ranks of the others stop waiting for its own. */
void ls_ranks_abort(ls_ranks *ranks, const ls_error *why);

/* As ls_evaluator_dataset, collective, each batch divided among the ranks. */
ls_status ls_ranks_evaluate(ls_ranks *ranks, const ls_dataset *dataset, int64_t leaf_size,
                            ls_evaluation *evaluation, ls_error *error) LS_MUST_CHECK;

#endif

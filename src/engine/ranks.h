/* All ranks of this process: a device, a trainer and an evaluator each, on a thread each. One rank
 * is the plain case, not a special one. */
#ifndef LS_ENGINE_RANKS_H
#define LS_ENGINE_RANKS_H

#include "engine/evaluator.h"
#include "engine/memory.h"
#include "engine/parameters.h"
#include "engine/rank_group.h"
#include "engine/state.h"
#include "engine/trainer.h"

typedef struct ls_ranks ls_ranks;

typedef struct ls_ranks_options {
    const ls_run_programs *programs; /* borrowed; made for `count` ranks */
    ls_device *const *devices;       /* [count], borrowed */
    int count;
    ls_trainer_options trainer; /* but for assembly and device */
} ls_ranks_options;

ls_status ls_ranks_new(ls_ranks **out, const ls_ranks_options *options,
                       ls_error *error) LS_MUST_CHECK;
void ls_ranks_free(ls_ranks *ranks); /* NULL is allowed */

/* What rank `rank` holds. */
ls_executor *ls_ranks_executor(ls_ranks *ranks, int rank);

/* Elements [first, first + count) of a whole parameter or moment of the training program, wherever
 * its owners hold them; and the same from the host to all that hold some. Between steps. */
ls_status ls_ranks_read(ls_ranks *ranks, ls_value_id value, int64_t first, int64_t count, float *to,
                        ls_error *error) LS_MUST_CHECK;
ls_status ls_ranks_write(ls_ranks *ranks, ls_value_id value, int64_t first, int64_t count,
                         const float *from, ls_error *error) LS_MUST_CHECK;
/* ls_ranks_read for ls_parameters_save. */
ls_tensor_reader ls_ranks_reader(ls_ranks *ranks);

/* What the rank that takes most has taken in an arena that is not on its device. */
int64_t ls_ranks_offloaded(const ls_ranks *ranks, ls_plan_arena arena);
/* Whether what lies in files passes by the page cache; true where nothing does. */
bool ls_ranks_are_direct(const ls_ranks *ranks);

/* The executors of all ranks, for saving. Valid as long as `ranks`. */
ls_state_owners ls_ranks_owners(const ls_ranks *ranks);
ls_rank_group *ls_ranks_group(const ls_ranks *ranks);

/* As ls_parameters_load, on every rank; `notes` of rank 0. */
ls_status ls_ranks_load(ls_ranks *ranks, const ls_weights *weights, uint64_t seed,
                        ls_parameters_notes *notes, ls_error *error) LS_MUST_CHECK;

/* As ls_trainer_step, all ranks at once. The result is rank 0's, its times those from call to
 * return on average over the ranks, its FLOPs those of all. */
ls_status ls_ranks_step(ls_ranks *ranks, int64_t step, const ls_batch *batch,
                        ls_step_result *result, ls_error *error) LS_MUST_CHECK;
/* Record every rank's threads from now on, on tracks of `trace`; NULL stops it. */
void ls_ranks_trace(ls_ranks *ranks, ls_trace *trace);
/* The same with an audit, see audit.h: LS_DIFFERENT. */
ls_status ls_ranks_step_audited(ls_ranks *ranks, int64_t step, const ls_batch *batch,
                                ls_step_result *result, ls_error *error) LS_MUST_CHECK;
/* Elements that all ranks have read from one another so far. */
int64_t ls_ranks_elements(const ls_ranks *ranks);

/* As ls_evaluator_dataset, each batch divided among the ranks. */
ls_status ls_ranks_evaluate(ls_ranks *ranks, const ls_dataset *dataset, int64_t leaf_size,
                            ls_evaluation *evaluation, ls_error *error) LS_MUST_CHECK;

#endif

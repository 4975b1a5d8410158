/* Fills a program's inputs: the tokens of a pass and the order in which its sums go on. */
#ifndef LS_ENGINE_FEEDER_H
#define LS_ENGINE_FEEDER_H

#include "comm/tree.h"
#include "data/batch.h"
#include "engine/assembly.h"
#include "engine/executor.h"

typedef struct ls_feeder ls_feeder;

/* All memory is taken here, for steps and passes up to the assembly's capacities. Binds the
 * executor's host values. Assembly and executor must outlive it. */
ls_status ls_feeder_new(ls_feeder **out, const ls_assembly *assembly, ls_executor *executor,
                        ls_error *error) LS_MUST_CHECK;
void ls_feeder_free(ls_feeder *feeder); /* NULL is allowed */

/* See which rows of the tables have moments that are not zeros: before the first step, when what a
 * checkpoint holds has been loaded. */
ls_status ls_feeder_find_moved(ls_feeder *feeder, ls_error *error) LS_MUST_CHECK;

/* Begin a step of a training program on `rank`'s leaves of `batch`, leaves of `leaf_size` samples;
 * the batch is borrowed until the step is over. Returns the passes that the rank takes part in;
 * call ls_feeder_share and, where it has samples, ls_feeder_pass for each of them in turn. 0: the
 * rank has no samples, and there are no passes of all ranks. */
int32_t ls_feeder_start(ls_feeder *feeder, const ls_batch *batch, int64_t leaf_size, int rank);

/* The rank's samples of pass number `pass`, [*begin, *end): none in a pass of all ranks that has
 * fewer leaves than there are ranks. */
void ls_feeder_share(ls_feeder *feeder, const ls_batch *batch, int32_t pass, int32_t *begin,
                     int32_t *end);

/* Begin a batch of a program for evaluation. */
void ls_feeder_start_evaluation(ls_feeder *feeder, const ls_batch *batch);

/* Write the inputs of the pass over samples [begin, end) of the batch and return its sizes. */
ls_extents ls_feeder_pass(ls_feeder *feeder, const ls_batch *batch, int32_t begin, int32_t end);

#endif

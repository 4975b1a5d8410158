/* Strategies: program in, program out. They never see devices or communication. */
#ifndef LS_STRATEGIES_STRATEGY_H
#define LS_STRATEGIES_STRATEGY_H

#include "program/program.h"

typedef struct ls_data_parallel_options {
    int64_t bucket_bytes;       /* gradients are exchanged in groups of at least this size ... */
    int64_t first_bucket_bytes; /* ... the first one, which is complete earliest, of this */
    ls_value_id roots;          /* host input: which partial sums the ranks hold */
    ls_value_id loss;           /* exchanged with the last bucket */
} ls_data_parallel_options;

/* Each rank has run the pass on its own leaves: put in the exchanges after which slot 0 of every
 * gradient is the whole batch's sum on every rank (Li et al. 2020, "PyTorch Distributed"). Buckets
 * are filled in the order in which the backward pass completes gradients, and stand right after the
 * op that completes their last one. */
ls_status ls_data_parallel(ls_program *program, const ls_data_parallel_options *options,
                           ls_error *error) LS_MUST_CHECK;

typedef enum ls_recompute_what {
    LS_RECOMPUTE_NONE,
    LS_RECOMPUTE_LAYER,    /* all of a layer but what its last op wrote */
    LS_RECOMPUTE_ATTENTION /* query, key, value, context and softmax */
} ls_recompute_what;

typedef struct ls_recompute_options {
    ls_recompute_what what;
    int unit_begin, unit_end; /* the model's layers; the last one is left as it is */
} ls_recompute_options;

/* Activations of the layers that the backward pass reads are made a second time there, instead of
 * being kept (Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost"): the forward ops
 * that wrote them are appended again, with results of their own ("recompute.<name>"), before the
 * first backward op that reads one. Ops whose results another unit reads are not run again. Runs
 * between the gradient pass and the optimizer. */
ls_status ls_recompute(ls_program *program, const ls_recompute_options *options,
                       ls_error *error) LS_MUST_CHECK;

typedef struct ls_offload_options {
    ls_space space;         /* LS_SPACE_HOST_MEMORY or LS_SPACE_FILE */
    int64_t block_elements; /* of each moment at a time: a multiple of 1,024, a file's page */
} ls_offload_options;

/* The optimizer's moments lie elsewhere and come to the device in blocks (Ren et al. 2021,
 * "ZeRO-Offload"; Rajbhandari et al. 2021, "ZeRO-Infinity"). They become two runs, the first and
 * the second ones in the order of their updates; an update is cut where a block ends. Two blocks of
 * each run are on the device: while one is updated the former goes back and the next one comes. On
 * the optimizer's update, whatever has been exchanged before it; runs after all other rewrites. */
ls_status ls_offload_optimizer(ls_program *program, const ls_offload_options *options,
                               ls_error *error) LS_MUST_CHECK;

#endif

/* Strategies: program in, program out. They never see devices or communication. */
#ifndef LS_STRATEGIES_STRATEGY_H
#define LS_STRATEGIES_STRATEGY_H

#include "ops/inputs.h"
#include "program/program.h"

typedef struct ls_data_parallel_options {
    int64_t bucket_bytes;       /* gradients are exchanged in groups of at least this size ... */
    int64_t first_bucket_bytes; /* ... the first one, which is complete earliest, of this */
    ls_value_id roots;          /* host input: which partial sums the ranks hold */
    ls_value_id loss;           /* exchanged with the last bucket */
    bool owned;                 /* each rank gets only what it owns of the sums */
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

/* What is divided among the ranks instead of being whole on each. */
typedef struct ls_sharding {
    bool optimizer_state;
    bool gradients;  /* with optimizer_state */
    bool parameters; /* with gradients; of programs without an update too */
} ls_sharding;

/* What --strategy takes, endings aside. */
typedef struct ls_strategy_kind {
    const char *name;
    bool one_device; /* runs on no more than one */
    ls_sharding shard;
} ls_strategy_kind;

/* From the simplest on; each of several devices divides what the one before it does, and more. The
 * one place that says what a name means. */
enum { LS_STRATEGY_KINDS = 5 };
extern const ls_strategy_kind ls_strategy_kinds[LS_STRATEGY_KINDS];
/* The one of that name; NULL: there is none. */
const ls_strategy_kind *ls_strategy_kind_of(const char *name);

typedef struct ls_zero_options {
    ls_sharding shard;
    /* Of parameters that are divided: one unit is gathered ahead of use, or with `prefetch_limited`
     * as many whole ones as have `prefetch_elements` together; tensors of fewer elements than
     * `whole_below` stay whole on every rank: their owners update them and they are gathered. */
    bool prefetch_limited;
    int64_t prefetch_elements, whole_below;
    int ranks;
    int64_t bucket_bytes, first_bucket_bytes; /* as above; of parameters after the update too */
    int32_t root_slots; /* sharded gradients: partial sums that an owner holds between passes */
    ls_inputs *inputs;  /* gets the rows of tables that are not whole */
    ls_value_id *loss;  /* training: the loss of the passes; becomes that of the step */
} ls_zero_options;

/* Divide optimizer state, gradients and parameters among the ranks (Rajbhandari et al. 2020, "ZeRO:
 * Memory Optimizations Toward Training Trillion Parameter Models"), stages 1, 2 and 3. Each unit is
 * cut as program/layout.h says.
 *
 * Optimizer state: gradients are summed at their owners, which update their part of the parameters,
 * and gather it. Norms are computed by the owners, block by block, and the blocks gathered.
 * Gradients: those of a unit are on their way between ranks from when they are computed until the
 * next unit's are; each pass is exchanged at once, and owners add it to what they have.
 * Parameters: a unit is gathered while the one before it is used, once forward and once backward,
 * of tables those rows that the pass touches; after its use it is gone. */
ls_status ls_zero(ls_program *program, const ls_zero_options *options,
                  ls_error *error) LS_MUST_CHECK;

typedef struct ls_offload_options {
    /* LS_SPACE_DEVICE, LS_SPACE_HOST_MEMORY or LS_SPACE_FILE: of the moments, and of parameters
     * that ls_zero has divided. */
    ls_space optimizer, parameters;
    int64_t block_elements; /* of each of them at a time: a multiple of 1,024, a file's page */
} ls_offload_options;

/* The optimizer's moments, or the parameters too, lie elsewhere and come to the device in blocks
 * (Ren et al. 2021, "ZeRO-Offload"; Rajbhandari et al. 2021, "ZeRO-Infinity"). The first moments
 * become one run, the second ones another, each rank's own elements in the order of
 * program/layout.h; an update is cut where a block ends. Two blocks of each run are on the device:
 * while one is updated the former goes back and the next one comes, from the runs' end to their
 * beginning, which is about the order of the backward pass and so that of gathers. Parameters are a
 * third run; in the pass each rank fetches what it owns of a unit before the unit is gathered. Runs
 * after all other rewrites. */
ls_status ls_offload_state(ls_program *program, const ls_offload_options *options,
                           ls_error *error) LS_MUST_CHECK;

#endif

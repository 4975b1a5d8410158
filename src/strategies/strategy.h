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

/* What is divided among the ranks instead of being whole on each. */
typedef struct ls_sharding {
    bool optimizer_state;
    bool gradients;  /* with optimizer_state */
    bool parameters; /* with gradients; of programs without an update too */
} ls_sharding;

typedef struct ls_zero_options {
    ls_sharding shard;
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

#endif

/* Partial sums that a run's batches ask for: a full one's. A short one needs no more, see
 * comm/tree.h. */
#ifndef LS_ENGINE_TREE_SIZES_H
#define LS_ENGINE_TREE_SIZES_H

#include <stdint.h>

typedef struct ls_tree_sizes_options {
    int64_t batch_size, leaf_size,
        samples_per_pass; /* samples of the largest batch, over all ranks */
    int64_t pass_leaves;  /* of all ranks, where each pass is exchanged at once; 0: once a step */
    int ranks;
} ls_tree_sizes_options;

typedef struct ls_tree_sizes {
    int32_t slots;      /* of a rank's partial sums */
    int32_t open;       /* sums that an owner keeps between passes */
    int32_t step_roots; /* at least the roots of all ranks that any batch has over all passes */
} ls_tree_sizes;

ls_tree_sizes ls_tree_sizes_of(const ls_tree_sizes_options *options);

#endif

/* Partial sums that the batches of a run ask for, of every size up to the largest: a short one is
 * cut otherwise. */
#ifndef LS_ENGINE_TREE_SIZES_H
#define LS_ENGINE_TREE_SIZES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ls_tree_sizes_options {
    int64_t batch_size, leaf_size,
        samples_per_pass; /* samples of the largest batch, over all ranks */
    int64_t pass_leaves;  /* of all ranks, where each pass is exchanged at once; 0: once a step */
    int ranks;
    bool several; /* batches of every size count, not only the largest */
} ls_tree_sizes_options;

typedef struct ls_tree_sizes {
    int32_t slots;      /* of a rank's partial sums */
    int32_t open;       /* sums that an owner keeps between passes */
    int32_t step_roots; /* at least the roots of all ranks that any batch has over all passes */
} ls_tree_sizes;

ls_tree_sizes ls_tree_sizes_of(const ls_tree_sizes_options *options);

/* The last few answers, for plans of many layouts. All zero is an empty one. */
enum { LS_TREE_SIZES_REMEMBERED = 16 };
typedef struct ls_tree_sizes_memo {
    ls_tree_sizes_options asked[LS_TREE_SIZES_REMEMBERED];
    ls_tree_sizes answers[LS_TREE_SIZES_REMEMBERED];
    int count; /* so far; older ones are overwritten */
} ls_tree_sizes_memo;

ls_tree_sizes ls_tree_sizes_remembered(ls_tree_sizes_memo *memo,
                                       const ls_tree_sizes_options *options);

#endif

/* The one place that decides in which order partial sums are added (docs/design.md, "Same bits").
 *
 * The leaves of a global batch are the leaves of a perfect binary tree, padded to a power of two;
 * absent leaves are skipped. A rank holds the consecutive leaves [begin, end) of `total`. Two
 * neighbouring partial sums join where their leaves' paths meet, on this rank only if it holds all
 * real leaves below that node; what cannot join here is a root that goes to other ranks. */
#ifndef LS_COMM_TREE_H
#define LS_COMM_TREE_H

#include <stdint.h>

#include "base/leaf_schedule.h"

typedef struct ls_tree_range {
    int64_t begin, end, total;
} ls_tree_range;

/* A short batch, the last one of an epoch, is cut where a full one is: of the leaves that a rank
 * has of a full batch it has those that are there, the last ranks none. So no short batch needs
 * more room than a full one. Where leaves are dealt out, `end` is therefore that of a full batch
 * and may lie behind `total`. */

/* Partial sums that are open, oldest first; level[i] is where entry i joins entry i + 1. */
typedef struct ls_tree_stack {
    int depth;
    uint8_t level[LS_MAX_SLOTS];
} ls_tree_stack;

enum { LS_TREE_NEVER = 255 };

/* Level of the node at which leaves a < b meet (1: they are siblings), LS_TREE_NEVER if the range
 * does not hold that node. */
int ls_tree_join_level(ls_tree_range range, int64_t a, int64_t b);

/* Push the finished sum of `leaf`; `next` is the next leaf that will be pushed, -1 for none.
 * Returns how many times the two newest entries are now added (older + newer). */
int ls_tree_push(ls_tree_stack *stack, ls_tree_range range, int64_t leaf, int64_t next);

/* The leaves of `rank`, one of `ranks`, of those in `all` (a batch's, or those of one pass of all
 * ranks): consecutive, of a full batch nearly as many on each. */
ls_tree_range ls_tree_share(ls_tree_range all, int ranks, int rank);
/* The same of a full batch of `total` leaves. */
ls_tree_range ls_tree_rank_range(int64_t total, int ranks, int rank);

/* A partial sum that a rank cannot join further: the largest node that holds only its leaves. */
typedef struct ls_tree_root {
    int32_t rank, slot;  /* where it lies: `slot` of the rank's gradients */
    int64_t first, last; /* leaves */
} ls_tree_root;

/* The roots of all ranks of the leaves in `all`, in the order of their leaves, into `roots`; more
 * than `capacity` of them are not written. Returns their number. */
int ls_tree_roots(ls_tree_range all, int ranks, ls_tree_root *roots, int capacity);

/* Roots of one rank's leaves, without walking over them: what a list of all would hold of it. */
int ls_tree_range_roots(ls_tree_range range);

/* What groups of ranks (those of a host) can join of the roots of their ranks: group g has ranks
 * begin[g] .. begin[g + 1] - 1. `roots` [count] are those of some consecutive leaves (of a batch,
 * of a pass) of a batch of `total`, in their order. Each goes into the largest node that holds only
 * leaves of its group: joined[below[i]] for root i, whose `rank` is then the group and whose `slot`
 * counts within it. Returns how many `joined` there are, at most `count`. */
int ls_tree_join_roots(const ls_tree_root *roots, int count, int64_t total, const int *begin,
                       int groups, ls_tree_root *joined, int32_t *below);

/* The roots of a step's batch, as an exchange reads them: it adds those of its pass, [begin, end),
 * to what former passes have left open. Slots count from 0 in each pass of a rank. */
typedef struct ls_step_roots {
    int32_t count;
    const ls_tree_root *roots;
    int32_t begin, end;
} ls_step_roots;

/* Slots that a gradient needs where passes of `samples_per_pass` samples run over the range:
 * the most partial sums and open chains that wait at the end of any pass. `samples` is the batch's
 * true count, leaves hold `leaf_size` samples, the last one may hold fewer. */
int ls_tree_slots(ls_tree_range range, int64_t samples, int64_t leaf_size,
                  int64_t samples_per_pass);

#endif

/* How one pass adds over samples: the order that all layouts share (docs/design.md, "Same bits").
 *
 * A global batch is cut into leaves of consecutive samples. Inside a leaf a sum is one chain in
 * row order; across leaves it is a perfect binary tree over leaf indices. A kernel walks the pieces
 * of leaves that a pass holds, with a stack of partial sums: a finished leaf is pushed, then the
 * two newest entries are added `merges` times (older + newer). What is open when the pass ends
 * waits in the gradient's slots, one slot a stack position, and the next pass goes on from there.
 * comm/tree.c decides the merges; kernels only follow. */
#ifndef LS_BASE_LEAF_SCHEDULE_H
#define LS_BASE_LEAF_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ls_leaf_schedule {
    int32_t pieces;         /* leaves, or parts of leaves, in this pass */
    const int32_t *offsets; /* [pieces + 1] first row of each piece; a piece has at least one row */
    const uint8_t *merges;  /* [pieces] additions after the piece is complete */
    int32_t depth;          /* partial sums waiting from earlier passes: slots 0 .. depth - 1 */
    bool resume;            /* piece 0 continues the chain that waits in slot `depth` */
    bool leave_open;        /* the last piece's leaf goes on in the next pass: no push, no merge,
                               its chain is stored in the slot above the stack */
} ls_leaf_schedule;

/* The same for a table of rows (embeddings), each row with its own pieces: only the tokens that
 * hold the row's id count, a leaf without one is skipped. Arrays are borrowed. */
typedef struct ls_row_schedule {
    int32_t rows;                /* distinct table rows touched in this pass */
    const int32_t *gradient_row; /* [rows] where the row's sum lies in the gradient value */
    const int32_t *piece_begin;  /* [rows + 1] into token_begin and merges */
    const int32_t *token_begin;  /* [pieces + 1] into tokens */
    const int32_t *tokens;       /* token indices of this pass, ascending within a row */
    const uint8_t *merges;       /* [pieces] */
    const uint8_t *depth;        /* [rows] */
    const uint8_t *resume;       /* [rows] 0 or 1 */
    const uint8_t *leave_open;   /* [rows] 0 or 1 */
} ls_row_schedule;

/* The rows of a table that a step touches: ascending, distinct. Row i of the gradient value belongs
 * to table row rows[i]. */
typedef struct ls_touched_rows {
    int32_t count;
    const int32_t *rows;
    /* Several ranks: [count][roots] 1 where a leaf below the root (comm/tree.h) touches the row. A
     * rank's partial sums of a row lie in its first slots, those roots that have none left out. */
    const uint8_t *present;
    /* [count] 1 where the pass touches the row, on any rank; NULL: it touches all. */
    const uint8_t *in_pass;
    /* [rows of the table] 0 where no step has touched the row yet, so that the optimizer's moments
     * are zeros there; NULL: any may be something else. */
    const uint8_t *moved;
} ls_touched_rows;

/* First index in the list whose row is at least `row`. */
static inline int32_t ls_touched_from(const ls_touched_rows *touched, int64_t row)
{
    int32_t low = 0, high = touched->count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (touched->rows[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Partial sums of several ranks, of one run of elements, added in the tree's order: source i is
 * pushed on the stack that waits in the slots, then the two newest entries are added merges[i]
 * times (older + newer). What is open at the end waits in the slots again: slot s of element e is
 * slots[s * slot_stride + e]. Slots may be among the sources. */
typedef struct ls_ordered_sum {
    float *slots;
    int64_t slot_stride;
    int32_t depth; /* partial sums that wait in the slots */
    int32_t count;
    const float *const *sources; /* [count] */
    const uint8_t *merges;       /* [count] */
    int64_t elements;
} ls_ordered_sum;

/* Deepest stack that anyone holds: 2^38 leaves and one open chain of one rank, or the roots of
 * any range of 2^19 leaves. */
enum { LS_MAX_SLOTS = 40 };

#endif

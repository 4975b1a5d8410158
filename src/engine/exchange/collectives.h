/* What ranks do together with values that lie in arenas of the same plan: add partial sums at their
 * owner, hand the owner's elements to everyone. The one place where gradients of ranks are added,
 * and the only one that tells ranks in reach of each other's memory from those across a network.
 *
 * Who owns what is the caller's: a piece is a run of elements with one owner, and every rank lists
 * the same pieces. Calls are collective: all ranks of the group make the same ones in the same
 * order, from one thread each. */
#ifndef LS_ENGINE_COLLECTIVES_H
#define LS_ENGINE_COLLECTIVES_H

#include "comm/comm.h"
#include "comm/tree.h"
#include "devices/device.h"
#include "engine/exchange/message_bytes.h"
#include "program/plan.h"

typedef struct ls_collectives ls_collectives;

/* Where f32 elements lie on every rank, in an arena of the same plan. */
typedef struct ls_place {
    ls_plan_arena arena;
    int64_t offset; /* bytes from the arena's base; may lie before it where only later rows count */
} ls_place;

/* Rows of f32 elements, [rows][row_elements]. */
typedef struct ls_piece {
    ls_place from; /* the ranks' partial sums; of a gather, the owner's elements */
    ls_place to;   /* where it goes: of a sum on the owner, of a gather on all; may be `from` */
    int64_t rows, row_elements;
    /* Of a sum: elements from a slot to the next, where there are several. What is open after the
     * roots of this call waits in the slots of `to`, see ls_ordered_sum. */
    int64_t from_stride, to_stride;
    /* Of a table's sum: [rows][roots], see ls_touched_rows. NULL: every root has all. */
    const uint8_t *present;
    /* Of a gather: [rows] 0 where nobody wants the row. NULL: all are wanted. */
    const uint8_t *wanted;
    /* Of a gather: row i is row source_rows[i] of what lies at `from`; NULL: row i. */
    const int32_t *source_rows;
} ls_piece;

/* All pieces of one call, those of owner r are items[begin[r]] .. items[begin[r + 1] - 1]. */
typedef struct ls_pieces {
    const ls_piece *items;
    const int32_t *begin; /* [ranks + 1] */
} ls_pieces;

/* A collective call. `arenas`: this rank's bases; the device adds. */
ls_status ls_collectives_new(ls_collectives **out, ls_comm *comm, ls_device *device,
                             void *const arenas[LS_PLAN_ARENA_COUNT],
                             ls_error *error) LS_MUST_CHECK;
void ls_collectives_free(ls_collectives *collectives); /* NULL is allowed */

/* Add the roots of this call, in the tree's order, to what its owner has of each piece. Waits until
 * all ranks have called it, so that their partial sums are there. */
ls_status ls_collectives_sum(ls_collectives *collectives, const ls_step_roots *roots,
                             const ls_pieces *pieces, ls_error *error) LS_MUST_CHECK;

/* Each piece goes from its owner to all. Waits until all ranks have called it. */
ls_status ls_collectives_gather(ls_collectives *collectives, const ls_pieces *pieces,
                                ls_error *error) LS_MUST_CHECK;

/* Until all ranks are done with what they called: then nobody reads this rank's memory. */
ls_status ls_collectives_finish(ls_collectives *collectives, ls_error *error) LS_MUST_CHECK;

/* Seconds that the last sum or gather waited for the other ranks to call it. */
double ls_collectives_waited(const ls_collectives *collectives);

/* Elements that this rank has had from others since it was made. */
int64_t ls_collectives_elements(const ls_collectives *collectives);

#endif

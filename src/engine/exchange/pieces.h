/* Which rank owns what of the values of a bucket, and where it lies there and goes to: program and
 * layout in, pieces for collectives.h out. All ranks list the same. */
#ifndef LS_ENGINE_PIECES_H
#define LS_ENGINE_PIECES_H

#include "engine/exchange/collectives.h"
#include "engine/executor.h"

/* All memory is taken by ls_piece_list_init, for any bucket of the program. */
typedef struct ls_piece_list {
    const ls_program *program;
    const ls_plan *plan;
    const ls_executor *executor; /* has the lists of touched rows */
    int ranks;
    ls_piece *items;
    int32_t *begin; /* [ranks + 1] */
    int32_t count;
} ls_piece_list;

ls_status ls_piece_list_init(ls_piece_list *list, const ls_program *program, const ls_plan *plan,
                             const ls_executor *executor, int ranks, ls_error *error) LS_MUST_CHECK;
void ls_piece_list_deinit(ls_piece_list *list);

/* The pieces of an exchange of partial sums, and of a gather; borrowed until the next call. */
ls_pieces ls_pieces_to_sum(ls_piece_list *list, const ls_bucket *bucket,
                           const ls_step_roots *roots);
ls_pieces ls_pieces_to_gather(ls_piece_list *list, const ls_bucket *bucket);

#endif

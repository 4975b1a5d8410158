#include "engine/collectives.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

enum { MOST_ROOTS_A_RANK = LS_MAX_SLOTS };

struct ls_collectives {
    ls_comm *comm;
    ls_device *device;
    void **bases[LS_PLAN_ARENA_COUNT]; /* [ranks] of each arena */
    int64_t elements;
    double waited;
    /* Room for one sum: [roots] */
    const float **sources;
    uint8_t *merges;
};

static float *address(const ls_collectives *c, int rank, ls_place place)
{
    return (float *)((uintptr_t)c->bases[place.arena][rank] + (uintptr_t)place.offset);
}

/* What one row of a piece adds: sources, merges, and how many sums wait from former passes. */
typedef struct row_sum {
    int32_t count, depth;
} row_sum;

/* The roots of this call that are added, in the order of the batch's leaves: those of `present`,
 * all if NULL. Former roots say what waits, the next one how far to merge. */
static row_sum find_sources(ls_collectives *c, const ls_step_roots *step, const ls_piece *piece,
                            const uint8_t *present, int64_t first)
{
    row_sum sum = {0};
    int32_t slot = 0, open = -1;
    int64_t total = step->roots[step->count - 1].last + 1;
    ls_tree_range whole = {0, total, total};
    ls_tree_stack stack = {0};
    for (int32_t i = 0; i <= step->count; i++) {
        const ls_tree_root *root = i < step->count ? &step->roots[i] : NULL;
        if (root && root->slot == 0) slot = 0;
        if (root && present && !present[i]) continue;
        if (open >= 0) {
            if (open >= step->begin && sum.count++ == 0) sum.depth = stack.depth;
            int merges =
                ls_tree_push(&stack, whole, step->roots[open].last, root ? root->first : -1);
            if (open >= step->begin) c->merges[sum.count - 1] = (uint8_t)merges;
        }
        if (!root || i >= step->end) break;
        open = i;
        if (i < step->begin) continue;
        c->sources[sum.count] =
            address(c, root->rank, piece->from) + slot++ * piece->from_stride + first;
        if (root->rank != c->comm->rank) c->elements += piece->row_elements;
    }
    return sum;
}

static void sum_piece(ls_collectives *c, const ls_step_roots *step, const ls_piece *piece)
{
    for (int64_t row = 0; row < piece->rows; row++) {
        const uint8_t *present = piece->present ? piece->present + row * step->count : NULL;
        int64_t first = row * piece->row_elements;
        row_sum found = find_sources(c, step, piece, present, first);
        if (found.count == 0) continue;
        ls_ordered_sum sum = {.slots = address(c, c->comm->rank, piece->to) + first,
                              .slot_stride = piece->to_stride,
                              .depth = found.depth,
                              .count = found.count,
                              .sources = c->sources,
                              .merges = c->merges,
                              .elements = piece->row_elements};
        c->device->operations->ordered_sum(c->device, &sum);
    }
}

static bool in_place(const ls_piece *piece)
{
    return piece->from.arena == piece->to.arena && piece->from.offset == piece->to.offset &&
           !piece->source_rows;
}

static void copy_rows(ls_collectives *c, int owner, const ls_piece *piece, int64_t row,
                      int64_t count)
{
    int64_t source = piece->source_rows ? piece->source_rows[row] : row;
    int64_t elements = count * piece->row_elements;
    memcpy(address(c, c->comm->rank, piece->to) + row * piece->row_elements,
           address(c, owner, piece->from) + source * piece->row_elements,
           (size_t)elements * sizeof(float));
    if (owner != c->comm->rank) c->elements += elements;
}

static void copy_piece(ls_collectives *c, int owner, const ls_piece *piece)
{
    if (piece->rows * piece->row_elements == 0) return;
    if (owner == c->comm->rank && in_place(piece)) return;
    if (!piece->wanted && !piece->source_rows) {
        copy_rows(c, owner, piece, 0, piece->rows);
        return;
    }
    for (int64_t row = 0; row < piece->rows; row++)
        if (!piece->wanted || piece->wanted[row]) copy_rows(c, owner, piece, row, 1);
}

static ls_status wait_for_ranks(ls_collectives *c, ls_error *error)
{
    double begin = ls_seconds();
    ls_status status = c->comm->operations->barrier(c->comm, error);
    c->waited = ls_seconds() - begin;
    return status;
}

ls_status ls_collectives_sum(ls_collectives *c, const ls_step_roots *roots, const ls_pieces *pieces,
                             ls_error *error)
{
    int rank = c->comm->rank;
    LS_TRY(wait_for_ranks(c, error));
    for (int32_t i = pieces->begin[rank]; i < pieces->begin[rank + 1]; i++)
        sum_piece(c, roots, &pieces->items[i]);
    return LS_OK;
}

ls_status ls_collectives_gather(ls_collectives *c, const ls_pieces *pieces, ls_error *error)
{
    LS_TRY(wait_for_ranks(c, error));
    for (int step = 1; step <= c->comm->size; step++) {
        /* Each rank starts at its neighbour, so that not all read from one. */
        int owner = (c->comm->rank + step) % c->comm->size;
        for (int32_t i = pieces->begin[owner]; i < pieces->begin[owner + 1]; i++)
            copy_piece(c, owner, &pieces->items[i]);
    }
    return LS_OK;
}

ls_status ls_collectives_finish(ls_collectives *c, ls_error *error)
{
    return c->comm->operations->barrier(c->comm, error);
}

double ls_collectives_waited(const ls_collectives *c)
{
    return c->waited;
}

int64_t ls_collectives_elements(const ls_collectives *c)
{
    return c->elements;
}

ls_status ls_collectives_new(ls_collectives **out, ls_comm *comm, ls_device *device,
                             void *const arenas[LS_PLAN_ARENA_COUNT], ls_error *error)
{
    ls_collectives *c = NULL;
    ls_status status;
    LS_TRY(LS_NEW(c, 1, "collectives", error));
    c->comm = comm;
    c->device = device;
    LS_TRY_GOTO(status, LS_NEW(c->sources, comm->size * MOST_ROOTS_A_RANK, "collectives", error),
                fail);
    LS_TRY_GOTO(status, LS_NEW(c->merges, comm->size * MOST_ROOTS_A_RANK, "collectives", error),
                fail);
    for (int arena = 0; arena < LS_PLAN_ARENA_COUNT; arena++) {
        LS_TRY_GOTO(status, LS_NEW(c->bases[arena], comm->size, "collectives", error), fail);
        LS_TRY_GOTO(status, comm->operations->share(comm, arenas[arena], c->bases[arena], error),
                    fail);
    }
    *out = c;
    return LS_OK;
fail:
    ls_collectives_free(c);
    return status;
}

void ls_collectives_free(ls_collectives *c)
{
    if (!c) return;
    for (int arena = 0; arena < LS_PLAN_ARENA_COUNT; arena++)
        ls_free(c->bases[arena]);
    ls_free(c->sources);
    ls_free(c->merges);
    ls_free(c);
}

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

static float *address(const ls_collectives *c, int rank, const ls_piece *piece)
{
    return (float *)((unsigned char *)c->bases[piece->arena][rank] + piece->offset);
}

/* Which roots are added, in the order of the batch's leaves: those of `present`, all if NULL.
 * Sources point at `first` in the slot. Returns their number. */
static int32_t find_sources(ls_collectives *c, const ls_step_roots *step, const ls_piece *piece,
                            const uint8_t *present, int64_t first)
{
    int32_t count = 0, slot = 0;
    int64_t total = step->roots[step->count - 1].last + 1;
    ls_tree_range whole = {0, total, total};
    ls_tree_stack stack = {0};
    const ls_tree_root *open = NULL;
    for (int32_t i = 0; i < step->count; i++) {
        const ls_tree_root *root = &step->roots[i];
        if (root->slot == 0) slot = 0;
        if (present && !present[i]) continue;
        if (open)
            c->merges[count - 1] = (uint8_t)ls_tree_push(&stack, whole, open->last, root->first);
        c->sources[count++] = address(c, root->rank, piece) + slot++ * piece->slot_stride + first;
        if (root->rank != c->comm->rank) c->elements += piece->row_elements;
        open = root;
    }
    if (open) c->merges[count - 1] = (uint8_t)ls_tree_push(&stack, whole, open->last, -1);
    return count;
}

static void sum_piece(ls_collectives *c, const ls_step_roots *step, const ls_piece *piece)
{
    for (int64_t row = 0; row < piece->rows; row++) {
        const uint8_t *present = piece->present ? piece->present + row * step->count : NULL;
        int64_t first = row * piece->row_elements;
        int32_t count = find_sources(c, step, piece, present, first);
        c->device->operations->ordered_sum(c->device, address(c, c->comm->rank, piece) + first,
                                           c->sources, c->merges, count, piece->row_elements);
    }
}

static void copy_piece(ls_collectives *c, int owner, const ls_piece *piece)
{
    int64_t elements = piece->rows * piece->row_elements;
    if (elements == 0) return;
    memcpy(address(c, c->comm->rank, piece), address(c, owner, piece),
           (size_t)elements * sizeof(float));
    c->elements += elements;
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
    for (int step = 1; step < c->comm->size; step++) {
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

#include "engine/exchange/collectives.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "engine/exchange/collectives_internal.h"

float *ls_collectives_address(const ls_collectives *c, int rank, ls_place place)
{
    return (float *)((uintptr_t)c->bases[place.arena][rank] + (uintptr_t)place.offset);
}

const float *ls_collectives_source(const ls_collectives *c, const ls_step_roots *step,
                                   const ls_piece *piece, const uint8_t *present, int32_t i,
                                   int64_t first)
{
    int32_t slot = step->roots[i].slot;
    if (present) {
        int32_t before = i - slot;
        for (slot = 0; before < i; before++)
            slot += present[before];
    }
    return ls_collectives_address(c, step->roots[i].rank, piece->from) + slot * piece->from_stride +
           first;
}

/* --- one sum -----------------------------------------------------------------------------------
 */

ls_sum_list ls_sum_list_begin(ls_collectives *c, const ls_step_roots *step)
{
    int64_t total = step->roots[step->count - 1].last + 1;
    return (ls_sum_list){.c = c, .whole = {0, total, total}};
}

/* Former roots say what waits, the next one how far to merge. */
static void push_open(ls_sum_list *list, int64_t next)
{
    if (!list->open) return;
    if (list->open_counts && list->count++ == 0) list->depth = list->stack.depth;
    int merges = ls_tree_push(&list->stack, list->whole, list->open->last, next);
    if (list->open_counts) list->c->merges[list->count - 1] = (uint8_t)merges;
}

void ls_sum_list_add(ls_sum_list *list, const ls_tree_root *root, const float *from)
{
    push_open(list, root->first);
    list->open = root;
    list->open_counts = from != NULL;
    if (from) list->c->sources[list->count] = from;
}

void ls_sum_list_run(ls_sum_list *list, int64_t next, float *to, int64_t stride, int64_t elements)
{
    ls_device *device = list->c->device;
    push_open(list, next);
    if (list->count == 0) return;
    ls_ordered_sum sum = {.slots = to,
                          .slot_stride = stride,
                          .depth = list->depth,
                          .count = list->count,
                          .sources = list->c->sources,
                          .merges = list->c->merges,
                          .elements = elements};
    device->operations->ordered_sum(device, &sum);
}

int64_t ls_step_next_leaf(const ls_step_roots *step, const uint8_t *present)
{
    for (int32_t i = step->end; i < step->count; i++)
        if (!present || present[i]) return step->roots[i].first;
    return -1;
}

/* --- within a host -----------------------------------------------------------------------------
 */

static void sum_row(ls_collectives *c, const ls_step_roots *step, const ls_piece *piece,
                    int64_t row)
{
    const uint8_t *present = piece->present ? piece->present + row * step->count : NULL;
    int64_t first = row * piece->row_elements;
    ls_sum_list list = ls_sum_list_begin(c, step);
    for (int32_t i = 0; i < step->end; i++) {
        const ls_tree_root *root = &step->roots[i];
        if (present && !present[i]) continue;
        bool counts = i >= step->begin;
        ls_sum_list_add(&list, root,
                        counts ? ls_collectives_source(c, step, piece, present, i, first) : NULL);
        if (counts && root->rank != c->comm->rank) c->elements += piece->row_elements;
    }
    ls_sum_list_run(&list, ls_step_next_leaf(step, present),
                    ls_collectives_address(c, c->comm->rank, piece->to) + first, piece->to_stride,
                    piece->row_elements);
}

static bool in_place(const ls_piece *piece)
{
    return piece->from.arena == piece->to.arena && piece->from.offset == piece->to.offset &&
           !piece->source_rows;
}

/* Where rank `from` has the elements of a gather: its own pieces where they are, those of an owner
 * on another host, whose agent it is, where they go to. */
typedef struct origin {
    int rank;
    bool agent;
} origin;

static void copy_rows(ls_collectives *c, origin from, const ls_piece *piece, int64_t row,
                      int64_t count)
{
    int64_t elements = count * piece->row_elements;
    int64_t source = piece->source_rows && !from.agent ? piece->source_rows[row] : row;
    const float *source_begin =
        ls_collectives_address(c, from.rank, from.agent ? piece->to : piece->from);
    memcpy(ls_collectives_address(c, c->comm->rank, piece->to) + row * piece->row_elements,
           source_begin + source * piece->row_elements, (size_t)elements * sizeof(float));
    if (from.rank != c->comm->rank) c->elements += elements;
}

static void copy_piece(ls_collectives *c, origin from, const ls_piece *piece)
{
    if (piece->rows * piece->row_elements == 0) return;
    if (from.rank == c->comm->rank && (from.agent || in_place(piece))) return;
    if (!piece->wanted && (from.agent || !piece->source_rows)) {
        copy_rows(c, from, piece, 0, piece->rows);
        return;
    }
    for (int64_t row = 0; row < piece->rows; row++)
        if (!piece->wanted || piece->wanted[row]) copy_rows(c, from, piece, row, 1);
}

/* The pieces of the owners on `host`, out of the memory of those that have them on this one. */
static void copy_host(ls_collectives *c, int host, const ls_pieces *pieces)
{
    const ls_comm *comm = c->comm;
    int first = comm->host_begin[host], count = comm->host_begin[host + 1] - first;
    for (int step = 1; step <= count; step++) {
        /* Each rank starts at its neighbour, so that not all read from one. */
        int owner = first + (comm->rank + step) % count;
        origin from = {owner, host != comm->host};
        if (from.agent) from.rank = ls_between_hosts_agent(comm, comm->host, owner);
        for (int32_t i = pieces->begin[owner]; i < pieces->begin[owner + 1]; i++)
            copy_piece(c, from, &pieces->items[i]);
    }
}

/* --- the calls ---------------------------------------------------------------------------------
 */

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
    if (c->between) return ls_between_hosts_sum(c, roots, pieces, error);
    for (int32_t i = pieces->begin[rank]; i < pieces->begin[rank + 1]; i++)
        for (int64_t row = 0; row < pieces->items[i].rows; row++)
            sum_row(c, roots, &pieces->items[i], row);
    return LS_OK;
}

/* What an agent has received is read by its host until all have copied it. */
static bool fills_transient(const ls_comm *comm, const ls_pieces *pieces)
{
    for (int32_t i = 0; i < pieces->begin[comm->size]; i++)
        if (ls_plan_is_transient(pieces->items[i].to.arena)) return true;
    return false;
}

ls_status ls_collectives_gather(ls_collectives *c, const ls_pieces *pieces, ls_error *error)
{
    const ls_comm *comm = c->comm;
    LS_TRY(wait_for_ranks(c, error));
    if (c->between) LS_TRY(ls_between_hosts_gather(c, pieces, error));
    copy_host(c, comm->host, pieces);
    if (!c->between) return LS_OK;
    LS_TRY(comm->operations->barrier(c->comm, error));
    for (int host = 0; host < comm->hosts; host++)
        if (host != comm->host) copy_host(c, host, pieces);
    return fills_transient(comm, pieces) ? comm->operations->barrier(c->comm, error) : LS_OK;
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
    int most = comm->size * LS_MAX_SLOTS;
    LS_TRY(LS_NEW(c, 1, "collectives", error));
    c->comm = comm;
    c->device = device;
    LS_TRY_GOTO(status, LS_NEW(c->sources, most, "collectives", error), fail);
    LS_TRY_GOTO(status, LS_NEW(c->merges, most, "collectives", error), fail);
    for (int arena = 0; arena < LS_PLAN_ARENA_COUNT; arena++) {
        LS_TRY_GOTO(status, LS_NEW(c->bases[arena], comm->size, "collectives", error), fail);
        LS_TRY_GOTO(status, comm->operations->share(comm, arenas[arena], c->bases[arena], error),
                    fail);
    }
    if (comm->hosts > 1)
        LS_TRY_GOTO(status,
                    ls_between_hosts_new(&c->between, comm, arenas[LS_PLAN_MESSAGES], error), fail);
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
    ls_between_hosts_free(c->between);
    ls_free(c->sources);
    ls_free(c->merges);
    ls_free(c);
}

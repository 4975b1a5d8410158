#include "engine/collectives.h"

#include <string.h>

#include "base/alloc.h"
#include "engine/collectives_internal.h"

float *ls_collectives_address(const ls_collectives *c, int rank, const ls_piece *piece)
{
    return (float *)((unsigned char *)c->bases[piece->arena][rank] + piece->offset);
}

int32_t ls_collectives_slot(const ls_step_roots *step, const uint8_t *present, int32_t i)
{
    if (!present) return step->roots[i].slot;
    int32_t slot = 0;
    for (int32_t before = i - step->roots[i].slot; before < i; before++)
        slot += present[before];
    return slot;
}

ls_sum_list ls_sum_list_begin(ls_collectives *c, const ls_step_roots *step)
{
    int64_t total = step->roots[step->count - 1].last + 1;
    return (ls_sum_list){.c = c, .whole = {0, total, total}};
}

void ls_sum_list_add(ls_sum_list *list, const ls_tree_root *root, const float *from)
{
    if (list->open)
        list->c->merges[list->count - 1] =
            (uint8_t)ls_tree_push(&list->stack, list->whole, list->open->last, root->first);
    list->c->sources[list->count++] = from;
    list->open = root;
}

void ls_sum_list_run(ls_sum_list *list, float *to, int64_t elements)
{
    ls_device *device = list->c->device;
    if (list->open)
        list->c->merges[list->count - 1] =
            (uint8_t)ls_tree_push(&list->stack, list->whole, list->open->last, -1);
    device->operations->ordered_sum(device, to, list->c->sources, list->c->merges, list->count,
                                    elements);
}

static void sum_piece(ls_collectives *c, const ls_step_roots *step, const ls_piece *piece)
{
    for (int64_t row = 0; row < piece->rows; row++) {
        const uint8_t *present = piece->present ? piece->present + row * step->count : NULL;
        int64_t first = row * piece->row_elements;
        ls_sum_list list = ls_sum_list_begin(c, step);
        for (int32_t i = 0; i < step->count; i++) {
            const ls_tree_root *root = &step->roots[i];
            if (present && !present[i]) continue;
            int32_t slot = ls_collectives_slot(step, present, i);
            ls_sum_list_add(&list, root,
                            ls_collectives_address(c, root->rank, piece) +
                                slot * piece->slot_stride + first);
            if (root->rank != c->comm->rank) c->elements += piece->row_elements;
        }
        ls_sum_list_run(&list, ls_collectives_address(c, c->comm->rank, piece) + first,
                        piece->row_elements);
    }
}

static void copy_piece(ls_collectives *c, int from, const ls_piece *piece)
{
    int64_t elements = piece->rows * piece->row_elements;
    if (elements == 0 || from == c->comm->rank) return;
    memcpy(ls_collectives_address(c, c->comm->rank, piece), ls_collectives_address(c, from, piece),
           (size_t)elements * sizeof(float));
    c->elements += elements;
}

ls_status ls_collectives_sum(ls_collectives *c, const ls_step_roots *roots, const ls_pieces *pieces,
                             ls_error *error)
{
    int rank = c->comm->rank;
    LS_TRY(c->comm->operations->barrier(c->comm, error));
    if (c->between) return ls_between_hosts_sum(c, roots, pieces, error);
    for (int32_t i = pieces->begin[rank]; i < pieces->begin[rank + 1]; i++)
        sum_piece(c, roots, &pieces->items[i]);
    return LS_OK;
}

/* The pieces of the owners on `host`, out of the memory of those that have them on this one. */
static void copy_host(ls_collectives *c, int host, const ls_pieces *pieces)
{
    const ls_comm *comm = c->comm;
    int first = comm->host_begin[host], count = comm->host_begin[host + 1] - first;
    for (int step = 1; step <= count; step++) {
        /* Each rank starts at its neighbour, so that not all read from one. */
        int owner = first + (comm->rank + step) % count;
        int from = host == comm->host ? owner : ls_between_hosts_agent(comm, comm->host, owner);
        for (int32_t i = pieces->begin[owner]; i < pieces->begin[owner + 1]; i++)
            copy_piece(c, from, &pieces->items[i]);
    }
}

ls_status ls_collectives_gather(ls_collectives *c, const ls_pieces *pieces, ls_error *error)
{
    const ls_comm *comm = c->comm;
    LS_TRY(comm->operations->barrier(c->comm, error));
    if (c->between) LS_TRY(ls_between_hosts_gather(c, pieces, error));
    copy_host(c, comm->host, pieces);
    if (!c->between) return LS_OK;
    LS_TRY(comm->operations->barrier(c->comm, error));
    for (int host = 0; host < comm->hosts; host++)
        if (host != comm->host) copy_host(c, host, pieces);
    return LS_OK;
}

ls_status ls_collectives_finish(ls_collectives *c, ls_error *error)
{
    return c->comm->operations->barrier(c->comm, error);
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
        LS_TRY_GOTO(status, ls_between_hosts_new(&c->between, comm, arenas[LS_PLAN_STAGING], error),
                    fail);
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

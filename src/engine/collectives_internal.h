/* What the two ways of collectives share: within a host (collectives.c) and between hosts
 * (between_hosts.c). */
#ifndef LS_ENGINE_COLLECTIVES_INTERNAL_H
#define LS_ENGINE_COLLECTIVES_INTERNAL_H

#include "engine/collectives.h"

typedef struct ls_between_hosts ls_between_hosts;

struct ls_collectives {
    ls_comm *comm;
    ls_device *device;
    void **bases[LS_PLAN_ARENA_COUNT]; /* [ranks] of each arena, NULL out of reach */
    int64_t elements;
    ls_between_hosts *between; /* NULL: one host */
    /* Room for one sum: [ranks * LS_MAX_SLOTS] */
    const float **sources;
    uint8_t *merges;
};

/* Where a rank in reach has the piece's first element in slot 0. */
float *ls_collectives_address(const ls_collectives *c, int rank, const ls_piece *piece);
/* The slot in which root i of the step lies in its rank's sums of a row: roots without it are left
 * out. `present` NULL: none is. */
int32_t ls_collectives_slot(const ls_step_roots *step, const uint8_t *present, int32_t i);

/* A sum that is put together source by source, in the order of the leaves. */
typedef struct ls_sum_list {
    ls_collectives *c;
    ls_tree_range whole;
    ls_tree_stack stack;
    const ls_tree_root *open;
    int32_t count;
} ls_sum_list;
ls_sum_list ls_sum_list_begin(ls_collectives *c, const ls_step_roots *step);
void ls_sum_list_add(ls_sum_list *list, const ls_tree_root *root, const float *from);
/* Add all sources in the tree's order; they must make one sum. */
void ls_sum_list_run(ls_sum_list *list, float *to, int64_t elements);

/* --- between_hosts.c -------------------------------------------------------------------------- */

/* `staging`: room of ls_collectives_staging_bytes. */
ls_status ls_between_hosts_new(ls_between_hosts **out, const ls_comm *comm, void *staging,
                               ls_error *error) LS_MUST_CHECK;
void ls_between_hosts_free(ls_between_hosts *between); /* NULL is allowed */
/* The rank that works on a host for an owner on another one: it adds what its host has, and gets
 * the result. */
int ls_between_hosts_agent(const ls_comm *comm, int host, int owner);
ls_status ls_between_hosts_sum(ls_collectives *c, const ls_step_roots *step,
                               const ls_pieces *pieces, ls_error *error) LS_MUST_CHECK;
/* From each owner to its agents. */
ls_status ls_between_hosts_gather(ls_collectives *c, const ls_pieces *pieces,
                                  ls_error *error) LS_MUST_CHECK;

#endif

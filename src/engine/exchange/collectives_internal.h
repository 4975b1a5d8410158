/* What the files of the collectives share: within a host (collectives.c), between hosts
 * (between_hosts.c), and how a stream between hosts is cut into chunks (chunks.c), who
 * works for whom (agents.c). */
#ifndef LS_ENGINE_COLLECTIVES_INTERNAL_H
#define LS_ENGINE_COLLECTIVES_INTERNAL_H

#include "engine/exchange/collectives.h"

typedef struct ls_between_hosts ls_between_hosts;

struct ls_collectives {
    ls_comm *comm;
    ls_device *device;
    void **bases[LS_PLAN_ARENA_COUNT]; /* [ranks] of each arena, NULL out of reach */
    int64_t elements;
    double waited;
    ls_between_hosts *between; /* NULL: one host */
    /* Room for one sum: [ranks * LS_MAX_SLOTS] */
    const float **sources;
    uint8_t *merges;
};

/* Where a rank in reach has what lies at `place`. */
float *ls_collectives_address(const ls_collectives *c, int rank, ls_place place);
/* Where the sums of root i of the step lie, in reach: of a row that begins `first` elements behind
 * the piece's first. A rank's roots that do not have the row are left out of its slots. */
const float *ls_collectives_source(const ls_collectives *c, const ls_step_roots *step,
                                   const ls_piece *piece, const uint8_t *present, int32_t i,
                                   int64_t first);

/* A sum that is put together source by source, in the order of the leaves. */
typedef struct ls_sum_list {
    ls_collectives *c;
    ls_tree_range whole;
    ls_tree_stack stack;
    const ls_tree_root *open; /* the last one, not pushed yet */
    bool open_counts;         /* it is one of this call */
    int32_t count, depth;     /* sources; sums that waited before the first of them */
} ls_sum_list;
ls_sum_list ls_sum_list_begin(ls_collectives *c, const ls_step_roots *step);
/* `from` NULL: of a former pass, whose sum waits where it is. */
void ls_sum_list_add(ls_sum_list *list, const ls_tree_root *root, const float *from);
/* Add up all sources in the tree's order, to what waits in the slots at `to`; `next`: first leaf of
 * what a later pass adds, -1: none. */
void ls_sum_list_run(ls_sum_list *list, int64_t next, float *to, int64_t stride, int64_t elements);
/* First leaf of the row's first root behind the call's, -1 if there is none. */
int64_t ls_step_next_leaf(const ls_step_roots *step, const uint8_t *present);

/* --- chunks.c --------------------------------------------------------------------------------- */

/* 60 KiB: Open MPI sends that at once over TCP. From 64 KiB on it asks the receiver first, and the
 * answer waits in the queue behind all that is on its way: half the network's rate. */
enum { LS_CHUNK_ELEMENTS = 15 << 10, LS_CHUNK_BYTES = LS_CHUNK_ELEMENTS * (int)sizeof(float) };

/* A call, as its streams are cut by it. */
typedef struct ls_cut {
    const ls_comm *comm;
    const ls_pieces *pieces;
    const ls_step_roots *step; /* NULL: a gather */
    int32_t joined_count;      /* what hosts join of the call's roots */
    ls_tree_root *joined;      /* [ranks * LS_MAX_SLOTS] */
    int32_t *below;            /* [the same] of root step->begin + i */
} ls_cut;

/* Where a stream stands in the pieces of its owner, a rank of `host`. */
typedef struct ls_cursor {
    int host;
    int32_t item, end;
    int64_t row, first; /* of the piece; element of the row */
} ls_cursor;

/* A run of elements that travels in one chunk: of one row, or of a whole piece without rows. */
typedef struct ls_block {
    const ls_piece *piece;
    const uint8_t *present;       /* of a sum's row; NULL: every root has it */
    int64_t row, first, elements; /* `first` of the row */
} ls_block;

ls_cursor ls_cursor_of(const ls_cut *cut, int host, int owner);
bool ls_cursor_ended(const ls_cut *cut, ls_cursor *at);
/* False: the chunk is full (`room` is what it has left), or the stream is at its end. */
bool ls_cursor_next(const ls_cut *cut, ls_cursor *at, int64_t *room, ls_block *block);
void ls_cursor_skip_chunk(const ls_cut *cut, ls_cursor *at);

/* --- agents.c --------------------------------------------------------------------------------- */

/* The rank that works on a host for an owner on another one: it adds what its host has, and gets
 * the result. */
int ls_between_hosts_agent(const ls_comm *comm, int host, int owner);
/* Owners on other hosts that this rank is the agent of. */
int ls_between_hosts_streams(const ls_comm *comm);
/* Chunks that a stream has room for: a rank has sixteen on their way in each direction, shared
 * among the hosts that it talks to, and at least two with each. */
int ls_between_hosts_depth(int hosts);
/* Room for the chunks of one lane. */
int64_t ls_between_hosts_lane_bytes(const int *host_begin, int hosts);

/* --- between_hosts.c -------------------------------------------------------------------------- */

/* `room` of ls_collectives_message_bytes, the same for both lanes. */
ls_status ls_between_hosts_new(ls_between_hosts **out, const ls_comm *comm, void *room,
                               ls_error *error) LS_MUST_CHECK;
void ls_between_hosts_free(ls_between_hosts *between); /* NULL is allowed */
ls_status ls_between_hosts_sum(ls_collectives *c, const ls_step_roots *step,
                               const ls_pieces *pieces, ls_error *error) LS_MUST_CHECK;
/* From each owner to its agents. */
ls_status ls_between_hosts_gather(ls_collectives *c, const ls_pieces *pieces,
                                  ls_error *error) LS_MUST_CHECK;

#endif

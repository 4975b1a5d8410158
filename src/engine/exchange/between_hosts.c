/* Collectives between hosts: first inside each host, then between them, along the same tree.
 *
 * Each owner has an agent on every other host. For a sum the agent adds what its host's ranks have
 * of the owner's elements, as far as nodes of the tree lie within the host, and sends these sums;
 * the owner adds them to its own host's roots in the order of leaves. For a gather the owner sends
 * its elements to its agents, and the ranks of a host copy from the agent. So an element crosses
 * the network once a host and direction, whatever the number of ranks, and every rank drives its
 * own share.
 *
 * Elements travel in chunks. Each stream has room for some: those that follow are on their way, or
 * their place is announced, while one is filled or added. What is sent runs ahead of what is
 * received by as many, so that neither direction waits for the other one's latency. */
#include <string.h>

#include "base/alloc.h"
#include "engine/exchange/collectives_internal.h"

/* The pieces of one owner that this rank is the agent of. */
typedef struct stream {
    int owner, owner_host;
    ls_cursor at, ahead;
    float *buffers; /* [depth][LS_CHUNK_ELEMENTS], like those below */
} stream;

/* Another host, as this rank sees it as an owner: what its agent there sends. */
typedef struct other_host {
    int host, agent;
    float *buffers;
    int64_t used; /* elements of the chunk that are through */
} other_host;

struct ls_between_hosts {
    int stream_count, other_count;
    int depth; /* chunks of a stream */
    stream *streams;
    other_host *others;
    ls_cursor own, ahead; /* in this rank's own pieces */
    ls_cut cut;           /* of the call that runs */
};

/* --- requests ----------------------------------------------------------------------------------
 */

static int stream_request(const ls_between_hosts *b, int index, int64_t chunk)
{
    return b->depth * index + (int)(chunk % b->depth);
}

static int other_request(const ls_between_hosts *b, int index, int64_t chunk)
{
    return stream_request(b, b->stream_count + index, chunk);
}

/* Everything that was sent may be overwritten. */
static ls_status wait_all(const ls_between_hosts *b, ls_comm *comm, ls_error *error)
{
    for (int request = 0; request < b->depth * (b->stream_count + b->other_count); request++)
        LS_TRY(comm->operations->wait(comm, request, error));
    return LS_OK;
}

static float *chunk_room(const ls_between_hosts *b, float *buffers, int64_t chunk)
{
    return buffers + chunk % b->depth * LS_CHUNK_ELEMENTS;
}

/* Room for what all agents send of this chunk of the rank's own elements, unless there is none. */
static ls_status receive_sums(ls_collectives *c, int64_t chunk, ls_error *error)
{
    ls_between_hosts *b = c->between;
    if (ls_cursor_ended(&b->cut, &b->ahead)) return LS_OK;
    ls_cursor_skip_chunk(&b->cut, &b->ahead);
    for (int i = 0; i < b->other_count; i++)
        LS_TRY(c->comm->operations->receive(c->comm, other_request(b, i, chunk), b->others[i].agent,
                                            chunk_room(b, b->others[i].buffers, chunk),
                                            LS_CHUNK_BYTES, error));
    return LS_OK;
}

/* The same for what an owner sends. */
static ls_status receive_elements(ls_collectives *c, int index, int64_t chunk, ls_error *error)
{
    ls_between_hosts *b = c->between;
    stream *s = &b->streams[index];
    if (ls_cursor_ended(&b->cut, &s->ahead)) return LS_OK;
    ls_cursor_skip_chunk(&b->cut, &s->ahead);
    return c->comm->operations->receive(c->comm, stream_request(b, index, chunk), s->owner,
                                        chunk_room(b, s->buffers, chunk), LS_CHUNK_BYTES, error);
}

static void begin_call(ls_collectives *c, const ls_step_roots *step, const ls_pieces *pieces)
{
    ls_between_hosts *b = c->between;
    ls_cut *cut = &b->cut;
    cut->step = step;
    cut->pieces = pieces;
    b->own = b->ahead = ls_cursor_of(cut, c->comm->host, c->comm->rank);
    for (int i = 0; i < b->stream_count; i++) {
        stream *s = &b->streams[i];
        s->at = s->ahead = ls_cursor_of(cut, s->owner_host, s->owner);
    }
    if (!step) return;
    int64_t total = step->roots[step->count - 1].last + 1;
    cut->joined_count =
        ls_tree_join_roots(step->roots + step->begin, step->end - step->begin, total,
                           c->comm->host_begin, c->comm->hosts, cut->joined, cut->below);
}

/* --- sums --------------------------------------------------------------------------------------
 */

static const float *near_source(const ls_collectives *c, int32_t root, const ls_block *what)
{
    return ls_collectives_source(c, c->between->cut.step, what->piece, what->present, root,
                                 what->row * what->piece->row_elements + what->first);
}

/* Add this host's roots as far as they join, each result behind the other. */
static int64_t join_near(ls_collectives *c, const ls_block *what, float *to)
{
    const ls_cut *cut = &c->between->cut;
    const ls_step_roots *step = cut->step;
    int64_t used = 0;
    for (int32_t i = step->begin; i < step->end;) {
        int32_t joined = cut->below[i - step->begin];
        ls_sum_list list = ls_sum_list_begin(c, step);
        bool here = cut->joined[joined].rank == c->comm->host, any = false;
        for (; i < step->end && cut->below[i - step->begin] == joined; i++) {
            if (!here || (what->present && !what->present[i])) continue;
            ls_sum_list_add(&list, &step->roots[i], near_source(c, i, what));
            if (step->roots[i].rank != c->comm->rank) c->elements += what->elements;
            any = true;
        }
        if (!any) continue;
        ls_sum_list_run(&list, -1, to + used, 0, what->elements);
        used += what->elements;
    }
    return used;
}

static ls_status send_sums(ls_collectives *c, int64_t chunk, ls_error *error)
{
    ls_between_hosts *b = c->between;
    for (int i = 0; i < b->stream_count; i++) {
        stream *s = &b->streams[i];
        float *to = chunk_room(b, s->buffers, chunk);
        int request = stream_request(b, i, chunk);
        int64_t room = LS_CHUNK_ELEMENTS, used = 0;
        ls_block what;
        if (ls_cursor_ended(&b->cut, &s->at)) continue;
        LS_TRY(c->comm->operations->wait(c->comm, request, error));
        while (ls_cursor_next(&b->cut, &s->at, &room, &what))
            used += join_near(c, &what, to + used);
        LS_TRY(c->comm->operations->send(c->comm, request, s->owner, to,
                                         used * (int64_t)sizeof(float), error));
    }
    return LS_OK;
}

/* One root of the call: of this host as it lies there, of another host the sum that it is in, once.
 */
static void add_root(ls_collectives *c, ls_sum_list *list, const ls_block *what, int32_t i,
                     int32_t *last, int64_t chunk)
{
    ls_between_hosts *b = c->between;
    int own = c->comm->host;
    int32_t joined = b->cut.below[i - b->cut.step->begin];
    const ls_tree_root *sum = &b->cut.joined[joined], *root = &b->cut.step->roots[i];
    if (sum->rank == own) {
        ls_sum_list_add(list, root, near_source(c, i, what));
        if (root->rank != c->comm->rank) c->elements += what->elements;
    } else if (joined != *last) {
        other_host *other = &b->others[sum->rank - (sum->rank > own)];
        ls_sum_list_add(list, sum, chunk_room(b, other->buffers, chunk) + other->used);
        other->used += what->elements;
        c->elements += what->elements;
    }
    *last = joined;
}

static void sum_block(ls_collectives *c, const ls_block *what, int64_t chunk)
{
    const ls_step_roots *step = c->between->cut.step;
    const ls_piece *piece = what->piece;
    ls_sum_list list = ls_sum_list_begin(c, step);
    int32_t last = -1;
    for (int32_t i = 0; i < step->end; i++) {
        if (what->present && !what->present[i]) continue;
        if (i < step->begin)
            ls_sum_list_add(&list, &step->roots[i], NULL);
        else
            add_root(c, &list, what, i, &last, chunk);
    }
    ls_sum_list_run(&list, ls_step_next_leaf(step, what->present),
                    ls_collectives_address(c, c->comm->rank, piece->to) +
                        what->row * piece->row_elements + what->first,
                    piece->to_stride, what->elements);
}

static ls_status sum_chunk(ls_collectives *c, int64_t chunk, ls_error *error)
{
    ls_between_hosts *b = c->between;
    int64_t room = LS_CHUNK_ELEMENTS;
    ls_block what;
    for (int i = 0; i < b->other_count; i++) {
        LS_TRY(c->comm->operations->wait(c->comm, other_request(b, i, chunk), error));
        b->others[i].used = 0;
    }
    while (ls_cursor_next(&b->cut, &b->own, &room, &what))
        sum_block(c, &what, chunk);
    return receive_sums(c, chunk + b->depth, error);
}

static bool streams_ended(ls_between_hosts *b)
{
    for (int i = 0; i < b->stream_count; i++)
        if (!ls_cursor_ended(&b->cut, &b->streams[i].at)) return false;
    return true;
}

ls_status ls_between_hosts_sum(ls_collectives *c, const ls_step_roots *step,
                               const ls_pieces *pieces, ls_error *error)
{
    ls_between_hosts *b = c->between;
    begin_call(c, step, pieces);
    for (int64_t chunk = 0; chunk < b->depth; chunk++)
        LS_TRY(receive_sums(c, chunk, error));
    for (int64_t chunk = 0; chunk < b->depth; chunk++)
        LS_TRY(send_sums(c, chunk, error));
    for (int64_t chunk = 0;; chunk++) {
        bool own = !ls_cursor_ended(&b->cut, &b->own);
        if (!own && streams_ended(b)) break;
        if (own) LS_TRY(sum_chunk(c, chunk, error));
        LS_TRY(send_sums(c, chunk + b->depth, error));
    }
    return wait_all(b, c->comm, error);
}

/* --- gathers -----------------------------------------------------------------------------------
 */

static const float *owned_elements(const ls_collectives *c, const ls_block *what)
{
    const ls_piece *piece = what->piece;
    int64_t row = piece->source_rows ? piece->source_rows[what->row] : what->row;
    return ls_collectives_address(c, c->comm->rank, piece->from) + row * piece->row_elements +
           what->first;
}

static ls_status send_elements(ls_collectives *c, int64_t chunk, ls_error *error)
{
    ls_between_hosts *b = c->between;
    int64_t room = LS_CHUNK_ELEMENTS, used = 0;
    float *to = chunk_room(b, b->others[0].buffers, chunk);
    ls_block what;
    if (ls_cursor_ended(&b->cut, &b->own)) return LS_OK;
    for (int i = 0; i < b->other_count; i++)
        LS_TRY(c->comm->operations->wait(c->comm, other_request(b, i, chunk), error));
    while (ls_cursor_next(&b->cut, &b->own, &room, &what)) {
        memcpy(to + used, owned_elements(c, &what), (size_t)what.elements * sizeof(float));
        used += what.elements;
    }
    for (int i = 0; i < b->other_count; i++)
        LS_TRY(c->comm->operations->send(c->comm, other_request(b, i, chunk), b->others[i].agent,
                                         to, used * (int64_t)sizeof(float), error));
    return LS_OK;
}

static ls_status take_elements(ls_collectives *c, int index, int64_t chunk, ls_error *error)
{
    ls_between_hosts *b = c->between;
    stream *s = &b->streams[index];
    const float *from = chunk_room(b, s->buffers, chunk);
    int64_t room = LS_CHUNK_ELEMENTS;
    ls_block what;
    LS_TRY(c->comm->operations->wait(c->comm, stream_request(b, index, chunk), error));
    while (ls_cursor_next(&b->cut, &s->at, &room, &what)) {
        float *to = ls_collectives_address(c, c->comm->rank, what.piece->to) +
                    what.row * what.piece->row_elements + what.first;
        memcpy(to, from, (size_t)what.elements * sizeof(float));
        from += what.elements;
        c->elements += what.elements;
    }
    return receive_elements(c, index, chunk + b->depth, error);
}

ls_status ls_between_hosts_gather(ls_collectives *c, const ls_pieces *pieces, ls_error *error)
{
    ls_between_hosts *b = c->between;
    begin_call(c, NULL, pieces);
    for (int64_t chunk = 0; chunk < b->depth; chunk++)
        for (int i = 0; i < b->stream_count; i++)
            LS_TRY(receive_elements(c, i, chunk, error));
    for (int64_t chunk = 0; chunk < b->depth; chunk++)
        LS_TRY(send_elements(c, chunk, error));
    for (int64_t chunk = 0;; chunk++) {
        if (streams_ended(b) && ls_cursor_ended(&b->cut, &b->own)) break;
        for (int i = 0; i < b->stream_count; i++)
            if (!ls_cursor_ended(&b->cut, &b->streams[i].at))
                LS_TRY(take_elements(c, i, chunk, error));
        LS_TRY(send_elements(c, chunk + b->depth, error));
    }
    return wait_all(b, c->comm, error);
}

/* --- making it ---------------------------------------------------------------------------------
 */

static void lay_out(ls_between_hosts *b, const ls_comm *comm, float *room)
{
    for (int host = 0; host < comm->hosts; host++) {
        if (host == comm->host) continue;
        b->others[b->other_count++] =
            (other_host){.host = host, .agent = ls_between_hosts_agent(comm, host, comm->rank)};
        for (int owner = comm->host_begin[host]; owner < comm->host_begin[host + 1]; owner++)
            if (ls_between_hosts_agent(comm, comm->host, owner) == comm->rank)
                b->streams[b->stream_count++] = (stream){.owner = owner, .owner_host = host};
    }
    int64_t elements = b->depth * (int64_t)LS_CHUNK_ELEMENTS;
    for (int i = 0; i < b->stream_count; i++, room += elements)
        b->streams[i].buffers = room;
    for (int i = 0; i < b->other_count; i++, room += elements)
        b->others[i].buffers = room;
}

ls_status ls_between_hosts_new(ls_between_hosts **out, const ls_comm *comm, void *room,
                               ls_error *error)
{
    ls_between_hosts *b = NULL;
    ls_status status;
    int streams = ls_between_hosts_streams(comm);
    int others = comm->hosts - 1, depth = ls_between_hosts_depth(comm->hosts);
    int most = comm->size * LS_MAX_SLOTS;
    if (depth * (streams + others) > LS_COMM_REQUESTS)
        return ls_fail(error, LS_UNSUPPORTED,
                       "%d hosts are more than Lockstep connects: a rank has %d streams, at most "
                       "%d are built",
                       comm->hosts, streams + others, LS_COMM_REQUESTS / depth);
    LS_TRY(LS_NEW(b, 1, "exchange between hosts", error));
    int64_t lane = ls_between_hosts_lane_bytes(comm->host_begin, comm->hosts);
    b->cut.comm = comm;
    b->depth = depth;
    LS_TRY_GOTO(status, LS_NEW(b->streams, streams + 1, "exchange between hosts", error), fail);
    LS_TRY_GOTO(status, LS_NEW(b->others, others, "exchange between hosts", error), fail);
    LS_TRY_GOTO(status, LS_NEW(b->cut.joined, most, "exchange between hosts", error), fail);
    LS_TRY_GOTO(status, LS_NEW(b->cut.below, most, "exchange between hosts", error), fail);
    lay_out(b, comm, (float *)((uintptr_t)room + (uintptr_t)(comm->lane * lane)));
    *out = b;
    return LS_OK;
fail:
    ls_between_hosts_free(b);
    return status;
}

void ls_between_hosts_free(ls_between_hosts *b)
{
    if (!b) return;
    ls_free(b->streams);
    ls_free(b->others);
    ls_free(b->cut.joined);
    ls_free(b->cut.below);
    ls_free(b);
}

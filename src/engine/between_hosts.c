/* Collectives between hosts: first inside each host, then between them, along the same tree.
 *
 * Each owner has an agent on every other host. For a sum the agent adds what its host's ranks have
 * of the owner's elements, as far as nodes of the tree lie within the host, and sends these host
 * roots; the owner adds them to its own host's roots in the order of leaves. For a gather the owner
 * sends its elements to its agents, and the ranks of a host copy from the agent. So a parameter
 * crosses the network once a host and direction, whatever the number of ranks, and every rank
 * drives its own share.
 *
 * Elements travel in chunks, two for each stream: one is filled or added while the other is on its
 * way. Both ends cut a stream into the same chunks, from what all ranks know. */
#include <string.h>

#include "base/alloc.h"
#include "engine/collectives_internal.h"

enum { CHUNK_ELEMENTS = 64 << 10 };
enum { CHUNK_BYTES = CHUNK_ELEMENTS * (int)sizeof(float) };

/* Where a stream stands in its owner's pieces. */
typedef struct cursor {
    int32_t item, end;
    int64_t row, first; /* of the piece; element of the row */
} cursor;

/* A run of elements of one row, in one chunk. */
typedef struct block {
    const ls_piece *piece;
    const uint8_t *present;  /* of the row; NULL: every root has it */
    int64_t first, elements; /* from the piece's first element */
} block;

/* The pieces of one owner that this rank is the agent of. */
typedef struct stream {
    int owner, owner_host;
    cursor at, ahead;
    float *buffers[2];
} stream;

struct ls_between_hosts {
    int stream_count, other_count;
    stream *streams;
    cursor own, ahead;
    /* For each of the other hosts: where its messages for this owner lie. */
    int *others;
    float *(*buffers)[2];
    int64_t *used; /* elements of the chunk that are through */
    /* The call that runs: a sum's roots (NULL in a gather), and what hosts can join of them. */
    const ls_step_roots *step;
    const ls_pieces *pieces;
    int32_t joined_count;
    ls_tree_root *joined; /* [most roots] */
    int32_t *below;
};

/* --- who is whose agent ----------------------------------------------------------------------- */

static int host_of(const ls_comm *comm, int rank)
{
    int host = 0;
    while (rank >= comm->host_begin[host + 1])
        host++;
    return host;
}

static int agent_of(const int *host_begin, int host, int owner, int owner_host)
{
    int ranks = host_begin[host + 1] - host_begin[host];
    return host_begin[host] + (owner - host_begin[owner_host]) % ranks;
}

int ls_between_hosts_agent(const ls_comm *comm, int host, int owner)
{
    return agent_of(comm->host_begin, host, owner, host_of(comm, owner));
}

/* Owners on other hosts that `rank` of `host` is the agent of. */
static int streams_of(const int *host_begin, int hosts, int host, int rank)
{
    int count = 0;
    for (int other = 0; other < hosts; other++)
        for (int owner = host_begin[other]; owner < host_begin[other + 1] && other != host; owner++)
            count += agent_of(host_begin, host, owner, other) == rank;
    return count;
}

int64_t ls_collectives_staging_bytes(const int *host_begin, int hosts)
{
    int most = 0;
    if (hosts == 1) return 0;
    for (int host = 0; host < hosts; host++)
        for (int rank = host_begin[host]; rank < host_begin[host + 1]; rank++) {
            int streams = streams_of(host_begin, hosts, host, rank);
            if (streams > most) most = streams;
        }
    return (int64_t)(most + hosts - 1) * 2 * CHUNK_BYTES;
}

/* --- cutting streams into chunks ---------------------------------------------------------------
 */

/* Sums of the row that `host` sends. */
static int32_t host_sums(const ls_between_hosts *b, int host, const uint8_t *present)
{
    int32_t sums = 0, last = -1;
    for (int32_t i = 0; i < b->step->count; i++) {
        int32_t joined = b->below[i];
        if (joined == last || b->joined[joined].rank != host || (present && !present[i])) continue;
        last = joined;
        sums++;
    }
    return sums;
}

/* The most that any host but the owner's sends: it decides how much of a row fits. */
static int32_t most_sums(const ls_between_hosts *b, const ls_comm *comm, int owner_host,
                         const uint8_t *present)
{
    int32_t most = 0;
    if (!b->step) return 1;
    for (int host = 0; host < comm->hosts; host++) {
        int32_t sums = host == owner_host ? 0 : host_sums(b, host, present);
        if (sums > most) most = sums;
    }
    return most;
}

/* A gather takes a piece as one row. */
static int64_t rows_of(const ls_between_hosts *b, const ls_piece *piece)
{
    return b->step ? piece->rows : piece->rows > 0;
}

static int64_t row_elements_of(const ls_between_hosts *b, const ls_piece *piece)
{
    return b->step ? piece->row_elements : piece->rows * piece->row_elements;
}

static bool ended(const ls_between_hosts *b, cursor *at)
{
    while (at->item < at->end) {
        const ls_piece *piece = &b->pieces->items[at->item];
        if (at->row < rows_of(b, piece) && row_elements_of(b, piece) > 0) return false;
        *at = (cursor){.item = at->item + 1, .end = at->end};
    }
    return true;
}

/* False: the chunk is full (`room` is what it has left), or the stream is at its end. */
static bool next_block(const ls_between_hosts *b, const ls_comm *comm, int owner_host, cursor *at,
                       int64_t *room, block *out)
{
    if (ended(b, at)) return false;
    const ls_piece *piece = &b->pieces->items[at->item];
    int64_t row_elements = row_elements_of(b, piece);
    *out = (block){.piece = piece,
                   .first = at->row * row_elements + at->first,
                   .elements = row_elements - at->first};
    if (b->step && piece->present) out->present = piece->present + at->row * b->step->count;
    int32_t sums = most_sums(b, comm, owner_host, out->present);
    if (sums > 0) {
        if (*room < sums) return false;
        if (out->elements > *room / sums) out->elements = *room / sums;
        *room -= out->elements * sums;
    }
    at->first += out->elements;
    if (at->first == row_elements) {
        at->first = 0;
        at->row++;
    }
    return true;
}

static void skip_chunk(const ls_between_hosts *b, const ls_comm *comm, int owner_host, cursor *at)
{
    int64_t room = CHUNK_ELEMENTS;
    block ignored;
    while (next_block(b, comm, owner_host, at, &room, &ignored))
        continue;
}

static cursor cursor_of(const ls_pieces *pieces, int owner)
{
    return (cursor){.item = pieces->begin[owner], .end = pieces->begin[owner + 1]};
}

/* --- requests ----------------------------------------------------------------------------------
 */

static int stream_request(int index, int64_t chunk)
{
    return 2 * index + (int)(chunk & 1);
}

static int other_request(const ls_between_hosts *b, int index, int64_t chunk)
{
    return 2 * (b->stream_count + index) + (int)(chunk & 1);
}

/* Everything that was sent may be overwritten. */
static ls_status wait_all(const ls_between_hosts *b, ls_comm *comm, ls_error *error)
{
    for (int request = 0; request < 2 * (b->stream_count + b->other_count); request++)
        LS_TRY(comm->operations->wait(comm, request, error));
    return LS_OK;
}

static ls_status receive_other(ls_collectives *c, int index, int64_t chunk, ls_error *error)
{
    ls_between_hosts *b = c->between;
    int agent = ls_between_hosts_agent(c->comm, b->others[index], c->comm->rank);
    return c->comm->operations->receive(c->comm, other_request(b, index, chunk), agent,
                                        b->buffers[index][chunk & 1], CHUNK_BYTES, error);
}

static ls_status receive_stream(ls_collectives *c, int index, int64_t chunk, ls_error *error)
{
    const stream *s = &c->between->streams[index];
    return c->comm->operations->receive(c->comm, stream_request(index, chunk), s->owner,
                                        s->buffers[chunk & 1], CHUNK_BYTES, error);
}

/* --- sums --------------------------------------------------------------------------------------
 */

static const float *near_source(const ls_collectives *c, int32_t root, const block *what)
{
    const ls_step_roots *step = c->between->step;
    return ls_collectives_address(c, step->roots[root].rank, what->piece) +
           ls_collectives_slot(step, what->present, root) * what->piece->slot_stride + what->first;
}

/* Add this host's roots as far as they join, each result behind the other. */
static int64_t join_near(ls_collectives *c, const block *what, float *to)
{
    ls_between_hosts *b = c->between;
    int64_t used = 0;
    for (int32_t i = 0; i < b->step->count;) {
        int32_t joined = b->below[i];
        ls_sum_list list = ls_sum_list_begin(c, b->step);
        bool here = b->joined[joined].rank == c->comm->host;
        for (; i < b->step->count && b->below[i] == joined; i++) {
            if (!here || (what->present && !what->present[i])) continue;
            ls_sum_list_add(&list, &b->step->roots[i], near_source(c, i, what));
            if (b->step->roots[i].rank != c->comm->rank) c->elements += what->elements;
        }
        if (list.count == 0) continue;
        ls_sum_list_run(&list, to + used, what->elements);
        used += what->elements;
    }
    return used;
}

static ls_status send_sums(ls_collectives *c, int index, int64_t chunk, ls_error *error)
{
    ls_between_hosts *b = c->between;
    stream *s = &b->streams[index];
    int request = stream_request(index, chunk);
    int64_t room = CHUNK_ELEMENTS, used = 0;
    block what;
    LS_TRY(c->comm->operations->wait(c->comm, request, error));
    while (next_block(b, c->comm, s->owner_host, &s->at, &room, &what))
        used += join_near(c, &what, s->buffers[chunk & 1] + used);
    return c->comm->operations->send(c->comm, request, s->owner, s->buffers[chunk & 1],
                                     used * (int64_t)sizeof(float), error);
}

/* The owner's: its host's roots one by one, those of other hosts as they came. */
static void sum_block(ls_collectives *c, const block *what, int64_t chunk)
{
    ls_between_hosts *b = c->between;
    int own = c->comm->host;
    ls_sum_list list = ls_sum_list_begin(c, b->step);
    int32_t last = -1;
    for (int32_t i = 0; i < b->step->count; i++) {
        int32_t joined = b->below[i];
        const ls_tree_root *root = &b->joined[joined];
        if (what->present && !what->present[i]) continue;
        if (root->rank == own) {
            ls_sum_list_add(&list, &b->step->roots[i], near_source(c, i, what));
            if (b->step->roots[i].rank != c->comm->rank) c->elements += what->elements;
        } else if (joined != last) {
            int index = root->rank - (root->rank > own);
            ls_sum_list_add(&list, root, b->buffers[index][chunk & 1] + b->used[index]);
            b->used[index] += what->elements;
            c->elements += what->elements;
        }
        last = joined;
    }
    ls_sum_list_run(&list, ls_collectives_address(c, c->comm->rank, what->piece) + what->first,
                    what->elements);
}

static ls_status sum_chunk(ls_collectives *c, int64_t chunk, ls_error *error)
{
    ls_between_hosts *b = c->between;
    int64_t room = CHUNK_ELEMENTS;
    block what;
    skip_chunk(b, c->comm, c->comm->host, &b->ahead);
    for (int i = 0; i < b->other_count && !ended(b, &b->ahead); i++)
        LS_TRY(receive_other(c, i, chunk + 1, error));
    for (int i = 0; i < b->other_count; i++) {
        LS_TRY(c->comm->operations->wait(c->comm, other_request(b, i, chunk), error));
        b->used[i] = 0;
    }
    while (next_block(b, c->comm, c->comm->host, &b->own, &room, &what))
        sum_block(c, &what, chunk);
    return LS_OK;
}

static void begin_call(ls_collectives *c, const ls_step_roots *step, const ls_pieces *pieces)
{
    ls_between_hosts *b = c->between;
    b->step = step;
    b->pieces = pieces;
    b->own = b->ahead = cursor_of(pieces, c->comm->rank);
    for (int i = 0; i < b->stream_count; i++)
        b->streams[i].at = b->streams[i].ahead = cursor_of(pieces, b->streams[i].owner);
    if (!step) return;
    int64_t total = step->roots[step->count - 1].last + 1;
    b->joined_count = ls_tree_join_roots(step->roots, step->count, total, c->comm->host_begin,
                                         c->comm->hosts, b->joined, b->below);
}

ls_status ls_between_hosts_sum(ls_collectives *c, const ls_step_roots *step,
                               const ls_pieces *pieces, ls_error *error)
{
    ls_between_hosts *b = c->between;
    begin_call(c, step, pieces);
    for (int i = 0; i < b->other_count && !ended(b, &b->own); i++)
        LS_TRY(receive_other(c, i, 0, error));
    bool more = true;
    for (int64_t chunk = 0; more; chunk++) {
        more = false;
        for (int i = 0; i < b->stream_count; i++) {
            if (ended(b, &b->streams[i].at)) continue;
            LS_TRY(send_sums(c, i, chunk, error));
            more = true;
        }
        if (ended(b, &b->own)) continue;
        LS_TRY(sum_chunk(c, chunk, error));
        more = true;
    }
    return wait_all(b, c->comm, error);
}

/* --- gathers -----------------------------------------------------------------------------------
 */

static ls_status send_elements(ls_collectives *c, int64_t chunk, ls_error *error)
{
    ls_between_hosts *b = c->between;
    int64_t room = CHUNK_ELEMENTS, used = 0;
    float *to = b->buffers[0][chunk & 1];
    block what;
    for (int i = 0; i < b->other_count; i++)
        LS_TRY(c->comm->operations->wait(c->comm, other_request(b, i, chunk), error));
    while (next_block(b, c->comm, c->comm->host, &b->own, &room, &what)) {
        memcpy(to + used, ls_collectives_address(c, c->comm->rank, what.piece) + what.first,
               (size_t)what.elements * sizeof(float));
        used += what.elements;
    }
    for (int i = 0; i < b->other_count; i++) {
        int agent = ls_between_hosts_agent(c->comm, b->others[i], c->comm->rank);
        LS_TRY(c->comm->operations->send(c->comm, other_request(b, i, chunk), agent, to,
                                         used * (int64_t)sizeof(float), error));
    }
    return LS_OK;
}

static ls_status take_elements(ls_collectives *c, int index, int64_t chunk, ls_error *error)
{
    ls_between_hosts *b = c->between;
    stream *s = &b->streams[index];
    const float *from = s->buffers[chunk & 1];
    int64_t room = CHUNK_ELEMENTS;
    block what;
    skip_chunk(b, c->comm, s->owner_host, &s->ahead);
    if (!ended(b, &s->ahead)) LS_TRY(receive_stream(c, index, chunk + 1, error));
    LS_TRY(c->comm->operations->wait(c->comm, stream_request(index, chunk), error));
    while (next_block(b, c->comm, s->owner_host, &s->at, &room, &what)) {
        memcpy(ls_collectives_address(c, c->comm->rank, what.piece) + what.first, from,
               (size_t)what.elements * sizeof(float));
        from += what.elements;
        c->elements += what.elements;
    }
    return LS_OK;
}

ls_status ls_between_hosts_gather(ls_collectives *c, const ls_pieces *pieces, ls_error *error)
{
    ls_between_hosts *b = c->between;
    begin_call(c, NULL, pieces);
    for (int i = 0; i < b->stream_count; i++)
        if (!ended(b, &b->streams[i].at)) LS_TRY(receive_stream(c, i, 0, error));
    bool more = true;
    for (int64_t chunk = 0; more; chunk++) {
        more = false;
        if (!ended(b, &b->own)) {
            LS_TRY(send_elements(c, chunk, error));
            more = true;
        }
        for (int i = 0; i < b->stream_count; i++) {
            if (ended(b, &b->streams[i].at)) continue;
            LS_TRY(take_elements(c, i, chunk, error));
            more = true;
        }
    }
    return wait_all(b, c->comm, error);
}

/* --- making it ---------------------------------------------------------------------------------
 */

static void lay_out(ls_between_hosts *b, const ls_comm *comm, float *staging)
{
    int streams = 0, others = 0;
    for (int host = 0; host < comm->hosts; host++) {
        if (host == comm->host) continue;
        b->others[others++] = host;
        for (int owner = comm->host_begin[host]; owner < comm->host_begin[host + 1]; owner++)
            if (agent_of(comm->host_begin, comm->host, owner, host) == comm->rank)
                b->streams[streams++] = (stream){.owner = owner, .owner_host = host};
    }
    for (int i = 0; i < 2 * streams; i++, staging += CHUNK_ELEMENTS)
        b->streams[i / 2].buffers[i % 2] = staging;
    for (int i = 0; i < 2 * others; i++, staging += CHUNK_ELEMENTS)
        b->buffers[i / 2][i % 2] = staging;
    b->stream_count = streams;
    b->other_count = others;
}

ls_status ls_between_hosts_new(ls_between_hosts **out, const ls_comm *comm, void *staging,
                               ls_error *error)
{
    ls_between_hosts *b = NULL;
    ls_status status;
    int streams = streams_of(comm->host_begin, comm->hosts, comm->host, comm->rank);
    int others = comm->hosts - 1;
    if (2 * (streams + others) > LS_COMM_REQUESTS)
        return ls_fail(error, LS_UNSUPPORTED,
                       "%d hosts are more than Lockstep connects: a rank has %d streams, at most "
                       "%d are built",
                       comm->hosts, streams + others, LS_COMM_REQUESTS / 2);
    LS_TRY(LS_NEW(b, 1, "exchange between hosts", error));
    int most = comm->size * LS_MAX_SLOTS;
    LS_TRY_GOTO(status, LS_NEW(b->streams, streams + 1, "exchange between hosts", error), fail);
    LS_TRY_GOTO(status, LS_NEW(b->others, others, "exchange between hosts", error), fail);
    LS_TRY_GOTO(status, LS_NEW(b->buffers, others, "exchange between hosts", error), fail);
    LS_TRY_GOTO(status, LS_NEW(b->used, others, "exchange between hosts", error), fail);
    LS_TRY_GOTO(status, LS_NEW(b->joined, most, "exchange between hosts", error), fail);
    LS_TRY_GOTO(status, LS_NEW(b->below, most, "exchange between hosts", error), fail);
    lay_out(b, comm, staging);
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
    ls_free(b->buffers);
    ls_free(b->used);
    ls_free(b->joined);
    ls_free(b->below);
    ls_free(b);
}

/* Parameters and moments that the ranks hold in parts, read as a whole: in this process, and by the
 * first process from all. */
#include "base/alloc.h"
#include "engine/ranks_internal.h"

/* What of the elements rank `index` of this process holds. */
static ls_range held_part(const ls_ranks *ranks, int index, ls_value_id value, ls_range range)
{
    ls_range held = ls_executor_held(ls_trainer_executor(ranks->trainers[index]), value);
    if (range.begin < held.begin) range.begin = held.begin;
    if (range.end > held.end) range.end = held.end;
    return range;
}

/* From element `done` on, as far as this process's ranks hold what follows; *end says how far. */
static ls_status read_near(ls_ranks *ranks, ls_value_id value, ls_range range, float *to,
                           int64_t *end, ls_error *error)
{
    int64_t done = range.begin;
    for (int index = 0; index < ranks->count && done < range.end; index++) {
        ls_range part = held_part(ranks, index, value, (ls_range){done, range.end});
        if (part.begin >= part.end || part.begin != done) continue;
        LS_TRY(ls_executor_get(ls_ranks_executor(ranks, index), value, part.begin,
                               part.end - part.begin, to + (done - range.begin), error));
        done = part.end;
    }
    *end = done;
    return LS_OK;
}

/* --- reading from other processes ------------------------------------------------------------- */

/* What the first process asks another one for; it sends as many floats. */
typedef struct request {
    ls_value_id value; /* LS_NO_VALUE: nothing more */
    ls_range range;
} request;

enum { REQUEST, REPLY };

/* The part of the range, from its beginning, that a rank of another process owns. */
static ls_range owned_far(const ls_ranks *ranks, ls_value_id value, ls_range range, int *rank)
{
    const ls_program *program = ranks->programs->training.program;
    ls_value_id parameter = ls_layout_parameter(program, value);
    int size = ls_rank_group_comm(ranks->group, 0)->size;
    for (*rank = 0; *rank < size; ++*rank) {
        ls_range owned = ls_layout_owned(program, parameter, *rank);
        if (owned.begin > range.begin || owned.end <= range.begin) continue;
        return (ls_range){range.begin, owned.end < range.end ? owned.end : range.end};
    }
    return (ls_range){range.begin, range.begin};
}

static ls_status read_far(ls_ranks *ranks, ls_value_id value, ls_range range, float *to,
                          int64_t *end, ls_error *error)
{
    ls_comm *comm = ls_rank_group_comm(ranks->group, 0);
    int rank;
    ls_range part = owned_far(ranks, value, range, &rank);
    *end = part.end;
    if (part.begin == part.end) return LS_OK;
    const request asked = {value, part};
    rank -= rank % ranks->count; /* its process's first one answers */
    comm->task = "parameters to be written";
    LS_TRY(comm->operations->receive(comm, REPLY, rank, to,
                                     (part.end - part.begin) * (int64_t)sizeof *to, error));
    LS_TRY(comm->operations->send(comm, REQUEST, rank, &asked, sizeof asked, error));
    LS_TRY(comm->operations->wait(comm, REQUEST, error));
    return comm->operations->wait(comm, REPLY, error);
}

static ls_status answer(ls_ranks *ranks, ls_comm *comm, const request *asked, ls_error *error)
{
    int64_t count = asked->range.end - asked->range.begin, end;
    float *elements = NULL;
    LS_TRY(LS_NEW(elements, count, "parameters to be written", error));
    ls_status status = read_near(ranks, asked->value, asked->range, elements, &end, error);
    if (status == LS_OK && end != asked->range.end)
        status = ls_fail(error, LS_INTERNAL, "engine: asked for what others hold");
    if (status == LS_OK)
        status = comm->operations->send(comm, REPLY, 0, elements, count * (int64_t)sizeof *elements,
                                        error);
    if (status == LS_OK) status = comm->operations->wait(comm, REPLY, error);
    ls_free(elements);
    return status;
}

ls_status ls_ranks_serve(ls_ranks *ranks, ls_error *error)
{
    ls_comm *comm = ls_rank_group_comm(ranks->group, 0);
    request asked;
    for (;;) {
        comm->task = "the writing of the model";
        LS_TRY(comm->operations->receive(comm, REQUEST, 0, &asked, sizeof asked, error));
        LS_TRY(comm->operations->wait(comm, REQUEST, error));
        if (asked.value == LS_NO_VALUE) return LS_OK;
        LS_TRY(answer(ranks, comm, &asked, error));
    }
}

ls_status ls_ranks_end_serving(ls_ranks *ranks, ls_error *error)
{
    static const request end = {.value = LS_NO_VALUE};
    ls_comm *comm = ls_rank_group_comm(ranks->group, 0);
    for (int rank = ranks->count; rank < comm->size; rank += ranks->count) {
        LS_TRY(comm->operations->send(comm, REQUEST, rank, &end, sizeof end, error));
        LS_TRY(comm->operations->wait(comm, REQUEST, error));
    }
    return LS_OK;
}

ls_status ls_ranks_read(ls_ranks *ranks, ls_value_id value, int64_t first, int64_t count, float *to,
                        ls_error *error)
{
    ls_range left = {first, first + count};
    while (left.begin < left.end) {
        int64_t end;
        LS_TRY(read_near(ranks, value, left, to + (left.begin - first), &end, error));
        if (end == left.begin && ls_ranks_processes(ranks) > 1)
            LS_TRY(read_far(ranks, value, left, to + (left.begin - first), &end, error));
        if (end == left.begin)
            return ls_fail(error, LS_INTERNAL, "engine: no rank has element %lld of %s",
                           (long long)end,
                           ls_value_of(ranks->programs->training.program, value)->name);
        left.begin = end;
    }
    return LS_OK;
}

bool ls_ranks_hold(const ls_ranks *ranks, ls_value_id value, int64_t first, int64_t count)
{
    for (int index = 0; index < ranks->count; index++) {
        ls_range range = held_part(ranks, index, value, (ls_range){first, first + count});
        if (range.begin < range.end) return true;
    }
    return false;
}

ls_status ls_ranks_write(ls_ranks *ranks, ls_value_id value, int64_t first, int64_t count,
                         const float *from, ls_error *error)
{
    for (int index = 0; index < ranks->count; index++) {
        ls_range range = held_part(ranks, index, value, (ls_range){first, first + count});
        if (range.begin >= range.end) continue;
        LS_TRY(ls_executor_put(ls_ranks_executor(ranks, index), value, range.begin,
                               range.end - range.begin, from + (range.begin - first), error));
    }
    return LS_OK;
}

static ls_status read_tensor(void *context, ls_value_id value, int64_t first, int64_t count,
                             float *to, ls_error *error)
{
    return ls_ranks_read(context, value, first, count, to, error);
}

ls_tensor_reader ls_ranks_reader(ls_ranks *ranks)
{
    return (ls_tensor_reader){read_tensor, ranks};
}

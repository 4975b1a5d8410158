#include "engine/exchange/comm_bench.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "engine/exchange/collectives.h"
#include "engine/rank_group.h"

/* As many rounds as move this much, within limits. */
enum { FEWEST_ROUNDS = 5, MOST_ROUNDS = 500 };
static const int64_t moved_bytes = (int64_t)1 << 30;

/* One rank's side. */
typedef struct bench_rank {
    void *arenas[LS_PLAN_ARENA_COUNT];
    unsigned char *copy; /* [most_bytes] */
    ls_collectives *collectives;
    ls_piece *pieces; /* [ranks] */
    int32_t *begin;   /* [ranks + 1] */
    double seconds;
} bench_rank;

struct ls_comm_bench {
    ls_processes *processes;
    ls_device *const *devices;
    int count, size; /* ranks of this process; of all */
    int64_t most_bytes;
    ls_rank_group *group;
    bench_rank *ranks;
    ls_tree_root *roots; /* one a rank */
    /* What runs: */
    ls_comm_bench_kind kind;
    int64_t bytes;
};

static ls_status take_memory(ls_comm_bench *b, int64_t room, ls_error *error)
{
    for (int i = 0; i < b->count; i++) {
        bench_rank *rank = &b->ranks[i];
        ls_device *device = b->devices[i];
        LS_TRY(device->operations->allocate(device, b->most_bytes, LS_MEMORY_SHARED, "messages",
                                            &rank->arenas[LS_PLAN_GRADIENTS], error));
        LS_TRY(device->operations->allocate(device, b->most_bytes, LS_MEMORY_DENSE, "a copy",
                                            (void **)&rank->copy, error));
        if (room)
            LS_TRY(device->operations->allocate(device, room, LS_MEMORY_DENSE,
                                                "communication buffers",
                                                &rank->arenas[LS_PLAN_MESSAGES], error));
        LS_TRY(LS_NEW(rank->pieces, b->size, "pieces", error));
        LS_TRY(LS_NEW(rank->begin, b->size + 1, "pieces", error));
    }
    return LS_OK;
}

static ls_status connect(void *context, int index, ls_error *error)
{
    ls_comm_bench *b = context;
    return ls_collectives_new(&b->ranks[index].collectives, ls_rank_group_comm(b->group, index),
                              b->devices[index], b->ranks[index].arenas, error);
}

static ls_status new_ranks(ls_comm_bench *b, ls_error *error)
{
    ls_comm **comms = NULL;
    LS_TRY(LS_NEW(comms, b->count, "ranks", error));
    ls_status status = ls_processes_comms(b->processes, comms, b->count, error);
    if (status == LS_OK) {
        b->size = comms[0]->size;
        int64_t room = ls_collectives_message_bytes(comms[0]->host_begin, comms[0]->hosts);
        status = ls_rank_group_new(&b->group, comms, b->count, NULL, error);
        if (status == LS_OK) status = take_memory(b, room, error);
    }
    ls_free(comms);
    return status;
}

ls_status ls_comm_bench_new(ls_comm_bench **out, ls_processes *processes, ls_device *const *devices,
                            int count, int64_t most_bytes, ls_error *error)
{
    ls_comm_bench *b = NULL;
    ls_status status;
    LS_TRY(LS_NEW(b, 1, "benchmark", error));
    b->processes = processes;
    b->devices = devices;
    b->count = count;
    b->most_bytes = most_bytes;
    LS_TRY_GOTO(status, LS_NEW(b->ranks, count, "benchmark", error), fail);
    LS_TRY_GOTO(status, new_ranks(b, error), fail);
    LS_TRY_GOTO(status, LS_NEW(b->roots, b->size, "benchmark", error), fail);
    for (int rank = 0; rank < b->size; rank++)
        b->roots[rank] = (ls_tree_root){rank, 0, rank, rank};
    LS_TRY_GOTO(status, ls_rank_group_run(b->group, connect, b, error), fail);
    *out = b;
    return LS_OK;
fail:
    ls_comm_bench_free(b);
    return status;
}

void ls_comm_bench_free(ls_comm_bench *b)
{
    if (!b) return;
    for (int i = 0; b->ranks && i < b->count; i++) {
        bench_rank *rank = &b->ranks[i];
        const ls_device_operations *operations = b->devices[i]->operations;
        ls_collectives_free(rank->collectives);
        operations->release(b->devices[i], rank->arenas[LS_PLAN_GRADIENTS]);
        operations->release(b->devices[i], rank->arenas[LS_PLAN_MESSAGES]);
        operations->release(b->devices[i], rank->copy);
        ls_free(rank->pieces);
        ls_free(rank->begin);
    }
    ls_rank_group_free(b->group);
    ls_free(b->ranks);
    ls_free(b->roots);
    ls_free(b);
}

/* Each rank owns its part of the elements, in a broadcast the first one all of them. */
static ls_pieces list_pieces(const ls_comm_bench *b, bench_rank *rank)
{
    int64_t elements = b->bytes / (int64_t)sizeof(float);
    int32_t count = 0;
    for (int owner = 0; owner < b->size; owner++) {
        int64_t begin = elements * owner / b->size, end = elements * (owner + 1) / b->size;
        rank->begin[owner] = count;
        if (b->kind == LS_BENCH_BROADCAST) {
            if (owner > 0) continue;
            end = elements;
        }
        ls_place place = {LS_PLAN_GRADIENTS, begin * (int64_t)sizeof(float)};
        rank->pieces[count++] = (ls_piece){.from = place,
                                           .to = place,
                                           .rows = begin < end,
                                           .row_elements = end - begin,
                                           .from_stride = elements,
                                           .to_stride = elements};
    }
    rank->begin[b->size] = count;
    return (ls_pieces){rank->pieces, rank->begin};
}

static ls_status run_once(ls_comm_bench *b, bench_rank *rank, const ls_pieces *pieces,
                          ls_error *error)
{
    const ls_step_roots roots = {.count = b->size, .roots = b->roots, .end = b->size};
    bool sums = b->kind == LS_BENCH_ALL_REDUCE || b->kind == LS_BENCH_REDUCE_SCATTER;
    if (b->kind == LS_BENCH_MPI_ALL_REDUCE)
        return ls_processes_mpi_all_reduce(b->processes, rank->arenas[LS_PLAN_GRADIENTS],
                                           (float *)(void *)rank->copy,
                                           b->bytes / (int64_t)sizeof(float), error);
    if (b->kind == LS_BENCH_COPY) {
        memcpy(rank->copy, rank->arenas[LS_PLAN_GRADIENTS], (size_t)b->bytes);
        return LS_OK;
    }
    if (sums) LS_TRY(ls_collectives_sum(rank->collectives, &roots, pieces, error));
    if (b->kind != LS_BENCH_REDUCE_SCATTER)
        LS_TRY(ls_collectives_gather(rank->collectives, pieces, error));
    return ls_collectives_finish(rank->collectives, error);
}

static ls_status run_rounds(void *context, int index, ls_error *error)
{
    ls_comm_bench *b = context;
    bench_rank *rank = &b->ranks[index];
    ls_pieces pieces = list_pieces(b, rank);
    int64_t rounds = moved_bytes / b->bytes;
    if (rounds < FEWEST_ROUNDS) rounds = FEWEST_ROUNDS;
    if (rounds > MOST_ROUNDS) rounds = MOST_ROUNDS;
    /* Zeros stay zeros, however often they are added; the first rounds warm up. */
    memset(rank->arenas[LS_PLAN_GRADIENTS], 0, (size_t)b->bytes);
    for (int i = 0; i < 2; i++)
        LS_TRY(run_once(b, rank, &pieces, error));
    LS_TRY(ls_collectives_finish(rank->collectives, error));
    double start = ls_seconds();
    for (int64_t round = 0; round < rounds; round++)
        LS_TRY(run_once(b, rank, &pieces, error));
    rank->seconds = (ls_seconds() - start) / (double)rounds;
    return LS_OK;
}

ls_status ls_comm_bench_run(ls_comm_bench *b, ls_comm_bench_kind kind, int64_t bytes,
                            double *seconds, ls_error *error)
{
    b->kind = kind;
    b->bytes = bytes;
    LS_TRY(ls_rank_group_run(b->group, run_rounds, b, error));
    *seconds = b->ranks[0].seconds;
    return LS_OK;
}

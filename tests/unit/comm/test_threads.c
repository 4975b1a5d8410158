/* Ranks that are threads: nobody passes a barrier before all are there, everyone finds everyone's
 * memory, and a rank that gives up takes the others with it. */
#include "testing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "comm/comm.h"

enum { MOST = 16, ROUNDS = 300 };

/* Asserts are for the main thread: ranks only count what is wrong. */
typedef struct test_rank {
    ls_comm *comm;
    pthread_t thread;
    _Atomic int *arrivals;
    int wrong;
    int fails_after; /* rounds, then this rank aborts */
    ls_status status;
    ls_error error;
} test_rank;

static void run_ranks(test_rank *ranks, int size, void *(*function)(void *))
{
    ls_comm *comms[MOST];
    ls_error error;
    assert_ok(ls_comm_threads_new(comms, size, &error), error);
    for (int i = 0; i < size; i++) {
        assert_int_equal(comms[i]->rank, i);
        assert_int_equal(comms[i]->size, size);
        ranks[i].comm = comms[i];
        assert_int_equal(pthread_create(&ranks[i].thread, NULL, function, &ranks[i]), 0);
    }
    for (int i = 0; i < size; i++)
        assert_int_equal(pthread_join(ranks[i].thread, NULL), 0);
    for (int i = 0; i < size; i++)
        ls_comm_free(comms[i]);
}

/* Some arrive late. */
static void dawdle(int rank, int round)
{
    static const struct timespec moment = {0, 200000};
    if ((rank * 7 + round) % 50 == 0) nanosleep(&moment, NULL);
}

static void *pass_barriers(void *argument)
{
    test_rank *self = argument;
    int size = self->comm->size;
    for (int round = 0; round < ROUNDS; round++) {
        dawdle(self->comm->rank, round);
        atomic_fetch_add(self->arrivals, 1);
        self->status = self->comm->operations->barrier(self->comm, &self->error);
        if (self->status != LS_OK) return NULL;
        int arrived = atomic_load(self->arrivals);
        /* All of this round, and at most those who are in the next one already. */
        self->wrong += arrived < (round + 1) * size || arrived >= (round + 2) * size;
    }
    return NULL;
}

static void nobody_passes_before_all_are_there(void **state)
{
    (void)state;
    for (int size = 1; size <= MOST; size *= 2) {
        test_rank ranks[MOST] = {0};
        _Atomic int arrivals = 0;
        for (int i = 0; i < size; i++)
            ranks[i].arrivals = &arrivals;
        run_ranks(ranks, size, pass_barriers);
        assert_int_equal(arrivals, ROUNDS * size);
        for (int i = 0; i < size; i++) {
            assert_ok(ranks[i].status, ranks[i].error);
            assert_int_equal(ranks[i].wrong, 0);
        }
    }
}

static void *share_numbers(void *argument)
{
    test_rank *self = argument;
    ls_comm *comm = self->comm;
    const ls_comm_operations *operations = comm->operations;
    int mine[ROUNDS];
    for (int round = 0; round < ROUNDS && self->status == LS_OK; round++) {
        void *everyone[MOST];
        mine[round] = comm->rank * 1000 + round;
        dawdle(comm->rank, round);
        self->status = operations->share(comm, &mine[round], everyone, &self->error);
        for (int rank = 0; rank < comm->size && self->status == LS_OK; rank++)
            self->wrong += *(const int *)everyone[rank] != rank * 1000 + round;
    }
    /* Memory must stay while others read it. */
    if (self->status == LS_OK) self->status = operations->barrier(comm, &self->error);
    return NULL;
}

static void everyone_finds_the_memory_of_everyone(void **state)
{
    (void)state;
    for (int size = 1; size <= MOST; size += 5) {
        test_rank ranks[MOST] = {0};
        run_ranks(ranks, size, share_numbers);
        for (int i = 0; i < size; i++) {
            assert_ok(ranks[i].status, ranks[i].error);
            assert_int_equal(ranks[i].wrong, 0);
        }
    }
}

static void *give_up(void *argument)
{
    test_rank *self = argument;
    ls_comm *comm = self->comm;
    for (int round = 0; round < ROUNDS; round++) {
        dawdle(comm->rank, round + 13);
        if (round == self->fails_after) {
            comm->operations->abort(comm, NULL);
            comm->operations->abort(comm, NULL);
        }
        void *everyone[MOST];
        self->status = round % 2 ? comm->operations->share(comm, self, everyone, &self->error)
                                 : comm->operations->barrier(comm, &self->error);
        if (self->status != LS_OK) break;
    }
    /* Nor does anyone wait in a later call. */
    self->wrong += comm->operations->barrier(comm, NULL) != LS_INTERRUPTED;
    return NULL;
}

static void a_rank_that_gives_up_is_named_by_the_others(void **state)
{
    (void)state;
    static const int sizes[] = {1, 2, 5, MOST};
    for (int i = 0; i < 4; i++) {
        for (int after = 0; after < 60; after += 7) {
            test_rank ranks[MOST] = {0};
            int failing = after % sizes[i];
            char named[40];
            for (int rank = 0; rank < sizes[i]; rank++)
                ranks[rank].fails_after = rank == failing ? after : ROUNDS;
            run_ranks(ranks, sizes[i], give_up);
            snprintf(named, sizeof named, "because rank %d has failed", failing);
            for (int rank = 0; rank < sizes[i]; rank++) {
                assert_int_equal(ranks[rank].status, LS_INTERRUPTED);
                assert_int_equal(ranks[rank].wrong, 0);
                if (!strstr(ranks[rank].error.text, named)) fail_msg("%s", ranks[rank].error.text);
            }
        }
    }
}

static int refuse(void *context, size_t bytes)
{
    (void)bytes;
    return (*(int *)context)-- == 0;
}

static void memory_may_be_short(void **state)
{
    (void)state;
    size_t bytes = ls_allocated_bytes();
    for (int turn = 0;; turn++) {
        int left = turn;
        ls_error error;
        ls_comm *comms[3];
        ls_set_allocation_hook(refuse, &left);
        ls_status status = ls_comm_threads_new(comms, 3, &error);
        ls_set_allocation_hook(NULL, NULL);
        for (int i = 0; i < 3 && status == LS_OK; i++)
            ls_comm_free(comms[i]);
        assert_true(ls_allocated_bytes() == bytes);
        if (status == LS_OK) {
            assert_true(turn >= 3);
            break;
        }
        assert_int_equal(status, LS_NO_MEMORY);
    }
    ls_comm_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_passes_before_all_are_there),
        cmocka_unit_test(everyone_finds_the_memory_of_everyone),
        cmocka_unit_test(a_rank_that_gives_up_is_named_by_the_others),
        cmocka_unit_test(memory_may_be_short),
    };
    return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}

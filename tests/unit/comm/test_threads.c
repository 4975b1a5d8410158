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

/* --- hosts apart -------------------------------------------------------------------------------
 */

enum { APART = 5, MESSAGES = 100 };

/* Ranks of one host see each other's memory, those of others send: two messages under way to each.
 */
static void *send_to_others(void *argument)
{
    test_rank *self = argument;
    ls_comm *comm = self->comm;
    const ls_comm_operations *operations = comm->operations;
    int mine = comm->rank, sent[2][APART], got[2][APART];
    void *everyone[APART];
    self->status = operations->share(comm, &mine, everyone, &self->error);
    for (int rank = 0; rank < APART && self->status == LS_OK; rank++) {
        bool near = rank >= comm->host_begin[comm->host] && rank < comm->host_begin[comm->host + 1];
        self->wrong += near != (everyone[rank] != NULL);
        if (everyone[rank]) self->wrong += *(int *)everyone[rank] != rank;
    }
    for (int round = 0; round < MESSAGES && self->status == LS_OK; round++) {
        for (int rank = 0; rank < APART; rank++)
            for (int part = 0; part < 2 && rank != comm->rank; part++) {
                sent[part][rank] = comm->rank * 1000 + rank * 100 + 2 * round + part;
                operations->send(comm, 4 * rank + part, rank, &sent[part][rank], sizeof(int), NULL);
                operations->receive(comm, 4 * rank + 2 + part, rank, &got[part][rank], sizeof(int),
                                    NULL);
            }
        for (int request = 0; request < 4 * APART && self->status == LS_OK; request++)
            self->status = operations->wait(comm, request, &self->error);
        for (int rank = 0; rank < APART; rank++)
            for (int part = 0; part < 2 && rank != comm->rank; part++)
                self->wrong += got[part][rank] != rank * 1000 + comm->rank * 100 + 2 * round + part;
    }
    if (self->status == LS_OK) self->status = operations->barrier(comm, &self->error);
    return NULL;
}

static void ranks_apart_send_messages(void **state)
{
    static const int hosts[] = {2, 1, 2};
    test_rank ranks[APART] = {0};
    ls_comm *comms[APART];
    ls_error error;
    (void)state;
    assert_ok(ls_comm_threads_apart_new(comms, hosts, 3, &error), error);
    for (int i = 0; i < APART; i++) {
        assert_int_equal(comms[i]->hosts, 3);
        assert_int_equal(comms[i]->host, i < 2 ? 0 : i < 3 ? 1 : 2);
        ranks[i].comm = comms[i];
        assert_int_equal(pthread_create(&ranks[i].thread, NULL, send_to_others, &ranks[i]), 0);
    }
    for (int i = 0; i < APART; i++)
        assert_int_equal(pthread_join(ranks[i].thread, NULL), 0);
    for (int i = 0; i < APART; i++) {
        assert_ok(ranks[i].status, ranks[i].error);
        assert_int_equal(ranks[i].wrong, 0);
        ls_comm_free(comms[i]);
    }
}

/* Who waits for a message is told too. */
static void *wait_for_nothing(void *argument)
{
    test_rank *self = argument;
    int got;
    self->comm->operations->receive(self->comm, 0, 1, &got, sizeof got, NULL);
    self->status = self->comm->operations->wait(self->comm, 0, &self->error);
    return NULL;
}

static void an_abort_ends_waits_for_messages(void **state)
{
    static const int hosts[] = {1, 1};
    const ls_error why = {.code = LS_LOST, .text = "rank 1 is gone"};
    test_rank waiting = {0};
    ls_comm *comms[2];
    ls_error error;
    (void)state;
    assert_ok(ls_comm_threads_apart_new(comms, hosts, 2, &error), error);
    waiting.comm = comms[0];
    assert_int_equal(pthread_create(&waiting.thread, NULL, wait_for_nothing, &waiting), 0);
    comms[1]->operations->abort(comms[1], &why);
    assert_int_equal(pthread_join(waiting.thread, NULL), 0);
    assert_int_equal(waiting.status, LS_LOST);
    assert_string_equal(waiting.error.text, why.text);
    for (int i = 0; i < 2; i++)
        ls_comm_free(comms[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_passes_before_all_are_there),
        cmocka_unit_test(everyone_finds_the_memory_of_everyone),
        cmocka_unit_test(a_rank_that_gives_up_is_named_by_the_others),
        cmocka_unit_test(memory_may_be_short),
        cmocka_unit_test(ranks_apart_send_messages),
        cmocka_unit_test(an_abort_ends_waits_for_messages),
    };
    return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}

/* Ranks in three processes with two devices each. Started plainly the program starts itself with
 * mpirun; where that is not installed, it says so and passes. */
#include "testing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "comm/processes.h"
#include "engine/rank_group.h"

enum { PROCESSES = 3, DEVICES = 2, RANKS = PROCESSES * DEVICES, ROUNDS = 200, ELEMENTS = 5000 };

static ls_processes *processes;
static int own;

static int setup(void **state)
{
    ls_error error;
    (void)state;
    ls_processes_options options = {.timeout = 60};
    assert_ok(ls_processes_join(&processes, &options, &error), error);
    own = ls_processes_here(processes)->index;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ls_processes_leave(processes);
    processes = NULL;
    return 0;
}

static void everyone_has_a_place(void **state)
{
    const ls_processes_place *here = ls_processes_here(processes);
    (void)state;
    assert_int_equal(here->count, PROCESSES);
    assert_int_equal(here->hosts, 1);
    assert_int_equal(here->local_count, PROCESSES);
    assert_int_equal(here->local_index, here->index);
    for (int i = 0; i < PROCESSES; i++)
        assert_true(*ls_processes_host_name(processes, i));
    assert_int_equal(ls_processes_host_first(processes)[1], PROCESSES);
}

static void what_is_gathered_is_everyones(void **state)
{
    ls_error error;
    int all[PROCESSES][3];
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        int mine[3] = {own, round, own * round};
        assert_ok(ls_processes_gather(processes, mine, sizeof mine, all, "a test", &error), error);
        for (int i = 0; i < PROCESSES; i++) {
            assert_int_equal(all[i][0], i);
            assert_int_equal(all[i][2], i * round);
        }
    }
}

static void one_wish_to_stop_is_everyones(void **state)
{
    ls_error error;
    bool any;
    (void)state;
    for (int who = -1; who < PROCESSES; who++) {
        assert_ok(ls_processes_any(processes, own == who, &any, "a wish", &error), error);
        assert_int_equal(any, who >= 0);
    }
}

static void equal_lines_are_fine_and_others_are_told(void **state)
{
    ls_error error;
    (void)state;
    assert_ok(
        ls_processes_compare(processes, "exchange: a, 4 bytes\nexchange: b, 8 bytes\n", &error),
        error);
    /* The second exchange of process 2 is another one; that of process 1 comes later. */
    const char *lines[PROCESSES] = {
        "exchange: a, 4 bytes\nexchange: b, 8 bytes\nexchange: c, 8 bytes\n",
        "exchange: a, 4 bytes\nexchange: b, 8 bytes\nexchange: d, 8 bytes\n",
        "exchange: a, 4 bytes\nexchange: b, 16 bytes\nexchange: c, 8 bytes\n"};
    assert_int_equal(ls_processes_compare(processes, lines[own], &error), LS_INVALID);
    assert_non_null(strstr(error.text, "process 2"));
    assert_non_null(strstr(error.text, "'exchange: b, 16 bytes' there"));
    assert_non_null(strstr(error.text, "'exchange: b, 8 bytes' on process 0"));
    /* One has a line more. */
    assert_int_equal(ls_processes_compare(processes, own ? "a\n" : "a\nb\n", &error), LS_INVALID);
    assert_non_null(strstr(error.text, "'nothing' there, 'b' on"));
}

/* --- ranks ------------------------------------------------------------------------------------ */

/* Asserts are for the main thread: ranks count what is wrong. */
typedef struct rank_test {
    ls_rank_group *group;
    float *memory[DEVICES]; /* [ELEMENTS] that all can read */
    int wrong[DEVICES];
    int failing; /* rank */
} rank_test;

static void open_ranks(rank_test *test)
{
    ls_error error;
    ls_comm *comms[DEVICES];
    *test = (rank_test){.failing = -1};
    for (int i = 0; i < DEVICES; i++) {
        void *memory;
        assert_ok(
            ls_processes_allocate(processes, ELEMENTS * sizeof(float), "a test", &memory, &error),
            error);
        assert_int_equal((uintptr_t)memory % 64, 0);
        test->memory[i] = memory;
        for (int e = 0; e < ELEMENTS; e++)
            assert_true(test->memory[i][e] == 0);
    }
    assert_ok(ls_processes_comms(processes, comms, DEVICES, &error), error);
    for (int i = 0; i < DEVICES; i++) {
        assert_int_equal(comms[i]->rank, own * DEVICES + i);
        assert_int_equal(comms[i]->size, RANKS);
        assert_int_equal(comms[i]->hosts, 1);
        assert_int_equal(comms[i]->host_begin[1], RANKS);
    }
    assert_ok(ls_rank_group_new(&test->group, comms, DEVICES, NULL, &error), error);
}

static void close_ranks(const rank_test *test)
{
    for (int i = 0; i < DEVICES; i++)
        assert_int_equal(test->wrong[i], 0);
    ls_rank_group_free(test->group);
}

/* Each writes, all read what all wrote, before anyone writes again. */
static ls_status read_the_others(void *context, int index, ls_error *error)
{
    rank_test *test = context;
    ls_comm *comm = ls_rank_group_comm(test->group, index);
    void *everyone[RANKS];
    LS_TRY(comm->operations->share(comm, test->memory[index], everyone, error));
    for (int round = 0; round < ROUNDS; round++) {
        for (int e = 0; e < ELEMENTS; e += 997)
            test->memory[index][e] = (float)(comm->rank * 1000 + round);
        LS_TRY(comm->operations->barrier(comm, error));
        for (int rank = 0; rank < RANKS; rank++)
            for (int e = 0; e < ELEMENTS; e += 997)
                test->wrong[index] +=
                    ((const float *)everyone[rank])[e] != (float)(rank * 1000 + round);
        LS_TRY(comm->operations->barrier(comm, error));
    }
    return LS_OK;
}

static void ranks_read_each_others_memory(void **state)
{
    ls_error error;
    rank_test test;
    (void)state;
    open_ranks(&test);
    assert_ok(ls_rank_group_run(test.group, read_the_others, &test, &error), error);
    close_ranks(&test);
}

/* Two messages to each rank at a time, of different lengths, received in the order of sending. */
static ls_status send_to_all(void *context, int index, ls_error *error)
{
    rank_test *test = context;
    ls_comm *comm = ls_rank_group_comm(test->group, index);
    static int sent[RANKS][RANKS][2][300], got[RANKS][RANKS][2][300];
    for (int round = 0; round < 20; round++) {
        for (int step = 1; step < RANKS; step++) {
            int to = (comm->rank + step) % RANKS, from = (comm->rank + RANKS - step) % RANKS;
            for (int part = 0; part < 2; part++) {
                int *bytes = sent[comm->rank][to][part], count = 1 + (to * 37 + round * 11) % 299;
                for (int i = 0; i < count; i++)
                    bytes[i] = comm->rank * 10000 + to * 1000 + round * 2 + part;
                LS_TRY(comm->operations->receive(comm, 4 * step + 2 + part, from,
                                                 got[comm->rank][from][part], sizeof got[0][0][0],
                                                 error));
                LS_TRY(comm->operations->send(comm, 4 * step + part, to, bytes,
                                              count * (int64_t)sizeof *bytes, error));
            }
        }
        for (int request = 0; request < 4 * RANKS + 4; request++)
            LS_TRY(comm->operations->wait(comm, request, error));
        int count = 1 + (comm->rank * 37 + round * 11) % 299;
        for (int from = 0; from < RANKS; from++)
            for (int part = 0; part < 2 && from != comm->rank; part++)
                for (int i = 0; i < count; i++)
                    test->wrong[index] += got[comm->rank][from][part][i] !=
                                          from * 10000 + comm->rank * 1000 + round * 2 + part;
    }
    return LS_OK;
}

static void messages_arrive_in_order(void **state)
{
    ls_error error;
    rank_test test;
    (void)state;
    open_ranks(&test);
    assert_ok(ls_rank_group_run(test.group, send_to_all, &test, &error), error);
    close_ranks(&test);
}

/* --- the end ---------------------------------------------------------------------------------- */

static ls_status meet(void *context, int index, ls_error *error)
{
    const rank_test *test = context;
    ls_comm *comm = ls_rank_group_comm(test->group, index);
    for (int i = 0; i < 10; i++) {
        if (comm->rank == test->failing && i == 5)
            return ls_fail(error, LS_INVALID, "rank %d has had enough", comm->rank);
        LS_TRY(comm->operations->barrier(comm, error));
    }
    return LS_OK;
}

static void a_rank_that_fails_stops_all_and_all_say_why(void **state)
{
    ls_error error;
    rank_test test;
    (void)state;
    open_ranks(&test);
    test.failing = 3;
    ls_status status = ls_rank_group_run(test.group, meet, &test, &error);
    assert_int_equal(status, own == 1 ? LS_INVALID : LS_INTERRUPTED);
    assert_non_null(strstr(error.text, own == 1 ? "had enough" : "because rank 3 has failed"));
    assert_int_equal(ls_processes_agree(processes, status, "a test", &error), LS_INVALID);
    assert_string_equal(error.text, "rank 3 has had enough");
    assert_int_equal(error.rank, 3);
    close_ranks(&test);
}

/* Replaces the process; returns where there is no mpirun. */
static int start_processes(char *program)
{
    char count[8];
    snprintf(count, sizeof count, "%d", PROCESSES);
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 1);
    setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 1);
    setenv("ASAN_OPTIONS", "detect_leaks=0:exitcode=99", 1); /* MPI keeps memory to the end */
    /* It is not built with the sanitizer, and takes locks of its own in two orders. */
    setenv("TSAN_OPTIONS", "halt_on_error=1:detect_deadlocks=0:ignore_noninstrumented_modules=1",
           1);
    execlp("mpirun", "mpirun", "-np", count, "--oversubscribe", "--bind-to", "none", program,
           (char *)NULL);
    printf("skipped: mpirun: %s\n", strerror(errno));
    return 0;
}

int main(int argc, char **argv)
{
    (void)argc;
#ifndef LS_HAVE_MPI
    printf("skipped: built without MPI\n");
    return 0;
#endif
    if (!getenv("OMPI_COMM_WORLD_SIZE")) return start_processes(argv[0]);
    bool first = strcmp(getenv("OMPI_COMM_WORLD_RANK"), "0") == 0;
    if (!first && !freopen("/dev/null", "w", stdout)) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(everyone_has_a_place, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_gathered_is_everyones, setup, teardown),
        cmocka_unit_test_setup_teardown(one_wish_to_stop_is_everyones, setup, teardown),
        cmocka_unit_test_setup_teardown(equal_lines_are_fine_and_others_are_told, setup, teardown),
        cmocka_unit_test_setup_teardown(ranks_read_each_others_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(messages_arrive_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(a_rank_that_fails_stops_all_and_all_say_why, setup,
                                        teardown),
    };
    /* A process that ends before MPI has ended makes mpirun end the others: all at once, then. */
    int failed = cmocka_run_group_tests_name("mpi", tests, NULL, NULL);
    if (failed) return failed;
    ls_processes_finish();
    return 0;
}

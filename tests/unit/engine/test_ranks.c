/* Ranks of one process, looked into: what they hold after a step, how much they read from one
 * another, in which order their sums must be added, and what becomes of a rank that fails. */
#include "tiny_ranks.h"

#include <stdatomic.h>

#include "base/alloc.h"
#include "base/topology.h"
#include "engine/rank_group.h"

/* Eight leaves; the last batch of an epoch has two of them. */
enum { ROWS = 102, BATCH = 32, STEPS_AN_EPOCH = 4 };

static char *folder;
static const char *train, *alike;

static int setup(void **state)
{
    (void)state;
    folder = test_folder();
    train = strdup(tiny_file(folder, "train.tsv", ROWS));
    alike = strdup(tiny_alike(folder, "alike.tsv", ROWS));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free((char *)train);
    free((char *)alike);
    test_folder_remove(folder);
    return 0;
}

/* --- what a rank holds ------------------------------------------------------------------------ */

static tiny_held train_by_hand(int count, int64_t samples_per_pass,
                               const ls_device_operations *operations)
{
    tiny_ranks r;
    tiny_ranks_open(&r, &(tiny_ranks_options){.rows = train,
                                              .folder = folder,
                                              .count = count,
                                              .batch_size = BATCH,
                                              .samples_per_pass = samples_per_pass,
                                              .operations = operations});
    tiny_ranks_steps(&r, 2 * STEPS_AN_EPOCH);
    tiny_held held = tiny_ranks_held(&r);
    tiny_ranks_close(&r);
    return held;
}

static void moments_are_those_of_one_rank_too(void **state)
{
    (void)state;
    static const int64_t passes[] = {LS_SAMPLES_ALL, 6};
    tiny_held single = train_by_hand(1, LS_SAMPLES_ALL, NULL);
    for (int count = 1; count <= TINY_MOST_RANKS; count++) {
        for (int i = 0; i < 2; i++) {
            tiny_held other = train_by_hand(count, passes[i], NULL);
            if (!tiny_same(&other, &single))
                fail_msg("%d ranks, %lld samples a pass: other bits", count, (long long)passes[i]);
            free(other.elements);
        }
    }
    free(single.elements);
}

/* --- the rule switched off -------------------------------------------------------------------- */

static const ls_device_operations *cpu; /* what the operations below stand in front of */

/* The ranks' partial sums, one after the other. */
static void sum_in_rank_order(ls_device *device, const ls_ordered_sum *sum)
{
    uint8_t chain[TINY_MOST_RANKS * 4];
    ls_ordered_sum other = *sum;
    assert_true(sum->count <= (int32_t)sizeof chain);
    for (int32_t i = 0; i < sum->count; i++)
        chain[i] = i > 0;
    other.merges = chain;
    cpu->ordered_sum(device, &other);
}

static void the_order_of_ranks_is_not_enough(void **state)
{
    (void)state;
    ls_error error;
    ls_device *device;
    assert_ok(ls_cpu_device_new(&device, 1, 0, &error), error);
    cpu = device->operations;
    ls_device_operations operations = *cpu;
    operations.ordered_sum = sum_in_rank_order;
    ls_device_free(device);

    tiny_held single = train_by_hand(1, LS_SAMPLES_ALL, NULL);
    for (int count = 2; count <= 4; count++) {
        tiny_held other = train_by_hand(count, LS_SAMPLES_ALL, &operations);
        /* Two sums have one order only. */
        assert_int_equal(tiny_same(&other, &single), count == 2);
        free(other.elements);
    }
    free(single.elements);
}

/* --- what is sent ----------------------------------------------------------------------------- */

enum { MOST_TABLE_ROWS = 2048 };

/* Elements of one table's gradient that are read from other ranks: each rank sums an even part of
 * the touched rows, and reads of each row the sums of those ranks that have touched it; then all
 * rows go to all. *dense: as if every rank had touched all of them. */
static int64_t table_elements(const ls_batch *batch, const int32_t *row_of_token, int ranks,
                              int64_t hidden, int64_t *dense)
{
    static bool touches[MOST_TABLE_ROWS][TINY_MOST_RANKS];
    memset(touches, 0, sizeof touches);
    int share = batch->samples / ranks;
    for (int32_t sample = 0; sample < batch->samples; sample++)
        for (int32_t t = batch->offsets[sample]; t < batch->offsets[sample + 1]; t++) {
            assert_in_range(row_of_token[t], 0, MOST_TABLE_ROWS - 1);
            touches[row_of_token[t]][sample / share] = true;
        }
    int64_t touched = 0, index = 0, rows = 0;
    for (int row = 0; row < MOST_TABLE_ROWS; row++)
        for (int rank = 0, any = 0; rank < ranks && !any; rank++)
            touched += any = touches[row][rank];
    for (int row = 0; row < MOST_TABLE_ROWS; row++) {
        int from = 0;
        for (int rank = 0; rank < ranks; rank++)
            from += touches[row][rank];
        if (from == 0) continue;
        int owner = 0;
        while (index >= touched * (owner + 1) / ranks)
            owner++;
        rows += from - touches[row][owner] + ranks - 1;
        index++;
    }
    *dense = 2 * (ranks - 1) * touched * hidden;
    return rows * hidden;
}

/* Of a full batch; *dense as above. */
static int64_t expected_elements(const tiny_ranks *r, const ls_batch *batch, int64_t *dense)
{
    static int32_t words[BATCH * 64], positions[BATCH * 64], types[BATCH * 64];
    const ls_assembly *assembly = &r->programs.training;
    int64_t others = r->count - 1, part, elements = 2 * others; /* the loss */
    assert_int_equal(batch->samples, BATCH);
    for (int32_t sample = 0; sample < batch->samples; sample++)
        for (int32_t t = batch->offsets[sample]; t < batch->offsets[sample + 1]; t++) {
            words[t] = batch->ids[t];
            positions[t] = t - batch->offsets[sample];
            types[t] = batch->types[t];
        }
    *dense = elements;
    for (size_t i = 0; i < assembly->model.parameter_count; i++) {
        const ls_value *parameter =
            ls_value_of(assembly->program, assembly->model.parameters[i].value);
        if (!parameter->row_sparse) {
            int64_t own = 2 * others * ls_value_elements(parameter, &ls_fixed_extents);
            elements += own;
            *dense += own;
            continue;
        }
        const int32_t *rows = strstr(parameter->name, "word")       ? words
                              : strstr(parameter->name, "position") ? positions
                                                                    : types;
        int64_t own = table_elements(batch, rows, r->count, parameter->shape[1].constant, &part);
        elements += own;
        *dense += part;
    }
    return elements;
}

/* Where every rank has the same power of two of leaves: 2 (N - 1) elements a parameter, of
 * embedding tables the touched rows only, and for the loss; more passes send nothing more. */
static void ranks_send_what_the_formula_says(void **state)
{
    (void)state;
    static const int counts[] = {1, 2, 4, 8};
    static const int64_t passes[] = {LS_SAMPLES_ALL, 2};
    for (int i = 0; i < 16; i++) {
        tiny_ranks r;
        bool every_rank_touches_all = i / 8;
        ls_error error;
        ls_step_result result;
        int64_t dense;
        tiny_ranks_open(&r, &(tiny_ranks_options){.rows = every_rank_touches_all ? alike : train,
                                                  .folder = folder,
                                                  .count = counts[i % 4],
                                                  .batch_size = BATCH,
                                                  .samples_per_pass = passes[i / 4 % 2]});
        int64_t before = ls_ranks_elements(r.ranks);
        assert_int_equal(before, 0);
        for (int64_t step = 1; step < STEPS_AN_EPOCH; step++) {
            const ls_batch *batch = tiny_ranks_batch(&r);
            assert_ok(ls_ranks_step(r.ranks, step, batch, &result, &error), error);
            int64_t sent = ls_ranks_elements(r.ranks) - before;
            assert_int_equal(sent, expected_elements(&r, batch, &dense));
            if (every_rank_touches_all)
                assert_int_equal(sent, dense);
            else
                assert_true(r.count < 8 ? sent <= dense : sent < dense);
            before += sent;
        }
        tiny_ranks_close(&r);
    }
}

/* --- memory ----------------------------------------------------------------------------------- */

static int refuse(void *context, size_t bytes)
{
    (void)context, (void)bytes;
    return 1;
}

static void steps_of_ranks_allocate_nothing(void **state)
{
    (void)state;
    tiny_ranks r;
    tiny_ranks_open(&r, &(tiny_ranks_options){.rows = train,
                                              .folder = folder,
                                              .count = 3,
                                              .batch_size = BATCH,
                                              .samples_per_pass = 6});
    uint64_t count = ls_allocation_count();
    ls_set_allocation_hook(refuse, NULL);
    tiny_ranks_steps(&r, 2 * STEPS_AN_EPOCH);
    ls_set_allocation_hook(NULL, NULL);
    assert_true(ls_allocation_count() == count);
    tiny_ranks_close(&r);
}

/* --- a rank that fails ------------------------------------------------------------------------ */

enum { GROUP = 5 };

typedef struct group_run {
    ls_rank_group *group;
    int failing; /* -1: none */
    _Atomic int ran;
} group_run;

/* All ranks must be here at once to pass; the failing one never comes. */
static ls_status meet(void *context, int rank, ls_error *error)
{
    group_run *run = context;
    ls_comm *comm = ls_rank_group_comm(run->group, rank);
    atomic_fetch_add(&run->ran, 1);
    for (int i = 0; i < 3; i++) {
        if (rank == run->failing && i == 1)
            return ls_fail(error, LS_INVALID, "rank %d has had enough", rank);
        LS_TRY(comm->operations->barrier(comm, error));
    }
    return LS_OK;
}

static void a_failing_rank_stops_the_group(void **state)
{
    (void)state;
    for (int failing = -1; failing < GROUP; failing++) {
        ls_error error = {0};
        group_run run = {.failing = -1};
        ls_comm *comms[GROUP];
        assert_ok(ls_comm_threads_new(comms, GROUP, &error), error);
        assert_ok(ls_rank_group_new(&run.group, comms, GROUP, NULL, &error), error);
        assert_int_equal(ls_rank_group_size(run.group), GROUP);
        for (int i = 0; i < 10; i++)
            assert_ok(ls_rank_group_run(run.group, meet, &run, &error), error);
        assert_int_equal(run.ran, 10 * GROUP);
        run.failing = failing;
        ls_status status = ls_rank_group_run(run.group, meet, &run, &error);
        assert_int_equal(run.ran, 11 * GROUP);
        if (failing < 0) {
            assert_ok(status, error);
        } else {
            /* Its own words, not those of a rank that waited for it. */
            assert_int_equal(status, LS_INVALID);
            assert_int_equal(error.rank, failing);
            assert_non_null(strstr(error.text, "has had enough"));
            /* And nobody waits in a later call. */
            run.failing = -1;
            assert_int_equal(ls_rank_group_run(run.group, meet, &run, &error), LS_INTERRUPTED);
        }
        ls_rank_group_free(run.group);
    }
}

/* --- cores ------------------------------------------------------------------------------------ */

static ls_status note_cores(void *context, int rank, ls_error *error)
{
    (void)error;
    ((ls_cores *)context)[rank] = ls_cores_own();
    return LS_OK;
}

static void each_rank_stays_on_its_cores(void **state)
{
    (void)state;
    enum { RANKS = 2 };
    ls_error error;
    ls_rank_group *group;
    ls_comm *comms[RANKS];
    ls_cores cores[RANKS], seen[RANKS];
    const ls_cores all = ls_cores_own();
    ls_topology *topology;
    assert_ok(ls_topology_new(&topology, NULL, &error), error);
    for (int rank = 0; rank < RANKS; rank++)
        cores[rank] = ls_topology_part(topology, &all, RANKS, rank);
    ls_topology_free(topology);
    assert_ok(ls_comm_threads_new(comms, RANKS, &error), error);
    assert_ok(ls_rank_group_new(&group, comms, RANKS, cores, &error), error);
    for (int i = 0; i < 3; i++) {
        assert_ok(ls_rank_group_run(group, note_cores, seen, &error), error);
        assert_memory_equal(seen, cores, sizeof cores);
        /* The caller has all of them again. */
        const ls_cores after = ls_cores_own();
        assert_memory_equal(&after, &all, sizeof all);
    }
    ls_rank_group_free(group);
    assert_ok(ls_comm_threads_new(comms, RANKS, &error), error);
    assert_ok(ls_rank_group_new(&group, comms, RANKS, NULL, &error), error);
    assert_ok(ls_rank_group_run(group, note_cores, seen, &error), error);
    for (int rank = 0; rank < RANKS; rank++)
        assert_memory_equal(&seen[rank], &all, sizeof all);
    ls_rank_group_free(group);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moments_are_those_of_one_rank_too),
        cmocka_unit_test(the_order_of_ranks_is_not_enough),
        cmocka_unit_test(ranks_send_what_the_formula_says),
        cmocka_unit_test(steps_of_ranks_allocate_nothing),
        cmocka_unit_test(a_failing_rank_stops_the_group),
        cmocka_unit_test(each_rank_stays_on_its_cores),
    };
    return cmocka_run_group_tests_name("ranks", tests, setup, teardown);
}

/* Cores cut into groups of neighbours by the machine's topology, and threads that stay on theirs.
 */
#include "testing.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/threads.h"
#include "base/topology.h"

static int count_of(const ls_cores *cores)
{
    int count = 0;
    for (int word = 0; word < 16; word++)
        count += __builtin_popcountll(cores->bits[word]);
    return count;
}

static bool equal(const ls_cores *a, const ls_cores *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static ls_topology *machine(const char *description)
{
    ls_error error;
    ls_topology *topology;
    assert_ok(ls_topology_new(&topology, description, &error), error);
    return topology;
}

static const char *part_of(const char *description, uint64_t allowed, int parts, int part)
{
    static char text[LS_CORES_BYTES];
    ls_topology *topology = machine(description);
    const ls_cores all = {{allowed}};
    ls_cores some = ls_topology_part(topology, &all, parts, part);
    ls_topology_free(topology);
    return ls_cores_print(text, &some);
}

static void parts_cut_the_cores_evenly(void **state)
{
    (void)state;
    /* Ten of 96 cores, with gaps, over a word's border. */
    const ls_cores all = {{0xF000000000000055ull, 0x3}};
    ls_topology *topology = machine("core:96 pu:1");
    assert_int_equal(count_of(&all), 10);
    assert_int_equal(ls_topology_core_count(topology, &all), 10);
    for (int parts = 1; parts <= 10; parts++) {
        ls_cores seen = {{0}};
        for (int part = 0; part < parts; part++) {
            ls_cores some = ls_topology_part(topology, &all, parts, part);
            assert_in_range(count_of(&some), 10 / parts, (10 + parts - 1) / parts);
            for (int word = 0; word < 16; word++) {
                assert_true((some.bits[word] & seen.bits[word]) == 0);
                seen.bits[word] |= some.bits[word];
            }
        }
        assert_true(equal(&seen, &all));
    }
    const ls_cores third = ls_topology_part(topology, &all, 3, 1), wanted = {{0x3000000000000040}};
    assert_true(equal(&third, &wanted));
    const ls_cores too_many = ls_topology_part(topology, &all, 11, 4);
    assert_true(equal(&too_many, &all));
    ls_topology_free(topology);
}

static void hardware_threads_of_a_core_stay_together(void **state)
{
    (void)state;
    /* As many machines number them: core i has the hardware threads i and i + 4. */
    const char *smt = "pack:1 core:4 pu:2(indexes=0,4,1,5,2,6,3,7)";
    assert_string_equal(part_of(smt, 0xff, 1, 0), "0-7");
    assert_string_equal(part_of(smt, 0xff, 2, 0), "0-1,4-5");
    assert_string_equal(part_of(smt, 0xff, 4, 3), "3,7");
    /* Fewer cores than parts: by hardware threads, the two of a core after one another. */
    assert_string_equal(part_of(smt, 0xff, 8, 0), "0");
    assert_string_equal(part_of(smt, 0xff, 8, 1), "4");
    /* One hardware thread of each core is allowed, and one core not at all. */
    assert_string_equal(part_of(smt, 0x07, 3, 2), "2");
    ls_topology *topology = machine(smt);
    const ls_cores both = {{0x33}}, first = {{0x07}}, outside = {{0x100}};
    assert_int_equal(ls_topology_core_count(topology, &both), 2);
    assert_int_equal(ls_topology_core_count(topology, &first), 3);
    assert_int_equal(ls_topology_core_count(topology, &outside), 0);
    ls_topology_free(topology);
}

static void parts_follow_the_nodes(void **state)
{
    (void)state;
    /* Two nodes whose cores are numbered in turns: a half is a node. */
    const char *turns = "node:2 core:4 pu:1(indexes=0,2,4,6,1,3,5,7)";
    assert_string_equal(part_of(turns, 0xff, 2, 0), "0,2,4,6");
    assert_string_equal(part_of(turns, 0xff, 2, 1), "1,3,5,7");
    assert_string_equal(part_of(turns, 0xff, 4, 1), "4,6");
}

static void cores_are_printed_as_ranges(void **state)
{
    (void)state;
    char text[LS_CORES_BYTES];
    ls_cores cores = {{0}};
    assert_string_equal(ls_cores_print(text, &cores), "none");
    cores.bits[0] = 0x800000000000010full;
    cores.bits[1] = 1;
    cores.bits[15] = 0x8000000000000000ull;
    assert_string_equal(ls_cores_print(text, &cores), "0-3,8,63-64,1023");
    for (int word = 0; word < 16; word++)
        cores.bits[word] = 0x5555555555555555ull;
    ls_cores_print(text, &cores);
    assert_true(strlen(text) < LS_CORES_BYTES);
    assert_string_equal(text + strlen(text) - 4, ",...");
}

static void no_machine_is_an_error(void **state)
{
    (void)state;
    ls_error error;
    ls_topology *topology;
    assert_int_equal(ls_topology_new(&topology, "core:none", &error), LS_INVALID);
    assert_non_null(strstr(error.text, "'core:none' describes no machine"));
}

static void *bind_myself(void *argument)
{
    ls_cores *cores = argument;
    ls_cores_bind(cores);
    *cores = ls_cores_own();
    return NULL;
}

static void a_thread_stays_on_its_cores(void **state)
{
    (void)state;
    const ls_cores all = ls_cores_own();
    int count = count_of(&all);
    ls_topology *topology = machine(NULL);
    int physical = 0;
    ls_error error;
    assert_ok(ls_core_count(&physical, &error), error);
    assert_in_range(physical, 1, count);
    assert_int_equal(physical, ls_topology_core_count(topology, &all));
    for (int part = 0; part < count; part++) {
        pthread_t thread;
        const ls_cores one = ls_topology_part(topology, &all, count, part);
        ls_cores cores = one;
        assert_int_equal(count_of(&one), 1);
        assert_int_equal(pthread_create(&thread, NULL, bind_myself, &cores), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_true(equal(&cores, &one));
    }
    ls_topology_free(topology);
    /* None at all is refused, and changes nothing. */
    ls_cores none = {{0}};
    ls_cores_bind(&none);
    const ls_cores after = ls_cores_own();
    assert_true(equal(&after, &all));
}

enum { THREADS = 4 };
typedef struct noted {
    atomic_int arrived;
    ls_cores of_thread[THREADS];
} noted;

/* A part that waits for all others: each thread has one, however busy the machine is. */
static void note_cores(void *context, int64_t part, int thread)
{
    noted *all = context;
    (void)part;
    all->of_thread[thread] = ls_cores_own();
    atomic_fetch_add(&all->arrived, 1);
    while (atomic_load(&all->arrived) < THREADS)
        sched_yield();
}

static void a_pool_stays_on_its_cores(void **state)
{
    (void)state;
    ls_error error;
    ls_threads *threads;
    noted cores = {0};
    ls_topology *topology = machine(NULL);
    const ls_cores all = ls_cores_own(), one = ls_topology_part(topology, &all, count_of(&all), 0);
    ls_topology_free(topology);
    assert_ok(ls_threads_new(&threads, THREADS, &error), error);
    ls_threads_bind(threads, &one);
    ls_threads_run(threads, THREADS, note_cores, &cores);
    /* The caller is in the pool, but its cores are its own affair. */
    assert_true(equal(&cores.of_thread[0], &all));
    for (int thread = 1; thread < THREADS; thread++)
        assert_true(equal(&cores.of_thread[thread], &one));
    ls_threads_free(threads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_cut_the_cores_evenly),
        cmocka_unit_test(hardware_threads_of_a_core_stay_together),
        cmocka_unit_test(parts_follow_the_nodes),
        cmocka_unit_test(cores_are_printed_as_ranges),
        cmocka_unit_test(no_machine_is_an_error),
        cmocka_unit_test(a_thread_stays_on_its_cores),
        cmocka_unit_test(a_pool_stays_on_its_cores),
    };
    return cmocka_run_group_tests_name("cores", tests, NULL, NULL);
}

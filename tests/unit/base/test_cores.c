/* Cores cut into groups of neighbours, and threads that stay on theirs. */
#include "testing.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/threads.h"

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

static void parts_cut_the_cores_evenly(void **state)
{
    (void)state;
    /* Ten cores with gaps, over a word's border. */
    const ls_cores all = {{0xF000000000000055ull, 0x3}};
    assert_int_equal(count_of(&all), 10);
    for (int parts = 1; parts <= 10; parts++) {
        ls_cores seen = {{0}};
        for (int part = 0; part < parts; part++) {
            ls_cores some = ls_cores_part(&all, parts, part);
            assert_in_range(count_of(&some), 10 / parts, (10 + parts - 1) / parts);
            for (int word = 0; word < 16; word++) {
                assert_true((some.bits[word] & seen.bits[word]) == 0);
                seen.bits[word] |= some.bits[word];
            }
        }
        assert_true(equal(&seen, &all));
    }
    const ls_cores third = ls_cores_part(&all, 3, 1), wanted = {{0x3000000000000040ull}};
    assert_true(equal(&third, &wanted));
    const ls_cores too_many = ls_cores_part(&all, 11, 4);
    assert_true(equal(&too_many, &all));
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
    assert_int_equal(count, ls_core_count());
    for (int part = 0; part < count; part++) {
        pthread_t thread;
        const ls_cores one = ls_cores_part(&all, count, part);
        ls_cores cores = one;
        assert_int_equal(count_of(&one), 1);
        assert_int_equal(pthread_create(&thread, NULL, bind_myself, &cores), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_true(equal(&cores, &one));
    }
    /* None at all is refused, and changes nothing. */
    ls_cores none = {{0}};
    ls_cores_bind(&none);
    const ls_cores after = ls_cores_own();
    assert_true(equal(&after, &all));
}

static void note_cores(void *context, int64_t part, int thread)
{
    ls_cores *of_thread = context;
    (void)part;
    of_thread[thread] = ls_cores_own();
}

static void a_pool_stays_on_its_cores(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    ls_error error;
    ls_threads *threads;
    ls_cores of_thread[THREADS] = {0}, nowhere = {{0}};
    const ls_cores all = ls_cores_own(), one = ls_cores_part(&all, count_of(&all), 0);
    assert_ok(ls_threads_new(&threads, THREADS, &error), error);
    ls_threads_bind(threads, &one);
    for (int round = 0; round < 50; round++)
        ls_threads_run(threads, 100, note_cores, of_thread);
    /* The caller is in the pool, but its cores are its own affair. */
    assert_true(equal(&of_thread[0], &all));
    for (int thread = 1; thread < THREADS; thread++)
        if (!equal(&of_thread[thread], &nowhere)) assert_true(equal(&of_thread[thread], &one));
    ls_threads_free(threads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_cut_the_cores_evenly),
        cmocka_unit_test(a_thread_stays_on_its_cores),
        cmocka_unit_test(a_pool_stays_on_its_cores),
    };
    return cmocka_run_group_tests_name("cores", tests, NULL, NULL);
}

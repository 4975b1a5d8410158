/* Queues of the engine: items in their order, on one thread, waited for, and done before the
 * end. */
#include "testing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/alloc.h"
#include "base/queue.h"

enum { ITEMS = 5000 };

static int items[ITEMS];

typedef struct record {
    int seen[ITEMS];
    _Atomic int count;
    pthread_t thread;
    _Atomic bool open; /* else work waits at the gate */
} record;

static void take(void *context, const void *item)
{
    record *r = context;
    static const struct timespec moment = {0, 100000};
    while (!atomic_load(&r->open))
        nanosleep(&moment, NULL);
    r->thread = pthread_self();
    r->seen[r->count] = *(const int *)item;
    atomic_fetch_add(&r->count, 1);
}

static int setup(void **state)
{
    (void)state;
    for (int i = 0; i < ITEMS; i++)
        items[i] = i;
    return 0;
}

/* Waiting for one item does not wait for those behind it. */
static void one_item_can_be_waited_for(void **state)
{
    (void)state;
    static record r;
    ls_error error;
    ls_queue *queue;
    r.count = 0;
    r.open = true;
    assert_ok(ls_queue_new(&queue, ITEMS, take, &r, &error), error);
    for (int i = 0; i < 10; i++) {
        long number = ls_queue_push(queue, &items[i]);
        assert_int_equal(number, i + 1);
        ls_queue_wait_for(queue, number);
        assert_int_equal(r.count, i + 1);
    }
    r.open = false;
    long last = ls_queue_push(queue, &items[10]);
    ls_queue_wait_for(queue, last - 1); /* done long ago: returns with the last one at the gate */
    assert_int_equal(r.count, 10);
    r.open = true;
    ls_queue_wait_for(queue, last);
    assert_int_equal(r.count, 11);
    ls_queue_free(queue);
}

static void items_are_done_in_their_order(void **state)
{
    (void)state;
    static record r;
    static const int capacities[] = {1, 2, 7, ITEMS};
    for (int c = 0; c < 4; c++) {
        ls_error error;
        ls_queue *queue;
        r.count = 0;
        r.open = true;
        assert_ok(ls_queue_new(&queue, capacities[c], take, &r, &error), error);
        ls_queue_wait(queue); /* for nothing */
        for (int i = 0; i < ITEMS; i++)
            ls_queue_push(queue, &items[i]);
        ls_queue_wait(queue);
        assert_int_equal(r.count, ITEMS);
        assert_memory_equal(r.seen, items, sizeof items);
        assert_false(pthread_equal(r.thread, pthread_self()));
        ls_queue_free(queue);
    }
}

/* Pushing does not wait for the work while there is room. */
static void the_pusher_goes_on(void **state)
{
    (void)state;
    static record r;
    ls_error error;
    ls_queue *queue;
    r.count = 0;
    r.open = false;
    assert_ok(ls_queue_new(&queue, 4, take, &r, &error), error);
    for (int i = 0; i < 4; i++)
        ls_queue_push(queue, &items[i]);
    assert_int_equal(r.count, 0);
    r.open = true;
    ls_queue_push(queue, &items[4]); /* waits for one of the four */
    ls_queue_wait(queue);
    assert_int_equal(r.count, 5);
    ls_queue_free(queue);
}

static void freeing_finishes_what_was_pushed(void **state)
{
    (void)state;
    static record r;
    ls_error error;
    for (int round = 0; round < 50; round++) {
        ls_queue *queue;
        r.count = 0;
        r.open = true;
        assert_ok(ls_queue_new(&queue, 10, take, &r, &error), error);
        for (int i = 0; i < round % 10; i++)
            ls_queue_push(queue, &items[i]);
        ls_queue_free(queue);
        assert_int_equal(r.count, round % 10);
    }
    ls_queue_free(NULL);
}

static int refuse(void *context, size_t bytes)
{
    (void)bytes;
    return --*(int *)context == 0;
}

static void memory_may_be_short(void **state)
{
    (void)state;
    static record r;
    size_t bytes = ls_allocated_bytes();
    for (int turn = 1; turn <= 2; turn++) {
        int left = turn;
        ls_error error;
        ls_queue *queue;
        ls_set_allocation_hook(refuse, &left);
        ls_status status = ls_queue_new(&queue, 4, take, &r, &error);
        ls_set_allocation_hook(NULL, NULL);
        assert_int_equal(status, LS_NO_MEMORY);
        assert_true(ls_allocated_bytes() == bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_are_done_in_their_order),
        cmocka_unit_test(one_item_can_be_waited_for),
        cmocka_unit_test(the_pusher_goes_on),
        cmocka_unit_test(freeing_finishes_what_was_pushed),
        cmocka_unit_test(memory_may_be_short),
    };
    return cmocka_run_group_tests_name("queue", tests, setup, NULL);
}

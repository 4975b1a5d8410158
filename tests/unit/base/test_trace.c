/* Recording: only while it is on, only whole steps, never into memory that is not there. */
#include "testing.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/trace.h"
#include "base/usage.h"

static void add(ls_trace *trace, int rank, ls_trace_thread thread, int count)
{
    for (int i = 0; i < count; i++) {
        ls_span span = {.name = "work", .begin = i, .end = i + 1, .op = i};
        ls_track_add(ls_trace_track(trace, rank, thread), &span);
    }
}

static void nothing_is_recorded_while_it_is_off(void **state)
{
    (void)state;
    ls_error error;
    ls_trace *trace = NULL;
    add(NULL, 0, LS_TRACE_COMPUTE, 1);
    ls_trace_step_begin(NULL);
    assert_false(ls_trace_step_end(NULL));
    assert_ok(ls_trace_new(&trace, 2, 10, &error), error);
    uint64_t allocations = ls_allocation_count();
    add(trace, 1, LS_TRACE_COMPUTE, 3);
    assert_int_equal(ls_trace_track(trace, 1, LS_TRACE_COMPUTE)->count, 0);
    ls_trace_step_begin(trace);
    add(trace, 1, LS_TRACE_COMPUTE, 3);
    assert_true(ls_trace_step_end(trace));
    add(trace, 1, LS_TRACE_COMPUTE, 3);
    assert_int_equal(ls_trace_track(trace, 1, LS_TRACE_COMPUTE)->count, 3);
    assert_int_equal(ls_trace_track(trace, 0, LS_TRACE_COMPUTE)->count, 0);
    assert_int_equal(ls_trace_track(trace, 1, LS_TRACE_COMPUTE)->spans[2].op, 2);
    add(trace, 0, LS_TRACE_DATA, 2); /* reading goes on between steps */
    ls_trace_close(trace);
    add(trace, 0, LS_TRACE_DATA, 2);
    assert_int_equal(ls_trace_track(trace, 0, LS_TRACE_DATA)->count, 2);
    ls_trace_step_begin(trace);
    add(trace, 1, LS_TRACE_COMPUTE, 3);
    assert_int_equal(ls_trace_track(trace, 1, LS_TRACE_COMPUTE)->count, 3);
    assert_int_equal(ls_allocation_count(), allocations);
    ls_trace_free(trace);
    ls_trace_free(NULL);
}

static void a_step_that_does_not_fit_is_taken_back(void **state)
{
    (void)state;
    ls_error error;
    ls_trace *trace = NULL;
    assert_ok(ls_trace_new(&trace, 2, 10, &error), error);
    for (int step = 0; step < 4; step++) {
        ls_trace_step_begin(trace);
        add(trace, 0, LS_TRACE_COMPUTE, 4);
        add(trace, 1, LS_TRACE_COMMUNICATION, 1);
        assert_int_equal(ls_trace_step_end(trace), step < 2);
    }
    assert_int_equal(ls_trace_track(trace, 0, LS_TRACE_COMPUTE)->count, 8);
    assert_int_equal(ls_trace_track(trace, 1, LS_TRACE_COMMUNICATION)->count, 2);
    ls_trace_free(trace);
    /* Of a first step that is too large, as much as fits is worth more than nothing. */
    assert_ok(ls_trace_new(&trace, 1, 10, &error), error);
    ls_trace_step_begin(trace);
    add(trace, 0, LS_TRACE_COMPUTE, 40);
    assert_false(ls_trace_step_end(trace));
    assert_int_equal(ls_trace_track(trace, 0, LS_TRACE_COMPUTE)->count, 10);
    ls_trace_free(trace);
}

static int fail_at(void *context, size_t bytes)
{
    long *left = context;
    (void)bytes;
    return (*left)-- <= 0;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    size_t bytes = ls_allocated_bytes();
    ls_status status = LS_NO_MEMORY;
    for (long turn = 0; status != LS_OK; turn++) {
        ls_error error;
        ls_trace *trace = NULL;
        long left = turn;
        ls_set_allocation_hook(fail_at, &left);
        status = ls_trace_new(&trace, 2, 10, &error);
        ls_set_allocation_hook(NULL, NULL);
        ls_trace_free(trace);
        assert_int_equal(ls_allocated_bytes(), bytes);
    }
}

static void the_process_uses_time_and_memory(void **state)
{
    (void)state;
    ls_usage before = ls_usage_now();
    assert_true(before.resident_bytes > 100000 && before.peak_bytes >= before.resident_bytes / 2);
    for (double end = ls_seconds() + 0.05; ls_seconds() < end;)
        continue;
    assert_true(ls_usage_now().cpu_seconds > before.cpu_seconds);
    assert_true(ls_wall_seconds() > 1.6e9);
    ls_usage_meter meter = {0};
    ls_usage_meter_update(&meter);
    double sampled = meter.sampled;
    ls_usage_meter_update(&meter);
    assert_true(meter.sampled == sampled && meter.cores == 0); /* once a second */
    meter.sampled -= 2;
    meter.usage.cpu_seconds -= 1;
    ls_usage_meter_update(&meter);
    assert_true(meter.cores > 0.45 && meter.cores < 0.6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_recorded_while_it_is_off),
        cmocka_unit_test(a_step_that_does_not_fit_is_taken_back),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(the_process_uses_time_and_memory),
    };
    return cmocka_run_group_tests_name("base/trace", tests, NULL, NULL);
}

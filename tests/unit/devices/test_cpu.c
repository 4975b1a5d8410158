/* What the engine relies on from any device: bytes that are aligned, zeroed, counted and kept
 * within a budget, and a program refused by the name of the op that the device lacks. */
#include "testing.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "engine/executor.h"
#include "ops/registry.h"

static ls_error error;

static void memory_is_zeroed_aligned_and_counted(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 63, 64, 4096, 1 << 20, 5 << 20};
    enum { COUNT = sizeof sizes / sizeof *sizes };
    size_t before = ls_allocated_bytes();
    ls_device *device;
    void *pieces[COUNT];
    int64_t sum = 0;
    assert_ok(ls_cpu_device_new(&device, 2, 0, &error), error);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < COUNT; i++) {
            assert_ok(device->operations->allocate(device, sizes[i],
                                                   i % 2 ? LS_MEMORY_DENSE : LS_MEMORY_SPARSE,
                                                   "a piece", &pieces[i], &error),
                      error);
            assert_int_equal((uintptr_t)pieces[i] % 64, 0);
            sum += sizes[i];
            assert_int_equal(device->allocated_bytes, sum);
            const unsigned char *bytes = pieces[i];
            for (int64_t b = 0; b<sizes[i]; b += sizes[i]> 4096 ? 1009 : 1)
                assert_int_equal(bytes[b], 0);
            memset(pieces[i], 0xa5, (size_t)sizes[i]);
        }
        for (int i = 0; i < COUNT; i++) {
            device->operations->release(device, pieces[i]);
            sum -= sizes[i];
            assert_int_equal(device->allocated_bytes, sum);
        }
    }
    device->operations->release(device, NULL);
    ls_device_free(device);
    assert_int_equal(ls_allocated_bytes(), before);
}

static void a_budget_is_kept_to_the_byte(void **state)
{
    (void)state;
    ls_device *device;
    void *piece, *other = NULL;
    assert_ok(ls_cpu_device_new(&device, 1, 1000, &error), error);
    assert_ok(device->operations->allocate(device, 600, LS_MEMORY_DENSE, "one", &piece, &error),
              error);
    assert_int_equal(
        device->operations->allocate(device, 401, LS_MEMORY_DENSE, "two", &other, &error),
        LS_NO_MEMORY);
    assert_non_null(strstr(error.text, "1000 bytes"));
    assert_non_null(strstr(error.text, "400 left"));
    assert_non_null(strstr(error.text, "two needs 401"));
    assert_int_equal(device->allocated_bytes, 600);
    assert_ok(device->operations->allocate(device, 400, LS_MEMORY_DENSE, "two", &other, &error),
              error);
    device->operations->release(device, piece);
    device->operations->release(device, other);
    ls_device_free(device);
}

static void scratch_takes_what_it_says(void **state)
{
    (void)state;
    static const ls_device_limits limits[] = {
        {100, 20, 64, 8}, {5000, 512, 3072, 64}, {1, 1, 1, 1}};
    ls_device *device;
    assert_ok(ls_cpu_device_new(&device, 3, 0, &error), error);
    for (int i = 0; i < 3; i++) {
        int64_t bytes = device->operations->scratch_bytes(device, &limits[i]);
        assert_true(bytes > 0);
        assert_ok(device->operations->reserve_scratch(device, &limits[i], &error), error);
        assert_int_equal(device->allocated_bytes, bytes);
    }
    ls_device_free(device);
}

static void every_kind_has_a_function(void **state)
{
    (void)state;
    ls_device *device;
    assert_ok(ls_cpu_device_new(&device, 1, 0, &error), error);
    static const ls_op_kind kinds[] = {
#define LS_OP_KIND(name, text) LS_OP_##name,
        LS_DEVICE_OP_LIST(LS_OP_KIND)
#undef LS_OP_KIND
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        assert_non_null(device->operations->function(device, kinds[i]));
    assert_null(device->operations->function(device, LS_OP_EXCHANGE_GRADIENTS)); /* the engine's */
    ls_device_free(device);
}

static ls_device_function no_function(const ls_device *device, ls_op_kind kind)
{
    (void)device, (void)kind;
    return NULL;
}

static void an_op_that_a_device_lacks_is_named(void **state)
{
    (void)state;
    ls_device *device;
    ls_program *program;
    ls_plan plan;
    ls_executor *executor;
    static const ls_extents extents = {{1, 1, 1}};
    assert_ok(ls_cpu_device_new(&device, 1, 0, &error), error);
    assert_ok(ls_program_new(&program, ls_op_definitions, &error), error);
    ls_op op = ls_op_of(LS_OP_DROPOUT, LS_SEGMENT_PASS, "layer.0");
    assert_ok(ls_program_op(program, &op, &error), error);
    assert_ok(ls_plan_make(&plan, program, &extents, &error), error);
    ls_device_operations lacking = *device->operations;
    lacking.function = no_function;
    device->operations = &lacking;
    ls_executor_options options = {
        .program = program, .plan = &plan, .device = device, .limits = {1, 1, 1, 1}};
    assert_int_equal(ls_executor_new(&executor, &options, &error), LS_UNSUPPORTED);
    assert_non_null(strstr(error.text, "cpu"));
    assert_non_null(strstr(error.text, "dropout"));
    ls_plan_deinit(&plan);
    ls_program_free(program);
    ls_device_free(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_aligned_and_counted),
        cmocka_unit_test(a_budget_is_kept_to_the_byte),
        cmocka_unit_test(scratch_takes_what_it_says),
        cmocka_unit_test(every_kind_has_a_function),
        cmocka_unit_test(an_op_that_a_device_lacks_is_named),
    };
    return cmocka_run_group_tests_name("cpu", tests, NULL, NULL);
}

/* What ops say they cost: profiles, shares of a peak and forecasts are made of it. */
#include "testing.h"

#include "ops/ops.h"
#include "ops/registry.h"

enum { T = 24, S = 7, N = 6, K = 10 };
static const ls_extents extents = {.size = {1, T, S}};

static ls_program *program;
static ls_error error;

static int new_program(void **state)
{
    (void)state;
    return ls_program_new(&program, ls_op_definitions, &error) != LS_OK;
}

static int free_program(void **state)
{
    (void)state;
    ls_program_free(program);
    return 0;
}

static ls_value_id value(const char *name, ls_dimension rows, int64_t columns)
{
    ls_value_id id;
    ls_value template = {.rank = columns ? 2 : 1, .shape = {rows, ls_fixed(columns)}};
    assert_ok(ls_program_value(program, &id, template, &error, "%s", name), error);
    return id;
}

static ls_cost cost_of(const ls_op *op)
{
    return program->definitions[op->kind]->cost(program, op, &extents);
}

/* A multiply and an add a weight and row; each operand is read or written once. */
static void a_product_and_its_gradients(void **state)
{
    (void)state;
    ls_value_id x = value("x", ls_per(LS_SYMBOL_TOKENS), K), w = value("w", ls_fixed(N), K);
    ls_value_id bias = value("bias", ls_fixed(N), 0), y;
    assert_ok(ls_linear(program, "linear", x, w, bias, LS_ACTIVATION_NONE, &y, &error), error);
    ls_cost forward = cost_of(&program->ops[0]);
    assert_true(forward.flops == 2.0 * T * N * K);
    assert_true(forward.bytes == 4.0 * (T * K + N * K + N + T * N));

    ls_op input = ls_op_of(LS_OP_LINEAR_INPUT_GRADIENT, LS_SEGMENT_PASS, "input");
    input.inputs[0] = y, input.inputs[1] = w, input.outputs[0] = x;
    assert_true(cost_of(&input).flops == forward.flops);
    assert_true(cost_of(&input).bytes == 4.0 * (T * N + N * K + T * K));
    ls_op weight = ls_op_of(LS_OP_WEIGHT_GRADIENT, LS_SEGMENT_PASS, "weight");
    weight.inputs[0] = y, weight.inputs[1] = x, weight.outputs[0] = w;
    assert_true(cost_of(&weight).flops == forward.flops);
    assert_true(cost_of(&weight).bytes == 4.0 * (T * N + T * K + N * K));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_product_and_its_gradients, new_program, free_program),
    };
    return cmocka_run_group_tests_name("costs", tests, NULL, NULL);
}

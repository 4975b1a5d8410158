/* The update ops on a device: norm, clip factor and AdamW against the formulas in double, for whole
 * tensors and for a table of which only some rows have a gradient. */
#include "testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/leaf_schedule.h"
#include "base/random.h"
#include "engine/executor.h"
#include "ops/registry.h"
#include "optimizers/optimizer.h"

enum { PARAMETERS = 3, ROWS = 9, COLUMNS = 170, STEPS = 5, TOUCHED = 4 };

static const int32_t touched_rows[TOUCHED] = {1, 2, 5, 8};
static const double learning_rate = 0.01;

typedef struct parameter {
    ls_value_id value, gradient_value;
    int64_t count;
    bool decays, sparse;
    double *held, *gradient, *first, *second; /* the reference's */
} parameter;

typedef struct update {
    ls_program *program;
    ls_inputs inputs;
    ls_plan plan;
    ls_device *device;
    ls_executor *executor;
    ls_gradient_norm_results norm;
    ls_optimizer_options options;
    ls_touched_rows touched;
    parameter parameters[PARAMETERS];
    uint32_t draws;
} update;

static ls_error error;

static double draw(update *u)
{
    ls_philox_block block = ls_philox((ls_philox_key){{9, 9}}, (ls_philox_block){{u->draws++}});
    return (double)(2 * ls_uniform(block.word[0]) - 1);
}

static double *numbers(int64_t count)
{
    double *values = calloc((size_t)count, sizeof *values);
    assert_non_null(values);
    return values;
}

/* A matrix that decays, a vector that does not, and a table with touched rows. */
static void declare(update *u)
{
    const ls_value templates[PARAMETERS] = {
        {.rank = 2, .shape = {ls_fixed(ROWS), ls_fixed(COLUMNS)}, .decay = true},
        {.rank = 1, .shape = {ls_fixed(COLUMNS)}},
        {.rank = 2,
         .shape = {ls_fixed(ROWS), ls_fixed(COLUMNS)},
         .decay = true,
         .row_sparse = true,
         .touched = u->inputs.word.touched},
    };
    ls_value_id gradients[64];
    ls_gradient_pass pass = {.program = u->program, .gradient = gradients};
    for (int i = 0; i < 64; i++)
        gradients[i] = LS_NO_VALUE;
    for (int i = 0; i < PARAMETERS; i++) {
        parameter *p = &u->parameters[i];
        ls_value value = templates[i];
        value.role = LS_ROLE_PARAMETER;
        value.parameter = LS_NO_VALUE;
        if (!value.row_sparse) value.touched = LS_NO_VALUE;
        assert_ok(ls_program_value(u->program, &p->value, value, &error, "p%d", i), error);
        p->count = ls_value_elements(&value, &ls_fixed_extents);
        p->decays = value.decay;
        p->sparse = value.row_sparse;
        p->held = numbers(p->count);
        p->gradient = numbers(p->count);
        p->first = numbers(p->count);
        p->second = numbers(p->count);
    }
    for (int i = 0; i < PARAMETERS; i++)
        assert_ok(ls_gradient_parameter(&pass, u->parameters[i].value,
                                        &u->parameters[i].gradient_value, &error),
                  error);
}

static void write_floats(const update *u, ls_value_id id, const double *from, int64_t count)
{
    float *values = calloc((size_t)count, sizeof *values);
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)from[i];
    ls_executor_write(u->executor, id, values, &ls_fixed_extents);
    free(values);
}

static void open_update(update *u, ls_optimizer_kind kind, float max_norm, bool decay_all)
{
    *u = (update){.options = {.kind = kind,
                              .beta1 = 0.9f,
                              .beta2 = 0.999f,
                              .epsilon = 1e-8f,
                              .weight_decay = 0.1f,
                              .decay_all = decay_all,
                              .max_norm = max_norm},
                  .touched = {.count = TOUCHED, .rows = touched_rows}};
    assert_ok(ls_program_new(&u->program, ls_op_definitions, &error), error);
    u->program->training = true;
    assert_ok(
        ls_inputs_declare(u->program, &u->inputs, (ls_touched_capacity){TOUCHED, 1, 1}, &error),
        error);
    declare(u);
    assert_ok(ls_adamw(u->program, &u->inputs, &u->options, &u->norm, &error), error);
    assert_ok(ls_plan_make(&u->plan, u->program, &ls_fixed_extents, &error), error);
    assert_ok(ls_cpu_device_new(&u->device, 2, 0, &error), error);
    ls_executor_options options = {
        .program = u->program, .plan = &u->plan, .device = u->device, .limits = {1, 1, 1, 1}};
    assert_ok(ls_executor_new(&u->executor, &options, &error), error);
    ls_executor_bind(u->executor, u->inputs.word.touched, &u->touched);
    for (int i = 0; i < PARAMETERS; i++) {
        parameter *p = &u->parameters[i];
        for (int64_t e = 0; e < p->count; e++)
            p->held[e] = draw(u);
        write_floats(u, p->value, p->held, p->count);
    }
}

static void close_update(update *u)
{
    for (int i = 0; i < PARAMETERS; i++) {
        free(u->parameters[i].held);
        free(u->parameters[i].gradient);
        free(u->parameters[i].first);
        free(u->parameters[i].second);
    }
    ls_executor_free(u->executor);
    ls_device_free(u->device);
    ls_plan_deinit(&u->plan);
    ls_program_free(u->program);
}

/* New gradients of about this size; a table has them in its touched rows, one after the other. */
static void write_gradients(update *u, double size)
{
    for (int i = 0; i < PARAMETERS; i++) {
        parameter *p = &u->parameters[i];
        double *dense = numbers(p->count);
        memset(p->gradient, 0, (size_t)p->count * sizeof *p->gradient);
        int64_t rows = p->sparse ? TOUCHED : p->count / COLUMNS;
        for (int64_t row = 0; row < rows; row++)
            for (int64_t c = 0; c < COLUMNS; c++) {
                double value = (double)(float)(size * draw(u));
                int64_t at = p->sparse ? touched_rows[row] : row;
                dense[row * COLUMNS + c] = p->gradient[at * COLUMNS + c] = value;
            }
        write_floats(u, p->gradient_value, dense, p->count);
        free(dense);
    }
}

static void run_step(const update *u, int step)
{
    double one_minus1 = 1 - pow((double)u->options.beta1, step);
    double root = sqrt(1 - pow((double)u->options.beta2, step));
    write_floats(u, u->inputs.learning_rate, &learning_rate, 1);
    write_floats(u, u->inputs.correction1, &one_minus1, 1);
    write_floats(u, u->inputs.correction2_root, &root, 1);
    ls_executor_run(u->executor, LS_RUN_UPDATE, &ls_fixed_extents);
}

static float read_scalar(const update *u, ls_value_id id)
{
    float value;
    ls_executor_read(u->executor, id, &value, &ls_fixed_extents);
    return value;
}

static double norm_of(const update *u)
{
    double sum = 0;
    for (int i = 0; i < PARAMETERS; i++)
        for (int64_t e = 0; e < u->parameters[i].count; e++)
            sum += u->parameters[i].gradient[e] * u->parameters[i].gradient[e];
    return sqrt(sum);
}

/* Loshchilov and Hutter 2019, or Kingma and Ba 2015, with PyTorch's epsilon, all in double. */
static void step_reference(update *u, int step, double clip)
{
    double beta1 = (double)u->options.beta1, beta2 = (double)u->options.beta2;
    for (int i = 0; i < PARAMETERS; i++) {
        parameter *p = &u->parameters[i];
        double decay = p->decays || u->options.decay_all ? (double)u->options.weight_decay : 0.0;
        for (int64_t e = 0; e < p->count; e++) {
            bool l2 = u->options.kind == LS_OPTIMIZER_ADAM;
            double g = p->gradient[e] * clip + (l2 ? decay * p->held[e] : 0);
            if (!l2) p->held[e] -= learning_rate * decay * p->held[e];
            p->first[e] = beta1 * p->first[e] + (1 - beta1) * g;
            p->second[e] = beta2 * p->second[e] + (1 - beta2) * g * g;
            double first = p->first[e] / (1 - pow(beta1, step));
            double second = p->second[e] / (1 - pow(beta2, step));
            p->held[e] -= learning_rate * first / (sqrt(second) + (double)u->options.epsilon);
        }
    }
}

static void compare(const update *u, int step)
{
    for (int i = 0; i < PARAMETERS; i++) {
        const parameter *p = &u->parameters[i];
        const float *got = ls_executor_address(u->executor, p->value);
        for (int64_t e = 0; e < p->count; e++)
            if (!(fabs((double)got[e] - p->held[e]) < 1e-6))
                fail_msg("step %d, parameter %d, element %lld: %.9g, wanted %.9g", step, i,
                         (long long)e, (double)got[e], p->held[e]);
    }
}

/* Gradients of `size`; says whether they were clipped. */
static bool check_steps_of(ls_optimizer_kind kind, float max_norm, double size, bool decay_all)
{
    update u;
    bool clipped = false;
    open_update(&u, kind, max_norm, decay_all);
    for (int step = 1; step <= STEPS; step++) {
        write_gradients(&u, size);
        double norm = norm_of(&u), clip = 1;
        if (max_norm > 0 && (double)max_norm / (norm + 1e-6) < 1)
            clip = (double)max_norm / (norm + 1e-6);
        clipped |= clip < 1;
        run_step(&u, step);
        assert_true(fabs((double)read_scalar(&u, u.norm.norm) - norm) <= 1e-6 * norm);
        assert_true(fabs((double)read_scalar(&u, u.norm.clip_factor) - clip) < 1e-6 * clip);
        assert_true(clip < 1 || read_scalar(&u, u.norm.clip_factor) == 1.0f);
        assert_true(read_scalar(&u, u.norm.proceed) == 1.0f);
        step_reference(&u, step, clip);
        compare(&u, step);
    }
    close_update(&u);
    return clipped;
}

/* Both optimizers. */
static bool check_steps(float max_norm, double size, bool decay_all)
{
    bool clipped = check_steps_of(LS_OPTIMIZER_ADAMW, max_norm, size, decay_all);
    assert_int_equal(check_steps_of(LS_OPTIMIZER_ADAM, max_norm, size, decay_all), clipped);
    return clipped;
}

static void a_large_gradient_is_clipped(void **state)
{
    (void)state;
    assert_true(check_steps(1.0f, 0.5, false));
    assert_true(check_steps(1.0f, 0.5, true));
}

static void a_small_gradient_is_not_clipped(void **state)
{
    (void)state;
    assert_false(check_steps(1.0f, 0.001, false));
    assert_false(check_steps(1.0f, 0.001, true));
}

static void clipping_can_be_off(void **state)
{
    (void)state;
    assert_false(check_steps(0.0f, 10.0, false));
}

/* Norm 0: nothing to clip, no division by it. */
static void no_gradient_leaves_decay_alone(void **state)
{
    (void)state;
    assert_false(check_steps(1.0f, 0.0, false));
}

static void a_gradient_that_is_not_finite_updates_nothing(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        update u;
        open_update(&u, LS_OPTIMIZER_ADAMW, 1.0f, true);
        write_gradients(&u, 0.1);
        float *gradient = ls_executor_address(u.executor, u.parameters[i].gradient_value);
        gradient[COLUMNS - 1] = bad[i];
        run_step(&u, 1);
        assert_true(read_scalar(&u, u.norm.proceed) == 0.0f);
        assert_false(isfinite(read_scalar(&u, u.norm.norm)));
        compare(&u, 1); /* with what was there before */
        /* The table's first row of gradients belongs to row 1. */
        int64_t at = i == 2 ? 2 * COLUMNS - 1 : COLUMNS - 1;
        gradient[COLUMNS - 1] = (float)u.parameters[i].gradient[at];
        run_step(&u, 1);
        double clip = 1.0 / (norm_of(&u) + 1e-6);
        step_reference(&u, 1, clip < 1 ? clip : 1);
        compare(&u, 1); /* moments were not touched either */
        close_update(&u);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_gradient_is_clipped),
        cmocka_unit_test(a_small_gradient_is_not_clipped),
        cmocka_unit_test(clipping_can_be_off),
        cmocka_unit_test(no_gradient_leaves_decay_alone),
        cmocka_unit_test(a_gradient_that_is_not_finite_updates_nothing),
    };
    return cmocka_run_group_tests_name("adamw", tests, NULL, NULL);
}

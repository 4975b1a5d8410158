/* A bench for one op: a program that holds it, its backward ops run on the CPU device over a small
 * batch, and central differences of a reference in double to compare the gradients with. */
#ifndef LS_TESTS_GRADIENT_LAB_H
#define LS_TESTS_GRADIENT_LAB_H

#include "testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "comm/tree.h"
#include "engine/feeder.h"
#include "ops/registry.h"

enum { SAMPLES = 7, TOKENS = 24, LEAF_SIZE = 2, LONGEST = 6, MAX_TENSORS = 6, MAX_RESULTS = 3 };
enum { VOCABULARY = 11, POSITIONS = 8, TYPES = 2, SITE = 37 };

/* Samples of 3, 1, 5, 4, 2, 6 and 3 tokens; rows of a sparse table repeat within and over leaves.
 */
static const int32_t lab_offsets[SAMPLES + 1] = {0, 3, 4, 9, 13, 15, 21, 24};
static const int32_t lab_ids[TOKENS] = {2, 5, 3, 2, 2, 7, 7, 7, 3, 2, 5, 1,
                                        3, 2, 3, 2, 9, 0, 9, 5, 3, 2, 0, 3};
static const uint8_t lab_types[TOKENS] = {0, 0, 1, 0, 0, 0, 1, 1, 1, 0, 0, 1,
                                          1, 0, 0, 0, 0, 0, 1, 1, 1, 0, 1, 1};
static const uint32_t lab_sample_ids[SAMPLES] = {3, 900, 17, 0, 65536, 4, 5};
static const int32_t lab_labels[SAMPLES] = {0, 2, 1, 1, 0, 2, 2};
static const uint32_t lab_key[2] = {0x1234567u, 8u};

/* Something that the op reads and that has a gradient. Rows: all of the batch, or the parameter's.
 */
typedef struct lab_tensor {
    ls_value_id value;
    ls_symbol symbol; /* of the rows; LS_SYMBOL_NONE: a parameter */
    int64_t rows, columns;
    double *data;     /* [rows][columns] numbers that are floats */
    double *gradient; /* what the backward ops gave */
} lab_tensor;

/* A value whose gradient starts the chain: the loss is the sum of weights times results. */
typedef struct lab_result {
    ls_value_id value, weights_value;
    ls_symbol symbol;
    int64_t rows, columns;
    double *weights, *got;
} lab_result;

typedef struct lab {
    ls_model_config config; /* only sizes of tables */
    ls_assembly assembly;
    ls_device *device;
    ls_program *program;
    const ls_inputs *inputs;
    lab_tensor tensors[MAX_TENSORS];
    lab_result results[MAX_RESULTS];
    int tensor_count, result_count;
    ls_value_id *gradient; /* of each value, from the gradient pass */
    uint32_t draws;
    ls_error error;
} lab;

static inline int64_t lab_rows(ls_symbol symbol, int64_t constant)
{
    return symbol == LS_SYMBOL_TOKENS ? TOKENS : symbol == LS_SYMBOL_SEQUENCES ? SAMPLES : constant;
}

/* A float in [-1, 1). */
static inline double lab_draw(lab *l)
{
    ls_philox_block block = ls_philox((ls_philox_key){{77, 1}}, (ls_philox_block){{l->draws++}});
    return (double)(2 * ls_uniform(block.word[0]) - 1);
}

/* For passes of so many samples. */
static inline void lab_open(lab *l, int64_t samples_per_pass)
{
    *l = (lab){
        .config = {.vocab_size = VOCABULARY, .max_positions = POSITIONS, .type_vocab_size = TYPES}};
    assert_ok(ls_program_new(&l->program, ls_op_definitions, &l->error), l->error);
    l->program->training = true;
    int64_t leaves = (SAMPLES + LEAF_SIZE - 1) / LEAF_SIZE;
    l->program->gradient_slots =
        ls_tree_slots((ls_tree_range){0, leaves, leaves}, SAMPLES, LEAF_SIZE, samples_per_pass);
    l->assembly.samples_per_pass = samples_per_pass;
    l->assembly.program = l->program;
    l->assembly.model.config = &l->config;
    l->inputs = &l->assembly.model.inputs;
    ls_touched_capacity touched = {VOCABULARY, LONGEST, TYPES};
    assert_ok(ls_inputs_declare(l->program, &l->assembly.model.inputs, touched, &l->error),
              l->error);
    assert_ok(ls_cpu_device_new(&l->device, 2, 0, &l->error), l->error);
}

static inline double *lab_numbers(lab *l, int64_t count)
{
    double *numbers = calloc((size_t)count, sizeof *numbers);
    assert_non_null(numbers);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = lab_draw(l);
    return numbers;
}

/* --- for the cases' builders: values with gradients, and what the loss reads -------------------
 */

static inline ls_value_id lab_tensor_of(lab *l, ls_value template, ls_symbol symbol)
{
    lab_tensor *tensor = &l->tensors[l->tensor_count++];
    assert_true(l->tensor_count <= MAX_TENSORS);
    template.parameter = LS_NO_VALUE;
    assert_ok(ls_program_value(l->program, &tensor->value, template, &l->error, "tensor.%d",
                               l->tensor_count),
              l->error);
    tensor->symbol = symbol;
    tensor->rows = lab_rows(symbol, template.shape[0].constant);
    tensor->columns = template.rank == 2 ? template.shape[1].constant : 1;
    tensor->data = lab_numbers(l, tensor->rows * tensor->columns);
    tensor->gradient = calloc((size_t)(tensor->rows * tensor->columns), sizeof(double));
    return tensor->value;
}

/* [T][columns] or [S][columns] */
static inline ls_value_id lab_activation(lab *l, ls_symbol symbol, int64_t columns)
{
    ls_value value = {.role = LS_ROLE_INPUT,
                      .rank = 2,
                      .shape = {ls_per(symbol), ls_fixed(columns)},
                      .touched = LS_NO_VALUE};
    return lab_tensor_of(l, value, symbol);
}

/* [rows][columns], or [rows] where columns is 0; `touched`: a table with a sparse gradient. */
static inline ls_value_id lab_parameter(lab *l, int64_t rows, int64_t columns, ls_value_id touched)
{
    ls_value value = {.role = LS_ROLE_PARAMETER,
                      .rank = columns ? 2 : 1,
                      .shape = {ls_fixed(rows), ls_fixed(columns)},
                      .row_sparse = touched != LS_NO_VALUE,
                      .touched = touched};
    return lab_tensor_of(l, value, LS_SYMBOL_NONE);
}

static inline void lab_result_of(lab *l, ls_value_id id)
{
    lab_result *result = &l->results[l->result_count++];
    ls_value weights = *ls_value_of(l->program, id);
    result->value = id;
    result->symbol = weights.shape[0].symbol;
    result->rows = lab_rows(result->symbol, 0);
    result->columns = weights.shape[1].constant;
    result->weights = lab_numbers(l, result->rows * result->columns);
    result->got = calloc((size_t)(result->rows * result->columns), sizeof(double));
    weights.role = LS_ROLE_INPUT;
    assert_ok(ls_program_value(l->program, &result->weights_value, weights, &l->error, "weights.%d",
                               l->result_count),
              l->error);
}

/* --- running ---------------------------------------------------------------------------------- */

static inline void lab_differentiate(lab *l)
{
    ls_gradient_pass pass = {.program = l->program,
                             .schedules = l->inputs->schedules,
                             .value_count = l->program->value_count};
    pass.gradient = l->gradient = malloc((size_t)pass.value_count * sizeof(ls_value_id));
    for (ls_value_id id = 0; id < pass.value_count; id++)
        pass.gradient[id] = LS_NO_VALUE;
    for (int i = 0; i < l->result_count; i++)
        pass.gradient[l->results[i].value] = l->results[i].weights_value;
    for (int32_t i = l->program->op_count - 1; i >= 0; i--) {
        ls_op op = l->program->ops[i];
        const ls_op_definition *definition = l->program->definitions[op.kind];
        if (definition->gradient) assert_ok(definition->gradient(&pass, &op, &l->error), l->error);
    }
    assert_ok(ls_program_verify(l->program, &l->error), l->error);
    /* Everything stays where it is, so that it can be read after the run. */
    for (ls_value_id id = 0; id < l->program->value_count; id++)
        if (l->program->values[id].role == LS_ROLE_ACTIVATION)
            l->program->values[id].role = LS_ROLE_SCALAR;
}

/* The rows of a pass that begins at sample `begin`, of a matrix over the whole batch. */
static inline double *lab_slice(double *whole, ls_symbol symbol, int64_t columns, int32_t begin)
{
    if (symbol == LS_SYMBOL_NONE) return whole;
    return whole + (symbol == LS_SYMBOL_TOKENS ? lab_offsets[begin] : begin) * columns;
}

static inline void lab_write(const lab *l, ls_executor *executor, ls_value_id id,
                             const double *from, const ls_extents *extents)
{
    float numbers[2048];
    int64_t count = ls_value_elements(ls_value_of(l->program, id), extents);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = (float)from[i];
    ls_executor_write(executor, id, numbers, extents);
}

static inline void lab_read(const lab *l, ls_executor *executor, ls_value_id id, double *to,
                            const ls_extents *extents)
{
    float numbers[2048];
    int64_t count = ls_value_elements(ls_value_of(l->program, id), extents);
    ls_executor_read(executor, id, numbers, extents);
    for (int64_t i = 0; i < count; i++)
        to[i] = (double)numbers[i];
}

static inline void lab_run_pass(lab *l, ls_executor *executor, ls_feeder *feeder,
                                const ls_batch *batch, int32_t begin, int32_t end)
{
    ls_extents extents = ls_feeder_pass(feeder, batch, begin, end);
    for (int i = 0; i < l->tensor_count; i++) {
        const lab_tensor *t = &l->tensors[i];
        lab_write(l, executor, t->value, lab_slice(t->data, t->symbol, t->columns, begin),
                  &extents);
    }
    for (int i = 0; i < l->result_count; i++) {
        const lab_result *r = &l->results[i];
        lab_write(l, executor, r->weights_value,
                  lab_slice(r->weights, r->symbol, r->columns, begin), &extents);
    }
    ls_executor_run(executor, LS_RUN_PASS, &extents);
    for (int i = 0; i < l->tensor_count; i++) {
        const lab_tensor *t = &l->tensors[i];
        if (t->symbol == LS_SYMBOL_NONE) continue;
        lab_read(l, executor, l->gradient[t->value],
                 lab_slice(t->gradient, t->symbol, t->columns, begin), &extents);
    }
    for (int i = 0; i < l->result_count; i++) {
        const lab_result *r = &l->results[i];
        lab_read(l, executor, r->value, lab_slice(r->got, r->symbol, r->columns, begin), &extents);
    }
}

static inline bool lab_touches(const lab *l, ls_value_id touched, int32_t row)
{
    for (int32_t s = 0; s < SAMPLES; s++)
        for (int32_t t = lab_offsets[s]; t < lab_offsets[s + 1]; t++)
            if (row == (touched == l->inputs->word.touched       ? lab_ids[t]
                        : touched == l->inputs->position.touched ? t - lab_offsets[s]
                                                                 : lab_types[t]))
                return true;
    return false;
}

/* Slot 0 of a parameter's gradient; of a sparse one the touched rows, put where they belong. */
static inline void lab_read_parameter_gradient(lab *l, const ls_executor *executor, lab_tensor *t)
{
    const ls_value *parameter = ls_value_of(l->program, t->value);
    assert_int_not_equal(l->gradient[t->value], LS_NO_VALUE);
    const float *slot = ls_executor_address(executor, l->gradient[t->value]);
    int64_t next = 0;
    for (int64_t row = 0; row < t->rows; row++) {
        if (parameter->row_sparse && !lab_touches(l, parameter->touched, (int32_t)row)) continue;
        for (int64_t c = 0; c < t->columns; c++)
            t->gradient[row * t->columns + c] = (double)slot[next * t->columns + c];
        next++;
    }
}

/* Forward and backward over the batch. */
static inline void lab_run(lab *l)
{
    const ls_batch batch = {SAMPLES, lab_offsets, lab_ids, lab_types, lab_sample_ids, lab_labels};
    float scale = 1.0f / SAMPLES;
    ls_assembly *assembly = &l->assembly;
    ls_extents capacity = {{1, TOKENS, SAMPLES}};
    ls_executor *executor;
    ls_feeder *feeder;
    int64_t samples_per_pass = assembly->samples_per_pass;
    assembly->token_capacity = assembly->step_token_capacity = TOKENS;
    assembly->ranks = 1;
    assembly->root_capacity = 1;
    assembly->step_leaves = (SAMPLES + LEAF_SIZE - 1) / LEAF_SIZE;
    assembly->limits = (ls_device_limits){TOKENS, LONGEST, 64, 32};
    assert_ok(ls_plan_make(&assembly->plan, l->program, &capacity, &l->error), l->error);
    ls_executor_options options = {.program = l->program,
                                   .plan = &assembly->plan,
                                   .device = l->device,
                                   .limits = assembly->limits};
    assert_ok(ls_executor_new(&executor, &options, &l->error), l->error);
    assert_ok(ls_feeder_new(&feeder, assembly, executor, &l->error), l->error);
    ls_executor_write(executor, l->inputs->random_key, lab_key, &ls_fixed_extents);
    ls_executor_write(executor, l->inputs->loss_scale, &scale, &ls_fixed_extents);
    int32_t passes = ls_feeder_start(feeder, &batch, LEAF_SIZE, 0), begin, end = 0;
    for (int32_t pass = 0; pass < passes; pass++) {
        int32_t former = end;
        ls_feeder_share(feeder, &batch, pass, &begin, &end);
        assert_true(begin == former && end - begin <= samples_per_pass);
        lab_run_pass(l, executor, feeder, &batch, begin, end);
    }
    assert_int_equal(end, SAMPLES);
    for (int i = 0; i < l->tensor_count; i++)
        if (l->tensors[i].symbol == LS_SYMBOL_NONE)
            lab_read_parameter_gradient(l, executor, &l->tensors[i]);
    ls_feeder_free(feeder);
    ls_executor_free(executor);
    ls_plan_deinit(&assembly->plan);
}

static inline void lab_close(lab *l)
{
    for (int i = 0; i < l->tensor_count; i++) {
        free(l->tensors[i].data);
        free(l->tensors[i].gradient);
    }
    for (int i = 0; i < l->result_count; i++) {
        free(l->results[i].weights);
        free(l->results[i].got);
    }
    free(l->gradient);
    ls_program_free(l->program);
    ls_device_free(l->device);
}

#endif

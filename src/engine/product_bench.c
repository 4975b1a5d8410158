#include "engine/product_bench.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/random.h"
#include "comm/tree.h"
#include "engine/executor.h"
#include "ops/registry.h"

enum { REPETITIONS = 1000 };

typedef struct bench {
    ls_program *program;
    ls_plan plan;
    ls_executor *executor;
    ls_value_id left, right, bias, out, schedule_value;
    ls_leaf_schedule schedule;
    int32_t *borders;
    uint8_t *merges;
    double times[REPETITIONS];
} bench;

static ls_status declare(bench *b, ls_value_id *out, const char *name, int rank, int64_t rows,
                         int64_t columns, ls_space space, ls_error *error)
{
    ls_value value = {.dtype = LS_F32,
                      .role = LS_ROLE_INPUT,
                      .space = space,
                      .rank = rank,
                      .shape = {ls_fixed(rows), ls_fixed(columns)},
                      .parameter = LS_NO_VALUE,
                      .touched = LS_NO_VALUE};
    if (rank == 3) {
        value.shape[2] = value.shape[1];
        value.shape[1] = value.shape[0];
        value.shape[0] = ls_fixed(1);
    }
    return ls_program_value(b->program, out, value, error, "%s", name);
}

/* left and right are: x and weight; gradient of y and weight; gradient of y and x. */
static ls_status build(bench *b, const ls_product *p, ls_error *error)
{
    int64_t t = p->tokens, n = p->features, k = p->depth;
    bool forward = p->kind == LS_OP_LINEAR, weight = p->kind == LS_OP_WEIGHT_GRADIENT;
    ls_op op = ls_op_of(p->kind, LS_SEGMENT_PASS, "product");
    LS_TRY(declare(b, &b->left, "left", 2, t, forward ? k : n, LS_SPACE_DEVICE, error));
    LS_TRY(declare(b, &b->right, "right", 2, weight ? t : n, k, LS_SPACE_DEVICE, error));
    LS_TRY(declare(b, &b->bias, "bias", 1, n, 1, LS_SPACE_DEVICE, error));
    LS_TRY(declare(b, &b->schedule_value, "schedule", 0, 1, 1, LS_SPACE_HOST, error));
    LS_TRY(declare(b, &b->out, "out", weight ? 3 : 2, weight ? n : t, forward ? n : k,
                   LS_SPACE_DEVICE, error));
    op.inputs[0] = b->left;
    op.inputs[1] = b->right;
    if (forward) op.inputs[2] = b->bias;
    if (weight) op.inputs[2] = b->schedule_value;
    op.outputs[0] = b->out;
    return ls_program_op(b->program, &op, error);
}

static ls_status schedule_leaves(bench *b, const ls_product *p, ls_error *error)
{
    int64_t leaf = p->leaf_tokens > 0 ? p->leaf_tokens : p->tokens;
    int64_t leaves = (p->tokens + leaf - 1) / leaf;
    ls_tree_range range = {0, leaves, leaves};
    ls_tree_stack stack = {0};
    LS_TRY(LS_NEW(b->borders, leaves + 1, "leaf borders", error));
    LS_TRY(LS_NEW(b->merges, leaves, "leaf merges", error));
    for (int64_t i = 0; i < leaves; i++) {
        b->borders[i] = (int32_t)(i * leaf);
        b->merges[i] = (uint8_t)ls_tree_push(&stack, range, i, i + 1 < leaves ? i + 1 : -1);
    }
    b->borders[leaves] = (int32_t)p->tokens;
    b->schedule =
        (ls_leaf_schedule){.pieces = (int32_t)leaves, .offsets = b->borders, .merges = b->merges};
    ls_executor_bind(b->executor, b->schedule_value, &b->schedule);
    return LS_OK;
}

/* Numbers of ordinary size: zeros and denormals would be faster or slower than real ones. */
static ls_status fill(bench *b, ls_value_id id, ls_device *device, ls_error *error)
{
    int64_t count = ls_value_elements(ls_value_of(b->program, id), &ls_fixed_extents);
    float *values = NULL;
    LS_TRY(LS_NEW(values, count, "operands", error));
    for (int64_t i = 0; i < count; i++)
        values[i] = ls_uniform((uint32_t)i * 2654435761u) - 0.5f;
    ls_executor_write(b->executor, id, values, &ls_fixed_extents);
    device->operations->wait(device);
    ls_free(values);
    return LS_OK;
}

static int by_time(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static double median_seconds(bench *b, double seconds)
{
    int count = 0;
    double start = ls_seconds();
    ls_executor_run(b->executor, LS_RUN_PASS, &ls_fixed_extents);
    while (count < REPETITIONS && (count < 5 || ls_seconds() - start < seconds)) {
        double begin = ls_seconds();
        ls_executor_run(b->executor, LS_RUN_PASS, &ls_fixed_extents);
        b->times[count++] = ls_seconds() - begin;
    }
    qsort(b->times, (size_t)count, sizeof *b->times, by_time);
    return b->times[count / 2];
}

static ls_status run(bench *b, ls_device *device, const ls_product *p, double seconds,
                     double *flops_per_second, ls_error *error)
{
    LS_TRY(ls_program_new(&b->program, ls_op_definitions, error));
    LS_TRY(build(b, p, error));
    LS_TRY(ls_plan_make(&b->plan, b->program, &ls_fixed_extents, error));
    int64_t deepest = p->depth > p->features ? p->depth : p->features;
    ls_executor_options options = {
        .program = b->program,
        .plan = &b->plan,
        .device = device,
        .limits = {.tokens = p->tokens, .largest_depth = deepest, .head_size = 1}};
    LS_TRY(ls_executor_new(&b->executor, &options, error));
    LS_TRY(schedule_leaves(b, p, error));
    LS_TRY(fill(b, b->left, device, error));
    LS_TRY(fill(b, b->right, device, error));
    double flops = 2.0 * (double)p->tokens * (double)p->features * (double)p->depth;
    *flops_per_second = flops / median_seconds(b, seconds);
    return LS_OK;
}

ls_status ls_product_bench(ls_device *device, const ls_product *product, double seconds,
                           double *flops_per_second, ls_error *error)
{
    bench *b = NULL;
    LS_TRY(LS_NEW(b, 1, "benchmark", error));
    ls_status status = run(b, device, product, seconds, flops_per_second, error);
    ls_executor_free(b->executor);
    ls_plan_deinit(&b->plan);
    ls_program_free(b->program);
    ls_free(b->borders);
    ls_free(b->merges);
    ls_free(b);
    return status;
}

/* Matrix products: linear and its gradients. */
#include "devices/cpu/cpu.h"

/* A product cut into blocks of whole tiles: columns first, since a part packs the columns it reads,
 * then rows where there are fewer column tiles than threads. */
typedef struct blocked_product {
    ls_cpu *cpu;
    ls_gemm gemm;
    int64_t row_block, column_block, column_parts;
} blocked_product;

static int64_t block_length(int64_t count, int64_t parts, int64_t tile)
{
    int64_t tiles = (count + tile - 1) / tile;
    return (tiles + parts - 1) / parts * tile;
}

static void run_block(void *context, int64_t part, int thread)
{
    const blocked_product *product = context;
    ls_gemm gemm = product->gemm;
    gemm.blocks = product->cpu->kernels->blocks;
    int64_t row = part / product->column_parts * product->row_block;
    int64_t column = part % product->column_parts * product->column_block;
    if (gemm.rows - row < product->row_block)
        gemm.rows -= row;
    else
        gemm.rows = product->row_block;
    if (gemm.columns - column < product->column_block)
        gemm.columns -= column;
    else
        gemm.columns = product->column_block;
    gemm.a += row * gemm.a_row;
    gemm.b += column * gemm.b_column;
    gemm.c += row * gemm.c_row + column;
    if (gemm.bias) gemm.bias += column;
    if (gemm.slope) gemm.slope += row * gemm.c_row + column;
    if (gemm.factor) gemm.factor += row * gemm.c_row + column;
    product->cpu->kernels->gemm(&gemm, ls_cpu_scratch(product->cpu, thread));
}

static void run_product(ls_cpu *cpu, const ls_gemm *gemm)
{
    if (gemm->rows <= 0 || gemm->columns <= 0) return;
    int64_t threads = ls_threads_count(cpu->threads);
    int64_t column_tile = cpu->kernels->gemm_column_tile, row_tile = cpu->kernels->gemm_row_tile;
    int64_t column_tiles = (gemm->columns + column_tile - 1) / column_tile;
    int64_t column_parts = column_tiles < threads ? column_tiles : threads;
    int64_t row_parts = (threads + column_parts - 1) / column_parts;
    blocked_product product = {.cpu = cpu, .gemm = *gemm};
    product.column_block = block_length(gemm->columns, column_parts, column_tile);
    product.row_block = block_length(gemm->rows, row_parts, row_tile);
    product.column_parts = (gemm->columns + product.column_block - 1) / product.column_block;
    row_parts = (gemm->rows + product.row_block - 1) / product.row_block;
    ls_threads_run(cpu->threads, row_parts * product.column_parts, run_block, &product);
}

/* x [R][K], weight [N][K], bias [N] -> y [R][N], slope of the activation [R][N] */
void ls_cpu_LINEAR(ls_device *device, const ls_op_call *call)
{
    int64_t depth = ls_size(call, &call->inputs[0], 1);
    int64_t features = ls_size(call, &call->inputs[1], 0);
    ls_gemm gemm = {
        .rows = ls_size(call, &call->inputs[0], 0),
        .columns = features,
        .depth = depth,
        .a = call->inputs[0].data,
        .a_row = depth,
        .a_depth = 1,
        .b = call->inputs[1].data,
        .b_depth = 1,
        .b_column = depth,
        .c = call->outputs[0].data,
        .c_row = features,
        .bias = call->inputs[2].data,
        .activation = call->op->attributes.activation,
        .slope = call->outputs[1].data,
    };
    run_product(ls_cpu_of(device), &gemm);
}

/* gradient of y [R][N], weight [N][K], what it is added to, factor [R][K] -> gradient of x [R][K]
 */
void ls_cpu_LINEAR_INPUT_GRADIENT(ls_device *device, const ls_op_call *call)
{
    int64_t features = ls_size(call, &call->inputs[1], 0);
    int64_t depth = ls_size(call, &call->inputs[1], 1);
    ls_gemm gemm = {
        .rows = ls_size(call, &call->inputs[0], 0),
        .columns = depth,
        .depth = features,
        .a = call->inputs[0].data,
        .a_row = features,
        .a_depth = 1,
        .b = call->inputs[1].data,
        .b_depth = depth,
        .b_column = 1,
        .c = call->outputs[0].data,
        .c_row = depth,
        .accumulate = call->op->attributes.accumulate,
        .factor = call->inputs[3].data,
    };
    run_product(ls_cpu_of(device), &gemm);
}

typedef struct weight_gradient {
    ls_cpu *cpu;
    ls_weight_gradient arguments;
} weight_gradient;

static void run_weight_gradient(void *context, int64_t begin, int64_t end, void *scratch)
{
    const weight_gradient *work = context;
    ls_weight_gradient arguments = work->arguments;
    arguments.left_begin = begin;
    arguments.left_end = end;
    work->cpu->kernels->weight_gradient(&arguments, scratch);
}

/* Each part packs x: few of them. The kernel cuts a part's rows into tiles evenly, so that any
 * border will do. */
enum { WEIGHT_GRADIENT_PARTS = 2 };

/* gradient of y [R][N], x [R][K], schedule -> slots [slots][N][K] */
void ls_cpu_WEIGHT_GRADIENT(ls_device *device, const ls_op_call *call)
{
    ls_cpu *cpu = ls_cpu_of(device);
    int64_t features = ls_size(call, &call->inputs[0], 1);
    int64_t depth = ls_size(call, &call->inputs[1], 1);
    weight_gradient work = {.cpu = cpu,
                            .arguments = {
                                .left = call->inputs[0].data,
                                .left_stride = features,
                                .right = call->inputs[1].data,
                                .right_stride = depth,
                                .right_count = depth,
                                .slots = call->outputs[0].data,
                                .slot_stride = features * depth,
                                .gradient_row = depth,
                                .schedule = call->inputs[2].data,
                                .blocks = cpu->kernels->blocks,
                            }};
    ls_cpu_run_parts(cpu, features, 1, WEIGHT_GRADIENT_PARTS, run_weight_gradient, &work);
}

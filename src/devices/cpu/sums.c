/* Sums over samples that are no matrix products, and activations' gradients. */
#include "devices/cpu/cpu.h"

typedef struct sums_work {
    ls_cpu *cpu;
    const ls_op_call *call;
    int64_t columns;
} sums_work;

/* A part walks along all rows: few parts, so that it reads a long run of each. */
enum { COLUMN_GRAIN = 32, COLUMN_PARTS = 1 };

static void column_sums(void *context, int64_t begin, int64_t end, void *scratch)
{
    const sums_work *work = context;
    ls_column_sums sums = {
        .values = work->call->inputs[0].data,
        .stride = work->columns,
        .begin = begin,
        .end = end,
        .slots = work->call->outputs[0].data,
        .slot_stride = work->columns,
        .schedule = work->call->inputs[1].data,
    };
    (void)scratch;
    work->cpu->kernels->column_sums(&sums);
}

void ls_cpu_COLUMN_SUMS(ls_device *device, const ls_op_call *call)
{
    sums_work work = {ls_cpu_of(device), call, ls_size(call, &call->inputs[0], 1)};
    ls_cpu_run_parts(work.cpu, work.columns, COLUMN_GRAIN, COLUMN_PARTS, column_sums, &work);
}

static void layer_norm_sums(void *context, int64_t begin, int64_t end, void *scratch)
{
    const sums_work *work = context;
    const ls_operand *in = work->call->inputs, *out = work->call->outputs;
    ls_layer_norm_sums sums = {
        .output_gradient = in[0].data,
        .input = in[1].data,
        .mean = in[2].data,
        .inverse_deviation = in[3].data,
        .hidden = work->columns,
        .begin = begin,
        .end = end,
        .gamma_slots = out[0].data,
        .beta_slots = out[1].data,
        .slot_stride = work->columns,
        .schedule = in[4].data,
    };
    (void)scratch;
    work->cpu->kernels->layer_norm_sums(&sums);
}

void ls_cpu_LAYER_NORM_SUMS(ls_device *device, const ls_op_call *call)
{
    sums_work work = {ls_cpu_of(device), call, ls_size(call, &call->inputs[0], 1)};
    ls_cpu_run_parts(work.cpu, work.columns, COLUMN_GRAIN, COLUMN_PARTS, layer_norm_sums, &work);
}

static void activation_backward(void *context, int64_t begin, int64_t end, void *scratch)
{
    const sums_work *work = context;
    const ls_operand *in = work->call->inputs;
    (void)scratch;
    work->cpu->kernels->multiply((float *)work->call->outputs[0].data + begin,
                                 (const float *)in[0].data + begin,
                                 (const float *)in[1].data + begin, 0, 1, end - begin);
}

void ls_cpu_ACTIVATION_BACKWARD(ls_device *device, const ls_op_call *call)
{
    sums_work work = {ls_cpu_of(device), call, 0};
    int64_t count = ls_size(call, &call->inputs[0], 0) * ls_size(call, &call->inputs[0], 1);
    ls_cpu_run_ranges(work.cpu, count, 1024, activation_backward, &work);
}

/* Ops that work row by row: embeddings, layer norm, dropout, first tokens, the loss. */
#include "devices/cpu/cpu.h"

#include <string.h>

enum { ROW_GRAIN = 4 };

typedef struct row_work {
    ls_cpu *cpu;
    const ls_op_call *call;
    int64_t hidden;
    ls_dropout dropout;
} row_work;

static void run_rows(ls_device *device, const ls_op_call *call, int64_t rows, int64_t hidden,
                     int dropout_operands, ls_range_function function)
{
    row_work work = {.cpu = ls_cpu_of(device), .call = call, .hidden = hidden};
    if (dropout_operands >= 0) work.dropout = ls_cpu_dropout(call, dropout_operands);
    ls_cpu_run_ranges(work.cpu, rows, ROW_GRAIN, function, &work);
}

static void embedding_rows(void *context, int64_t begin, int64_t end, void *scratch)
{
    const row_work *work = context;
    const ls_operand *in = work->call->inputs;
    (void)scratch;
    work->cpu->kernels->embedding_sum(work->call->outputs[0].data, in[0].data, in[1].data,
                                      in[2].data, in[3].data, in[4].data, in[5].data, work->hidden,
                                      begin, end);
}

void ls_cpu_EMBEDDING(ls_device *device, const ls_op_call *call)
{
    const ls_operand *sum = &call->outputs[0];
    run_rows(device, call, ls_size(call, sum, 0), ls_size(call, sum, 1), -1, embedding_rows);
}

static void embedding_gradient_rows(void *context, int64_t begin, int64_t end, void *scratch)
{
    const row_work *work = context;
    const ls_operand *out = &work->call->outputs[0];
    int64_t slot_stride = ls_size(work->call, out, 1) * work->hidden;
    (void)scratch;
    work->cpu->kernels->embedding_gradient(out->data, slot_stride, work->call->inputs[0].data,
                                           work->hidden, work->call->inputs[1].data, begin, end);
}

void ls_cpu_EMBEDDING_GRADIENT(ls_device *device, const ls_op_call *call)
{
    const ls_row_schedule *schedule = call->inputs[1].data;
    run_rows(device, call, schedule->rows, ls_size(call, &call->inputs[0], 1), -1,
             embedding_gradient_rows);
}

static void layer_norm_rows(void *context, int64_t begin, int64_t end, void *scratch)
{
    const row_work *work = context;
    const ls_operand *in = work->call->inputs, *out = work->call->outputs;
    const ls_kernels *kernels = work->cpu->kernels;
    const float *sum = in[0].data;
    (void)scratch;
    /* A few rows at a time, so that the sum is still in cache when it is normalised. */
    for (int64_t row = begin; row < end; row += ROW_GRAIN) {
        int64_t last = row + ROW_GRAIN < end ? row + ROW_GRAIN : end;
        if (in[1].data) {
            sum = out[1].data;
            kernels->residual_dropout(out[1].data, in[1].data, in[0].data, work->hidden,
                                      &work->dropout, row, last);
        }
        kernels->layer_norm(out[0].data, out[2].data, out[3].data, sum, in[2].data, in[3].data,
                            work->call->op->attributes.epsilon, work->hidden, row, last);
    }
}

void ls_cpu_LAYER_NORM(ls_device *device, const ls_op_call *call)
{
    const ls_operand *x = &call->inputs[0];
    run_rows(device, call, ls_size(call, x, 0), ls_size(call, x, 1), 4, layer_norm_rows);
}

static void layer_norm_backward_rows(void *context, int64_t begin, int64_t end, void *scratch)
{
    const row_work *work = context;
    const ls_operand *in = work->call->inputs, *out = work->call->outputs;
    const ls_kernels *kernels = work->cpu->kernels;
    (void)scratch;
    for (int64_t row = begin; row < end; row += ROW_GRAIN) {
        int64_t last = row + ROW_GRAIN < end ? row + ROW_GRAIN : end;
        kernels->layer_norm_backward(out[0].data, in[0].data, in[1].data, in[2].data, in[3].data,
                                     in[4].data, work->hidden, row, last);
        if (out[1].data)
            kernels->dropout(out[1].data, out[0].data, work->hidden, &work->dropout, row, last);
    }
}

void ls_cpu_LAYER_NORM_BACKWARD(ls_device *device, const ls_op_call *call)
{
    const ls_operand *x = &call->inputs[0];
    run_rows(device, call, ls_size(call, x, 0), ls_size(call, x, 1), 5, layer_norm_backward_rows);
}

static void dropout_rows(void *context, int64_t begin, int64_t end, void *scratch)
{
    const row_work *work = context;
    (void)scratch;
    work->cpu->kernels->dropout(work->call->outputs[0].data, work->call->inputs[0].data,
                                work->hidden, &work->dropout, begin, end);
}

void ls_cpu_DROPOUT(ls_device *device, const ls_op_call *call)
{
    const ls_operand *x = &call->inputs[0];
    run_rows(device, call, ls_size(call, x, 0), ls_size(call, x, 1), 1, dropout_rows);
}

static void select_first_rows(void *context, int64_t begin, int64_t end, void *scratch)
{
    const row_work *work = context;
    (void)scratch;
    work->cpu->kernels->gather_rows(work->call->outputs[0].data, work->call->inputs[0].data,
                                    work->call->inputs[1].data, work->hidden, begin, end);
}

void ls_cpu_SELECT_FIRST(ls_device *device, const ls_op_call *call)
{
    const ls_operand *y = &call->outputs[0];
    run_rows(device, call, ls_size(call, y, 0), ls_size(call, y, 1), -1, select_first_rows);
}

static void select_first_backward_rows(void *context, int64_t begin, int64_t end, void *scratch)
{
    const row_work *work = context;
    (void)scratch;
    work->cpu->kernels->add_rows(work->call->outputs[0].data, work->call->inputs[0].data,
                                 work->call->inputs[1].data, work->hidden, begin, end);
}

void ls_cpu_SELECT_FIRST_BACKWARD(ls_device *device, const ls_op_call *call)
{
    const ls_operand *y = &call->inputs[0], *x = &call->outputs[0];
    int64_t hidden = ls_size(call, y, 1);
    if (!call->op->attributes.accumulate)
        memset(x->data, 0, (size_t)(ls_size(call, x, 0) * hidden) * sizeof(float));
    run_rows(device, call, ls_size(call, y, 0), hidden, -1, select_first_backward_rows);
}

static void classifier_loss_rows(void *context, int64_t begin, int64_t end, void *scratch)
{
    const row_work *work = context;
    const ls_operand *in = work->call->inputs, *out = work->call->outputs;
    ls_classifier_loss loss = {
        .logits = in[0].data,
        .labels = in[1].data,
        .classes = work->hidden,
        .loss = out[0].data,
        .probabilities = out[1].data,
        .logits_gradient = out[2].data,
        .scale = in[2].data ? *(const float *)in[2].data : 0.0f,
    };
    (void)scratch;
    work->cpu->kernels->classifier_loss(&loss, begin, end);
}

void ls_cpu_CLASSIFIER_LOSS(ls_device *device, const ls_op_call *call)
{
    const ls_operand *logits = &call->inputs[0];
    run_rows(device, call, ls_size(call, logits, 0), ls_size(call, logits, 1), -1,
             classifier_loss_rows);
}

#include "devices/cpu/cpu.h"

typedef struct attention_work {
    ls_cpu *cpu;
    ls_attention arguments;
    bool backward;
} attention_work;

/* One part is one head of one sequence. */
static void run_heads(void *context, int64_t part, int thread)
{
    const attention_work *work = context;
    int64_t sequence = part / work->arguments.heads, head = part % work->arguments.heads;
    void *scratch = ls_cpu_scratch(work->cpu, thread);
    if (work->backward)
        work->cpu->kernels->attention_backward(&work->arguments, sequence, head, scratch);
    else
        work->cpu->kernels->attention_forward(&work->arguments, sequence, head, scratch);
}

static ls_attention shared_arguments(const ls_op_call *call)
{
    const ls_attributes *attributes = &call->op->attributes;
    return (ls_attention){
        .query = call->inputs[0].data,
        .key = call->inputs[1].data,
        .value = call->inputs[2].data,
        .offsets = call->inputs[3].data,
        .heads = attributes->heads,
        .head_size = attributes->head_size,
        .scale = 1.0f / __builtin_sqrtf((float)attributes->head_size),
        .first_query_only = call->inputs[0].value->shape[0].symbol == LS_SYMBOL_SEQUENCES,
        .max_positions = attributes->max_positions,
        .dropout = ls_cpu_dropout(call, 4),
    };
}

static void run(ls_device *device, const ls_op_call *call, attention_work *work)
{
    work->cpu = ls_cpu_of(device);
    int64_t sequences = ls_size(call, &call->inputs[3], 0) - 1;
    ls_threads_run(work->cpu->threads, sequences * work->arguments.heads, run_heads, work);
}

void ls_cpu_ATTENTION(ls_device *device, const ls_op_call *call)
{
    attention_work work = {.arguments = shared_arguments(call)};
    work.arguments.context = call->outputs[0].data;
    work.arguments.softmax = call->outputs[1].data;
    run(device, call, &work);
}

void ls_cpu_ATTENTION_BACKWARD(ls_device *device, const ls_op_call *call)
{
    attention_work work = {.arguments = shared_arguments(call), .backward = true};
    work.arguments.softmax = call->inputs[7].data;
    work.arguments.context_gradient = call->inputs[8].data;
    work.arguments.query_gradient = call->outputs[0].data;
    work.arguments.key_gradient = call->outputs[1].data;
    work.arguments.value_gradient = call->outputs[2].data;
    run(device, call, &work);
}

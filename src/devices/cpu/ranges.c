/* How the CPU device cuts an op among its threads. */
#include "devices/cpu/cpu.h"

typedef struct ranges {
    ls_cpu *cpu;
    int64_t count, length;
    ls_range_function function;
    void *context;
} ranges;

static void run_range(void *context, int64_t part, int thread)
{
    const ranges *all = context;
    int64_t begin = part * all->length;
    int64_t end = begin + all->length < all->count ? begin + all->length : all->count;
    all->function(all->context, begin, end, ls_cpu_scratch(all->cpu, thread));
}

/* Parts a thread: enough that a thread that was held up does not hold up the op. */
enum { PARTS_PER_THREAD = 4 };

void ls_cpu_run_ranges(ls_cpu *cpu, int64_t count, int64_t grain, ls_range_function function,
                       void *context)
{
    if (count <= 0) return;
    int64_t parts = (int64_t)ls_threads_count(cpu->threads) * PARTS_PER_THREAD;
    int64_t length = (count + parts - 1) / parts;
    length = (length + grain - 1) / grain * grain;
    ranges all = {cpu, count, length, function, context};
    ls_threads_run(cpu->threads, (count + length - 1) / length, run_range, &all);
}

ls_dropout ls_cpu_dropout(const ls_op_call *call, int first)
{
    ls_dropout dropout = {.probability = call->op->attributes.dropout,
                          .site = call->op->attributes.site};
    if (dropout.probability > 0) {
        dropout.samples = call->inputs[first].data;
        dropout.positions = call->inputs[first + 1].data;
        const uint32_t *key = call->inputs[first + 2].data;
        dropout.key = (ls_philox_key){{key[0], key[1]}};
    }
    return dropout;
}

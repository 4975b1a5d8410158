/* How the CPU device cuts an op among its threads. */
#include "devices/cpu/cpu.h"

typedef struct ranges {
    ls_cpu *cpu;
    int64_t count, grain, grains, parts;
    ls_range_function function;
    void *context;
} ranges;

/* Parts have nearly as many grains each, the first ones one more: were all of one length, the last
 * one would be short and a thread would wait. */
static int64_t part_begin(const ranges *all, int64_t part)
{
    int64_t more = all->grains % all->parts;
    int64_t grain = all->grains / all->parts * part + (part < more ? part : more);
    return grain * all->grain < all->count ? grain * all->grain : all->count;
}

static void run_range(void *context, int64_t part, int thread)
{
    const ranges *all = context;
    all->function(all->context, part_begin(all, part), part_begin(all, part + 1),
                  ls_cpu_scratch(all->cpu, thread));
}

/* Parts a thread: enough that a thread that was held up does not hold up the op. */
enum { PARTS_PER_THREAD = 4 };

void ls_cpu_run_ranges(ls_cpu *cpu, int64_t count, int64_t grain, ls_range_function function,
                       void *context)
{
    ls_cpu_run_parts(cpu, count, grain, PARTS_PER_THREAD, function, context);
}

void ls_cpu_run_parts(ls_cpu *cpu, int64_t count, int64_t grain, int64_t parts_per_thread,
                      ls_range_function function, void *context)
{
    if (count <= 0) return;
    ranges all = {cpu, count, grain, .function = function, .context = context};
    all.grains = (count + grain - 1) / grain;
    all.parts = (int64_t)ls_threads_count(cpu->threads) * parts_per_thread;
    if (all.parts > all.grains) all.parts = all.grains;
    ls_threads_run(cpu->threads, all.parts, run_range, &all);
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

/* The CPU device's insides, shared by the files of this folder. */
#ifndef LS_DEVICES_CPU_CPU_H
#define LS_DEVICES_CPU_CPU_H

#include "base/threads.h"
#include "devices/device.h"
#include "kernels/kernels.h"

typedef struct ls_cpu {
    ls_device device;
    ls_threads *threads;
    const ls_kernels *kernels;
    unsigned char *scratch; /* [threads][scratch_stride] */
    int64_t scratch_stride;
} ls_cpu;

static inline ls_cpu *ls_cpu_of(ls_device *device)
{
    return (ls_cpu *)device;
}
static inline void *ls_cpu_scratch(const ls_cpu *cpu, int thread)
{
    return cpu->scratch + thread * cpu->scratch_stride;
}

/* Size of dimension i of an operand in the pass that runs. */
static inline int64_t ls_size(const ls_op_call *call, const ls_operand *operand, int i)
{
    return ls_dimension_size(operand->value->shape[i], call->extents);
}

/* Cut `count` items into parts, as many a thread as keep all threads busy or as told, of nearly
 * equal length, borders at multiples of `grain`, and run them. Borders never change a result. */
typedef void (*ls_range_function)(void *context, int64_t begin, int64_t end, void *scratch);
void ls_cpu_run_ranges(ls_cpu *cpu, int64_t count, int64_t grain, ls_range_function function,
                       void *context);
void ls_cpu_run_parts(ls_cpu *cpu, int64_t count, int64_t grain, int64_t parts_per_thread,
                      ls_range_function function, void *context);

/* The dropout of an op whose mask operands are inputs[first], [first + 1], [first + 2]: sample ids,
 * positions (may be absent), random key. */
ls_dropout ls_cpu_dropout(const ls_op_call *call, int first);

/* The op functions, one an op kind: ls_cpu_LINEAR and so on. */
#define LS_CPU_DECLARE(name, text) void ls_cpu_##name(ls_device *device, const ls_op_call *call);
LS_DEVICE_OP_LIST(LS_CPU_DECLARE)
#undef LS_CPU_DECLARE

#endif

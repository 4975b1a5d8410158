#include "devices/cpu/cpu.h"

#include <string.h>

#include "base/alloc.h"

static const ls_device_operations operations;

ls_status ls_cpu_device_new(ls_device **out, int threads, int64_t budget, ls_error *error)
{
    ls_cpu *cpu = NULL;
    ls_status status;
    LS_TRY(LS_NEW(cpu, 1, "CPU device", error));
    cpu->device.operations = &operations;
    cpu->device.budget = budget;
    LS_TRY_GOTO(status, ls_kernels_choose(&cpu->kernels, error), fail);
    LS_TRY_GOTO(status, ls_threads_new(&cpu->threads, threads, error), fail);
    *out = &cpu->device;
    return LS_OK;
fail:
    ls_device_free(&cpu->device);
    return status;
}

void ls_device_free(ls_device *device)
{
    if (device) device->operations->free(device);
}

int ls_cpu_device_threads(const ls_device *device)
{
    return ls_threads_count(((const ls_cpu *)device)->threads);
}

struct ls_threads *ls_cpu_device_pool(ls_device *device)
{
    return ls_cpu_of(device)->threads;
}

static void cpu_release(ls_device *device, void *pointer);

static void cpu_free(ls_device *device)
{
    ls_cpu *cpu = ls_cpu_of(device);
    cpu_release(device, cpu->scratch);
    ls_threads_free(cpu->threads);
    ls_free(cpu);
}

/* Each allocation is preceded by a page. */
typedef union header {
    struct {
        int64_t bytes;
        bool shared; /* not ours to free */
    };
    unsigned char page[4096];
} header;

static ls_status take_memory(ls_device *device, int64_t bytes, ls_memory_use use, const char *what,
                             header **out, ls_error *error)
{
    bool shared = use == LS_MEMORY_SHARED && device->shared;
    int64_t whole = bytes + (int64_t)sizeof **out;
    void *memory = NULL;
    if (shared)
        LS_TRY(device->shared->allocate(device->shared->context, whole, what, &memory, error));
    else
        memory = ls_allocate_pages((size_t)whole, use != LS_MEMORY_SPARSE);
    if (!memory)
        return ls_fail(error, LS_NO_MEMORY, "out of memory: %lld bytes for %s", (long long)bytes,
                       what);
    *out = memory;
    (*out)->bytes = bytes;
    (*out)->shared = shared;
    return LS_OK;
}

static ls_status cpu_allocate(ls_device *device, int64_t bytes, ls_memory_use use, const char *what,
                              void **out, ls_error *error)
{
    int64_t left = device->budget - device->allocated_bytes;
    if (device->budget && bytes > left)
        return ls_fail(error, LS_NO_MEMORY,
                       "the device's budget of %lld bytes has %lld left, %s needs %lld: raise "
                       "--device-memory or lower --samples-per-pass",
                       (long long)device->budget, (long long)left, what, (long long)bytes);
    header *taken = NULL;
    LS_TRY(take_memory(device, bytes, use, what, &taken, error));
    device->allocated_bytes += bytes;
    *out = taken + 1;
    return LS_OK;
}

static void cpu_release(ls_device *device, void *pointer)
{
    if (!pointer) return;
    header *taken = (header *)pointer - 1;
    device->allocated_bytes -= taken->bytes;
    if (!taken->shared) ls_free_pages(taken, (size_t)taken->bytes + sizeof *taken);
}

static int64_t scratch_stride(const ls_cpu *cpu, const ls_device_limits *limits)
{
    ls_kernel_limits kernel_limits = {.depth = limits->largest_depth,
                                      .rows = limits->tokens,
                                      .sequence_length = limits->sequence_length,
                                      .head_size = limits->head_size};
    int64_t bytes = (int64_t)cpu->kernels->scratch_bytes(&kernel_limits);
    return (bytes + 4095) / 4096 * 4096; /* threads do not share pages */
}

static int64_t cpu_scratch_bytes(const ls_device *device, const ls_device_limits *limits)
{
    const ls_cpu *cpu = (const ls_cpu *)device;
    return scratch_stride(cpu, limits) * ls_threads_count(cpu->threads);
}

static ls_status cpu_reserve_scratch(ls_device *device, const ls_device_limits *limits,
                                     ls_error *error)
{
    ls_cpu *cpu = ls_cpu_of(device);
    cpu_release(device, cpu->scratch);
    cpu->scratch = NULL;
    cpu->scratch_stride = scratch_stride(cpu, limits);
    return cpu_allocate(device, cpu_scratch_bytes(device, limits), LS_MEMORY_DENSE,
                        "kernel scratch", (void **)&cpu->scratch, error);
}

static ls_device_function cpu_function(const ls_device *device, ls_op_kind kind)
{
    static const ls_device_function functions[LS_OP_COUNT] = {
#define LS_CPU_ENTRY(name, text) [LS_OP_##name] = ls_cpu_##name,
        LS_DEVICE_OP_LIST(LS_CPU_ENTRY)
#undef LS_CPU_ENTRY
    };
    (void)device;
    return functions[kind];
}

static void cpu_copy(ls_device *device, void *to, const void *from, int64_t bytes)
{
    (void)device;
    if (bytes) memcpy(to, from, (size_t)bytes);
}

static void cpu_ordered_sum(ls_device *device, const ls_ordered_sum *sum)
{
    uint32_t former = ls_float_mode_enter();
    ls_cpu_of(device)->kernels->ordered_sum(sum);
    ls_float_mode_leave(former);
}

static void cpu_wait(ls_device *device)
{
    (void)device; /* each op was done when its function returned */
}

static const ls_device_operations operations = {
    .name = "cpu",
    .free = cpu_free,
    .allocate = cpu_allocate,
    .release = cpu_release,
    .scratch_bytes = cpu_scratch_bytes,
    .reserve_scratch = cpu_reserve_scratch,
    .function = cpu_function,
    .upload = cpu_copy,
    .download = cpu_copy,
    .ordered_sum = cpu_ordered_sum,
    .wait = cpu_wait,
};

#include "guarded.h"

#include <sys/mman.h>
#include <unistd.h>

#include "testing.h"

void guarded_init(guarded *memory, size_t capacity)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t bytes = (capacity + page - 1) / page * page;
    char *base = mmap(NULL, bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) fail_msg("no %zu bytes for guarded memory", bytes);
    if (mprotect(base + page, bytes, PROT_READ | PROT_WRITE)) fail_msg("mprotect failed");
    *memory = (guarded){base, bytes};
}

void guarded_deinit(guarded *memory)
{
    munmap(memory->base, memory->bytes + 2 * (size_t)sysconf(_SC_PAGESIZE));
}

float *guarded_floats(guarded *memory, int64_t count, int at_start)
{
    size_t bytes = (size_t)count * sizeof(float);
    if (bytes > memory->bytes) fail_msg("%zu bytes wanted of %zu guarded", bytes, memory->bytes);
    char *first = memory->base + sysconf(_SC_PAGESIZE);
    return (float *)(at_start ? first : first + memory->bytes - bytes);
}

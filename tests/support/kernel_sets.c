#include "kernel_sets.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <xmmintrin.h>

#include "guarded.h"
#include "testing.h"

enum { FLUSH_TO_ZERO = 0x8040 }; /* of results and of arguments */

static guarded memory[OPERANDS];
static int calls;

const ls_kernels *kernel_set(int index)
{
    static const char *const names[KERNEL_SETS] = {"ref", "avx2", "avx512"};
    static int told[KERNEL_SETS];
    const ls_kernels *set = ls_kernels_named(names[index]);
    if (!set && !told[index]++) printf("skipped: this machine lacks %s\n", names[index]);
    return set;
}

const ls_cache_blocks *block_kind(const ls_kernels *set, int index, ls_cache_blocks *room)
{
    enum { DEPTH = 16, TOKENS = 8 };
    *room = (ls_cache_blocks){.depth = DEPTH,
                              .floats = DEPTH * set->gemm_column_tile,
                              .tokens = TOKENS,
                              .columns = (int32_t)set->gemm_column_tile};
    return index == 0 ? NULL : index == 1 ? set->blocks : room;
}

int kernel_tests_setup(void **state)
{
    (void)state;
    _mm_setcsr(_mm_getcsr() | FLUSH_TO_ZERO);
    for (int i = 0; i < OPERANDS; i++)
        guarded_init(&memory[i], 1 << 20);
    return 0;
}

int kernel_tests_teardown(void **state)
{
    (void)state;
    for (int i = 0; i < OPERANDS; i++)
        guarded_deinit(&memory[i]);
    return 0;
}

uint32_t random_word(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    uint32_t word = *seed ^ *seed >> 15;
    return word * 0x2c1b3c6du ^ word >> 13;
}

float random_float(uint32_t *seed)
{
    return (float)(int32_t)(random_word(seed) >> 8) * 0x1p-23f - 1.0f;
}

float *operand(int index, int64_t count, float scale, uint32_t seed)
{
    float *values = guarded_floats(&memory[index], count, calls++ % 2);
    for (int64_t i = 0; i < count; i++)
        values[i] = scale == 0.0f ? NAN : random_float(&seed) * scale;
    return values;
}

int32_t *operand_ids(int index, int64_t count, int32_t limit, uint32_t seed)
{
    int32_t *ids = (int32_t *)(void *)guarded_floats(&memory[index], count, calls++ % 2);
    for (int64_t i = 0; i < count; i++)
        ids[i] = (int32_t)(random_word(&seed) % (uint32_t)limit);
    return ids;
}

void check_bits(const char *what, const char *set, int64_t size, const float *ours,
                const float *wanted, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (memcmp(&ours[i], &wanted[i], sizeof *ours) != 0)
            fail_msg("%s, %s, size %lld: element %lld is %a, wanted %a", what, set, (long long)size,
                     (long long)i, ours[i], wanted[i]);
}

void check_close(const char *what, int64_t size, const float *ours, const double *wanted,
                 int64_t count, double limit, double scale)
{
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(ours[i] - wanted[i]) <= limit * (fabs(wanted[i]) + scale)))
            fail_msg("%s, size %lld: element %lld is %.9g, wanted %.9g", what, (long long)size,
                     (long long)i, ours[i], wanted[i]);
}

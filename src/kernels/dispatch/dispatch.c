/* The kernel tables, one for each instruction set, and the choice between them. */
#include <cpuid.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/functions.h"
#include "kernels/tile_sizes.h"

#define ENTRY(field, isa) .field = ls_##field##__##isa,
#define TABLE(isa, lane_count, cache_blocks)                                                       \
    {                                                                                              \
        .name = #isa, .lanes = (lane_count), .gemm_row_tile = LS_TILE_ROWS_##isa,                  \
        .gemm_column_tile = LS_TILE_COLUMNS_##isa, .blocks = (cache_blocks),                       \
        LS_KERNEL_LIST(ENTRY, isa)                                                                 \
    }

/* Where the third-level cache is at the other end of a mesh (Intel's), not near enough to stream
 * packed operands from (AMD's): a block of B stays in the second level, a strip of a weight
 * gradient's left side in the first (docs/speed-log.md). */
static const ls_cache_blocks near_blocks[] = {
    {.depth = 768,
     .floats = 768 * 256,
     .rows_in_place = 256,
     .floats_in_place = 768 * 256,
     .tokens = 224,
     .columns = 256},
    {.depth = 768,
     .floats = 768 * 256,
     .rows_in_place = 32,
     .floats_in_place = 768 * 256,
     .tokens = 224,
     .columns = 384},
};

/* Best first. */
#define TABLES(wide, narrow)                                                                       \
    {                                                                                              \
        TABLE(avx512, 16, wide), TABLE(avx2, 8, narrow), TABLE(ref, 1, NULL)                       \
    }
enum { TABLE_COUNT = 3 };
static const ls_kernels tables[][TABLE_COUNT] = {TABLES(NULL, NULL),
                                                 TABLES(&near_blocks[0], &near_blocks[1])};

static const ls_kernels *tables_of_processor(void)
{
    unsigned eax, name[3];
    if (!__get_cpuid(0, &eax, &name[0], &name[2], &name[1])) return tables[0];
    return tables[memcmp(name, "GenuineIntel", sizeof name) == 0];
}

/* What the processor offers (CPUID) and the system saves at a task switch (XCR0). */
typedef struct cpu_features {
    bool avx2, avx512;
} cpu_features;

static cpu_features find_features(void)
{
    enum {
        FMA = 1 << 12,
        OSXSAVE = 1 << 27,
        AVX = 1 << 28,
        SSE_AVX_STATE = 0x6, /* XCR0: xmm, ymm */
        AVX512_STATE = 0xe6, /* and mask registers, upper zmm, zmm16-31 */
        AVX2 = 1 << 5,       /* leaf 7, ebx */
        AVX512_F = 1 << 16,
        AVX512_DQ = 1 << 17,
        AVX512_BW = 1 << 30,
    };
    const unsigned avx512_vl = 1u << 31;
    cpu_features features = {false, false};
    unsigned eax, ebx, ecx, edx;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return features;
    const unsigned basic = FMA | OSXSAVE | AVX;
    if ((ecx & basic) != basic) return features;
    unsigned state, state_high;
    __asm__ volatile("xgetbv" : "=a"(state), "=d"(state_high) : "c"(0));
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return features;
    features.avx2 = (state & SSE_AVX_STATE) == SSE_AVX_STATE && (ebx & AVX2);
    const unsigned wide = AVX512_F | AVX512_DQ | AVX512_BW | avx512_vl;
    features.avx512 =
        features.avx2 && (state & AVX512_STATE) == AVX512_STATE && (ebx & wide) == wide;
    return features;
}

static bool runs_here(const ls_kernels *table)
{
    if (table->lanes == 1) return true;
    cpu_features features = find_features();
    return table->lanes == 16 ? features.avx512 : features.avx2;
}

static const ls_kernels *find_table(const char *name)
{
    const ls_kernels *table = tables_of_processor();
    for (int i = 0; i < TABLE_COUNT; i++, table++)
        if (strcmp(table->name, name) == 0) return table;
    return NULL;
}

const ls_kernels *ls_kernels_named(const char *name)
{
    const ls_kernels *table = find_table(name);
    return table && runs_here(table) ? table : NULL;
}

ls_status ls_kernels_choose(const ls_kernels **out, ls_error *error)
{
    const char *wanted = getenv("LOCKSTEP_ISA");
    if (wanted && *wanted) {
        const ls_kernels *table = find_table(wanted);
        if (!table)
            return ls_fail(error, LS_INVALID,
                           "LOCKSTEP_ISA=%s: no such instruction set; it can be avx512, avx2 or "
                           "ref, or be left unset for the best that this machine has",
                           wanted);
        if (!runs_here(table))
            return ls_fail(error, LS_INVALID,
                           "LOCKSTEP_ISA=%s: this machine lacks %s (or its system does not save "
                           "the registers); unset it for the best that the machine has",
                           wanted, wanted);
        *out = table;
        return LS_OK;
    }
    *out = tables_of_processor();
    while (!runs_here(*out))
        ++*out; /* the last one runs anywhere */
    return LS_OK;
}

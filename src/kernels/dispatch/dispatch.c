/* The kernel tables, one for each instruction set, and the choice between them. */
#include <cpuid.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/functions.h"
#include "kernels/tile_sizes.h"

#define ENTRY(field, isa) .field = ls_##field##__##isa,
#define TABLE(isa, lane_count)                                                                     \
    {                                                                                              \
        .name = #isa, .lanes = (lane_count), .gemm_row_tile = LS_TILE_ROWS_##isa,                  \
        .gemm_column_tile = LS_TILE_COLUMNS_##isa, LS_KERNEL_LIST(ENTRY, isa)                      \
    }

/* Best first. */
static const ls_kernels tables[] = {TABLE(avx512, 16), TABLE(avx2, 8), TABLE(ref, 1)};

enum { TABLE_COUNT = sizeof tables / sizeof tables[0] };

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
    for (int i = 0; i < TABLE_COUNT; i++)
        if (strcmp(tables[i].name, name) == 0) return &tables[i];
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
    for (int i = 0; i < TABLE_COUNT; i++)
        if (runs_here(&tables[i])) {
            *out = &tables[i];
            break;
        }
    return LS_OK;
}

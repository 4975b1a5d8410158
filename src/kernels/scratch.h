/* Where kernels pack and stack: the scratch memory of one thread. */
#ifndef LS_KERNELS_SCRATCH_H
#define LS_KERNELS_SCRATCH_H

#include "kernels/tile.h"

enum { CACHE_LINE = 64 };

static inline void *scratch_align(void *scratch)
{
    return (void *)(((uintptr_t)scratch + CACHE_LINE - 1) & ~(uintptr_t)(CACHE_LINE - 1));
}

/* gemm: one block of B, one tile of A, one tile of C with an edge. */
enum { DEPTH_BLOCK = 384, COLUMN_BLOCK = 384 };

typedef struct gemm_scratch {
    float b[DEPTH_BLOCK * COLUMN_BLOCK];
    float a[DEPTH_BLOCK * TILE_ROWS + PACK_SLACK];
    float edge[TILE_FLOATS];
} gemm_scratch;

/* weight_gradient: the stack of tiles, a group of packed left tiles over all tokens (as many as
 * fit LEFT_FLOATS, at least one), one packed right panel over all tokens. */
enum { LEFT_FLOATS = 512 * 1024 };

static inline int64_t left_tile_floats(int64_t tokens)
{
    return round_up(tokens * TILE_ROWS + PACK_SLACK, CACHE_LINE / 4);
}

static inline int64_t left_group(int64_t tokens)
{
    int64_t tiles = LEFT_FLOATS / left_tile_floats(tokens);
    return tiles > 1 ? tiles : 1;
}

static inline int64_t left_floats(int64_t tokens)
{
    int64_t one = left_tile_floats(tokens);
    return one > LEFT_FLOATS ? one : LEFT_FLOATS;
}

/* attention: blocks of QUERY_BLOCK rows of scores, each row padded to whole groups of 16. */
enum { QUERY_BLOCK = 56 };

#endif

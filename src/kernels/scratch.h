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
enum { DEPTH_BLOCK = 1536, BLOCK_FLOATS = DEPTH_BLOCK * 384 };

typedef struct gemm_scratch {
    float b[BLOCK_FLOATS];
    float a[DEPTH_BLOCK * TILE_ROWS + PACK_SLACK];
    float edge[TILE_FLOATS];
} gemm_scratch;

/* weight_gradient: stacks of tiles, and a packed block of the right side: tokens x panels. A block
 * ends between two pieces, so that a long piece makes it longer. */
enum { STACK_FLOATS = 256 * 1024, TOKEN_BLOCK = 1024, RIGHT_FLOATS = TOKEN_BLOCK * 128 };

static inline int64_t right_floats(int64_t tokens)
{
    int64_t one_panel = tokens * TILE_COLUMNS;
    return one_panel > RIGHT_FLOATS ? one_panel : RIGHT_FLOATS;
}

/* attention: blocks of QUERY_BLOCK rows of scores, each row padded to whole groups of 16. */
enum { QUERY_BLOCK = 56 };

#endif

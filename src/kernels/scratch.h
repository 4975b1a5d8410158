/* Where kernels pack and stack: the scratch memory of one thread, and how much it holds. */
#ifndef LS_KERNELS_SCRATCH_H
#define LS_KERNELS_SCRATCH_H

#include "base/leaf_schedule.h"
#include "kernels/kernels.h"
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

/* weight_gradient: the stack of a tile; entries that wait between two blocks of tokens, for each
 * tile of a group; a packed block of the right side and, for narrow tiles, of the left side. Groups
 * and blocks are what the near caches hold. A block has whole pieces: a long one makes it longer.
 */
enum {
    TOKEN_BLOCK = WIDE_TILE ? 1024 : 224,
    GROUP_ROWS = 384, /* of G, narrow tiles only */
    GROUP_COLUMNS = WIDE_TILE ? 128 : 384,
    STACK_FLOATS = (LS_MAX_SLOTS + 1) * TILE_FLOATS,
    KEPT_FLOATS = 512 * 1024,
};

/* A row of B by depth is often on a page of its own and in few sets of the caches: a wide tile has
 * the time to fetch it, a narrow one only where packing would cost more. */
static const ls_cache_blocks largest_blocks = {
    .depth = DEPTH_BLOCK,
    .floats = BLOCK_FLOATS,
    .rows_in_place = WIDE_TILE ? 256 : 32,
    .floats_in_place = INT64_MAX,
    .tokens = TOKEN_BLOCK,
    .columns = GROUP_COLUMNS,
};

/* One panel at least. */
static inline int64_t right_floats(int64_t tokens)
{
    return larger(tokens * TILE_COLUMNS, TOKEN_BLOCK * GROUP_COLUMNS);
}

static inline int64_t left_tile_floats(int64_t tokens)
{
    return tokens * TILE_ROWS + PACK_SLACK;
}

/* One tile at least. */
static inline int64_t left_floats(int64_t tokens)
{
    return WIDE_TILE ? 0 : larger(left_tile_floats(tokens), TOKEN_BLOCK * GROUP_ROWS);
}

/* attention: blocks of QUERY_BLOCK rows of scores, each row padded to whole groups of 16, and of
 * MASK_ROWS rows of the dropout mask, padded to what is drawn at once. */
enum { QUERY_BLOCK = 56, MASK_ROWS = 4, MASK_GROUP = 32 };

#endif

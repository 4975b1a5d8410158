/* Matrix products: ls_gemm in kernels.h, on the tiles of tile.h.
 *
 * Rows of A go by one tile after the other, each against all columns of a block of B: the tile's
 * rows stay in the near caches, the block streams from the far ones. Operands are read where they
 * lie whenever the tile kernels can; B with its depth contiguous (weights in a forward product) is
 * transposed into panels, a block at a time. A chain cut at a block's depth waits in C and goes on
 * from there, which leaves its bits as they are. */
#include "kernels/functions.h"
#include "kernels/scratch.h"
#include "kernels/tile.h"

enum { CACHE_WAYS = 8, WAY_FLOATS = 1024 }; /* first-level data caches: 4 KiB a way */

/* The tile at (row, column) of one block, with the packed operands that belong to it. */
typedef struct tile_place {
    int64_t row, rows, column, columns;
    bool first, last; /* block of the depth */
    int64_t depth;
    const float *a, *b;
    int64_t a_stride, b_row;
    tile_layout layout;
} tile_place;

/* A tile whose last vector is not whole: its chains start and end in `edge`, padded. */
static void run_edge(ls_tile *tile, ls_tile_kernel kernel, int64_t rows, int64_t columns,
                     float *edge)
{
    if (tile->start) {
        for (int64_t i = 0; i < rows; i++)
            for (int64_t n = 0; n < columns; n += LS_LANES)
                vec_store(edge + i * TILE_COLUMNS + n,
                          vec_load_first(tile->start + i * tile->start_row + n,
                                         smaller(LS_LANES, columns - n)));
        tile->start = edge;
        tile->start_row = TILE_COLUMNS;
    }
    float *c = tile->c;
    int64_t c_row = tile->c_row;
    tile->c = edge;
    tile->c_row = TILE_COLUMNS;
    kernel(tile);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t n = 0; n < columns; n += LS_LANES)
            vec_store_first(c + i * c_row + n, vec_load(edge + i * TILE_COLUMNS + n),
                            smaller(LS_LANES, columns - n));
}

/* What is done to complete chains while their tile is still in the first-level cache. */
static void finish_tile(const ls_gemm *g, const tile_place *place, const float *chains, int64_t at)
{
    float *c = g->c + at, *slope = g->slope ? g->slope + at : NULL;
    if (g->activation != LS_ACTIVATION_NONE || slope) {
        LS_KERNEL(activation)
        (g->activation, c, slope, chains, g->c_row, place->rows, place->columns);
    }
    if (g->factor) {
        LS_KERNEL(multiply)(c, c, g->factor + at, g->c_row, place->rows, place->columns);
    }
}

static void run_tile(const ls_gemm *g, const tile_place *place, float *edge)
{
    const int32_t offsets[2] = {0, (int32_t)place->depth};
    const uint8_t merges[1] = {0};
    float *chains = g->slope ? g->slope : g->c; /* until the last block of the depth is done */
    int64_t at = place->row * g->c_row + place->column;
    ls_tile tile = {
        .a = place->a,
        .a_stride = place->a_stride,
        .b = place->b,
        .b_row = place->b_row,
        .pieces = 1,
        .offsets = offsets,
        .merges = merges,
        .c = chains + at,
        .c_row = g->c_row,
    };
    if (!place->first) {
        tile.start = chains + at;
        tile.start_row = g->c_row;
    } else if (g->accumulate) {
        tile.start = g->c + at;
        tile.start_row = g->c_row;
    } else if (g->bias) {
        tile.start = g->bias + place->column;
    }
    int64_t vectors = (place->columns + LS_LANES - 1) / LS_LANES;
    ls_tile_kernel kernel = tile_kernels[place->layout][place->rows - 1][vectors - 1];
    if (place->columns % LS_LANES)
        run_edge(&tile, kernel, place->rows, place->columns, edge);
    else
        kernel(&tile);
    if (place->last) finish_tile(g, place, chains + at, at);
}

/* A is read where it lies if its rows or its columns are contiguous, unless its rows would fall
 * into the same few sets of the first-level cache and push each other out. */
static void place_rows(const ls_gemm *g, tile_place *place, float *packed, int64_t begin)
{
    const float *a = g->a + place->row * g->a_row + begin * g->a_depth;
    bool crowded = place->rows > CACHE_WAYS && g->a_row % WAY_FLOATS == 0;
    if (g->a_row == 1) {
        place->layout = A_BY_DEPTH;
        place->a = a;
        place->a_stride = g->a_depth;
    } else if (g->a_depth == 1 && !crowded) {
        place->layout = A_BY_ROWS;
        place->a = a;
        place->a_stride = g->a_row;
    } else {
        pack_a(packed, a, g->a_row, g->a_depth, place->rows, place->depth);
        place->layout = A_BY_DEPTH;
        place->a = packed;
        place->a_stride = TILE_ROWS;
    }
}

/* A block of B: of its columns all or some, of its depth all or some. */
typedef struct gemm_block {
    int64_t column, columns, begin, depth;
    bool in_place; /* B is read where it lies, but for a last panel of part vectors */
} gemm_block;

static void place_columns(const ls_gemm *g, const gemm_block *block, tile_place *place,
                          const float *packed)
{
    if (block->in_place && place->columns % LS_LANES == 0) {
        place->b = g->b + block->begin * g->b_depth + place->column;
        place->b_row = g->b_depth;
    } else {
        int64_t panel = block->in_place ? 0 : place->column - block->column;
        place->b = packed + panel * block->depth;
        place->b_row = round_up(place->columns, LS_LANES);
    }
}

/* All rows against one block of B. */
static void run_block(const ls_gemm *g, gemm_scratch *s, const gemm_block *block)
{
    int64_t packed_columns = block->in_place ? block->columns % TILE_COLUMNS : block->columns;
    if (!block->in_place || packed_columns % LS_LANES) {
        int64_t first = block->column + block->columns - packed_columns;
        pack_b(s->b, g->b + block->begin * g->b_depth + first * g->b_column, g->b_depth,
               g->b_column, block->depth, packed_columns);
    }
    tile_place place = {
        .first = block->begin == 0,
        .last = block->begin + block->depth == g->depth,
        .depth = block->depth,
    };
    int64_t tiles = tile_count(g->rows);
    for (int64_t i = 0; i < tiles; i++) {
        place.row = tile_begin(g->rows, tiles, i);
        place.rows = tile_begin(g->rows, tiles, i + 1) - place.row;
        place_rows(g, &place, s->a, block->begin);
        for (int64_t n = 0; n < block->columns; n += TILE_COLUMNS) {
            place.column = block->column + n;
            place.columns = smaller(TILE_COLUMNS, block->columns - n);
            place_columns(g, block, &place, s->b);
            run_tile(g, &place, s->edge);
        }
    }
}

static bool reads_b_in_place(const ls_gemm *g, const ls_cache_blocks *blocks)
{
    if (g->b_column != 1) return false;
    if (g->rows <= TILE_ROWS) return true;
    if (g->b_depth % WAY_FLOATS == 0) return false;
    return g->rows <= blocks->rows_in_place && g->depth * g->columns <= blocks->floats_in_place;
}

void LS_KERNEL(gemm)(const ls_gemm *g, void *scratch)
{
    const ls_cache_blocks *blocks = g->blocks ? g->blocks : &largest_blocks;
    bool in_place = reads_b_in_place(g, blocks);
    int64_t depth_blocks = (g->depth + blocks->depth - 1) / blocks->depth;
    int64_t depth_block = depth_blocks > 1 ? round_up(g->depth / depth_blocks, 16) : g->depth;
    int64_t column_block = g->columns;
    if (!in_place && depth_block > 0)
        column_block = blocks->floats / depth_block / TILE_COLUMNS * TILE_COLUMNS;
    for (int64_t column = 0; column < g->columns; column += column_block) {
        gemm_block block = {.column = column,
                            .columns = smaller(column_block, g->columns - column),
                            .in_place = in_place};
        do { /* once for a depth of 0: the chains are their starts */
            block.depth = smaller(depth_block, g->depth - block.begin);
            run_block(g, scratch_align(scratch), &block);
            block.begin += block.depth;
        } while (block.begin < g->depth);
    }
}

/* The register tile that every matrix product runs on, and the packing that feeds it.
 *
 * A tile of C is TILE_ROWS x TILE_COLUMNS, kept in registers while its chains run over the depth. A
 * tile with fewer rows or vectors has a kernel of its own; each element is one chain whatever the
 * tile, so its bits do not depend on how a matrix is cut. Packed A is [depth][TILE_ROWS], packed B
 * [depth][columns] in whole vectors, zero beyond the edge. */
#ifndef LS_KERNELS_TILE_H
#define LS_KERNELS_TILE_H

#include <stdbool.h>

#include "kernels/tile_sizes.h"
#include "kernels/vector.h"

/* Each set has its own. */
#define tile_kernels LS_KERNEL(tile_kernels)
#define pack_a LS_KERNEL(pack_a)
#define pack_b LS_KERNEL(pack_b)

#define LS_TILE_PASTE_(a, b) a##b
#define LS_TILE_PASTE(a, b) LS_TILE_PASTE_(a, b)
enum {
    TILE_ROWS = LS_TILE_PASTE(LS_TILE_ROWS_, LS_ISA_NAME),
    TILE_COLUMNS = LS_TILE_PASTE(LS_TILE_COLUMNS_, LS_ISA_NAME),
    TILE_VECTORS = TILE_COLUMNS / LS_LANES,
    TILE_FLOATS = TILE_ROWS * TILE_COLUMNS,
    PACK_SLACK = LS_LANES, /* floats that packing may write beyond the end of packed A */
    /* A wide tile has time to read operands where they lie, even a row a page; a narrow one needs
     * them packed, so that it uses whole cache lines (measured; docs/speed-log.md). */
    WIDE_TILE = TILE_COLUMNS >= 32,
};

/* What a tile kernel does: chains of fma over the depth, cut into pieces. A piece that is complete
 * is added to the `merges` newest entries of the stack, newest first, and pushed; the last one is
 * stored in c instead. Whole vectors only. */
typedef struct ls_tile {
    const float *a; /* see tile_layout */
    int64_t a_stride;
    const float *b; /* [depth] rows, b_row apart */
    int64_t b_row;
    float *b_copy;      /* where A_BY_DEPTH_COPY_B leaves B packed: [depth][columns] */
    const float *start; /* of the first piece's chains, rows start_row apart (0: the same for all);
                           NULL: zeros, as for all other pieces */
    int64_t start_row;
    int64_t pieces;         /* at least 1 */
    const int32_t *offsets; /* [pieces + 1] into the depth */
    const uint8_t *merges;  /* [pieces] */
    bool leave_open;        /* the last piece is not complete: no merges */
    float *stack;           /* above the newest entry; entries are [TILE_ROWS][TILE_COLUMNS] */
    float *c;
    int64_t c_row;
} ls_tile;

typedef void (*ls_tile_kernel)(const ls_tile *tile);

/* How A lies in memory, for row i of the tile: A_BY_DEPTH a[k * a_stride + i], A_BY_ROWS
 * a[i * a_stride + k]. A_BY_DEPTH_COPY_B also packs B as it goes. */
typedef enum tile_layout { A_BY_DEPTH, A_BY_ROWS, A_BY_DEPTH_COPY_B, LAYOUTS } tile_layout;

/* [layout][rows - 1][vectors - 1] */
extern const ls_tile_kernel tile_kernels[LAYOUTS][TILE_ROWS][TILE_VECTORS];

/* `rows` (<= TILE_ROWS) rows of A(m,k) = a[m * a_row + k * a_depth], k < depth, for A_BY_DEPTH. */
void pack_a(float *packed, const float *a, int64_t a_row, int64_t a_depth, int64_t rows,
            int64_t depth);
/* Panels of TILE_COLUMNS columns, one after the other, the last one as many whole vectors as it
 * needs; B(k,n) = b[k * b_depth + n * b_column], one of the strides is 1. */
void pack_b(float *packed, const float *b, int64_t b_depth, int64_t b_column, int64_t depth,
            int64_t columns);

static inline int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t round_up(int64_t value, int64_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

/* Cut `count` rows into as few tiles as possible, of nearly equal height: tile i of them begins at
 * tile_begin(i). Equal heights keep the registers of every tile busy. */
static inline int64_t tile_count(int64_t count)
{
    return (count + TILE_ROWS - 1) / TILE_ROWS;
}

static inline int64_t tile_begin(int64_t count, int64_t tiles, int64_t i)
{
    return count / tiles * i + smaller(i, count % tiles);
}

#endif

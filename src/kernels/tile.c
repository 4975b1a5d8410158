/* The register-tile kernels: one function per height and width, all from the one below. */
#include "kernels/tile.h"

/* rows and vectors are constants at every call, so that the loops unroll and the sums stay in
 * registers. */
LS_INLINE void run_tile(const ls_tile *tile, const int rows, const int vectors)
{
    vec sum[TILE_ROWS][TILE_VECTORS];
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++)
            sum[i][j] = vec_set(0.0f);
    if (tile->start) {
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
            for (int j = 0; j < vectors; j++)
                sum[i][j] = vec_load(tile->start + i * tile->start_row + j * LS_LANES);
    }
    const float *a = tile->a, *b = tile->b;
    const int64_t b_row = tile->b_row;
    float *stack = tile->stack;
    for (int64_t piece = 0;;) {
        for (int32_t left = tile->offsets[piece + 1] - tile->offsets[piece]; left > 0; left--) {
            vec column[TILE_VECTORS];
#pragma GCC unroll 4
            for (int j = 0; j < vectors; j++)
                column[j] = vec_load(b + j * LS_LANES);
#pragma GCC unroll 16
            for (int i = 0; i < rows; i++) {
                vec row = vec_set(a[i]);
#pragma GCC unroll 4
                for (int j = 0; j < vectors; j++)
                    sum[i][j] = vec_fma(row, column[j], sum[i][j]);
            }
            a += TILE_ROWS;
            b += b_row;
        }
        int merges = tile->merges[piece];
        bool last = ++piece == tile->pieces;
        if (last && tile->leave_open) merges = 0;
        for (; merges > 0; merges--) {
            stack -= TILE_FLOATS;
#pragma GCC unroll 16
            for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
                for (int j = 0; j < vectors; j++)
                    sum[i][j] = vec_load(stack + i * TILE_COLUMNS + j * LS_LANES) + sum[i][j];
        }
        if (last) break;
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
            for (int j = 0; j < vectors; j++) {
                vec_store(stack + i * TILE_COLUMNS + j * LS_LANES, sum[i][j]);
                sum[i][j] = vec_set(0.0f);
            }
        stack += TILE_FLOATS;
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++)
            vec_store(tile->c + i * tile->c_row + j * LS_LANES, sum[i][j]);
}

#define TILE(rows, vectors)                                                                        \
    static void tile_##rows##x##vectors(const ls_tile *tile)                                       \
    {                                                                                              \
        run_tile(tile, rows, vectors);                                                             \
    }

#if LS_LANES == 1
#define TILES(rows) TILE(rows, 1) TILE(rows, 2) TILE(rows, 3) TILE(rows, 4)
#define ENTRIES(rows)                                                                              \
    {                                                                                              \
        tile_##rows##x1, tile_##rows##x2, tile_##rows##x3, tile_##rows##x4                         \
    }
#else
#define TILES(rows) TILE(rows, 1) TILE(rows, 2)
#define ENTRIES(rows)                                                                              \
    {                                                                                              \
        tile_##rows##x1, tile_##rows##x2                                                           \
    }
#endif

TILES(1)
TILES(2)
TILES(3)
TILES(4)
#if LS_LANES > 1
TILES(5)
TILES(6)
#endif
#if LS_LANES > 8
TILES(7)
TILES(8)
TILES(9)
TILES(10)
TILES(11)
TILES(12)
TILES(13)
TILES(14)
#endif

const ls_tile_kernel LS_KERNEL(tile_kernels)[TILE_ROWS][TILE_VECTORS] = {
    ENTRIES(1),  ENTRIES(2),  ENTRIES(3),  ENTRIES(4),
#if LS_LANES > 1
    ENTRIES(5),  ENTRIES(6),
#endif
#if LS_LANES > 8
    ENTRIES(7),  ENTRIES(8),  ENTRIES(9),  ENTRIES(10),
    ENTRIES(11), ENTRIES(12), ENTRIES(13), ENTRIES(14),
#endif
};

/* The register-tile kernels: one function per height and width, all from the one below. */
#include "kernels/tile.h"

enum {
    PREFETCH_STEPS = 8,  /* of the depth, ahead in A: a row of A by depth may be a page away */
    PREFETCH_DEPTH = 64, /* from which on fetching C early pays */
    POINTERS = (TILE_ROWS + 2) / 3,
};

#define CACHE_LINES(vectors) (((vectors)*LS_LANES + 15) / 16)

/* Row i of A at one step of the depth, for rows a_stride apart: three to a pointer, so that the
 * address of each is pointer + stride * {0, 1, 2} and fourteen fit in the integer registers. */
LS_INLINE float row_element(const float *const pointer[POINTERS], int64_t stride, int i)
{
    return pointer[i / 3][i % 3 * stride];
}

LS_INLINE void advance(const float *pointer[POINTERS], int64_t by, const int count)
{
    LS_UNROLL (i, count) {
        pointer[i] += by;
        /* else the compiler makes fourteen pointers of these and spills them */
        __asm__("" : "+r"(pointer[i]));
    }
}

/* Fetch the tile of C while the chains run. */
LS_INLINE void prefetch_c(const ls_tile *tile, const int rows, const int vectors)
{
    LS_UNROLL (i, rows)
        LS_UNROLL (j, CACHE_LINES(vectors))
            __builtin_prefetch(tile->c + i * tile->c_row + j * 16, 1);
}

/* rows, vectors and layout are constants at every call, so that the loops unroll and the sums stay
 * in registers. */
LS_INLINE void run_tile(const ls_tile *tile, const int rows, const int vectors,
                        const tile_layout layout)
{
    const bool by_depth = layout != A_BY_ROWS, copy = layout == A_BY_DEPTH_COPY_B;
    vec sum[TILE_ROWS][TILE_VECTORS];
    LS_UNROLL (i, rows)
        LS_UNROLL (j, vectors)
            sum[i][j] = vec_set(0.0f);
    if (tile->start) {
        LS_UNROLL (i, rows)
            LS_UNROLL (j, vectors)
                sum[i][j] = vec_load(tile->start + i * tile->start_row + j * LS_LANES);
    }
    const int64_t a_stride = tile->a_stride, b_row = tile->b_row;
    const float *b = tile->b, *pointer[POINTERS];
    LS_UNROLL (i, POINTERS)
        pointer[i] = by_depth || i * 3 >= rows ? tile->a : tile->a + i * 3 * a_stride;
    float *stack = tile->stack, *b_copy = tile->b_copy;
    if (tile->offsets[tile->pieces] >= PREFETCH_DEPTH) prefetch_c(tile, rows, vectors);
    for (int64_t piece = 0;;) {
        for (int32_t left = tile->offsets[piece + 1] - tile->offsets[piece]; left > 0; left--) {
            vec column[TILE_VECTORS];
            LS_UNROLL (j, vectors)
                column[j] = vec_load(b + j * LS_LANES);
            if (copy) {
                LS_UNROLL (j, vectors)
                    vec_store(b_copy + j * LS_LANES, column[j]);
                LS_UNROLL (j, CACHE_LINES(vectors))
                    __builtin_prefetch(b + PREFETCH_STEPS * b_row + j * 16);
                b_copy += vectors * LS_LANES;
            }
            if (by_depth && WIDE_TILE) {
                __builtin_prefetch(pointer[0] + PREFETCH_STEPS * a_stride);
                __builtin_prefetch(pointer[0] + PREFETCH_STEPS * a_stride + rows - 1);
            }
            LS_UNROLL (i, rows) {
                vec row = vec_set(by_depth ? pointer[0][i] : row_element(pointer, a_stride, i));
                LS_UNROLL (j, vectors)
                    sum[i][j] = vec_fma(row, column[j], sum[i][j]);
            }
            advance(pointer, by_depth ? a_stride : 1, by_depth ? 1 : (rows + 2) / 3);
            b += b_row;
        }
        int merges = tile->merges[piece];
        bool last = ++piece == tile->pieces;
        if (last && tile->leave_open) merges = 0;
        for (; merges > 0; merges--) {
            stack -= TILE_FLOATS;
            LS_UNROLL (i, rows)
                LS_UNROLL (j, vectors)
                    sum[i][j] = vec_load(stack + i * TILE_COLUMNS + j * LS_LANES) + sum[i][j];
        }
        if (last) break;
        LS_UNROLL (i, rows)
            LS_UNROLL (j, vectors) {
                vec_store(stack + i * TILE_COLUMNS + j * LS_LANES, sum[i][j]);
                sum[i][j] = vec_set(0.0f);
            }
        stack += TILE_FLOATS;
    }
    LS_UNROLL (i, rows)
        LS_UNROLL (j, vectors)
            vec_store(tile->c + i * tile->c_row + j * LS_LANES, sum[i][j]);
}

#define TILE(rows, vectors)                                                                        \
    static void by_depth_##rows##x##vectors(const ls_tile *tile)                                   \
    {                                                                                              \
        run_tile(tile, rows, vectors, A_BY_DEPTH);                                                 \
    }                                                                                              \
    static void copying_##rows##x##vectors(const ls_tile *tile)                                    \
    {                                                                                              \
        run_tile(tile, rows, vectors, A_BY_DEPTH_COPY_B);                                          \
    }                                                                                              \
    static void by_rows_##rows##x##vectors(const ls_tile *tile)                                    \
    {                                                                                              \
        run_tile(tile, rows, vectors, A_BY_ROWS);                                                  \
    }

#if LS_LANES == 1
#define TILES(rows) TILE(rows, 1) TILE(rows, 2) TILE(rows, 3) TILE(rows, 4)
#define ENTRIES(layout, rows)                                                                      \
    {                                                                                              \
        layout##_##rows##x1, layout##_##rows##x2, layout##_##rows##x3, layout##_##rows##x4         \
    }
#else
#define TILES(rows) TILE(rows, 1) TILE(rows, 2)
#define ENTRIES(layout, rows)                                                                      \
    {                                                                                              \
        layout##_##rows##x1, layout##_##rows##x2                                                   \
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

#define LOW_TILES(layout)                                                                          \
    ENTRIES(layout, 1), ENTRIES(layout, 2), ENTRIES(layout, 3), ENTRIES(layout, 4)
#define MIDDLE_TILES(layout) ENTRIES(layout, 5), ENTRIES(layout, 6)
#define HIGH_TILES(layout)                                                                         \
    ENTRIES(layout, 7), ENTRIES(layout, 8), ENTRIES(layout, 9), ENTRIES(layout, 10),               \
        ENTRIES(layout, 11), ENTRIES(layout, 12), ENTRIES(layout, 13), ENTRIES(layout, 14)

#if LS_LANES == 1
#define ALL_TILES(layout) LOW_TILES(layout)
#elif LS_LANES == 8
#define ALL_TILES(layout) LOW_TILES(layout), MIDDLE_TILES(layout)
#else
#define ALL_TILES(layout) LOW_TILES(layout), MIDDLE_TILES(layout), HIGH_TILES(layout)
#endif

const ls_tile_kernel tile_kernels[LAYOUTS][TILE_ROWS][TILE_VECTORS] = {
    [A_BY_DEPTH] = {ALL_TILES(by_depth)},
    [A_BY_ROWS] = {ALL_TILES(by_rows)},
    [A_BY_DEPTH_COPY_B] = {ALL_TILES(copying)},
};

/* Packing of the operands of matrix products into the layouts of tile.h. */
#include "kernels/tile.h"
#include "kernels/transpose.h"

/* A block of LS_LANES rows, `stride` apart, `rows` of which exist, transposed: to[k][lane]. Stores
 * are whole vectors in ascending k: where to_row < LS_LANES the next one covers what was too much.
 */
LS_INLINE void transpose_block(float *to, int64_t to_row, const float *from, int64_t stride,
                               int64_t rows, int64_t depth)
{
    vec block[LS_LANES];
    int64_t k = 0;
    for (; k + LS_LANES <= depth; k += LS_LANES) {
        for (int i = 0; i < LS_LANES; i++)
            block[i] = i < rows ? vec_load(from + i * stride + k) : vec_set(0.0f);
        vec_transpose(block);
        for (int i = 0; i < LS_LANES; i++)
            vec_store(to + (k + i) * to_row, block[i]);
    }
    if (k == depth) return;
    for (int i = 0; i < LS_LANES; i++)
        block[i] = i < rows ? vec_load_first(from + i * stride + k, depth - k) : vec_set(0.0f);
    vec_transpose(block);
    for (int i = 0; k + i < depth; i++)
        vec_store(to + (k + i) * to_row, block[i]);
}

void pack_a(float *packed, const float *a, int64_t a_row, int64_t a_depth, int64_t rows,
            int64_t depth)
{
    for (int64_t first = 0; first < rows; first += LS_LANES) {
        int64_t count = smaller(LS_LANES, rows - first);
        const float *from = a + first * a_row;
        float *to = packed + first;
        if (a_depth != 1) {
            for (int64_t k = 0; k < depth; k++)
                for (int64_t i = 0; i < count; i++)
                    to[k * TILE_ROWS + i] = from[i * a_row + k * a_depth];
        } else if (count == LS_LANES) {
            transpose_block(to, TILE_ROWS, from, a_row, LS_LANES, depth);
        } else {
            transpose_block(to, TILE_ROWS, from, a_row, count, depth);
        }
    }
}

/* Rows of B are read from end to end, COPY_ROWS of them at a time: one is often on a page of its
 * own.
 */
enum { COPY_ROWS = 8 };

static void copy_panels(float *packed, const float *b, int64_t b_depth, int64_t depth,
                        int64_t columns)
{
    for (int64_t begin = 0; begin < depth; begin += COPY_ROWS) {
        int64_t end = smaller(begin + COPY_ROWS, depth);
        for (int64_t first = 0; first < columns; first += TILE_COLUMNS) {
            int64_t count = smaller(TILE_COLUMNS, columns - first);
            int64_t width = round_up(count, LS_LANES), whole = count / LS_LANES * LS_LANES;
            float *panel = packed + first * depth;
            for (int64_t k = begin; k < end; k++) {
                float *to = panel + k * width;
                const float *from = b + k * b_depth + first;
                for (int64_t n = 0; n < whole; n += LS_LANES)
                    vec_store(to + n, vec_load(from + n));
                if (whole < count)
                    vec_store(to + whole, vec_load_first(from + whole, count - whole));
            }
        }
    }
}

void pack_b(float *packed, const float *b, int64_t b_depth, int64_t b_column, int64_t depth,
            int64_t columns)
{
    if (b_column == 1) {
        copy_panels(packed, b, b_depth, depth, columns);
        return;
    }
    for (int64_t first = 0; first < columns; first += TILE_COLUMNS) {
        int64_t count = smaller(TILE_COLUMNS, columns - first);
        int64_t width = round_up(count, LS_LANES);
        float *panel = packed + first * depth;
        for (int64_t n = 0; n < count; n += LS_LANES) {
            const float *from = b + (first + n) * b_column;
            if (n + LS_LANES <= count)
                transpose_block(panel + n, width, from, b_column, LS_LANES, depth);
            else
                transpose_block(panel + n, width, from, b_column, count - n, depth);
        }
    }
}

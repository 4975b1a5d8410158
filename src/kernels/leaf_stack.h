/* The stack of partial sums that every sum over samples walks (base/leaf_schedule.h), for a tile of
 * the gradient: `rows` x `vectors` vecs, of which the caller holds the newest, its accumulator.
 *
 *     leaf_stack stack;
 *     leaf_stack_begin(&stack, &tile, depth);
 *     for each piece:
 *         leaf_stack_start(&stack, sum, R, V, piece == 0 && resume);
 *         ... add the piece's rows to sum ...
 *         if (piece is the last && leave_open) leaf_stack_park(&stack, sum, R, V);
 *         else leaf_stack_push(&stack, entries, sum, R, V, merges[piece]);
 *     leaf_stack_end(&stack, entries, R, V);
 *
 * Entries live in the caller's array `vec entries[LS_MAX_SLOTS * R * V]`, in the L1 cache. Those of
 * earlier passes stay in the slots and are read when something is first added to them; what this
 * pass made or changed is written back at the end. R and V are constants, so that a tile's loops
 * unroll and its accumulator stays in registers; what of the tile lies outside the gradient
 * (tile.rows, tile.columns) is neither read nor written. */
#ifndef LS_KERNELS_LEAF_STACK_H
#define LS_KERNELS_LEAF_STACK_H

#include "base/leaf_schedule.h"
#include "kernels/vector.h"

typedef struct leaf_tile {
    float *slots; /* the tile's first element in slot 0 */
    int64_t slot_stride, row_stride;
    int64_t rows, columns; /* inside the gradient; columns count floats */
} leaf_tile;

typedef struct leaf_stack {
    const leaf_tile *tile;
    int32_t count;  /* partial sums on the stack */
    int32_t lowest; /* those below it are in the slots only */
} leaf_stack;

LS_INLINE void leaf_tile_load(const leaf_tile *tile, int32_t slot, vec *values, int rows,
                              int vectors)
{
    const float *from = tile->slots + slot * tile->slot_stride;
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            values[r * vectors + v] =
                r < tile->rows ? vec_load_first(from + r * tile->row_stride + v * LS_LANES,
                                                lanes_left(tile->columns, v * LS_LANES))
                               : vec_set(0.0f);
}

LS_INLINE void leaf_tile_store(const leaf_tile *tile, int32_t slot, const vec *values, int rows,
                               int vectors)
{
    float *to = tile->slots + slot * tile->slot_stride;
    for (int r = 0; r < rows && r < tile->rows; r++)
        for (int v = 0; v < vectors; v++)
            vec_store_first(to + r * tile->row_stride + v * LS_LANES, values[r * vectors + v],
                            lanes_left(tile->columns, v * LS_LANES));
}

LS_INLINE void leaf_stack_begin(leaf_stack *stack, const leaf_tile *tile, int32_t depth)
{
    *stack = (leaf_stack){tile, depth, depth};
}

LS_INLINE void leaf_stack_start(const leaf_stack *stack, vec *sum, int rows, int vectors,
                                bool resume)
{
    if (resume)
        leaf_tile_load(stack->tile, stack->count, sum, rows, vectors);
    else
        for (int i = 0; i < rows * vectors; i++)
            sum[i] = vec_set(0.0f);
}

/* The chain goes on in the next pass. */
LS_INLINE void leaf_stack_park(const leaf_stack *stack, const vec *sum, int rows, int vectors)
{
    leaf_tile_store(stack->tile, stack->count, sum, rows, vectors);
}

LS_INLINE void leaf_stack_push(leaf_stack *stack, vec *entries, vec *sum, int rows, int vectors,
                               int merges)
{
    const int size = rows * vectors;
    for (; merges > 0; merges--) {
        vec *older = entries + --stack->count * size;
        if (stack->count < stack->lowest) {
            leaf_tile_load(stack->tile, stack->count, older, rows, vectors);
            stack->lowest = stack->count;
        }
        for (int i = 0; i < size; i++)
            sum[i] = older[i] + sum[i];
    }
    vec *top = entries + stack->count++ * size;
    for (int i = 0; i < size; i++)
        top[i] = sum[i];
}

LS_INLINE void leaf_stack_end(const leaf_stack *stack, const vec *entries, int rows, int vectors)
{
    for (int32_t slot = stack->lowest; slot < stack->count; slot++)
        leaf_tile_store(stack->tile, slot, entries + slot * rows * vectors, rows, vectors);
}

#endif

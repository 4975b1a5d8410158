/* The stack of partial sums that sums over samples walk (base/leaf_schedule.h), for a strip of
 * `vectors` vecs of the gradient; the caller holds the newest partial sum.
 *
 *     leaf_stack stack = leaf_stack_begin(slots, slot_stride, columns, depth);
 *     for each piece:
 *         leaf_stack_start(&stack, sum, V, piece == 0 && resume);
 *         ... add the piece's rows to sum ...
 *         if (piece is the last && leave_open) leaf_stack_park(&stack, sum, V);
 *         else leaf_stack_push(&stack, entries, sum, V, merges[piece]);
 *     leaf_stack_end(&stack, entries, V);
 *
 * Entries live in the caller's `vec entries[LS_MAX_SLOTS * V]`, in the L1 cache. Those of earlier
 * passes stay in their slots and are read when something is first added to them; what this pass
 * made or changed is written back at the end. V is a constant, so that loops unroll and the sum
 * stays in registers. (weight_gradient.c walks the same order with a tile kernel of its own.) */
#ifndef LS_KERNELS_LEAF_STACK_H
#define LS_KERNELS_LEAF_STACK_H

#include "base/leaf_schedule.h"
#include "kernels/vector.h"

typedef struct leaf_stack {
    float *slots; /* the strip's first element in slot 0 */
    int64_t slot_stride;
    int64_t columns; /* floats of the strip that are inside the gradient */
    int32_t count;   /* partial sums on the stack */
    int32_t lowest;  /* those below it are in the slots only */
} leaf_stack;

LS_INLINE void leaf_slot_load(const leaf_stack *stack, int32_t slot, vec *values, int vectors)
{
    const float *from = stack->slots + slot * stack->slot_stride;
    for (int v = 0; v < vectors; v++)
        values[v] = vec_load_first(from + v * LS_LANES, lanes_left(stack->columns, v * LS_LANES));
}

LS_INLINE void leaf_slot_store(const leaf_stack *stack, int32_t slot, const vec *values,
                               int vectors)
{
    float *to = stack->slots + slot * stack->slot_stride;
    for (int v = 0; v < vectors; v++)
        vec_store_first(to + v * LS_LANES, values[v], lanes_left(stack->columns, v * LS_LANES));
}

static inline leaf_stack leaf_stack_begin(float *slots, int64_t slot_stride, int64_t columns,
                                          int32_t depth)
{
    return (leaf_stack){slots, slot_stride, columns, depth, depth};
}

LS_INLINE void leaf_stack_start(const leaf_stack *stack, vec *sum, int vectors, bool resume)
{
    if (resume)
        leaf_slot_load(stack, stack->count, sum, vectors);
    else
        for (int v = 0; v < vectors; v++)
            sum[v] = vec_set(0.0f);
}

/* The chain goes on in the next pass. */
LS_INLINE void leaf_stack_park(const leaf_stack *stack, const vec *sum, int vectors)
{
    leaf_slot_store(stack, stack->count, sum, vectors);
}

LS_INLINE void leaf_stack_push(leaf_stack *stack, vec *entries, vec *sum, int vectors, int merges)
{
    for (; merges > 0; merges--) {
        vec *older = entries + --stack->count * vectors;
        if (stack->count < stack->lowest) {
            leaf_slot_load(stack, stack->count, older, vectors);
            stack->lowest = stack->count;
        }
        for (int v = 0; v < vectors; v++)
            sum[v] = older[v] + sum[v];
    }
    vec *top = entries + stack->count++ * vectors;
    for (int v = 0; v < vectors; v++)
        top[v] = sum[v];
}

LS_INLINE void leaf_stack_end(const leaf_stack *stack, const vec *entries, int vectors)
{
    for (int32_t slot = stack->lowest; slot < stack->count; slot++)
        leaf_slot_store(stack, slot, entries + slot * vectors, vectors);
}

#endif

/* Column sums over samples, in the order of the leaf schedule: biases, layer-norm parameters. */
#include "kernels/functions.h"
#include "kernels/leaf_stack.h"

enum { WIDE = 8 }; /* vecs of a block: enough independent additions to hide their latency */

/* A block of `vectors` vecs, of which `columns` floats are inside. */
LS_INLINE void sum_block(const ls_column_sums *g, int64_t column, int64_t columns, int vectors)
{
    const ls_leaf_schedule *schedule = g->schedule;
    const bool whole = columns == vectors * LS_LANES;
    leaf_tile tile = {g->slots + column, g->slot_stride, 0, 1, columns};
    leaf_stack stack;
    vec entries[LS_MAX_SLOTS * WIDE], sum[WIDE];
    leaf_stack_begin(&stack, &tile, schedule->depth);
    for (int32_t piece = 0; piece < schedule->pieces; piece++) {
        leaf_stack_start(&stack, sum, 1, vectors, piece == 0 && schedule->resume);
        for (int64_t t = schedule->offsets[piece]; t < schedule->offsets[piece + 1]; t++) {
            const float *from = g->values + t * g->stride + column;
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++)
                sum[v] = sum[v] + (whole ? vec_load(from + v * LS_LANES)
                                         : vec_load_first(from + v * LS_LANES, columns));
        }
        if (schedule->leave_open && piece == schedule->pieces - 1)
            leaf_stack_park(&stack, sum, 1, vectors);
        else
            leaf_stack_push(&stack, entries, sum, 1, vectors, schedule->merges[piece]);
    }
    leaf_stack_end(&stack, entries, 1, vectors);
}

void LS_KERNEL(column_sums)(const ls_column_sums *g)
{
    int64_t column = g->begin;
    for (; column + WIDE * LS_LANES <= g->end; column += WIDE * LS_LANES)
        sum_block(g, column, WIDE * LS_LANES, WIDE);
    for (; column + LS_LANES <= g->end; column += LS_LANES)
        sum_block(g, column, LS_LANES, 1);
    if (column < g->end) sum_block(g, column, g->end - column, 1);
}

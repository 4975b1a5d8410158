/* Column sums over samples, in the order of the leaf schedule: the gradients of biases. */
#include "kernels/functions.h"
#include "kernels/leaf_stack.h"

/* Vecs of a strip: as long a run of each row as fits in registers, half of it, or one. */
enum { WIDE = LS_LANES == 16 ? 12 : 8, HALF = WIDE / 2 };

/* A strip of `vectors` vecs, of which `columns` floats are inside. */
LS_INLINE void sum_strip(const ls_column_sums *g, int64_t column, int64_t columns, int vectors)
{
    const ls_leaf_schedule *schedule = g->schedule;
    const bool whole = columns == vectors * LS_LANES;
    leaf_stack stack =
        leaf_stack_begin(g->slots + column, g->slot_stride, columns, schedule->depth);
    vec entries[LS_MAX_SLOTS * WIDE], sum[WIDE];
    for (int32_t piece = 0; piece < schedule->pieces; piece++) {
        leaf_stack_start(&stack, sum, vectors, piece == 0 && schedule->resume);
        for (int64_t t = schedule->offsets[piece]; t < schedule->offsets[piece + 1]; t++) {
            const float *from = g->values + t * g->stride + column;
            LS_UNROLL (v, vectors)
                sum[v] = sum[v] +
                         (whole ? vec_load(from + v * LS_LANES) : vec_load_first(from, columns));
        }
        if (schedule->leave_open && piece == schedule->pieces - 1)
            leaf_stack_park(&stack, sum, vectors);
        else
            leaf_stack_push(&stack, entries, sum, vectors, schedule->merges[piece]);
    }
    leaf_stack_end(&stack, entries, vectors);
}

void LS_KERNEL(column_sums)(const ls_column_sums *g)
{
    int64_t column = g->begin;
    for (; column + WIDE * LS_LANES <= g->end; column += WIDE * LS_LANES)
        sum_strip(g, column, WIDE * LS_LANES, WIDE);
    for (; column + HALF * LS_LANES <= g->end; column += HALF * LS_LANES)
        sum_strip(g, column, HALF * LS_LANES, HALF);
    for (; column + LS_LANES <= g->end; column += LS_LANES)
        sum_strip(g, column, LS_LANES, 1);
    if (column < g->end) sum_strip(g, column, g->end - column, 1);
}

/* Rows of tables: embeddings forward and backward, gathering and adding rows. */
#include <string.h>

#include "kernels/functions.h"
#include "kernels/leaf_stack.h"

/* to = (a + b) + c, or a + b without c. */
static inline void add_three(float *to, const float *a, const float *b, const float *c,
                             int64_t count)
{
    int64_t e = 0;
    for (; e + LS_LANES <= count; e += LS_LANES) {
        vec sum = vec_load(a + e) + vec_load(b + e);
        vec_store(to + e, c ? sum + vec_load(c + e) : sum);
    }
    int64_t left = count - e;
    if (left) {
        vec sum = vec_load_first(a + e, left) + vec_load_first(b + e, left);
        vec_store_first(to + e, c ? sum + vec_load_first(c + e, left) : sum, left);
    }
}

void LS_KERNEL(embedding_sum)(float *sum, const float *word, const float *position,
                              const float *type, const int32_t *ids, const int32_t *positions,
                              const int32_t *types, int64_t hidden, int64_t begin, int64_t end)
{
    for (int64_t t = begin; t < end; t++)
        add_three(sum + t * hidden, word + ids[t] * hidden, position + positions[t] * hidden,
                  type ? type + types[t] * hidden : NULL, hidden);
}

void LS_KERNEL(gather_rows)(float *to, const float *from, const int32_t *rows, int64_t hidden,
                            int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        memcpy(to + i * hidden, from + rows[i] * hidden, (size_t)hidden * sizeof *to);
}

void LS_KERNEL(add_rows)(float *to, const float *from, const int32_t *rows, int64_t hidden,
                         int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        float *row = to + rows[i] * hidden;
        add_three(row, row, from + i * hidden, NULL, hidden);
    }
}

enum { WIDE = 8 }; /* vecs of a strip */

/* A strip of the gradient of table row number `row` of the schedule. */
LS_INLINE void gradient_strip(float *slots, int64_t slot_stride, const float *output_gradient,
                              int64_t hidden, const ls_row_schedule *schedule, int64_t row,
                              int64_t column, int64_t columns, int vectors)
{
    const int32_t first = schedule->piece_begin[row], last = schedule->piece_begin[row + 1] - 1;
    const bool whole = columns == vectors * LS_LANES;
    leaf_stack stack = leaf_stack_begin(slots + schedule->gradient_row[row] * hidden + column,
                                        slot_stride, columns, schedule->depth[row]);
    vec entries[LS_MAX_SLOTS * WIDE], sum[WIDE];
    for (int32_t piece = first; piece <= last; piece++) {
        leaf_stack_start(&stack, sum, vectors, piece == first && schedule->resume[row]);
        for (int32_t i = schedule->token_begin[piece]; i < schedule->token_begin[piece + 1]; i++) {
            const float *from = output_gradient + schedule->tokens[i] * hidden + column;
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++)
                sum[v] = sum[v] +
                         (whole ? vec_load(from + v * LS_LANES) : vec_load_first(from, columns));
        }
        if (schedule->leave_open[row] && piece == last)
            leaf_stack_park(&stack, sum, vectors);
        else
            leaf_stack_push(&stack, entries, sum, vectors, schedule->merges[piece]);
    }
    leaf_stack_end(&stack, entries, vectors);
}

void LS_KERNEL(embedding_gradient)(float *slots, int64_t slot_stride, const float *output_gradient,
                                   int64_t hidden, const ls_row_schedule *schedule, int64_t begin,
                                   int64_t end)
{
    for (int64_t row = begin; row < end; row++) {
        int64_t column = 0;
        for (; column + WIDE * LS_LANES <= hidden; column += WIDE * LS_LANES)
            gradient_strip(slots, slot_stride, output_gradient, hidden, schedule, row, column,
                           WIDE * LS_LANES, WIDE);
        for (; column + LS_LANES <= hidden; column += LS_LANES)
            gradient_strip(slots, slot_stride, output_gradient, hidden, schedule, row, column,
                           LS_LANES, 1);
        if (column < hidden)
            gradient_strip(slots, slot_stride, output_gradient, hidden, schedule, row, column,
                           hidden - column, 1);
    }
}

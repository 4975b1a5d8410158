/* Partial sums of several ranks, added in the order of the samples' tree. */
#include "kernels/functions.h"
#include "kernels/leaf_stack.h"

enum { WIDE = 4 };

/* What is open after the last source is written to the slots. */
LS_INLINE void sum_strip(const ls_ordered_sum *sum_of, int64_t at, int64_t columns, int vectors)
{
    leaf_stack stack =
        leaf_stack_begin(sum_of->slots + at, sum_of->slot_stride, columns, sum_of->depth);
    vec entries[LS_MAX_SLOTS * WIDE], sum[WIDE];
    for (int32_t source = 0; source < sum_of->count; source++) {
        for (int v = 0; v < vectors; v++)
            sum[v] = vec_load_first(sum_of->sources[source] + at + v * LS_LANES,
                                    lanes_left(columns, v * LS_LANES));
        leaf_stack_push(&stack, entries, sum, vectors, sum_of->merges[source]);
    }
    leaf_stack_end(&stack, entries, vectors);
}

void LS_KERNEL(ordered_sum)(const ls_ordered_sum *sum)
{
    const int64_t elements = sum->elements;
    int64_t at = 0;
    for (; at + WIDE * LS_LANES <= elements; at += WIDE * LS_LANES)
        sum_strip(sum, at, WIDE * LS_LANES, WIDE);
    for (; at < elements; at += LS_LANES)
        sum_strip(sum, at, lanes_left(elements, at), 1);
}

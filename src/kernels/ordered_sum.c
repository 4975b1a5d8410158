/* Partial sums of several ranks, added in the order of the samples' tree. */
#include "kernels/functions.h"
#include "kernels/leaf_stack.h"

enum { WIDE = 4 };

/* Nothing waits in slots: the whole stack is in `entries`, and one sum is left at the end. */
LS_INLINE void sum_strip(float *to, const float *const *sources, const uint8_t *merges,
                         int32_t count, int64_t at, int64_t columns, int vectors)
{
    leaf_stack stack = leaf_stack_begin(to + at, 0, columns, 0);
    vec entries[LS_MAX_SLOTS * WIDE], sum[WIDE];
    for (int32_t source = 0; source < count; source++) {
        for (int v = 0; v < vectors; v++)
            sum[v] = vec_load_first(sources[source] + at + v * LS_LANES,
                                    lanes_left(columns, v * LS_LANES));
        leaf_stack_push(&stack, entries, sum, vectors, merges[source]);
    }
    leaf_stack_end(&stack, entries, vectors);
}

void LS_KERNEL(ordered_sum)(float *to, const float *const *sources, const uint8_t *merges,
                            int32_t count, int64_t elements)
{
    int64_t at = 0;
    for (; at + WIDE * LS_LANES <= elements; at += WIDE * LS_LANES)
        sum_strip(to, sources, merges, count, at, WIDE * LS_LANES, WIDE);
    for (; at < elements; at += LS_LANES)
        sum_strip(to, sources, merges, count, at, lanes_left(elements, at), 1);
}

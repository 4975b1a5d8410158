#include "comm/tree.h"

int ls_tree_join_level(ls_tree_range range, int64_t a, int64_t b)
{
    int level = 64 - __builtin_clzll((unsigned long long)(a ^ b));
    int64_t first = a >> level << level;
    int64_t last = first + ((int64_t)1 << level);
    if (last > range.total) last = range.total;
    return first >= range.begin && last <= range.end ? level : LS_TREE_NEVER;
}

int ls_tree_push(ls_tree_stack *stack, ls_tree_range range, int64_t leaf, int64_t next)
{
    int level = next < 0 ? LS_TREE_NEVER : ls_tree_join_level(range, leaf, next);
    int merges = 0;
    stack->depth++;
    while (stack->depth >= 2 && stack->level[stack->depth - 2] < level) {
        stack->depth--;
        merges++;
    }
    stack->level[stack->depth - 1] = (uint8_t)level;
    return merges;
}

ls_tree_range ls_tree_share(ls_tree_range all, int ranks, int rank)
{
    int64_t leaves = all.end - all.begin;
    return (ls_tree_range){all.begin + rank * leaves / ranks,
                           all.begin + (rank + 1) * leaves / ranks, all.total};
}

ls_tree_range ls_tree_rank_range(int64_t total, int ranks, int rank)
{
    return ls_tree_share((ls_tree_range){0, total, total}, ranks, rank);
}

/* End of the real leaves below the node of `size` leaves that starts at `first`. */
static int64_t node_end(int64_t first, int64_t size, int64_t total)
{
    return first + size < total ? first + size : total;
}

/* End of the leaves of the largest node that starts at `first` and holds only leaves before `end`.
 */
static int64_t largest_node_end(int64_t first, int64_t end, int64_t total)
{
    int64_t size = 1;
    while (size < total && first % (2 * size) == 0 && node_end(first, 2 * size, total) <= end)
        size *= 2;
    return node_end(first, size, total);
}

int ls_tree_roots(ls_tree_range all, int ranks, ls_tree_root *roots, int capacity)
{
    int64_t total = all.total;
    int count = 0;
    for (int rank = 0; rank < ranks; rank++) {
        ls_tree_range range = ls_tree_share(all, ranks, rank);
        int slot = 0;
        for (int64_t first = range.begin; first < range.end;) {
            int64_t end = largest_node_end(first, range.end, total);
            if (count < capacity) roots[count] = (ls_tree_root){rank, slot, first, end - 1};
            count++;
            slot++;
            first = end;
        }
    }
    return count;
}

int ls_tree_join_roots(const ls_tree_root *roots, int count, int64_t total, const int *begin,
                       int groups, ls_tree_root *joined, int32_t *below)
{
    int made = 0, i = 0;
    for (int group = 0; group < groups; group++) {
        int first = i, slot = 0;
        while (i < count && roots[i].rank < begin[group + 1])
            i++;
        for (int next = first; next < i; slot++) {
            int64_t end = largest_node_end(roots[next].first, roots[i - 1].last + 1, total);
            joined[made] = (ls_tree_root){group, slot, roots[next].first, end - 1};
            for (; next < i && roots[next].last < end; next++)
                below[next] = made;
            made++;
        }
    }
    return made;
}

int ls_tree_slots(ls_tree_range range, int64_t samples, int64_t leaf_size, int64_t samples_per_pass)
{
    ls_tree_stack stack = {0};
    int most = 1;
    int64_t sample = range.begin * leaf_size;
    int64_t pass_end = sample + samples_per_pass;
    for (int64_t leaf = range.begin; leaf < range.end; leaf++) {
        int64_t leaf_end = (leaf + 1) * leaf_size < samples ? (leaf + 1) * leaf_size : samples;
        for (; pass_end < leaf_end; pass_end += samples_per_pass)
            if (stack.depth + 1 > most) most = stack.depth + 1;
        ls_tree_push(&stack, range, leaf, leaf + 1 < range.end ? leaf + 1 : -1);
        if (pass_end == leaf_end || leaf + 1 == range.end) {
            if (stack.depth > most) most = stack.depth;
            pass_end += samples_per_pass;
        }
    }
    return most;
}

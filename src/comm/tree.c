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
    int64_t begin = all.begin + rank * leaves / ranks;
    int64_t end = all.begin + (rank + 1) * leaves / ranks;
    return (ls_tree_range){begin < all.total ? begin : all.total, end < all.total ? end : all.total,
                           all.total};
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

/* Nodes that cover [begin, end), of which `end` is no leaf's: up to the middle of the smallest node
 * around them each one is larger than the one before, behind it smaller, a bit of the way each. */
static int inner_roots(int64_t begin, int64_t end)
{
    int level = 63 - __builtin_clzll((unsigned long long)(begin ^ end));
    int64_t middle = end >> level << level;
    return __builtin_popcountll((unsigned long long)(middle - begin)) +
           __builtin_popcountll((unsigned long long)(end - middle));
}

int ls_tree_range_roots(ls_tree_range range)
{
    int count = 0;
    if (range.begin >= range.end) return 0;
    if (range.end < range.total) return inner_roots(range.begin, range.end);
    if (range.begin == 0) return 1;
    /* Up to the end of the tree, where what is absent cuts no node. */
    for (int64_t first = range.begin; first < range.end; first += first & -first)
        count++;
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
    int64_t last = range.end * leaf_size < samples ? range.end * leaf_size : samples;
    int most = ls_tree_range_roots(range);
    /* What is open at the end of a pass are the roots of the leaves so far, and a leaf's chain. */
    for (int64_t end = range.begin * leaf_size + samples_per_pass; end < last;
         end += samples_per_pass) {
        ls_tree_range done = {range.begin, end / leaf_size, range.total};
        int open = ls_tree_range_roots(done) + (end % leaf_size != 0);
        if (open > most) most = open;
    }
    return most > 1 ? most : 1;
}

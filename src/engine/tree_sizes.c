#include "engine/tree_sizes.h"

#include "comm/tree.h"

typedef struct sizes {
    int32_t slots, roots, open;
} sizes;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void at_least(int32_t *most, int32_t count)
{
    if (count > *most) *most = count;
}

/* Roots of all ranks in `all`; a rank that has them all at once needs a slot for each of its own.
 * Shares as ls_tree_share has them, without a division for each. */
static void count_roots(sizes *s, ls_tree_range all, int ranks)
{
    int64_t leaves = all.end - all.begin, even = leaves / ranks, rest = leaves % ranks, carry = 0;
    ls_tree_range range = {all.begin, all.begin, all.total};
    int32_t roots = 0;
    if (ranks >= leaves) { /* a leaf each */
        at_least(&s->roots, (int32_t)leaves);
        return;
    }
    for (int rank = 0; rank < ranks; rank++) {
        range.begin = range.end;
        range.end += even;
        carry += rest;
        if (carry >= ranks) {
            carry -= ranks;
            range.end++;
        }
        int32_t own = ls_tree_range_roots(range);
        at_least(&s->slots, own);
        roots += own;
    }
    at_least(&s->roots, roots);
}

/* Every rank keeps its own sums until the end of a step of `total` leaves. Where it runs several
 * passes, more may be open in between. */
static void size_apart(sizes *s, const ls_tree_sizes_options *options, int64_t total)
{
    ls_tree_range all = {0, total, total};
    int64_t samples = least(total * options->leaf_size, options->batch_size);
    int64_t most = (total + options->ranks - 1) / options->ranks * options->leaf_size;
    count_roots(s, all, options->ranks);
    if (least(most, samples) <= options->samples_per_pass) return;
    for (int rank = 0; rank < options->ranks; rank++)
        at_least(&s->slots, ls_tree_slots(ls_tree_share(all, options->ranks, rank), samples,
                                          options->leaf_size, options->samples_per_pass));
}

/* Passes of all ranks, each of whole leaves, are added one by one. */
static void size_together(sizes *s, const ls_tree_sizes_options *options, int64_t total)
{
    int64_t pass = options->pass_leaves;
    ls_tree_range whole = {0, total, total};
    for (int64_t begin = 0; begin < total; begin += pass)
        count_roots(s, (ls_tree_range){begin, least(begin + pass, total), total}, options->ranks);
    if (pass < total) at_least(&s->open, ls_tree_slots(whole, total, 1, pass));
}

ls_tree_sizes ls_tree_sizes_of(const ls_tree_sizes_options *options)
{
    int64_t leaves = (options->batch_size + options->leaf_size - 1) / options->leaf_size;
    int64_t pass = options->pass_leaves ? options->pass_leaves : leaves;
    sizes s = {1, 1, 1};
    if (options->pass_leaves)
        size_together(&s, options, leaves);
    else
        size_apart(&s, options, leaves);
    return (ls_tree_sizes){s.slots, s.open, s.roots * (int32_t)((leaves + pass - 1) / pass)};
}

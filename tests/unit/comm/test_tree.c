/* The order of addition: every way to cut a batch into ranks and passes adds the same tree. */
#include "testing.h"

#include "comm/tree.h"

/* The definition: a node covers 2^level leaves, absent ones are skipped. Sums are told apart by a
 * hash that is neither commutative nor associative. */
static uint64_t join(uint64_t older, uint64_t newer)
{
    return (older * 0x9E3779B97F4A7C15ull + newer) ^ (older >> 29);
}

static uint64_t leaf_value(int64_t leaf)
{
    return (uint64_t)(leaf + 1) * 0xD1B54A32D192ED03ull;
}

static uint64_t defined_sum(int64_t first, int level, int64_t total)
{
    if (level == 0) return leaf_value(first);
    int64_t half = (int64_t)1 << (level - 1);
    uint64_t left = defined_sum(first, level - 1, total);
    if (first + half >= total) return left;
    return join(left, defined_sum(first + half, level - 1, total));
}

static int levels(int64_t total)
{
    int level = 0;
    while (((int64_t)1 << level) < total)
        level++;
    return level;
}

static void one_rank_ends_with_the_tree_of_the_definition(void **state)
{
    (void)state;
    for (int64_t total = 1; total <= 70; total++) {
        ls_tree_range range = {0, total, total};
        ls_tree_stack stack = {0};
        uint64_t sums[LS_MAX_SLOTS];
        int top = 0;
        for (int64_t leaf = 0; leaf < total; leaf++) {
            sums[top++] = leaf_value(leaf);
            int merges = ls_tree_push(&stack, range, leaf, leaf + 1 < total ? leaf + 1 : -1);
            for (; merges > 0; merges--, top--)
                sums[top - 2] = join(sums[top - 2], sums[top - 1]);
            assert_int_equal(top, stack.depth);
        }
        assert_int_equal(top, 1);
        assert_true(sums[0] == defined_sum(0, levels(total), total));
    }
}

typedef struct root {
    uint64_t sum;
    int64_t first, last; /* its leaves */
} root;

static void merge_newest(root *roots, int *top, int merges)
{
    for (; merges > 0; merges--, (*top)--) {
        root newer = roots[*top - 1], *older = &roots[*top - 2];
        *older = (root){join(older->sum, newer.sum), older->first, newer.last};
    }
}

/* What each rank cannot join itself, pushed on in rank order by the same rule, is the same sum. */
static void ranks_hold_roots_of_the_same_tree(void **state)
{
    (void)state;
    for (int64_t total = 1; total <= 33; total++) {
        for (int64_t ranks = 1; ranks <= total && ranks <= 16; ranks++) {
            root roots[256], across[256];
            int count = 0, top = 0;
            for (int64_t rank = 0; rank < ranks; rank++) {
                ls_tree_range range = {rank * total / ranks, (rank + 1) * total / ranks, total};
                ls_tree_stack stack = {0};
                int before = count;
                for (int64_t leaf = range.begin; leaf < range.end; leaf++) {
                    roots[count++] = (root){leaf_value(leaf), leaf, leaf};
                    int64_t next = leaf + 1 < range.end ? leaf + 1 : -1;
                    merge_newest(roots, &count, ls_tree_push(&stack, range, leaf, next));
                }
                assert_int_equal(count - before, stack.depth);
                if (total == 16) assert_true(stack.depth <= 3);
            }
            ls_tree_range whole = {0, total, total};
            ls_tree_stack stack = {0};
            for (int i = 0; i < count; i++) {
                across[top++] = roots[i];
                int64_t next = i + 1 < count ? roots[i + 1].first : -1;
                merge_newest(across, &top, ls_tree_push(&stack, whole, roots[i].last, next));
            }
            assert_int_equal(top, 1);
            assert_true(across[0].sum == defined_sum(0, levels(total), total));
        }
    }
}

/* ls_tree_roots lists what the ranks' stacks end with, in the order of the leaves. */
static void the_list_of_roots_is_what_ranks_hold(void **state)
{
    (void)state;
    for (int64_t total = 1; total <= 40; total++) {
        for (int ranks = 1; ranks <= 16; ranks++) {
            ls_tree_root listed[256], none;
            int count = ls_tree_roots((ls_tree_range){0, total, total}, ranks, listed, 256), at = 0;
            int64_t next_leaf = 0;
            assert_in_range(count, 1, 256);
            assert_int_equal(ls_tree_roots((ls_tree_range){0, total, total}, ranks, &none, 0),
                             count);
            for (int rank = 0; rank < ranks; rank++) {
                ls_tree_range range = ls_tree_rank_range(total, ranks, rank);
                ls_tree_stack stack = {0};
                root held[64];
                int top = 0;
                assert_int_equal(range.begin, next_leaf);
                assert_int_equal(range.total, total);
                /* Nearly as many on each. */
                assert_in_range(range.end - range.begin, total / ranks,
                                (total + ranks - 1) / ranks);
                for (int64_t leaf = range.begin; leaf < range.end; leaf++) {
                    held[top++] = (root){leaf_value(leaf), leaf, leaf};
                    int64_t next = leaf + 1 < range.end ? leaf + 1 : -1;
                    merge_newest(held, &top, ls_tree_push(&stack, range, leaf, next));
                }
                assert_int_equal(ls_tree_range_roots(range), top);
                for (int slot = 0; slot < top; slot++, at++) {
                    assert_true(at < count);
                    assert_int_equal(listed[at].rank, rank);
                    assert_int_equal(listed[at].slot, slot);
                    assert_int_equal(listed[at].first, held[slot].first);
                    assert_int_equal(listed[at].last, held[slot].last);
                }
                next_leaf = range.end;
            }
            assert_int_equal(at, count);
            assert_int_equal(next_leaf, total);
        }
    }
}

/* A short batch is cut where a full one is: no rank and no owner between passes ever has more sums
 * than in a full one, and none is left out. */
static void a_short_batch_needs_no_more_than_a_full_one(void **state)
{
    (void)state;
    for (int64_t full = 1; full <= 40; full++)
        for (int64_t total = 1; total <= full; total++)
            for (int ranks = 1; ranks <= 9; ranks++)
                for (int64_t pass = ranks; pass < full + ranks; pass += ranks) {
                    int64_t next = 0;
                    for (int64_t begin = 0; begin < full; begin += pass) {
                        int64_t end = begin + pass < full ? begin + pass : full;
                        ls_tree_range whole = {begin, end, full}, cut = {begin, end, total};
                        for (int rank = 0; rank < ranks; rank++) {
                            ls_tree_range most = ls_tree_share(whole, ranks, rank);
                            ls_tree_range own = ls_tree_share(cut, ranks, rank);
                            if (begin < total) assert_int_equal(own.begin, next);
                            assert_true(own.end <= most.end);
                            assert_true(ls_tree_range_roots(own) <= ls_tree_range_roots(most));
                            for (int samples = 1; samples <= 4; samples++)
                                assert_true(ls_tree_slots(own, 2 * total - 1, 2, samples) <=
                                            ls_tree_slots(most, 2 * full, 2, samples));
                            if (begin < total) next = own.end;
                        }
                    }
                    assert_int_equal(next, total);
                    assert_true(ls_tree_slots((ls_tree_range){0, total, total}, total, 1, pass) <=
                                ls_tree_slots((ls_tree_range){0, full, full}, full, 1, pass));
                }
}

/* Passes of all ranks, each of consecutive leaves: their roots, pushed on what former passes left
 * open, make the same tree, and no more waits between passes than was said. */
static void passes_of_all_ranks_make_one_tree(void **state)
{
    (void)state;
    for (int64_t total = 1; total <= 40; total++)
        for (int ranks = 1; ranks <= 9; ranks++)
            for (int64_t pass = ranks; pass <= 4 * ranks; pass += ranks) {
                ls_tree_root listed[256];
                int ends[64], count = 0, passes = 0, top = 0, at = 0;
                for (int64_t begin = 0; begin < total; begin += pass) {
                    ls_tree_range all = {begin, begin + pass < total ? begin + pass : total, total};
                    count += ls_tree_roots(all, ranks, listed + count, 256 - count);
                    ends[passes++] = count;
                }
                assert_in_range(count, 1, 256);
                ls_tree_range whole = {0, total, total};
                ls_tree_stack stack = {0};
                root sums[256];
                for (int p = 0; p < passes; p++) {
                    for (; at < ends[p]; at++) {
                        int64_t first = listed[at].first, last = listed[at].last;
                        assert_int_equal(first, at ? listed[at - 1].last + 1 : 0);
                        sums[top++] = (root){defined_sum(first, levels(last - first + 1), total),
                                             first, last};
                        int64_t next = at + 1 < count ? listed[at + 1].first : -1;
                        merge_newest(sums, &top, ls_tree_push(&stack, whole, last, next));
                    }
                    assert_true(top <= ls_tree_slots(whole, total, 1, pass));
                }
                assert_int_equal(top, 1);
                assert_true(sums[0].sum == defined_sum(0, levels(total), total));
            }
}

/* A table row that only some leaves touch: the same tree with the other leaves skipped. */
static uint64_t sparse_sum(int64_t first, int level, int64_t total, uint32_t touched, int *found)
{
    if (level == 0) {
        *found = first < total && (touched >> first & 1);
        return *found ? leaf_value(first) : 0;
    }
    int64_t half = (int64_t)1 << (level - 1);
    int left_found = 0, right_found = 0;
    uint64_t left = sparse_sum(first, level - 1, total, touched, &left_found);
    uint64_t right = sparse_sum(first + half, level - 1, total, touched, &right_found);
    *found = left_found || right_found;
    return left_found && right_found ? join(left, right) : left_found ? left : right;
}

static void rows_skip_the_leaves_that_do_not_touch_them(void **state)
{
    (void)state;
    int64_t total = 11;
    for (uint32_t touched = 1; touched < 1u << 11; touched++) {
        ls_tree_range range = {0, total, total};
        ls_tree_stack stack = {0};
        uint64_t sums[LS_MAX_SLOTS];
        int top = 0, found;
        for (int64_t leaf = 0; leaf < total; leaf++) {
            if (!(touched >> leaf & 1)) continue;
            uint32_t later = touched >> leaf >> 1;
            int64_t next = later ? leaf + 1 + __builtin_ctz(later) : -1;
            sums[top++] = leaf_value(leaf);
            for (int merges = ls_tree_push(&stack, range, leaf, next); merges > 0; merges--, top--)
                sums[top - 2] = join(sums[top - 2], sums[top - 1]);
        }
        assert_int_equal(top, 1);
        assert_true(sums[0] == sparse_sum(0, levels(total), total, touched, &found));
    }
}

/* --- ranks of several hosts ------------------------------------------------------------------- */

enum { MOST_LEAVES = 13, MOST_RANKS = 5 };

/* The sum of those of the leaves first .. last that are touched; they make one node. */
static uint64_t node_sum(int64_t first, int64_t last, int64_t total, uint32_t touched, int *found)
{
    int level = 0;
    while (last >> level != first >> level)
        level++;
    return sparse_sum(first >> level << level, level, total, touched, found);
}

/* Ranks' roots are joined on each host, then all hosts' in the order of leaves; untouched ones are
 * left out at both places. */
static uint64_t sum_over_hosts(int64_t total, const ls_tree_root *roots, int count,
                               const ls_tree_root *joined, const int32_t *below, int joined_count,
                               uint32_t touched)
{
    root across[64];
    int top = 0;
    ls_tree_range whole = {0, total, total};
    ls_tree_stack stack = {0};
    const ls_tree_root *open = NULL;
    for (int j = 0; j < joined_count; j++) {
        root near[64];
        int near_top = 0;
        ls_tree_stack near_stack = {0};
        const ls_tree_root *near_open = NULL;
        for (int i = 0; i < count; i++) {
            int found;
            uint64_t sum = node_sum(roots[i].first, roots[i].last, total, touched, &found);
            if (below[i] != j || !found) continue;
            if (near_open)
                merge_newest(near, &near_top,
                             ls_tree_push(&near_stack, whole, near_open->last, roots[i].first));
            near[near_top++] = (root){sum, roots[i].first, roots[i].last};
            near_open = &roots[i];
        }
        if (!near_open) continue;
        merge_newest(near, &near_top, ls_tree_push(&near_stack, whole, near_open->last, -1));
        assert_int_equal(near_top, 1);
        if (open)
            merge_newest(across, &top, ls_tree_push(&stack, whole, open->last, joined[j].first));
        across[top++] = (root){near[0].sum, joined[j].first, joined[j].last};
        open = &joined[j];
    }
    merge_newest(across, &top, ls_tree_push(&stack, whole, open->last, -1));
    assert_int_equal(top, 1);
    return across[0].sum;
}

static void check_hosts(int64_t total, int ranks, const int *begin, int hosts)
{
    ls_tree_root roots[64], joined[64];
    int32_t below[64];
    int count = ls_tree_roots((ls_tree_range){0, total, total}, ranks, roots, 64), last = -1, found;
    int made = ls_tree_join_roots(roots, count, total, begin, hosts, joined, below);
    assert_in_range(made, 1, count);
    for (int i = 0; i < count; i++) {
        const ls_tree_root *node = &joined[below[i]];
        assert_true(below[i] == last || below[i] == last + 1);
        assert_in_range(roots[i].rank, begin[node->rank], begin[node->rank + 1] - 1);
        assert_true(roots[i].first >= node->first && roots[i].last <= node->last);
        last = below[i];
    }
    assert_int_equal(last, made - 1);
    for (uint32_t touched = 1; touched<1u << total; touched += total> 8 ? 37 : 1)
        assert_true(sum_over_hosts(total, roots, count, joined, below, made, touched) ==
                    sparse_sum(0, levels(total), total, touched, &found));
}

/* Every cut of up to five ranks into hosts: bit i of `cut` says that a host begins at rank i + 1.
 */
static void hosts_join_what_lies_within_them(void **state)
{
    (void)state;
    for (int64_t total = 1; total <= MOST_LEAVES; total++)
        for (int ranks = 1; ranks <= MOST_RANKS; ranks++)
            for (int cut = 0; cut < 1 << (ranks - 1); cut++) {
                int begin[MOST_RANKS + 1] = {0}, hosts = 0;
                for (int rank = 1; rank < ranks; rank++)
                    if (cut >> (rank - 1) & 1) begin[++hosts] = rank;
                begin[++hosts] = ranks;
                check_hosts(total, ranks, begin, hosts);
            }
}

/* Where hosts have the same power of two of leaves each sends one sum. */
static void equal_hosts_have_one_root_each(void **state)
{
    (void)state;
    ls_tree_root roots[64], joined[64];
    int32_t below[64];
    const int begin[] = {0, 2, 4, 6, 8};
    int count = ls_tree_roots((ls_tree_range){0, 16, 16}, 8, roots, 64);
    assert_int_equal(ls_tree_join_roots(roots, count, 16, begin, 4, joined, below), 4);
    /* Three ranks of one leaf each on a host of four leaves' place: two nodes. */
    const int odd[] = {0, 3, 4};
    count = ls_tree_roots((ls_tree_range){0, 4, 4}, 4, roots, 64);
    assert_int_equal(ls_tree_join_roots(roots, count, 4, odd, 2, joined, below), 3);
    assert_int_equal(joined[0].last, 1);
    assert_int_equal(joined[1].slot, 1);
}

static void slots_are_what_waits_between_passes(void **state)
{
    (void)state;
    ls_tree_range eight = {0, 8, 8};
    assert_int_equal(ls_tree_slots(eight, 32, 4, 32), 1);
    assert_int_equal(ls_tree_slots(eight, 32, 4, 16), 1);
    assert_int_equal(ls_tree_slots(eight, 32, 4, 4), 3);
    assert_int_equal(ls_tree_slots(eight, 32, 4, 2), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rank_ends_with_the_tree_of_the_definition),
        cmocka_unit_test(ranks_hold_roots_of_the_same_tree),
        cmocka_unit_test(the_list_of_roots_is_what_ranks_hold),
        cmocka_unit_test(passes_of_all_ranks_make_one_tree),
        cmocka_unit_test(rows_skip_the_leaves_that_do_not_touch_them),
        cmocka_unit_test(hosts_join_what_lies_within_them),
        cmocka_unit_test(equal_hosts_have_one_root_each),
        cmocka_unit_test(a_short_batch_needs_no_more_than_a_full_one),
        cmocka_unit_test(slots_are_what_waits_between_passes),
    };
    return cmocka_run_group_tests_name("tree", tests, NULL, NULL);
}

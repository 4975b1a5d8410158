/* ordered_sum: the recursive tree over partial sums, to the bit, on every set; any number of
 * elements, any of the sources as the result. */
#include "testing.h"

#include <string.h>

#include "comm/tree.h"
#include "kernel_sets.h"

enum { MOST_SOURCES = 12, MOST_ELEMENTS = 1200 };

/* The tree over [first, first + 2^level) without the leaves that are absent; returns whether there
 * is one. */
static bool tree_sum(float *out, const float *const *leaves, int64_t total, int64_t first,
                     int level, int64_t element)
{
    if (first >= total) return false;
    if (level == 0) {
        if (!leaves[first]) return false;
        *out = leaves[first][element];
        return true;
    }
    float left, right;
    int64_t half = (int64_t)1 << (level - 1);
    bool has_left = tree_sum(&left, leaves, total, first, level - 1, element);
    bool has_right = tree_sum(&right, leaves, total, first + half, level - 1, element);
    *out = has_left && has_right ? left + right : has_left ? left : right;
    return has_left || has_right;
}

typedef struct sum_case {
    int64_t total;    /* leaves */
    uint32_t present; /* bit i: leaf i is there */
    int64_t elements;
} sum_case;

static int sources_of(const sum_case *c, const float *const *leaves, const float **sources,
                      uint8_t *merges)
{
    ls_tree_range range = {0, c->total, c->total};
    ls_tree_stack stack = {0};
    int count = 0;
    for (int64_t leaf = 0; leaf < c->total; leaf++) {
        if (!leaves[leaf]) continue;
        uint32_t later = c->present >> leaf >> 1;
        int64_t next = later ? leaf + 1 + __builtin_ctz(later) : -1;
        merges[count] = (uint8_t)ls_tree_push(&stack, range, leaf, next);
        sources[count++] = leaves[leaf];
    }
    return count;
}

static void check_sum(const ls_kernels *set, const char *name, const sum_case *c)
{
    static float wanted[MOST_ELEMENTS];
    const float *leaves[MOST_SOURCES], *sources[MOST_SOURCES];
    uint8_t merges[MOST_SOURCES];
    for (int64_t leaf = 0; leaf < c->total; leaf++)
        leaves[leaf] = c->present >> leaf & 1
                           ? operand((int)leaf, c->elements, 100.0f, (uint32_t)leaf + 1)
                           : NULL;
    for (int64_t e = 0; e < c->elements; e++)
        assert_true(tree_sum(&wanted[e], leaves, c->total, 0, 4, e));
    int count = sources_of(c, leaves, sources, merges);
    float *apart = operand(MOST_SOURCES, c->elements, 0.0f, 0);
    ls_ordered_sum sum = {.slots = apart,
                          .count = count,
                          .sources = sources,
                          .merges = merges,
                          .elements = c->elements};
    set->ordered_sum(&sum);
    check_bits("apart", name, c->elements, apart, wanted, c->elements);
    /* Into one of the sources, as the owner of a slice does; which one, by turns. */
    float *in_place = (float *)(uintptr_t)sources[c->elements % count];
    sum.slots = in_place;
    set->ordered_sum(&sum);
    check_bits("in place", name, c->elements, in_place, wanted, c->elements);
}

/* The same in two calls: what the first leaves open waits in slots, which the second goes on from.
 */
static void check_halves(const ls_kernels *set, const char *name, int64_t total, int64_t elements)
{
    static float wanted[MOST_ELEMENTS];
    const float *leaves[MOST_SOURCES], *sources[MOST_SOURCES];
    uint8_t merges[MOST_SOURCES];
    sum_case c = {total, (1u << total) - 1, elements};
    for (int64_t leaf = 0; leaf < total; leaf++)
        leaves[leaf] = operand((int)leaf, elements, 100.0f, (uint32_t)leaf + 1);
    for (int64_t e = 0; e < elements; e++)
        assert_true(tree_sum(&wanted[e], leaves, total, 0, 4, e));
    int count = sources_of(&c, leaves, sources, merges);
    for (int first = 0; first <= count; first++) {
        enum { SLOTS = 5 };
        static float slots[SLOTS * MOST_ELEMENTS];
        memset(slots, 0xff, sizeof slots);
        ls_ordered_sum sum = {.slots = slots,
                              .slot_stride = elements,
                              .count = first,
                              .sources = sources,
                              .merges = merges,
                              .elements = elements};
        set->ordered_sum(&sum);
        for (int i = 0; i < first; i++)
            sum.depth += 1 - merges[i];
        assert_in_range(sum.depth, 0, SLOTS);
        /* Nothing is written above what is open. */
        assert_true(sum.depth == SLOTS ||
                    slots[sum.depth * elements] != slots[sum.depth * elements]);
        sum.count = count - first;
        sum.sources += first;
        sum.merges += first;
        set->ordered_sum(&sum);
        check_bits("in two calls", name, elements, slots, wanted, elements);
    }
}

static void sums_go_on_from_slots(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 15, 33, 130};
    static const char *const names[KERNEL_SETS] = {"ref", "avx2", "avx512"};
    for (int i = 0; i < KERNEL_SETS; i++)
        for (int64_t total = 1; kernel_set(i) && total <= MOST_SOURCES; total++)
            for (int size = 0; size < 4; size++)
                check_halves(kernel_set(i), names[i], total, sizes[size]);
}

static void sums_are_the_tree(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 127, 130, 1024};
    static const char *const names[KERNEL_SETS] = {"ref", "avx2", "avx512"};
    for (int i = 0; i < KERNEL_SETS; i++) {
        const ls_kernels *set = kernel_set(i);
        if (!set) continue;
        for (int64_t total = 1; total <= MOST_SOURCES; total++) {
            uint32_t all = (1u << total) - 1, seed = (uint32_t)total;
            for (size_t size = 0; size < sizeof sizes / sizeof *sizes; size++) {
                sum_case c = {total, all, sizes[size]};
                check_sum(set, names[i], &c);
                c.present = random_word(&seed) & all;
                if (c.present) check_sum(set, names[i], &c);
            }
        }
    }
}

static void no_elements_write_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < KERNEL_SETS; i++) {
        const ls_kernels *set = kernel_set(i);
        if (!set) continue;
        const float value = 1.0f, *sources[] = {&value};
        const uint8_t merges[] = {0};
        set->ordered_sum(&(ls_ordered_sum){.count = 1, .sources = sources, .merges = merges});
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_the_tree),
        cmocka_unit_test(sums_go_on_from_slots),
        cmocka_unit_test(no_elements_write_nothing),
    };
    return cmocka_run_group_tests_name("ordered_sum", tests, kernel_tests_setup,
                                       kernel_tests_teardown);
}

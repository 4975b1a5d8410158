/* kernels/weight_gradient: what test_leaf_sums.c does not ask: tiles and their edges, strides,
 * ranges, and that a pass touches no more of the slots than it must. */
#include "testing.h"

#include <math.h>
#include <string.h>

#include "guarded.h"
#include "kernel_sets.h"

enum { ROWS = 40, PIECES = 5 };

/* Five leaves over three partial sums that wait, s0 s1 s2. They leave s0, s1 + ((s2 + c0) + (c1 +
 * c2)) and c3 + c4, and meanwhile need a fourth entry. */
static const int32_t offsets[PIECES + 1] = {0, 1, 12, 13, 30, ROWS};
static const uint8_t merges[PIECES] = {1, 0, 3, 0, 1};

static float chain(const float *left, int64_t left_stride, const float *right, int64_t right_stride,
                   int piece)
{
    float sum = 0.0f;
    for (int32_t t = offsets[piece]; t < offsets[piece + 1]; t++)
        sum = fmaf(left[t * left_stride], right[t * right_stride], sum);
    return sum;
}

static void check_shape(guarded *memory, int64_t left_count, int64_t right_count, int64_t padding)
{
    const int64_t left_stride = left_count + padding, right_stride = right_count + 2 * padding;
    const int64_t gradient_row = right_count + padding;
    const int64_t slot_stride = left_count * gradient_row + padding;
    const float *left = operand(0, (ROWS - 1) * left_stride + left_count, 1.0f, 5);
    const float *right = operand(1, (ROWS - 1) * right_stride + right_count, 1.0f, 6);
    const int64_t slot_floats = 3 * slot_stride + (left_count - 1) * gradient_row + right_count;
    for (int i = 0; i < KERNEL_SETS; i++) {
        const ls_kernels *set = kernel_set(i);
        ls_cache_blocks blocks;
        if (!set) continue;
        ls_kernel_limits limits = {.rows = ROWS};
        void *scratch =
            guarded_floats(memory, (int64_t)(set->scratch_bytes(&limits) + 3) / 4, i % 2);
        float *slots = operand(2, slot_floats, 1.0f, 7);
        float *before = operand(3, slot_floats, 1.0f, 0);
        memcpy(before, slots, (size_t)slot_floats * sizeof *slots);
        ls_leaf_schedule schedule = {PIECES, offsets, merges, 3, false, false};
        ls_weight_gradient g = {
            .left = left,
            .left_stride = left_stride,
            .right = right,
            .right_stride = right_stride,
            .left_end = left_count / 3,
            .right_count = right_count,
            .slots = slots,
            .slot_stride = slot_stride,
            .gradient_row = gradient_row,
            .schedule = &schedule,
            .blocks = block_kind(set, (int)(left_count + right_count) % BLOCK_KINDS, &blocks),
        };
        set->weight_gradient(&g, scratch);
        g.left_begin = g.left_end;
        g.left_end = left_count;
        set->weight_gradient(&g, scratch);
        for (int64_t n = 0; n < left_count; n++)
            for (int64_t k = 0; k < right_count; k++) {
                float c[PIECES];
                for (int piece = 0; piece < PIECES; piece++)
                    c[piece] = chain(left + n, left_stride, right + k, right_stride, piece);
                const int64_t at = n * gradient_row + k;
                const float s1 = before[slot_stride + at], s2 = before[2 * slot_stride + at];
                before[slot_stride + at] = s1 + ((s2 + c[0]) + (c[1] + c[2]));
                before[2 * slot_stride + at] = c[3] + c[4];
            }
        /* Slot 0, slot 3 and the padding are as they were. */
        check_bits("slots", set->name, left_count, slots, before, slot_floats);
    }
}

static void any_shape_follows_the_schedule(void **state)
{
    (void)state;
    static const int64_t counts[] = {1, 2, 5, 6, 7, 8, 13, 14, 15, 16, 17, 29, 31, 32, 33, 48, 61};
    const int64_t last = sizeof counts / sizeof counts[0];
    guarded memory;
    guarded_init(&memory, 8 << 20);
    for (int64_t left = 0; left < last; left++)
        for (int64_t right = 0; right < last; right++)
            check_shape(&memory, counts[left], counts[right], (left + right) % 3);
    guarded_deinit(&memory);
}

enum { LONG_ROWS = 3000, LONG_PIECES = 400, LEFT = 29, RIGHT = 43 };

/* A schedule of leaves of 1 .. longest rows over `waiting` partial sums, whose open leaf goes on
 * when `open`; merges as a binary counter's, with some more at random. */
typedef struct long_schedule {
    ls_leaf_schedule schedule;
    int32_t offsets[LONG_PIECES + 1];
    uint8_t merges[LONG_PIECES];
} long_schedule;

static void make_long_schedule(long_schedule *s, uint32_t seed, uint32_t longest, int32_t waiting,
                               bool resume, bool open)
{
    int32_t row = 0, pieces = 0, top = waiting;
    while (row < LONG_ROWS && pieces < LONG_PIECES) {
        s->offsets[pieces] = row;
        row += 1 + (int32_t)(random_word(&seed) % longest);
        int32_t additions = 0;
        while (additions < top && random_word(&seed) % 2)
            additions++;
        if (top > 6) additions = top - 3;
        s->merges[pieces++] = (uint8_t)additions;
        top += 1 - additions;
    }
    if (row > LONG_ROWS) row = LONG_ROWS;
    s->offsets[pieces] = row;
    s->schedule = (ls_leaf_schedule){pieces, s->offsets, s->merges, waiting, resume, open};
}

/* One element, by the definition, on the element's own slots. */
static void expected_element(const ls_leaf_schedule *s, const float *left, int64_t left_stride,
                             const float *right, int64_t right_stride, float *slots,
                             int64_t slot_stride)
{
    float stack[LS_MAX_SLOTS + 1];
    int32_t top = s->depth;
    for (int32_t slot = 0; slot <= top; slot++)
        stack[slot] = slots[slot * slot_stride];
    for (int32_t piece = 0; piece < s->pieces; piece++) {
        float sum = piece == 0 && s->resume ? stack[top] : 0.0f;
        for (int32_t t = s->offsets[piece]; t < s->offsets[piece + 1]; t++)
            sum = fmaf(left[t * left_stride], right[t * right_stride], sum);
        const bool open = s->leave_open && piece + 1 == s->pieces;
        for (int additions = open ? 0 : s->merges[piece]; additions > 0; additions--)
            sum = stack[--top] + sum;
        stack[top++] = sum;
    }
    for (int32_t slot = 0; slot < top; slot++)
        slots[slot * slot_stride] = stack[slot];
}

/* More tokens than a kernel takes at a time, long and short leaves, stacks that wait and stay. */
static void long_passes_follow_the_schedule(void **state)
{
    (void)state;
    static const uint32_t longest[] = {20, 150, 700, 2900};
    enum { SLOTS = 12, FLOATS = LEFT * RIGHT };
    long_schedule *s = test_malloc(sizeof *s);
    float *expected = test_malloc(SLOTS * FLOATS * sizeof *expected);
    guarded memory;
    guarded_init(&memory, 8 << 20);
    for (uint32_t round = 0; round < 16; round++) {
        make_long_schedule(s, round, longest[round % 4], (int32_t)(round / 4), round % 2,
                           round / 2 % 2);
        const float *left = operand(0, LONG_ROWS * LEFT, 1.0f, round + 1);
        const float *right = operand(1, LONG_ROWS * RIGHT, 1.0f, round + 2);
        for (int i = 0; i < KERNEL_SETS; i++) {
            const ls_kernels *set = kernel_set(i);
            ls_cache_blocks blocks;
            if (!set) continue;
            float *slots = operand(2, SLOTS * FLOATS, 1.0f, round);
            if (i == 0) {
                memcpy(expected, slots, SLOTS * FLOATS * sizeof *slots);
                for (int64_t n = 0; n < LEFT; n++)
                    for (int64_t k = 0; k < RIGHT; k++)
                        expected_element(&s->schedule, left + n, LEFT, right + k, RIGHT,
                                         expected + n * RIGHT + k, FLOATS);
            }
            ls_weight_gradient g = {.left = left,
                                    .left_stride = LEFT,
                                    .right = right,
                                    .right_stride = RIGHT,
                                    .left_end = LEFT,
                                    .right_count = RIGHT,
                                    .slots = slots,
                                    .slot_stride = FLOATS,
                                    .gradient_row = RIGHT,
                                    .schedule = &s->schedule,
                                    .blocks = block_kind(set, (int)round % BLOCK_KINDS, &blocks)};
            ls_kernel_limits limits = {.rows = LONG_ROWS};
            set->weight_gradient(
                &g, guarded_floats(&memory, (int64_t)(set->scratch_bytes(&limits) + 3) / 4, 0));
            check_bits("long pass", set->name, round, slots, expected, SLOTS * FLOATS);
        }
    }
    guarded_deinit(&memory);
    test_free(expected);
    test_free(s);
}

static void nothing_to_do_touches_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < KERNEL_SETS; i++) {
        const ls_kernels *set = kernel_set(i);
        if (!set) continue;
        ls_leaf_schedule nothing = {0, offsets, merges, 2, false, false};
        ls_leaf_schedule some = {PIECES, offsets, merges, 0, false, false};
        ls_weight_gradient g = {.left_end = 20, .right_count = 20, .schedule = &nothing};
        set->weight_gradient(&g, NULL);
        g.schedule = &some;
        g.left_begin = 20;
        set->weight_gradient(&g, NULL);
        g.left_begin = 0;
        g.right_count = 0;
        set->weight_gradient(&g, NULL);
    }
}

/* The first pass of a batch writes its root without reading what the slot held. */
static void a_single_root_is_stored_without_reading(void **state)
{
    (void)state;
    for (int i = 0; i < KERNEL_SETS; i++) {
        const ls_kernels *set = kernel_set(i);
        if (!set) continue;
        const float *left = operand(0, 3 * 20, 1.0f, 1), *right = operand(1, 3 * 40, 1.0f, 2);
        float *slots = operand(2, 20 * 40, 0.0f, 0); /* NaN */
        const int32_t rows[] = {0, 1, 3};
        const uint8_t one_root[] = {0, 1};
        ls_leaf_schedule schedule = {2, rows, one_root, 0, false, false};
        ls_weight_gradient g = {.left = left,
                                .left_stride = 20,
                                .right = right,
                                .right_stride = 40,
                                .left_end = 20,
                                .right_count = 40,
                                .slots = slots,
                                .gradient_row = 40,
                                .schedule = &schedule};
        void *scratch = test_malloc(set->scratch_bytes(&(ls_kernel_limits){.rows = 3}));
        set->weight_gradient(&g, scratch);
        test_free(scratch);
        for (int64_t n = 0; n < 20; n++)
            for (int64_t k = 0; k < 40; k++) {
                float first = left[n] * right[k];
                float second = fmaf(left[40 + n], right[80 + k], left[20 + n] * right[40 + k]);
                assert_true(slots[n * 40 + k] == first + second);
            }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_shape_follows_the_schedule),
        cmocka_unit_test(long_passes_follow_the_schedule),
        cmocka_unit_test(nothing_to_do_touches_nothing),
        cmocka_unit_test(a_single_root_is_stored_without_reading),
    };
    return cmocka_run_group_tests_name("weight gradient", tests, kernel_tests_setup,
                                       kernel_tests_teardown);
}

/* data/sampler.h: who is in a batch, and how evenly its leaves are loaded. */
#include "testing.h"

#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "data/sampler.h"
#include "data/sort.h"

enum { COUNT = 8530 };

/* Lengths in tokens of short film reviews: how many of 1,000 have 5, 6, 7, ... tokens (measured
 * on 8,530 sentences: mean 27, longest 78). */
static const uint8_t reviews_by_length[] = {
    2,  5,  7,  10, 12, 14, 18, 20, 21, 24, 23, 25, 23, 31, 30, 33, 31, 33, 35, 33,
    32, 35, 34, 36, 33, 31, 29, 30, 25, 25, 25, 25, 21, 20, 20, 17, 18, 14, 13, 13,
    9,  8,  9,  7,  7,  5,  4,  5,  4,  3,  3,  2,  2,  1,  1,  1,  1,  1,  1,
};

static uint16_t lengths[COUNT];

static int make_lengths(void **state)
{
    (void)state;
    for (uint32_t sample = 0; sample < COUNT; sample++) {
        uint32_t at =
            ls_philox((ls_philox_key){{1, 2}}, (ls_philox_block){{sample}}).word[0] % 1000;
        int bin = 0;
        while (at >= reviews_by_length[bin])
            at -= reviews_by_length[bin++];
        lengths[sample] = (uint16_t)(5 + bin);
    }
    return 0;
}

static ls_sampler *new_sampler(uint32_t count, int32_t batch_size, int32_t leaf_size, uint64_t seed,
                               bool sequential)
{
    ls_error error;
    ls_sampler *sampler = NULL;
    ls_sampler_options options = {
        .count = count,
        .lengths = lengths,
        .batch_size = batch_size,
        .leaf_size = leaf_size,
        .seed = seed,
        .sequential = sequential,
    };
    assert_ok(ls_sampler_new(&sampler, &options, &error), error);
    return sampler;
}

static void keys_are_sorted(void **state)
{
    (void)state;
    uint64_t keys[200];
    for (uint32_t count = 0; count < 200; count++) {
        uint64_t sum = 0;
        for (uint32_t at = 0; at < count; at++) {
            keys[at] = ls_philox((ls_philox_key){{3}}, (ls_philox_block){{at, count}}).word[0] % 97;
            sum += keys[at] * keys[at];
        }
        ls_sort_keys(keys, count);
        for (uint32_t at = 0; at < count; at++) {
            assert_true(at == 0 || keys[at - 1] <= keys[at]);
            sum -= keys[at] * keys[at];
        }
        assert_int_equal(sum, 0);
    }
}

static void every_sample_comes_once_an_epoch(void **state)
{
    (void)state;
    static const int32_t batch_sizes[] = {1, 7, 32, 100, COUNT, COUNT + 1000};
    static const uint32_t counts[] = {1, 2, 31, 32, 33, 1000, COUNT};
    static uint8_t seen[COUNT];
    static uint32_t out[COUNT];
    for (size_t b = 0; b < sizeof batch_sizes / sizeof *batch_sizes; b++) {
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            ls_sampler *sampler = new_sampler(counts[c], batch_sizes[b], 4, 42, b % 2);
            int64_t batches = ls_sampler_batches(sampler);
            assert_int_equal(batches, (counts[c] + batch_sizes[b] - 1) / batch_sizes[b]);
            memset(seen, 0, sizeof seen);
            for (int64_t index = 0; index < batches; index++) {
                int32_t count = 0;
                ls_sampler_batch(sampler, 3, index, out, &count);
                assert_int_equal(count, index + 1 < batches
                                            ? batch_sizes[b]
                                            : (int32_t)counts[c] - index * batch_sizes[b]);
                for (int32_t at = 0; at < count; at++)
                    seen[out[at]]++;
            }
            for (uint32_t sample = 0; sample < counts[c]; sample++)
                assert_int_equal(seen[sample], 1);
            ls_sampler_free(sampler);
        }
    }
}

/* The set of samples in the first batches of an epoch, for whatever batch size, is the same. */
static void the_order_depends_on_seed_and_epoch_only(void **state)
{
    (void)state;
    static uint32_t large[COUNT], small[COUNT], again[COUNT];
    static uint64_t first[1024], second[1024];
    int32_t count = 0;
    ls_sampler *of_64 = new_sampler(COUNT, 64, 4, 42, false);
    ls_sampler *of_16 = new_sampler(COUNT, 16, 8, 42, false);
    ls_sampler_batch(of_64, 0, 5, large, &count);
    for (int part = 0; part < 4; part++)
        ls_sampler_batch(of_16, 0, 20 + part, small + 16 * part, &count);
    for (int at = 0; at < 64; at++)
        first[at] = large[at], second[at] = small[at];
    ls_sort_keys(first, 64);
    ls_sort_keys(second, 64);
    assert_memory_equal(first, second, 64 * sizeof *first);

    /* Back and forth between epochs, and no allocation. */
    uint64_t allocations = ls_allocation_count();
    ls_sampler_batch(of_64, 1, 5, again, &count);
    assert_memory_not_equal(large, again, 64 * sizeof *large);
    ls_sampler_batch(of_64, 0, 5, again, &count);
    assert_memory_equal(large, again, 64 * sizeof *large);
    assert_int_equal(ls_allocation_count(), allocations);
    ls_sampler_free(of_64);
    ls_sampler_free(of_16);

    ls_sampler *other_seed = new_sampler(COUNT, 64, 4, 43, false);
    ls_sampler_batch(other_seed, 0, 5, again, &count);
    assert_memory_not_equal(large, again, 64 * sizeof *large);
    ls_sampler_free(other_seed);
}

/* A change here changes every trained weight: the golden order. */
static void the_order_is_pinned(void **state)
{
    (void)state;
    uint32_t out[8];
    int32_t count = 0;
    ls_sampler *sampler = new_sampler(1000, 8, 4, 42, false);
    ls_sampler_batch(sampler, 0, 0, out, &count);
    static const uint32_t golden[8] = {10, 23, 461, 510, 407, 507, 755, 4};
    for (int at = 0; at < 8; at++)
        assert_int_equal(out[at], golden[at]);
    ls_sampler_free(sampler);
}

static void shuffles_are_fair(void **state)
{
    (void)state;
    enum { ITEMS = 7, EPOCHS = 7000 };
    int at_place[ITEMS][ITEMS] = {{0}};
    ls_sampler *sampler = new_sampler(ITEMS, 1, 1, 1, false);
    for (int64_t epoch = 0; epoch < EPOCHS; epoch++) {
        for (int place = 0; place < ITEMS; place++) {
            uint32_t sample = 0;
            int32_t count = 0;
            ls_sampler_batch(sampler, epoch, place, &sample, &count);
            at_place[place][sample]++;
        }
    }
    /* 1,000 expected, standard deviation 29. */
    for (int place = 0; place < ITEMS; place++)
        for (int sample = 0; sample < ITEMS; sample++)
            assert_in_range(at_place[place][sample], 880, 1120);
    ls_sampler_free(sampler);
}

/* Max over mean of the tokens of `ranks` equal groups of consecutive leaves, mean over batches. */
static double imbalance(int32_t batch_size, int ranks, bool sequential)
{
    static uint32_t out[COUNT];
    ls_sampler *sampler = new_sampler(COUNT, batch_size, 4, 42, sequential);
    int64_t batches = COUNT / batch_size;
    double sum = 0;
    for (int64_t index = 0; index < batches; index++) {
        int32_t count = 0, share = batch_size / ranks;
        int most = 0, total = 0;
        ls_sampler_batch(sampler, 0, index, out, &count);
        for (int rank = 0; rank < ranks; rank++) {
            int tokens = 0;
            for (int32_t at = rank * share; at < (rank + 1) * share; at++)
                tokens += lengths[out[at]];
            total += tokens;
            if (tokens > most) most = tokens;
        }
        sum += (double)most * ranks / total;
    }
    ls_sampler_free(sampler);
    return sum / (double)batches;
}

static void groups_of_leaves_hold_nearly_equal_tokens(void **state)
{
    (void)state;
    static const double at_most[] = {1.005, 1.015, 1.05};
    for (int level = 0; level < 3; level++) {
        int ranks = 2 << level;
        double balanced = imbalance(32, ranks, false), before = imbalance(32, ranks, true);
        print_message("max/mean tokens, %d ranks: %.3f (unordered %.3f)\n", ranks, balanced,
                      before);
        assert_true(balanced <= at_most[level]);
        assert_true(before > balanced);
    }
}

/* Batches whose leaves are no power of two: each leaf still gets its share. */
static void odd_batches_are_balanced_too(void **state)
{
    (void)state;
    static const int32_t batch_sizes[] = {24, 36, 48, 60, 96};
    for (size_t b = 0; b < sizeof batch_sizes / sizeof *batch_sizes; b++) {
        double balanced = imbalance(batch_sizes[b], batch_sizes[b] / 12, false);
        print_message("batch %d, %d ranks: %.3f\n", batch_sizes[b], batch_sizes[b] / 12, balanced);
        assert_true(balanced < 1.06);
    }
}

static void sizes_below_one_are_refused(void **state)
{
    (void)state;
    ls_error error;
    ls_sampler *sampler = NULL;
    ls_sampler_options options = {.count = 0, .lengths = lengths, .batch_size = 1, .leaf_size = 1};
    assert_int_equal(ls_sampler_new(&sampler, &options, &error), LS_USAGE);
    options.count = 1, options.batch_size = 0;
    assert_int_equal(ls_sampler_new(&sampler, &options, &error), LS_USAGE);
    options.batch_size = 1, options.leaf_size = -1;
    assert_int_equal(ls_sampler_new(&sampler, &options, &error), LS_USAGE);
    assert_non_null(strstr(error.text, "leaf size -1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_sorted),
        cmocka_unit_test(every_sample_comes_once_an_epoch),
        cmocka_unit_test(the_order_depends_on_seed_and_epoch_only),
        cmocka_unit_test(the_order_is_pinned),
        cmocka_unit_test(shuffles_are_fair),
        cmocka_unit_test(groups_of_leaves_hold_nearly_equal_tokens),
        cmocka_unit_test(odd_batches_are_balanced_too),
        cmocka_unit_test(sizes_below_one_are_refused),
    };
    return cmocka_run_group_tests_name("sampler", tests, make_lengths, NULL);
}

/* data/reader.h: the batches that the sampler names, in its order, from a thread of its own. */
#include "data_fixture.h"

#include <unistd.h>

#include "base/alloc.h"
#include "data/dataset_internal.h"
#include "data/reader.h"

enum { ROWS = 300, BATCH = 32, BATCHES = 10, MAX_LENGTH = 30 };

static ls_error error;
static char *folder;
static ls_tokenizer *tokenizer;
static ls_labels *labels;
static ls_dataset *dataset;

static int set_up(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "b", "c"};
    folder = test_folder();
    tokenizer = fixture_tokenizer(folder);
    fixture_write_tsv(test_path(folder, "train.tsv"), ROWS, names, 3);
    labels = fixture_labels();
    ls_dataset_options options = {
        .path = test_path(folder, "train.tsv"),
        .tokenizer = tokenizer,
        .max_length = MAX_LENGTH,
        .labels = labels,
        .need_labels = true,
        .cache_folder = folder,
    };
    assert_ok(ls_dataset_open(&dataset, &options, &error), error);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ls_dataset_free(dataset);
    ls_labels_free(labels);
    ls_tokenizer_free(tokenizer);
    test_folder_remove(folder);
    return 0;
}

static ls_sampler *new_sampler(bool sequential)
{
    ls_sampler *sampler = NULL;
    ls_sampler_options options = {
        .count = ls_dataset_count(dataset),
        .lengths = ls_dataset_lengths(dataset),
        .batch_size = BATCH,
        .leaf_size = 4,
        .seed = 42,
        .sequential = sequential,
    };
    assert_ok(ls_sampler_new(&sampler, &options, &error), error);
    return sampler;
}

static ls_reader *new_reader(ls_sampler *sampler, int64_t epoch, int64_t batch, int64_t epochs)
{
    ls_reader *reader = NULL;
    ls_reader_options options = {
        .dataset = dataset, .sampler = sampler, .epoch = epoch, .batch = batch, .epochs = epochs};
    assert_ok(ls_reader_new(&reader, &options, &error), error);
    return reader;
}

static void check_batch(const ls_batch *batch, ls_sampler *expected, int64_t epoch, int64_t index)
{
    uint32_t rows[BATCH];
    int32_t count = 0;
    ls_sampler_batch(expected, epoch, index, rows, &count);
    assert_int_equal(batch->samples, count);
    for (int32_t at = 0; at < count; at++) {
        char text[64];
        int32_t ids[64];
        fixture_text(rows[at], 0, text);
        int length = fixture_ids(text, ids);
        if (length > MAX_LENGTH - 2) length = MAX_LENGTH - 2;
        assert_int_equal(batch->sample_ids[at], rows[at]);
        assert_int_equal(batch->labels[at], rows[at] % 3);
        assert_int_equal(batch->offsets[at + 1] - batch->offsets[at], length + 2);
        assert_memory_equal(batch->ids + batch->offsets[at] + 1, ids, (size_t)length * sizeof *ids);
    }
}

static void batches_come_in_the_samplers_order(void **state)
{
    (void)state;
    for (int sequential = 0; sequential < 2; sequential++) {
        ls_sampler *sampler = new_sampler(sequential), *expected = new_sampler(sequential);
        ls_reader *reader = new_reader(sampler, 0, 0, 3);
        const ls_batch *batch = NULL;
        bool more = true;
        uint64_t allocations = ls_allocation_count();
        for (int number = 0; number < 3 * BATCHES; number++) {
            int64_t epoch = 0, index = 0;
            assert_ok(ls_reader_next(reader, &batch, &more, &error), error);
            assert_true(more);
            ls_reader_position(reader, &epoch, &index);
            assert_int_equal(epoch, number / BATCHES);
            assert_int_equal(index, number % BATCHES);
            check_batch(batch, expected, epoch, index);
        }
        for (int again = 0; again < 2; again++) {
            assert_ok(ls_reader_next(reader, &batch, &more, &error), error);
            assert_false(more);
            assert_null(batch);
        }
        assert_int_equal(ls_allocation_count(), allocations);
        assert_true(ls_reader_waited_seconds(reader) >= 0);
        ls_reader_free(reader);
        ls_sampler_free(sampler);
        ls_sampler_free(expected);
    }
}

/* A run that goes on after a stop: the same batches from there. */
static void reading_starts_anywhere(void **state)
{
    (void)state;
    ls_sampler *sampler = new_sampler(false), *expected = new_sampler(false);
    static const int64_t starts[][2] = {{0, 9}, {2, 3}, {1, BATCHES} /* that is: (2, 0) */};
    for (int start = 0; start < 3; start++) {
        int64_t epoch = starts[start][0], index = starts[start][1];
        ls_reader *reader = new_reader(sampler, epoch, index, 0);
        for (int number = 0; number < 2 * BATCHES; number++, index++) {
            const ls_batch *batch = NULL;
            bool more = false;
            if (index == BATCHES) index = 0, epoch++;
            assert_ok(ls_reader_next(reader, &batch, &more, &error), error);
            assert_true(more);
            check_batch(batch, expected, epoch, index);
        }
        ls_reader_free(reader);
    }
    ls_sampler_free(sampler);
    ls_sampler_free(expected);
}

static void a_reader_may_be_freed_at_any_time(void **state)
{
    (void)state;
    ls_sampler *sampler = new_sampler(false);
    for (int round = 0; round < 60; round++) {
        ls_reader *reader = new_reader(sampler, round, 0, 0);
        const ls_batch *batch = NULL;
        bool more = false;
        for (int number = 0; number < round % 5; number++)
            assert_ok(ls_reader_next(reader, &batch, &more, &error), error);
        if (round % 7 == 0) usleep(2000); /* the thread waits for a free buffer */
        ls_reader_free(reader);
    }
    ls_sampler_free(sampler);
}

/* A disk that fails, as seen from here: the cache file ends early, or holds something else. */
static void a_failed_read_surfaces_and_stays(void **state)
{
    (void)state;
    ls_sampler *sampler = new_sampler(true);
    int descriptor = dataset->cache.descriptor;
    int64_t half = (int64_t)dataset->marks[2] * 4, whole = (int64_t)dataset->cache.written * 4;
    char *kept = malloc((size_t)whole);
    assert_non_null(kept);
    assert_int_equal(pread(descriptor, kept, (size_t)whole, 0), whole);
    for (int kind = 0; kind < 2; kind++) {
        int32_t wrong = 57; /* one more than the largest id */
        assert_int_equal(ftruncate(descriptor, half), 0);
        if (kind == 1) {
            assert_int_equal(pwrite(descriptor, kept, (size_t)whole, 0), whole);
            assert_int_equal(pwrite(descriptor, &wrong, 4, half + 4), 4);
        }
        ls_reader *reader = new_reader(sampler, 0, 0, 1);
        const ls_batch *batch = NULL;
        bool more = true;
        for (int number = 0; number < 4; number++) /* rows 0 to 127 are there */
            assert_ok(ls_reader_next(reader, &batch, &more, &error), error);
        for (int again = 0; again < 2; again++) {
            memset(&error, 0, sizeof error);
            assert_int_equal(ls_reader_next(reader, &batch, &more, &error), LS_IO);
            assert_non_null(strstr(error.text, "lockstep-tokens-"));
            assert_null(batch);
            assert_false(more);
        }
        ls_reader_free(reader);
    }
    assert_int_equal(pwrite(descriptor, kept, (size_t)whole, 0), whole);
    free(kept);
    ls_sampler_free(sampler);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_come_in_the_samplers_order),
        cmocka_unit_test(reading_starts_anywhere),
        cmocka_unit_test(a_reader_may_be_freed_at_any_time),
        cmocka_unit_test(a_failed_read_surfaces_and_stays),
    };
    return cmocka_run_group_tests_name("reader", tests, set_up, tear_down);
}

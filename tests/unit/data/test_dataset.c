/* data/dataset.h: what is in a file comes back as it was tokenised, or an error says where not. */
#include "data_fixture.h"

#include <dirent.h>

#include "base/alloc.h"

enum { ROWS = 3000, MAX_LENGTH = 20 };

static ls_error error;
static char *folder, *cache_folder;
static ls_tokenizer *tokenizer;
static const char *const sentiment[] = {"neg", "pos"};

static int set_up(void **state)
{
    (void)state;
    folder = test_folder();
    cache_folder = test_folder();
    tokenizer = fixture_tokenizer(folder);
    fixture_write_tsv(test_path(folder, "train.tsv"), ROWS, sentiment, 2);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ls_tokenizer_free(tokenizer);
    test_folder_remove(folder);
    test_folder_remove(cache_folder);
    return 0;
}

static ls_dataset_options options_for(const char *name, ls_labels *labels)
{
    return (ls_dataset_options){
        .path = test_path(folder, name),
        .tokenizer = tokenizer,
        .max_length = MAX_LENGTH,
        .labels = labels,
        .need_labels = labels != NULL,
        .cache_folder = cache_folder,
    };
}

static void write_text(const char *name, const char *text)
{
    test_write_file(test_path(folder, name), text, strlen(text));
}

/* Expected ids of a row of train.tsv. */
static int expected_row(uint32_t row, int32_t *ids)
{
    char text[64];
    int32_t all[64] = {ID_CLASS};
    fixture_text(row, 0, text);
    int count = 1 + fixture_ids(text, all + 1);
    if (count > MAX_LENGTH - 1) count = MAX_LENGTH - 1;
    all[count++] = ID_SEPARATOR;
    memcpy(ids, all, (size_t)count * sizeof *ids);
    return count;
}

static void check_batch(const ls_batch *batch, const uint32_t *rows, int32_t count)
{
    assert_int_equal(batch->samples, count);
    assert_int_equal(batch->offsets[0], 0);
    for (int32_t at = 0; at < count; at++) {
        int32_t ids[MAX_LENGTH], length = expected_row(rows[at], ids);
        assert_int_equal(batch->offsets[at + 1] - batch->offsets[at], length);
        assert_memory_equal(batch->ids + batch->offsets[at], ids, (size_t)length * sizeof *ids);
        for (int32_t token = batch->offsets[at]; token < batch->offsets[at + 1]; token++)
            assert_int_equal(batch->types[token], 0);
        assert_int_equal(batch->sample_ids[at], rows[at]);
        assert_int_equal(batch->labels[at], rows[at] % 2);
    }
}

static void rows_come_back_in_any_order(void **state)
{
    (void)state;
    static uint32_t rows[ROWS];
    ls_labels *labels = fixture_labels();
    ls_dataset *dataset = NULL;
    ls_batch_buffer *buffer = NULL;
    ls_dataset_options options = options_for("train.tsv", labels);
    assert_ok(ls_dataset_open(&dataset, &options, &error), error);
    assert_int_equal(ls_dataset_count(dataset), ROWS);
    assert_int_equal(ls_dataset_longest(dataset), MAX_LENGTH);
    assert_string_equal(ls_labels_name(labels, 0), "neg");
    assert_string_equal(ls_dataset_text_column(dataset), "text");
    assert_string_equal(ls_dataset_label_column(dataset), "label");
    assert_null(ls_dataset_text_pair_column(dataset));
    uint64_t tokens = 0;
    for (uint32_t row = 0; row < ROWS; row++) {
        int32_t ids[MAX_LENGTH];
        assert_int_equal(ls_dataset_length(dataset, row), expected_row(row, ids));
        assert_int_equal(ls_dataset_label(dataset, row), row % 2);
        tokens += (uint64_t)ls_dataset_length(dataset, row);
    }
    assert_int_equal(ls_dataset_tokens(dataset), tokens);

    assert_ok(ls_batch_buffer_new(&buffer, dataset, ROWS + 10, &error), error);
    uint64_t allocations = ls_allocation_count();
    for (uint32_t round = 0; round < 60; round++) {
        int32_t count = round == 0 ? ROWS : (int32_t)fixture_draw(round, 1, 100);
        for (int32_t at = 0; at < count; at++) {
            if (round < 20) /* neighbours */
                rows[at] = (uint32_t)at + (count < ROWS ? fixture_draw(round, 2, 2900) : 0);
            else if (round < 40) /* neighbours, backwards, each twice */
                rows[at] = 2000 + round - (uint32_t)at / 2;
            else
                rows[at] = fixture_draw(round, 3 + (uint32_t)at, ROWS);
        }
        assert_ok(ls_dataset_read_rows(dataset, rows, count, buffer, &error), error);
        check_batch(ls_batch_buffer_batch(buffer), rows, count);
    }
    assert_int_equal(ls_allocation_count(), allocations);
    ls_batch_buffer_free(buffer);
    ls_dataset_free(dataset);
    ls_labels_free(labels);
}

/* The folder is empty even while the dataset is in use: a crash leaves nothing. */
static void the_cache_has_no_name(void **state)
{
    (void)state;
    ls_dataset *dataset = NULL;
    ls_dataset_options options = options_for("train.tsv", NULL);
    assert_ok(ls_dataset_open(&dataset, &options, &error), error);
    DIR *directory = opendir(cache_folder);
    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory));)
        assert_int_equal(entry->d_name[0], '.');
    closedir(directory);
    assert_int_equal(ls_dataset_label(dataset, 1), -1);
    ls_dataset_free(dataset);
}

static void digest_of(const char *name, int thread_count, int max_length,
                      char digest[LS_DIGEST_CHARACTERS])
{
    ls_labels *labels = fixture_labels();
    ls_threads *threads = NULL;
    ls_dataset *dataset = NULL;
    assert_ok(ls_threads_new(&threads, thread_count, &error), error);
    ls_dataset_options options = options_for(name, labels);
    options.threads = threads;
    options.max_length = max_length;
    options.skip_bad_rows = true;
    assert_ok(ls_dataset_open(&dataset, &options, &error), error);
    ls_dataset_digest(dataset, digest);
    assert_int_equal(strlen(digest), 32);
    ls_dataset_free(dataset);
    ls_threads_free(threads);
    ls_labels_free(labels);
}

static void the_digest_names_the_content(void **state)
{
    (void)state;
    char first[LS_DIGEST_CHARACTERS], other[LS_DIGEST_CHARACTERS];
    digest_of("train.tsv", 1, MAX_LENGTH, first);
    for (int threads = 2; threads <= 4; threads++) {
        digest_of("train.tsv", threads, MAX_LENGTH, other);
        assert_string_equal(first, other);
    }
    digest_of("train.tsv", 1, MAX_LENGTH - 1, other);
    assert_string_not_equal(first, other);
    /* The same ids cut elsewhere, another label, another order. */
    write_text("a.tsv", "text\tlabel\na b\tx\nc\ty\n");
    write_text("b.tsv", "text\tlabel\na b\ty\nc\tx\n");
    write_text("c.tsv", "text\tlabel\nc\ty\na b\tx\n");
    write_text("d.tsv", "text\tlabel\na b\tx\nc\ty\n\xff\tx\n");
    digest_of("a.tsv", 1, MAX_LENGTH, first);
    digest_of("b.tsv", 1, MAX_LENGTH, other);
    assert_string_not_equal(first, other);
    digest_of("c.tsv", 1, MAX_LENGTH, other);
    assert_string_not_equal(first, other);
    digest_of("d.tsv", 1, MAX_LENGTH, other); /* a bad row, left out */
    assert_string_equal(first, other);
}

static void pairs_have_two_types(void **state)
{
    (void)state;
    write_text("pairs.jsonl", "{\"sentence1\": \"a b\", \"sentence2\": \"cd\", \"label\": 1}\n"
                              "{\"sentence1\": \"e\", \"sentence2\": \"f g h\", \"label\": 0}\n");
    ls_labels *labels = fixture_labels();
    ls_dataset *dataset = NULL;
    ls_batch_buffer *buffer = NULL;
    ls_dataset_options options = options_for("pairs.jsonl", labels);
    assert_ok(ls_dataset_open(&dataset, &options, &error), error);
    assert_string_equal(ls_dataset_text_pair_column(dataset), "sentence2");
    assert_ok(ls_batch_buffer_new(&buffer, dataset, 2, &error), error);
    const uint32_t rows[] = {1, 0};
    assert_ok(ls_dataset_read_rows(dataset, rows, 2, buffer, &error), error);
    const ls_batch *batch = ls_batch_buffer_batch(buffer);
    const int32_t ids[] = {2, 9, 3, 10, 11, 12, 3, 2, 5, 6, 3, 7, 34, 3};
    const uint8_t types[] = {0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1};
    assert_int_equal(batch->offsets[2], 14);
    assert_memory_equal(batch->ids, ids, sizeof ids);
    assert_memory_equal(batch->types, types, sizeof types);
    assert_int_equal(batch->labels[0], 0);
    assert_int_equal(batch->labels[1], 1);
    ls_batch_buffer_free(buffer);
    ls_dataset_free(dataset);
    ls_labels_free(labels);
}

static void validation_uses_the_labels_of_training(void **state)
{
    (void)state;
    write_text("validation.csv", "text,label\na,pos\nb,pos\n");
    write_text("unseen.csv", "text,label\na,pos\n\"b\nc\",neg\nd,neutral\n");
    ls_labels *labels = fixture_labels();
    ls_dataset *dataset = NULL;
    ls_dataset_options options = options_for("train.tsv", labels);
    assert_ok(ls_dataset_open(&dataset, &options, &error), error);
    ls_dataset_free(dataset);
    options = options_for("validation.csv", labels);
    assert_ok(ls_dataset_open(&dataset, &options, &error), error);
    assert_int_equal(ls_dataset_label(dataset, 0), 1);
    ls_dataset_free(dataset);
    options = options_for("unseen.csv", labels);
    options.skip_bad_rows = true; /* no help: such rows are not left out */
    assert_int_equal(ls_dataset_open(&dataset, &options, &error), LS_INVALID);
    assert_non_null(strstr(error.text, "unseen.csv:5: label \"neutral\""));
    assert_non_null(strstr(error.text, "neg, pos"));
    ls_labels_free(labels);
}

static void bad_rows_are_refused_or_left_out(void **state)
{
    (void)state;
    write_text("bad.tsv", "text\tlabel\na\tpos\n\xff\tpos\nb\tneg\n\tneg\nc\t\nd\tpos\textra\n");
    ls_labels *labels = fixture_labels();
    ls_dataset *dataset = NULL;
    ls_dataset_options options = options_for("bad.tsv", labels);
    assert_int_equal(ls_dataset_open(&dataset, &options, &error), LS_INVALID);
    assert_non_null(strstr(error.text, "bad.tsv:3:"));
    assert_int_equal(ls_labels_count(labels), 0);
    options.skip_bad_rows = true;
    assert_ok(ls_dataset_open(&dataset, &options, &error), error);
    assert_int_equal(ls_dataset_count(dataset), 2);
    assert_int_equal(ls_dataset_skipped(dataset), 4);
    assert_int_equal(ls_dataset_label(dataset, 0), 1);
    ls_dataset_free(dataset);
    ls_labels_free(labels);

    /* Without need of labels, the row without one is good. */
    options = options_for("bad.tsv", NULL);
    options.skip_bad_rows = true;
    assert_ok(ls_dataset_open(&dataset, &options, &error), error);
    assert_int_equal(ls_dataset_count(dataset), 3);
    ls_dataset_free(dataset);

    write_text("all_bad.tsv", "text\tlabel\n\tpos\n\xff\tpos\n");
    options = options_for("all_bad.tsv", NULL);
    options.skip_bad_rows = true;
    assert_int_equal(ls_dataset_open(&dataset, &options, &error), LS_INVALID);
    assert_non_null(strstr(error.text, "all 2 were left out"));
}

static void wrong_settings_are_refused(void **state)
{
    (void)state;
    ls_dataset *dataset = NULL;
    ls_dataset_options options = options_for("train.tsv", NULL);
    options.max_length = 0;
    assert_int_equal(ls_dataset_open(&dataset, &options, &error), LS_USAGE);
    options.max_length = LS_DATASET_MAX_LENGTH + 1;
    assert_int_equal(ls_dataset_open(&dataset, &options, &error), LS_USAGE);
    options.max_length = 1; /* less than [CLS] and [SEP] */
    assert_int_equal(ls_dataset_open(&dataset, &options, &error), LS_USAGE);
    options = options_for("train.tsv", NULL);
    options.need_labels = true;
    assert_int_equal(ls_dataset_open(&dataset, &options, &error), LS_USAGE);
    options = options_for("train.tsv", NULL);
    options.text_column = "review";
    assert_int_equal(ls_dataset_open(&dataset, &options, &error), LS_INVALID);
    assert_non_null(strstr(error.text, "review"));
    options = options_for("missing.tsv", NULL);
    assert_int_equal(ls_dataset_open(&dataset, &options, &error), LS_IO);
    options = options_for("train.tsv", NULL);
    options.cache_folder = test_path(folder, "nowhere");
    assert_int_equal(ls_dataset_open(&dataset, &options, &error), LS_IO);
    assert_non_null(strstr(error.text, "nowhere"));
}

typedef struct progress_seen {
    int calls;
    uint64_t rows, bytes, total;
    bool stop;
} progress_seen;

static bool note_progress(void *context, uint64_t rows, uint64_t bytes, uint64_t total)
{
    progress_seen *seen = context;
    *seen = (progress_seen){seen->calls + 1, rows, bytes, total, seen->stop};
    return !seen->stop;
}

static void progress_is_told_and_may_stop(void **state)
{
    (void)state;
    progress_seen seen = {0};
    ls_dataset *dataset = NULL;
    ls_labels *labels = fixture_labels();
    ls_dataset_options options = options_for("train.tsv", labels);
    options.progress = note_progress;
    options.context = &seen;
    assert_ok(ls_dataset_open(&dataset, &options, &error), error);
    assert_true(seen.calls >= 1);
    assert_int_equal(seen.rows, ROWS);
    assert_int_equal(seen.bytes, seen.total);
    ls_dataset_free(dataset);
    ls_labels_free(labels);
    labels = fixture_labels();
    seen.stop = true;
    options.labels = labels;
    assert_int_equal(ls_dataset_open(&dataset, &options, &error), LS_INTERRUPTED);
    assert_int_equal(ls_labels_count(labels), 0);
    ls_labels_free(labels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_back_in_any_order),
        cmocka_unit_test(the_cache_has_no_name),
        cmocka_unit_test(the_digest_names_the_content),
        cmocka_unit_test(pairs_have_two_types),
        cmocka_unit_test(validation_uses_the_labels_of_training),
        cmocka_unit_test(bad_rows_are_refused_or_left_out),
        cmocka_unit_test(wrong_settings_are_refused),
        cmocka_unit_test(progress_is_told_and_may_stop),
    };
    return cmocka_run_group_tests_name("dataset", tests, set_up, tear_down);
}

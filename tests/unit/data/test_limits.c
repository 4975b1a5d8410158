/* Limits of the machine: memory smaller than the file, a full disk, allocations that fail. */
#include "data_fixture.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "data/reader.h"

/* Address-space limits do not go with the sanitizers' shadow memory. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

enum { FILE_BYTES = 64 << 20, MEMORY_BYTES = FILE_BYTES / 2, MAX_LENGTH = 32, BATCH = 64 };

static char *folder;
static ls_tokenizer *tokenizer;

static int set_up(void **state)
{
    (void)state;
    folder = test_folder();
    tokenizer = fixture_tokenizer(folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ls_tokenizer_free(tokenizer);
    test_folder_remove(folder);
    return 0;
}

typedef struct outcome {
    ls_status status;
    char digest[LS_DIGEST_CHARACTERS];
    uint64_t ids; /* sum over an epoch of (id x place), as the reader gave them */
    ls_error error;
} outcome;

/* Open the file, read one shuffled epoch of it. */
static void use_file(const char *path, ls_threads *threads, outcome *result)
{
    ls_labels *labels = NULL;
    ls_dataset *dataset = NULL;
    ls_sampler *sampler = NULL;
    ls_reader *reader = NULL;
    ls_error *error = &result->error;
    LS_TRY_GOTO(result->status, ls_labels_new(&labels, error), done);
    ls_dataset_options options = {
        .path = path,
        .tokenizer = tokenizer,
        .max_length = MAX_LENGTH,
        .labels = labels,
        .need_labels = true,
        .cache_folder = folder,
        .threads = threads,
    };
    LS_TRY_GOTO(result->status, ls_dataset_open(&dataset, &options, error), done);
    ls_dataset_digest(dataset, result->digest);
    ls_sampler_options sampler_options = {
        .count = ls_dataset_count(dataset),
        .lengths = ls_dataset_lengths(dataset),
        .batch_size = BATCH,
        .leaf_size = 4,
        .seed = 42,
    };
    LS_TRY_GOTO(result->status, ls_sampler_new(&sampler, &sampler_options, error), done);
    ls_reader_options reader_options = {.dataset = dataset, .sampler = sampler, .epochs = 1};
    LS_TRY_GOTO(result->status, ls_reader_new(&reader, &reader_options, error), done);
    uint64_t place = 0;
    for (bool more = true; more;) {
        const ls_batch *batch = NULL;
        LS_TRY_GOTO(result->status, ls_reader_next(reader, &batch, &more, error), done);
        for (int32_t token = 0; more && token < batch->offsets[batch->samples]; token++)
            result->ids += (uint64_t)batch->ids[token] * ++place;
    }
done:
    ls_reader_free(reader);
    ls_sampler_free(sampler);
    ls_dataset_free(dataset);
    ls_labels_free(labels);
}

/* The same in a child process, below the given limits (0: none). */
static outcome use_file_limited(const char *path, int thread_count, rlim_t memory, rlim_t file_size)
{
    outcome result = {0};
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        ls_threads *threads = NULL;
        struct rlimit address_space = {memory, memory}, size = {file_size, file_size};
        signal(SIGXFSZ, SIG_IGN);
        if (memory) setrlimit(RLIMIT_AS, &address_space);
        if (file_size) setrlimit(RLIMIT_FSIZE, &size);
        result.status = ls_threads_new(&threads, thread_count, &result.error);
        if (result.status == LS_OK) use_file(path, threads, &result);
        ls_threads_free(threads);
        _exit(write(ends[1], &result, sizeof result) != sizeof result);
    }
    int exit_status = -1;
    close(ends[1]);
    assert_int_equal(read(ends[0], &result, sizeof result), sizeof result);
    close(ends[0]);
    assert_int_equal(waitpid(child, &exit_status, 0), child);
    assert_int_equal(exit_status, 0);
    return result;
}

/* Long rows of one repeated block, so that writing and reading them takes little time. */
static void write_large(const char *path)
{
    static char row[64 << 10];
    size_t used = 0;
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("label\ttext\n", file);
    for (uint32_t number = 0; used + 80 < sizeof row; number++) {
        char text[64];
        fixture_text(number, 0, text);
        used += (size_t)snprintf(row + used, sizeof row - used, "%s ", text);
    }
    for (uint32_t number = 0; ftell(file) < FILE_BYTES; number++) {
        size_t start = fixture_draw(number, 1, 32 << 10), length = 1 + fixture_draw(number, 2, 800);
        fprintf(file, "%s\tx%.*s\n", number % 3 ? "yes" : "no", (int)length, row + start);
    }
    assert_int_equal(fclose(file), 0);
}

static void a_file_may_be_twice_the_memory(void **state)
{
    (void)state;
#ifdef SANITIZED
    skip();
#endif
    const char *path = test_path(folder, "large.tsv");
    write_large(path);
    outcome free_run = use_file_limited(path, 2, 0, 0);
    assert_ok(free_run.status, free_run.error);
    outcome limited = use_file_limited(path, 2, MEMORY_BYTES, 0);
    assert_ok(limited.status, limited.error);
    assert_string_equal(free_run.digest, limited.digest);
    assert_int_equal(free_run.ids, limited.ids);
}

static void a_full_disk_is_reported(void **state)
{
    (void)state;
    static const char *const names[] = {"no", "yes"};
    const char *path = test_path(folder, "small.tsv");
    fixture_write_tsv(path, 20000, names, 2);
    outcome result = use_file_limited(path, 1, 0, 400000);
    assert_int_equal(result.status, LS_IO);
    assert_non_null(strstr(result.error.text, "lockstep-tokens-"));
    assert_non_null(strstr(result.error.text, "make room"));
}

static int fail_at(void *context, size_t bytes)
{
    (void)bytes;
    return __atomic_sub_fetch((long *)context, 1, __ATOMIC_RELAXED) == 0;
}

/* Every allocation in turn: an error that says so, and nothing left behind. */
static void failing_allocations_are_survived(void **state)
{
    (void)state;
    static const char *const names[] = {"no", "yes", "perhaps"};
    const char *path = test_path(folder, "tiny.tsv");
    fixture_write_tsv(path, 150, names, 3);
    for (int thread_count = 1; thread_count <= 2; thread_count++) {
        ls_threads *threads = NULL;
        ls_error error;
        assert_ok(ls_threads_new(&threads, thread_count, &error), error);
        size_t held = ls_allocated_bytes();
        long failed = 0;
        for (bool done = false; !done; failed++) {
            long countdown = failed + 1;
            outcome result = {0};
            ls_set_allocation_hook(fail_at, &countdown);
            use_file(path, threads, &result);
            ls_set_allocation_hook(NULL, NULL);
            done = result.status == LS_OK;
            if (!done) {
                assert_int_equal(result.status, LS_NO_MEMORY);
                assert_non_null(strstr(result.error.text, "out of memory"));
            }
            assert_int_equal(ls_allocated_bytes(), held);
        }
        assert_true(failed > 50);
        ls_threads_free(threads);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_may_be_twice_the_memory),
        cmocka_unit_test(a_full_disk_is_reported),
        cmocka_unit_test(failing_allocations_are_survived),
    };
    return cmocka_run_group_tests_name("data limits", tests, set_up, tear_down);
}

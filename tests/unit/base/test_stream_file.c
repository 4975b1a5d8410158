/* Files that are streamed to the disk: their bytes and checksums, whatever the sizes, with and
 * without a thread; and a write that fails. */
#include "testing.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "base/stream_file.h"

enum { PAGE = 4096, BLOCK = 1 << 20, MOST = 5 * BLOCK + PAGE + 1 };

static char *folder;
static unsigned char *bytes; /* [MOST] */
static ls_stream *stream;

static int setup(void **state)
{
    (void)state;
    ls_error error;
    folder = test_folder();
    bytes = malloc(MOST);
    assert_non_null(bytes);
    uint32_t number = 1;
    for (int i = 0; i < MOST; i++)
        bytes[i] = (unsigned char)((number = number * 1664525u + 1013904223u) >> 24);
    assert_ok(ls_stream_new(&stream, &error), error);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ls_stream_free(stream);
    free(bytes);
    test_folder_remove(folder);
    return 0;
}

/* Hand on `count` bytes in pieces, by copying and in place. */
static ls_status hand_on(size_t count, size_t piece, ls_error *error)
{
    for (size_t done = 0; done < count;) {
        size_t now = count - done < piece ? count - done : piece;
        void *room;
        LS_TRY(ls_stream_write(stream, bytes + done, now, error));
        done += now;
        now = count - done < piece ? count - done : piece;
        if (now == 0) break;
        LS_TRY(ls_stream_room(stream, &room, &now, error));
        memcpy(room, bytes + done, now);
        LS_TRY(ls_stream_filled(stream, now, error));
        done += now;
    }
    return LS_OK;
}

static void stream_one(const char *path, size_t count, size_t piece)
{
    ls_error error;
    ls_sized_file file;
    ls_file back;
    char text[LS_CHECKSUM_CHARACTERS], wanted[LS_CHECKSUM_CHARACTERS];
    ls_checksum_part parts[2] = {{.offset = 0, .bytes = count / 3},
                                 {.offset = count / 2, .bytes = count - count / 2}};
    ls_checksum_part again[2] = {parts[0], parts[1]};
    assert_ok(ls_sized_file_create(&file, path, count, &error), error);
    ls_stream_begin(stream, &file, parts, 2);
    assert_ok(hand_on(count, piece, &error), error);
    assert_ok(ls_stream_end(stream, text, &error), error);
    assert_ok(ls_sized_file_finish(&file, &error), error);
    ls_sized_file_deinit(&file);

    assert_ok(ls_file_open(&back, path, &error), error);
    assert_int_equal(back.bytes, count);
    unsigned char *found = malloc(count + 1);
    assert_non_null(found);
    assert_ok(ls_file_read_at(&back, found, count, 0, &error), error);
    assert_memory_equal(found, bytes, count);
    free(found);
    assert_ok(ls_checksum_file(&back, wanted, again, 2, &error), error);
    assert_string_equal(text, wanted);
    for (int i = 0; i < 2; i++)
        assert_string_equal(parts[i].text, again[i].text);
    ls_file_close(&back);
    assert_int_equal(remove(path), 0);
}

static void all_bytes_arrive(void **state)
{
    (void)state;
    static const size_t sizes[] = {1,     PAGE - 1,  PAGE,      PAGE + 1,  BLOCK - 1,
                                   BLOCK, BLOCK + 1, 2 * BLOCK, 4 * BLOCK, MOST};
    const char *path = test_path(folder, "streamed");
    for (int threaded = 0; threaded < 2; threaded++) {
        if (threaded) ls_stream_start(stream);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            stream_one(path, sizes[i], 100003);
            stream_one(path, sizes[i], MOST);
        }
        ls_stream_stop(stream);
    }
}

static void a_failed_write_is_told(void **state)
{
    (void)state;
    struct rlimit former, limit;
    char text[LS_CHECKSUM_CHARACTERS];
    const char *path = test_path(folder, "limited");
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &former), 0);
    for (int threaded = 0; threaded < 2; threaded++) {
        ls_error error = {0};
        ls_sized_file file;
        if (threaded) ls_stream_start(stream);
        assert_ok(ls_sized_file_create(&file, path, 0, &error), error);
        limit = (struct rlimit){2 * BLOCK, former.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        ls_stream_begin(stream, &file, NULL, 0);
        (void)hand_on(MOST, 100003, &error);
        ls_status status = ls_stream_end(stream, text, &error);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &former), 0);
        ls_stream_stop(stream);
        assert_int_equal(status, LS_IO);
        assert_non_null(strstr(error.text, "limited: cannot write: File too large"));
        ls_sized_file_deinit(&file);
        assert_int_equal(remove(path), 0);
        /* The next one is not touched by it. */
        stream_one(path, BLOCK + 1, 100003);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_bytes_arrive),
        cmocka_unit_test(a_failed_write_is_told),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

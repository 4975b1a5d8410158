/* Working memory in a file: what is written is read, nothing stays, and what goes wrong is said. */
#include "testing.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/block_file.h"

enum { PAGES = 7, BYTES = PAGES * LS_BLOCK_PAGE };

static char *folder;
static ls_error error;

static int setup(void **state)
{
    (void)state;
    folder = test_folder();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    test_folder_remove(folder);
    return 0;
}

static int entries(const char *path)
{
    int count = 0;
    DIR *files = opendir(path);
    assert_non_null(files);
    while (readdir(files))
        count++;
    closedir(files);
    return count - 2;
}

static void blocks_are_read_as_they_were_written(const char *where, bool direct)
{
    ls_block_file file;
    unsigned char *pages = ls_allocate_pages(BYTES, false), *read = ls_allocate_pages(BYTES, false);
    assert_true(pages && read);
    for (int i = 0; i < BYTES; i++)
        pages[i] = (unsigned char)(i * 31 + i / LS_BLOCK_PAGE);
    assert_ok(ls_block_file_open(&file, where, BYTES, &error), error);
    assert_int_equal(file.bytes, BYTES);
    if (!direct) {
        int flags = fcntl(file.descriptor, F_GETFL);
        assert_int_equal(fcntl(file.descriptor, F_SETFL, flags & ~O_DIRECT), 0);
        file.direct = false;
    }
    assert_true(file.direct == ((fcntl(file.descriptor, F_GETFL) & O_DIRECT) != 0));
    assert_ok(ls_block_file_read(&file, read, BYTES, 0, &error), error);
    for (int i = 0; i < BYTES; i++)
        assert_int_equal(read[i], 0);
    for (int page = PAGES - 1; page >= 0; page--)
        assert_ok(ls_block_file_write(&file, pages + page * LS_BLOCK_PAGE, LS_BLOCK_PAGE,
                                      page * LS_BLOCK_PAGE, &error),
                  error);
    assert_ok(ls_block_file_read(&file, read, BYTES, 0, &error), error);
    assert_memory_equal(read, pages, BYTES);
    assert_int_equal(ls_block_file_read(&file, read, LS_BLOCK_PAGE, BYTES, &error), LS_IO);
    assert_non_null(strstr(error.text, where));
    ls_block_file_close(&file);
    ls_block_file_close(&file);
    ls_free_pages(pages, BYTES);
    ls_free_pages(read, BYTES);
}

/* On a disk and in memory, with and without direct access, which not all file systems have. */
static void what_is_written_is_read(void **state)
{
    (void)state;
    blocks_are_read_as_they_were_written(folder, true);
    blocks_are_read_as_they_were_written(folder, false);
    if (access("/dev/shm", W_OK) == 0) blocks_are_read_as_they_were_written("/dev/shm", true);
}

static void the_file_has_no_name(void **state)
{
    (void)state;
    ls_block_file file;
    int before = entries(folder);
    assert_ok(ls_block_file_open(&file, folder, BYTES, &error), error);
    assert_int_equal(entries(folder), before);
    ls_block_file_close(&file);
}

static void room_is_taken_at_once(void **state)
{
    (void)state;
    ls_block_file file;
    struct rlimit former, limit;
    struct stat taken;
    assert_ok(ls_block_file_open(&file, folder, BYTES, &error), error);
    assert_int_equal(fstat(file.descriptor, &taken), 0);
    assert_true(taken.st_blocks * 512 >= BYTES);
    ls_block_file_close(&file);

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &former), 0);
    limit = former;
    limit.rlim_cur = BYTES - 1;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ls_status status = ls_block_file_open(&file, folder, BYTES, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &former), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(status, LS_IO);
    assert_non_null(strstr(error.text, folder));
    assert_non_null(strstr(error.text, "28672 bytes"));
    assert_int_equal(entries(folder), 0);
}

static void a_folder_that_is_none_is_named(void **state)
{
    (void)state;
    ls_block_file file;
    const char *missing = test_path(folder, "missing");
    assert_int_equal(ls_block_file_open(&file, missing, BYTES, &error), LS_IO);
    assert_non_null(strstr(error.text, missing));
    assert_non_null(strstr(error.text, "No such file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(the_file_has_no_name),
        cmocka_unit_test(room_is_taken_at_once),
        cmocka_unit_test(a_folder_that_is_none_is_named),
    };
    return cmocka_run_group_tests_name("base/block_file", tests, setup, teardown);
}

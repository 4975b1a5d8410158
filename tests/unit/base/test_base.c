/* base/: what every other folder leans on. */
#include "testing.h"

#include <string.h>

#include "base/alloc.h"
#include "base/files.h"
#include "base/random.h"
#include "base/text.h"
#include "base/threads.h"

/* Known answers of Philox4x32-10 from the Random123 distribution. */
static void philox_matches_published_answers(void **state)
{
    (void)state;
    ls_philox_block zero = ls_philox((ls_philox_key){{0, 0}}, (ls_philox_block){{0, 0, 0, 0}});
    assert_int_equal(zero.word[0], 0x6627e8d5);
    assert_int_equal(zero.word[3], 0x9b00dbd8);
    ls_philox_block ones = ls_philox((ls_philox_key){{0xffffffff, 0xffffffff}},
                                     (ls_philox_block){{~0u, ~0u, ~0u, ~0u}});
    assert_int_equal(ones.word[0], 0x408f276d);
}

static void count_part(void *context, int64_t part, int thread)
{
    (void)thread;
    __atomic_fetch_add(&((int *)context)[part], 1, __ATOMIC_RELAXED);
}

static void every_part_runs_once(void **state)
{
    (void)state;
    ls_error error;
    for (int count = 1; count <= 4; count++) {
        ls_threads *threads = NULL;
        assert_ok(ls_threads_new(&threads, count, &error), error);
        for (int64_t parts = 0; parts < 40; parts++) {
            int seen[40] = {0};
            ls_threads_run(threads, parts, count_part, seen);
            for (int64_t part = 0; part < 40; part++)
                assert_int_equal(seen[part], part < parts);
        }
        ls_threads_free(threads);
    }
}

static void a_file_appears_only_when_finished(void **state)
{
    (void)state;
    ls_error error;
    char *folder = test_folder();
    char *path = NULL;
    assert_ok(ls_path_join(&path, folder, "out.bin", &error), error);
    ls_writer writer;
    assert_ok(ls_writer_open(&writer, path, &error), error);
    assert_ok(ls_writer_write(&writer, "abc", 3, &error), error);
    assert_false(ls_path_exists(path));
    assert_ok(ls_writer_finish(&writer, &error), error);
    char *bytes = NULL;
    size_t count = 0;
    assert_ok(ls_file_read(&bytes, &count, path, 100, &error), error);
    assert_int_equal(count, 3);
    assert_string_equal(bytes, "abc");
    ls_free(bytes);
    assert_int_equal(ls_file_read(&bytes, &count, path, 2, &error), LS_INVALID);
    assert_non_null(strstr(error.text, "out.bin"));
    ls_free(path);
    test_folder_remove(folder);
}

static void json_strings_are_escaped(void **state)
{
    (void)state;
    ls_error error;
    ls_text text = {0};
    assert_ok(ls_text_json_string(&text, "a\"b\\c\n\x01", &error), error);
    assert_string_equal(text.data, "\"a\\\"b\\\\c\\n\\u0001\"");
    ls_text_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_matches_published_answers),
        cmocka_unit_test(every_part_runs_once),
        cmocka_unit_test(a_file_appears_only_when_finished),
        cmocka_unit_test(json_strings_are_escaped),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}

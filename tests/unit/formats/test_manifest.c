/* manifest.json: everything that can be wrong with a folder is found, and named. */
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "formats/manifest.h"
#include "formats/safetensors.h"

static char *folder;
static const char *const files[] = {"a.txt", "empty", "x.safetensors"};

static void write_tensors(const char *path)
{
    ls_error error;
    ls_safetensors_writer *writer = NULL;
    float values[6] = {1, 2, 3, 4, 5, 6};
    ls_safetensors_entry entries[] = {
        {.name = "first", .dtype = LS_SAFETENSORS_F32, .rank = 1, .shape = {4}},
        {.name = "nothing", .dtype = LS_SAFETENSORS_F32, .rank = 1, .shape = {0}},
        {.name = "second", .dtype = LS_SAFETENSORS_F32, .rank = 2, .shape = {1, 2}}};
    size_t next;
    assert_ok(ls_safetensors_writer_new(&writer, path, entries, 3, &error), error);
    while (ls_safetensors_writer_next(writer, &next))
        assert_ok(ls_safetensors_writer_write(writer, next, values + (next ? 4 : 0), next ? 8 : 16,
                                              &error),
                  error);
    assert_ok(ls_safetensors_writer_finish(writer, &error), error);
    ls_safetensors_writer_free(writer);
}

static int setup(void **state)
{
    ls_error error;
    (void)state;
    folder = test_folder();
    test_write_file(test_path(folder, "a.txt"), "some text\n", 10);
    test_write_file(test_path(folder, "empty"), "", 0);
    write_tensors(test_path(folder, "x.safetensors"));
    assert_ok(ls_manifest_write(folder, 7, files, 3, NULL, 0, &error), error);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    test_folder_remove(folder);
    return 0;
}

static void what_was_written_is_as_it_was(void **state)
{
    (void)state;
    ls_error error;
    ls_manifest_report report;
    assert_ok(ls_manifest_check(folder, files, 3, NULL, &report, &error), error);
    assert_int_equal(report.step, 7);
    assert_int_equal(report.files, 3);
    assert_int_equal(report.tensors, 3);
    /* What the manifest does not list is not its business. */
    test_write_file(test_path(folder, "more"), "x", 1);
    assert_ok(ls_manifest_check(folder, NULL, 0, NULL, NULL, &error), error);
}

static void refused(const char *text)
{
    ls_error error = {0};
    ls_status status = ls_manifest_check(folder, files, 3, NULL, NULL, &error);
    if (status != LS_INVALID || !strstr(error.text, text))
        fail_msg("wanted '%s', got %d: %s", text, status, error.text);
}

static void flip_at(const char *name, long offset)
{
    FILE *file = fopen(test_path(folder, name), "r+");
    assert_non_null(file);
    fseek(file, offset, offset < 0 ? SEEK_END : SEEK_SET);
    int byte = fgetc(file);
    fseek(file, -1, SEEK_CUR);
    fputc(byte ^ 16, file);
    assert_int_equal(fclose(file), 0);
}

static void damage_is_named(void **state)
{
    (void)state;
    flip_at("a.txt", 3);
    refused("a.txt: has checksum");
    test_write_file(test_path(folder, "a.txt"), "some text\n\n", 11);
    refused("a.txt: has 11 bytes, the manifest says 10");
    test_write_file(test_path(folder, "empty"), "x", 1);
    test_write_file(test_path(folder, "a.txt"), "some text\n", 10);
    refused("empty: has 1 bytes, the manifest says 0");
}

static void the_damaged_tensor_is_named(void **state)
{
    (void)state;
    flip_at("x.safetensors", -1);
    refused("x.safetensors: tensor second has checksum");
    flip_at("x.safetensors", -9);
    refused("x.safetensors: tensor first has checksum");
}

static void what_is_missing_is_named(void **state)
{
    (void)state;
    unlink(test_path(folder, "x.safetensors"));
    refused("x.safetensors: the file is missing");
    unlink(test_path(folder, "manifest.json"));
    refused("manifest.json: the file is missing");
}

static void a_manifest_that_is_none_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"", "manifest.json"},
        {"[]", "manifest.json"},
        {"{}", "key 'format_version': is missing"},
        {"{\"format_version\": 2, \"step\": 7, \"files\": {}}", "format_version"},
        {"{\"format_version\": 1, \"step\": -1, \"files\": {}}", "step"},
        {"{\"format_version\": 1, \"step\": 7, \"files\": {}}", "key 'files.a.txt': is missing"},
        {"{\"format_version\": 1, \"step\": 7, \"files\": {\"a.txt\": {}, \"empty\": {}, "
         "\"x.safetensors\": {}}}",
         "bytes"},
        {"{\"format_version\": 1, \"step\": 7, \"files\": {\"a.txt\": {\"bytes\": 10, "
         "\"xxh3_128\": "
         "3}, \"empty\": {}, \"x.safetensors\": {}}}",
         "xxh3_128"},
        {"{\"format_version\": 1, \"step\": 7, \"files\": {\"../a.txt\": {}, \"a.txt\": {}, "
         "\"empty\": "
         "{}, \"x.safetensors\": {}}}",
         "is not the name of a file"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_write_file(test_path(folder, "manifest.json"), cases[i].text, strlen(cases[i].text));
        refused(cases[i].said);
    }
}

static int fail_in_turn(void *context, size_t bytes)
{
    (void)bytes;
    return (*(long *)context)-- == 0;
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    ls_error error;
    for (int write = 0; write < 2; write++) {
        ls_status status = LS_NO_MEMORY;
        for (long turn = 0; status != LS_OK; turn++) {
            long left = turn;
            size_t held = ls_allocated_bytes();
            assert_true(turn < 10000);
            ls_set_allocation_hook(fail_in_turn, &left);
            status = write ? ls_manifest_write(folder, 7, files, 3, NULL, 0, &error)
                           : ls_manifest_check(folder, files, 3, NULL, NULL, &error);
            ls_set_allocation_hook(NULL, NULL);
            if (ls_allocated_bytes() != held)
                fail_msg("write %d, allocation %ld: still held", write, turn);
            if (status != LS_OK) assert_int_equal(status, LS_NO_MEMORY);
        }
    }
}

int main(void)
{
#define IN_A_FOLDER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(what_was_written_is_as_it_was),      IN_A_FOLDER(damage_is_named),
        IN_A_FOLDER(the_damaged_tensor_is_named),        IN_A_FOLDER(what_is_missing_is_named),
        IN_A_FOLDER(a_manifest_that_is_none_is_refused), IN_A_FOLDER(each_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("manifest", tests, NULL, NULL);
}

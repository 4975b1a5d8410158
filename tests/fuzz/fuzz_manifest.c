/* Any bytes as the manifest.json of a small folder; or, if they begin with no brace, as the
 * safetensors file beside the manifest that is right, so that what is damaged has to be named. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "formats/manifest.h"
#include "formats/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FILES = 3, ROOM = 4096 };
static const char *const files[FILES] = {"a.txt", "empty", "x.safetensors"};
static const char *const all[] = {"a.txt", "empty", "x.safetensors", "manifest.json"};
static char folder[64], manifest[ROOM], tensors[ROOM];
static size_t manifest_bytes, tensors_bytes;

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const void *bytes, size_t count)
{
    FILE *file = fopen(path_of(name), "wb");
    if (!file || fwrite(bytes, 1, count, file) != count || fclose(file) != 0) abort();
}

static size_t read_file(const char *name, char *bytes)
{
    FILE *file = fopen(path_of(name), "rb");
    size_t count = file ? fread(bytes, 1, ROOM, file) : 0;
    if (count == 0 || count == ROOM || fclose(file) != 0) abort();
    return count;
}

static void remove_all(void)
{
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        unlink(path_of(all[i]));
    rmdir(folder);
}

static void write_tensors(void)
{
    static const float values[6] = {1, 2, 3, 4, 5, 6};
    ls_error error;
    ls_safetensors_writer *writer = NULL;
    ls_safetensors_entry entries[] = {
        {.name = "first", .dtype = LS_SAFETENSORS_F32, .rank = 1, .shape = {4}},
        {.name = "second", .dtype = LS_SAFETENSORS_F32, .rank = 2, .shape = {1, 2}}};
    size_t next;
    if (ls_safetensors_writer_new(&writer, path_of("x.safetensors"), entries, 2, &error) != LS_OK)
        abort();
    while (ls_safetensors_writer_next(writer, &next))
        if (ls_safetensors_writer_write(writer, next, values + (next ? 4 : 0), next ? 8 : 16,
                                        &error) != LS_OK)
            abort();
    if (ls_safetensors_writer_finish(writer, &error) != LS_OK) abort();
    ls_safetensors_writer_free(writer);
}

static void prepare(void)
{
    ls_error error;
    snprintf(folder, sizeof folder, "%s/fuzz-manifest-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(folder)) abort();
    atexit(remove_all);
    write_file("a.txt", "some text\n", 10);
    write_file("empty", "", 0);
    write_tensors();
    if (ls_manifest_write(folder, 7, files, FILES, NULL, 0, &error) != LS_OK) abort();
    manifest_bytes = read_file("manifest.json", manifest);
    tensors_bytes = read_file("x.safetensors", tensors);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!*folder) prepare();
    ls_error error = {0};
    ls_manifest_report report = {0};
    bool is_manifest = size == 0 || *data == '{', same = false;
    if (is_manifest) {
        write_file("manifest.json", data, size);
    } else {
        write_file("x.safetensors", data, size);
        same = size == tensors_bytes && memcmp(data, tensors, size) == 0;
    }
    ls_status status = ls_manifest_check(folder, files, FILES, NULL, &report, &error);
    if (status == LS_OK && (report.step < 0 || report.files < FILES)) abort();
    if (status == LS_OK && !is_manifest && !same) abort();
    if (status != LS_OK && (same || !strstr(error.text, folder))) abort();
    if (is_manifest)
        write_file("manifest.json", manifest, manifest_bytes);
    else
        write_file("x.safetensors", tensors, tensors_bytes);
    return 0;
}

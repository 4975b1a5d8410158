#include "formats/manifest.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checksum.h"
#include "base/files.h"
#include "formats/json.h"
#include "formats/safetensors.h"

enum { MANIFEST_CAP = 1 << 28 };

/* One file, read: its checksum, and those of its tensors in the order of their offsets. */
typedef struct measured_file {
    uint64_t bytes;
    char text[LS_CHECKSUM_CHARACTERS];
    ls_safetensors *tensors; /* NULL: it has none */
    const ls_safetensors_tensor **order;
    ls_checksum_part *parts;
    size_t count;
} measured_file;

static void measured_deinit(measured_file *file)
{
    ls_safetensors_free(file->tensors);
    ls_free(file->order);
    ls_free(file->parts);
}

static int by_offset(const void *left, const void *right)
{
    const ls_safetensors_tensor *a = *(const ls_safetensors_tensor *const *)left;
    const ls_safetensors_tensor *b = *(const ls_safetensors_tensor *const *)right;
    if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
    return strcmp(a->name, b->name);
}

static bool has_tensors(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && strcmp(dot, ".safetensors") == 0;
}

static ls_status list_tensors(measured_file *file, const char *path, ls_error *error)
{
    LS_TRY(ls_safetensors_open(&file->tensors, path, error));
    file->count = ls_safetensors_count(file->tensors);
    LS_TRY(LS_NEW(file->order, file->count + 1, "tensors", error));
    LS_TRY(LS_NEW(file->parts, file->count + 1, "tensors", error));
    for (size_t i = 0; i < file->count; i++)
        file->order[i] = ls_safetensors_at(file->tensors, i);
    qsort(file->order, file->count, sizeof *file->order, by_offset);
    for (size_t i = 0; i < file->count; i++)
        file->parts[i] =
            (ls_checksum_part){.offset = file->order[i]->offset, .bytes = file->order[i]->bytes};
    return LS_OK;
}

/* `tensors`: those of a safetensors file too. */
static ls_status measure(measured_file *out, const char *path, bool tensors, ls_error *error)
{
    ls_file file;
    *out = (measured_file){0};
    LS_TRY(ls_file_open(&file, path, error));
    out->bytes = file.bytes;
    ls_status status = tensors ? list_tensors(out, path, error) : LS_OK;
    if (status == LS_OK) status = ls_checksum_file(&file, out->text, out->parts, out->count, error);
    ls_file_close(&file);
    return status;
}

/* --- writing --------------------------------------------------------------------------------- */

/* Takes the reference to `value`; jansson says no to a NULL one. */
static ls_status set(json_t *object, const char *key, json_t *value, ls_error *error)
{
    if (json_object_set_new(object, key, value) == 0) return LS_OK;
    return ls_fail(error, LS_NO_MEMORY, "out of memory: " LS_MANIFEST_NAME);
}

static ls_status describe(json_t *files, const ls_manifest_file *file, ls_error *error)
{
    json_t *entry = json_object(), *tensors;
    LS_TRY(set(files, file->name, entry, error));
    LS_TRY(set(entry, "bytes", json_integer((json_int_t)file->bytes), error));
    LS_TRY(set(entry, "xxh3_128", json_string(file->checksum), error));
    if (!has_tensors(file->name)) return LS_OK;
    tensors = json_object();
    LS_TRY(set(entry, "tensors", tensors, error));
    for (size_t i = 0; i < file->count; i++)
        LS_TRY(set(tensors, file->tensors[i], json_string(file->parts[i].text), error));
    return LS_OK;
}

static ls_status read_and_describe(json_t *files, const char *folder, const char *name,
                                   ls_error *error)
{
    char *path = NULL;
    const char **tensors = NULL;
    measured_file file = {0};
    ls_status status;
    LS_TRY_GOTO(status, ls_path_join(&path, folder, name, error), done);
    LS_TRY_GOTO(status, measure(&file, path, has_tensors(name), error), done);
    LS_TRY_GOTO(status, LS_NEW(tensors, file.count + 1, "tensors", error), done);
    for (size_t i = 0; i < file.count; i++)
        tensors[i] = file.order[i]->name;
    const ls_manifest_file found = {name, file.bytes, file.text, tensors, file.parts, file.count};
    status = describe(files, &found, error);
done:
    measured_deinit(&file);
    ls_free(tensors);
    ls_free(path);
    return status;
}

static ls_status describe_all(json_t *files, const char *folder, const char *const *names,
                              size_t count, const ls_manifest_file *known, size_t known_count,
                              ls_error *error)
{
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;
        while (k < known_count && strcmp(known[k].name, names[i]) != 0)
            k++;
        if (k < known_count)
            LS_TRY(describe(files, &known[k], error));
        else
            LS_TRY(read_and_describe(files, folder, names[i], error));
    }
    return LS_OK;
}

ls_status ls_manifest_write(const char *folder, int64_t step, const char *const *names,
                            size_t count, const ls_manifest_file *known, size_t known_count,
                            ls_error *error)
{
    char *path = NULL;
    json_t *document = NULL, *files = NULL;
    ls_status status;
    LS_TRY(ls_json_new_object(&document, error));
    LS_TRY_GOTO(status, set(document, "format_version", json_integer(LS_MANIFEST_VERSION), error),
                done);
    LS_TRY_GOTO(status, set(document, "step", json_integer(step), error), done);
    files = json_object();
    LS_TRY_GOTO(status, set(document, "files", files, error), done);
    LS_TRY_GOTO(status, describe_all(files, folder, names, count, known, known_count, error), done);
    LS_TRY_GOTO(status, ls_path_join(&path, folder, LS_MANIFEST_NAME, error), done);
    status = ls_json_write(document, path, error);
done:
    ls_json_free(document);
    ls_free(path);
    return status;
}

/* --- checking -------------------------------------------------------------------------------- */

/* Which tensor it is: a file's checksum alone is a poor answer. */
static ls_status name_damage(const char *path, const ls_json_view *entry, ls_error *error)
{
    measured_file file;
    ls_json_view tensors;
    ls_status status = measure(&file, path, true, error);
    if (status == LS_OK)
        status = ls_json_get_object(entry, "tensors", LS_JSON_REQUIRED, &tensors, error);
    for (size_t i = 0; status == LS_OK && i < file.count; i++) {
        const char *wanted = "";
        status =
            ls_json_get_string(&tensors, file.order[i]->name, LS_JSON_OPTIONAL, &wanted, error);
        if (status == LS_OK && strcmp(wanted, file.parts[i].text) != 0)
            status = ls_fail(error, LS_INVALID,
                             "%s: tensor %s has checksum %s, the manifest says %s: the file is "
                             "damaged",
                             path, file.order[i]->name, file.parts[i].text,
                             *wanted ? wanted : "nothing of it");
    }
    measured_deinit(&file);
    return status;
}

/* A file that the manifest lists, and what was found. */
typedef struct listed_file {
    const char *name;
    ls_json_view entry;
    char *path;
    measured_file found;
    ls_status status; /* of reading it */
    ls_error error;
} listed_file;

static void read_listed(void *context, int64_t index, int thread)
{
    listed_file *file = (listed_file *)context + index;
    (void)thread;
    if (ls_path_exists(file->path))
        file->status = measure(&file->found, file->path, false, &file->error);
    else
        file->status = ls_fail(&file->error, LS_INVALID, "%s: the file is missing", file->path);
}

static ls_status compare(const listed_file *file, ls_manifest_report *report, ls_error *error)
{
    int64_t bytes;
    const char *wanted, *path = file->path;
    const ls_json_view *entry = &file->entry;
    LS_TRY(ls_json_get_integer(entry, "bytes", LS_JSON_REQUIRED, 0, INT64_MAX, &bytes, error));
    LS_TRY(ls_json_get_string(entry, "xxh3_128", LS_JSON_REQUIRED, &wanted, error));
    if (file->status != LS_OK) {
        if (error) *error = file->error;
        return file->status;
    }
    if (file->found.bytes != (uint64_t)bytes)
        return ls_fail(error, LS_INVALID,
                       "%s: has %" PRIu64 " bytes, the manifest says %" PRId64
                       ": the file was cut or is another one",
                       path, file->found.bytes, bytes);
    if (strcmp(file->found.text, wanted) != 0) {
        if (has_tensors(file->name)) LS_TRY(name_damage(path, entry, error));
        return ls_fail(error, LS_INVALID,
                       "%s: has checksum %s, the manifest says %s: the file is damaged or "
                       "another one",
                       path, file->found.text, wanted);
    }
    report->files++;
    report->bytes += file->found.bytes;
    report->tensors += json_object_size(ls_json_find(entry, "tensors"));
    return LS_OK;
}

/* Names are those of files of this folder: "../x" is none. */
static ls_status check_name(const ls_json_view *files, const char *name, ls_error *error)
{
    if (*name && !strchr(name, '/') && strcmp(name, "..") != 0 && strcmp(name, ".") != 0)
        return LS_OK;
    return ls_json_fail(files, name, error, LS_INVALID, "is not the name of a file");
}

static ls_status list(const ls_json_view *files, const char *folder, listed_file *listed,
                      ls_error *error)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)files->object, name, value)
    {
        listed->name = name;
        LS_TRY(check_name(files, name, error));
        LS_TRY(ls_json_get_object(files, name, LS_JSON_REQUIRED, &listed->entry, error));
        LS_TRY(ls_path_join(&listed->path, folder, name, error));
        listed++;
    }
    return LS_OK;
}

static ls_status check_files(const ls_json_view *files, const char *folder, ls_threads *threads,
                             ls_manifest_report *report, ls_error *error)
{
    listed_file *listed = NULL;
    size_t count = json_object_size(files->object);
    LS_TRY(LS_NEW(listed, count + 1, "files of " LS_MANIFEST_NAME, error));
    ls_status status = list(files, folder, listed, error);
    if (status == LS_OK && threads) ls_threads_run(threads, (int64_t)count, read_listed, listed);
    for (size_t i = 0; i < count && status == LS_OK; i++) {
        if (!threads) read_listed(listed, (int64_t)i, 0);
        status = compare(&listed[i], report, error);
    }
    for (size_t i = 0; i < count; i++) {
        measured_deinit(&listed[i].found);
        ls_free(listed[i].path);
    }
    ls_free(listed);
    return status;
}

static ls_status check_all(const ls_json_view *root, const char *folder, const char *const *needed,
                           size_t count, ls_threads *threads, ls_manifest_report *report,
                           ls_error *error)
{
    ls_json_view files, entry;
    int64_t version;
    LS_TRY(ls_json_get_integer(root, "format_version", LS_JSON_REQUIRED, 1, LS_MANIFEST_VERSION,
                               &version, error));
    LS_TRY(ls_json_get_integer(root, "step", LS_JSON_REQUIRED, 0, INT64_MAX, &report->step, error));
    LS_TRY(ls_json_get_object(root, "files", LS_JSON_REQUIRED, &files, error));
    for (size_t i = 0; i < count; i++)
        LS_TRY(ls_json_get_object(&files, needed[i], LS_JSON_REQUIRED, &entry, error));
    return check_files(&files, folder, threads, report, error);
}

ls_status ls_manifest_check(const char *folder, const char *const *needed, size_t count,
                            ls_threads *threads, ls_manifest_report *report, ls_error *error)
{
    char *path = NULL;
    json_t *document = NULL;
    ls_json_view root;
    ls_manifest_report own = {0};
    LS_TRY(ls_path_join(&path, folder, LS_MANIFEST_NAME, error));
    ls_status status = LS_OK;
    if (!ls_path_exists(path)) status = ls_fail(error, LS_INVALID, "%s: the file is missing", path);
    if (status == LS_OK) status = ls_json_load(&document, path, MANIFEST_CAP, error);
    if (status == LS_OK) status = ls_json_view_init(&root, document, path, error);
    if (status == LS_OK) status = check_all(&root, folder, needed, count, threads, &own, error);
    if (report) *report = own;
    ls_json_free(document);
    ls_free(path);
    return status;
}

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

static ls_status describe(json_t *files, const char *folder, const char *name, ls_error *error)
{
    char *path = NULL;
    measured_file file = {0};
    json_t *entry = json_object(), *tensors = NULL;
    ls_status status;
    LS_TRY_GOTO(status, set(files, name, entry, error), done);
    LS_TRY_GOTO(status, ls_path_join(&path, folder, name, error), done);
    LS_TRY_GOTO(status, measure(&file, path, has_tensors(name), error), done);
    LS_TRY_GOTO(status, set(entry, "bytes", json_integer((json_int_t)file.bytes), error), done);
    LS_TRY_GOTO(status, set(entry, "xxh3_128", json_string(file.text), error), done);
    if (has_tensors(name)) {
        tensors = json_object();
        LS_TRY_GOTO(status, set(entry, "tensors", tensors, error), done);
    }
    for (size_t i = 0; i < file.count; i++)
        LS_TRY_GOTO(status,
                    set(tensors, file.order[i]->name, json_string(file.parts[i].text), error),
                    done);
done:
    measured_deinit(&file);
    ls_free(path);
    return status;
}

ls_status ls_manifest_write(const char *folder, int64_t step, const char *const *names,
                            size_t count, ls_error *error)
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
    for (size_t i = 0; i < count; i++)
        LS_TRY_GOTO(status, describe(files, folder, names[i], error), done);
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

static ls_status check_file(const char *path, const char *name, const ls_json_view *entry,
                            ls_manifest_report *report, ls_error *error)
{
    int64_t bytes;
    const char *wanted;
    measured_file file = {0};
    LS_TRY(ls_json_get_integer(entry, "bytes", LS_JSON_REQUIRED, 0, INT64_MAX, &bytes, error));
    LS_TRY(ls_json_get_string(entry, "xxh3_128", LS_JSON_REQUIRED, &wanted, error));
    if (!ls_path_exists(path)) return ls_fail(error, LS_INVALID, "%s: the file is missing", path);
    ls_status status = measure(&file, path, false, error);
    if (status == LS_OK && file.bytes != (uint64_t)bytes)
        status = ls_fail(error, LS_INVALID,
                         "%s: has %" PRIu64 " bytes, the manifest says %" PRId64
                         ": the file was cut or is another one",
                         path, file.bytes, bytes);
    if (status == LS_OK && strcmp(file.text, wanted) != 0) {
        if (has_tensors(name)) status = name_damage(path, entry, error);
        if (status == LS_OK)
            status = ls_fail(error, LS_INVALID,
                             "%s: has checksum %s, the manifest says %s: the file is damaged or "
                             "another one",
                             path, file.text, wanted);
    }
    report->files++;
    report->bytes += file.bytes;
    report->tensors += json_object_size(ls_json_find(entry, "tensors"));
    measured_deinit(&file);
    return status;
}

/* Names are those of files of this folder: "../x" is none. */
static ls_status check_name(const ls_json_view *files, const char *name, ls_error *error)
{
    if (*name && !strchr(name, '/') && strcmp(name, "..") != 0 && strcmp(name, ".") != 0)
        return LS_OK;
    return ls_json_fail(files, name, error, LS_INVALID, "is not the name of a file");
}

static ls_status check_all(const ls_json_view *root, const char *folder, const char *const *needed,
                           size_t count, ls_manifest_report *report, ls_error *error)
{
    ls_json_view files, entry;
    int64_t version;
    LS_TRY(ls_json_get_integer(root, "format_version", LS_JSON_REQUIRED, 1, LS_MANIFEST_VERSION,
                               &version, error));
    LS_TRY(ls_json_get_integer(root, "step", LS_JSON_REQUIRED, 0, INT64_MAX, &report->step, error));
    LS_TRY(ls_json_get_object(root, "files", LS_JSON_REQUIRED, &files, error));
    for (size_t i = 0; i < count; i++)
        LS_TRY(ls_json_get_object(&files, needed[i], LS_JSON_REQUIRED, &entry, error));
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)files.object, name, value)
    {
        char *path = NULL;
        LS_TRY(check_name(&files, name, error));
        LS_TRY(ls_json_get_object(&files, name, LS_JSON_REQUIRED, &entry, error));
        LS_TRY(ls_path_join(&path, folder, name, error));
        ls_status status = check_file(path, name, &entry, report, error);
        ls_free(path);
        LS_TRY(status);
    }
    return LS_OK;
}

ls_status ls_manifest_check(const char *folder, const char *const *needed, size_t count,
                            ls_manifest_report *report, ls_error *error)
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
    if (status == LS_OK) status = check_all(&root, folder, needed, count, &own, error);
    if (report) *report = own;
    ls_json_free(document);
    ls_free(path);
    return status;
}

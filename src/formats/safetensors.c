/* Opening a safetensors file: the header and its checks. Reading elements is in
 * safetensors_read.c, writing in safetensors_write.c. */
#include "formats/safetensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/json.h"
#include "formats/safetensors_internal.h"

static const struct {
    const char *name;
    size_t bytes;
} dtypes[LS_SAFETENSORS_DTYPE_COUNT] = {
#define DTYPE_ROW(name, bytes) {#name, bytes},
    LS_SAFETENSORS_DTYPES(DTYPE_ROW)
#undef DTYPE_ROW
};

const char *ls_safetensors_dtype_name(ls_safetensors_dtype dtype)
{
    return dtypes[dtype].name;
}

size_t ls_safetensors_dtype_bytes(ls_safetensors_dtype dtype)
{
    return dtypes[dtype].bytes;
}

const char *ls_safetensors_shape_text(const ls_safetensors_tensor *tensor, char *into, size_t bytes)
{
    size_t used = (size_t)snprintf(into, bytes, "[");
    for (int axis = 0; axis < tensor->rank && used < bytes; axis++)
        used += (size_t)snprintf(into + used, bytes - used, "%s%" PRId64, axis ? ", " : "",
                                 tensor->shape[axis]);
    if (used < bytes) snprintf(into + used, bytes - used, "]");
    return into;
}

bool ls_safetensors_size(ls_safetensors_tensor *tensor)
{
    int64_t elements = 1, bytes;
    for (int axis = 0; axis < tensor->rank; axis++)
        if (__builtin_mul_overflow(elements, tensor->shape[axis], &elements)) return false;
    if (__builtin_mul_overflow(elements, (int64_t)dtypes[tensor->dtype].bytes, &bytes))
        return false;
    tensor->elements = elements;
    tensor->bytes = (uint64_t)bytes;
    return true;
}

/* --- one entry of the header ----------------------------------------------------------------- */

static ls_status parse_dtype(const ls_json_view *entry, ls_safetensors_tensor *tensor,
                             ls_error *error)
{
    const char *name = NULL;
    LS_TRY(ls_json_get_string(entry, "dtype", LS_JSON_REQUIRED, &name, error));
    for (int i = 0; i < LS_SAFETENSORS_DTYPE_COUNT; i++) {
        if (strcmp(dtypes[i].name, name) != 0) continue;
        tensor->dtype = (ls_safetensors_dtype)i;
        return LS_OK;
    }
    return ls_json_fail(
        entry, "dtype", error, LS_UNSUPPORTED,
        "'%.40s' is no dtype that is known here; save the model as F32, F16 or BF16", name);
}

/* An array of whole numbers >= 0, at most `most` of them. */
static ls_status parse_counts(const ls_json_view *entry, const char *key, size_t most, int64_t *out,
                              size_t *count, ls_error *error)
{
    const json_t *array = NULL;
    LS_TRY(ls_json_get_array(entry, key, LS_JSON_REQUIRED, &array, error));
    *count = json_array_size(array);
    if (*count > most)
        return ls_json_fail(entry, key, error, LS_UNSUPPORTED, "has %zu numbers, at most %zu go",
                            *count, most);
    for (size_t i = 0; i < *count; i++) {
        const json_t *number = json_array_get(array, i);
        if (!json_is_integer(number) || json_integer_value(number) < 0)
            return ls_json_fail(entry, key, error, LS_INVALID,
                                "number %zu is %s, an integer of at least 0 is needed", i,
                                json_is_integer(number) ? "negative" : ls_json_type_name(number));
        out[i] = json_integer_value(number);
    }
    return LS_OK;
}

static ls_status parse_offsets(const ls_safetensors *file, const ls_json_view *entry,
                               ls_safetensors_tensor *tensor, ls_error *error)
{
    int64_t offsets[2];
    size_t count;
    uint64_t data_bytes = file->file.bytes - file->data_start;
    LS_TRY(parse_counts(entry, "data_offsets", 2, offsets, &count, error));
    if (count != 2)
        return ls_json_fail(entry, "data_offsets", error, LS_INVALID,
                            "has %zu numbers, [begin, end] is needed", count);
    uint64_t begin = (uint64_t)offsets[0], end = (uint64_t)offsets[1];
    if (begin > end || end > data_bytes)
        return ls_json_fail(entry, "data_offsets", error, LS_INVALID,
                            "[%" PRIu64 ", %" PRIu64 ") does not lie in the file's %" PRIu64
                            " data bytes; the file is cut short or damaged",
                            begin, end, data_bytes);
    if (end - begin != tensor->bytes) {
        char shape[200];
        return ls_json_fail(entry, "data_offsets", error, LS_INVALID,
                            "hold %" PRIu64 " bytes, but %s of shape %s takes %" PRIu64,
                            end - begin, dtypes[tensor->dtype].name,
                            ls_safetensors_shape_text(tensor, shape, sizeof shape), tensor->bytes);
    }
    tensor->offset = file->data_start + begin;
    return LS_OK;
}

static ls_status parse_tensor(ls_safetensors *file, const ls_json_view *header, const char *name,
                              ls_safetensors_tensor *tensor, ls_error *error)
{
    ls_json_view entry;
    size_t rank;
    LS_TRY(ls_json_get_object(header, name, LS_JSON_REQUIRED, &entry, error));
    LS_TRY(ls_arena_text(&file->arena, &tensor->name, error, "%s", name));
    LS_TRY(parse_dtype(&entry, tensor, error));
    LS_TRY(parse_counts(&entry, "shape", LS_SAFETENSORS_MAX_RANK, tensor->shape, &rank, error));
    tensor->rank = (int)rank;
    if (!ls_safetensors_size(tensor)) {
        char shape[200];
        return ls_json_fail(&entry, "shape", error, LS_INVALID,
                            "%s has more elements than can be counted",
                            ls_safetensors_shape_text(tensor, shape, sizeof shape));
    }
    return parse_offsets(file, &entry, tensor, error);
}

static ls_status parse_metadata(ls_safetensors *file, const ls_json_view *header, ls_error *error)
{
    ls_json_view pairs;
    const char *key;
    json_t *value;
    LS_TRY(ls_json_get_object(header, "__metadata__", LS_JSON_REQUIRED, &pairs, error));
    LS_TRY(LS_NEW(file->metadata, json_object_size(pairs.object), "safetensors metadata", error));
    json_object_foreach((json_t *)pairs.object, key, value)
    {
        metadata_pair *pair = &file->metadata[file->metadata_count++];
        const char *text = NULL;
        LS_TRY(ls_json_get_string(&pairs, key, LS_JSON_REQUIRED, &text, error));
        LS_TRY(ls_arena_text(&file->arena, &pair->key, error, "%s", key));
        LS_TRY(ls_arena_text(&file->arena, &pair->value, error, "%s", text));
    }
    return LS_OK;
}

static ls_status parse_header(ls_safetensors *file, const json_t *root, ls_error *error)
{
    ls_json_view header;
    const char *name;
    json_t *value;
    LS_TRY(ls_json_view_init(&header, root, file->file.path, error));
    LS_TRY(LS_NEW(file->tensors, json_object_size(root), "safetensors header", error));
    json_object_foreach((json_t *)root, name, value)
    {
        if (strcmp(name, "__metadata__") == 0)
            LS_TRY(parse_metadata(file, &header, error));
        else
            LS_TRY(parse_tensor(file, &header, name, &file->tensors[file->count++], error));
    }
    return LS_OK;
}

/* --- the file as a whole --------------------------------------------------------------------- */

static int compare_names(const void *left, const void *right)
{
    const ls_safetensors_tensor *a = left, *b = right;
    return strcmp(a->name, b->name);
}

/* Empty tensors share their place with the next one: they come first. */
static int compare_offsets(const void *left, const void *right)
{
    const ls_safetensors_tensor *a = left, *b = right;
    if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* The tensors cover the data: no overlap, no hole, nothing after the last. Leaves them sorted by
 * name. */
static ls_status check_cover(ls_safetensors *file, ls_error *error)
{
    const char *path = file->file.path, *last = "the header";
    uint64_t at = file->data_start;
    qsort(file->tensors, file->count, sizeof *file->tensors, compare_offsets);
    for (size_t i = 0; i < file->count; i++) {
        const ls_safetensors_tensor *tensor = &file->tensors[i];
        if (tensor->offset < at)
            return ls_fail(error, LS_INVALID,
                           "%s: tensor '%.200s' overlaps '%.200s' at byte %" PRIu64 " of the data",
                           path, tensor->name, last, tensor->offset - file->data_start);
        if (tensor->offset > at)
            return ls_fail(error, LS_INVALID,
                           "%s: a hole of %" PRIu64 " bytes at byte %" PRIu64
                           " of the data, before tensor '%.200s'",
                           path, tensor->offset - at, at - file->data_start, tensor->name);
        at += tensor->bytes;
        last = tensor->name;
    }
    if (at != file->file.bytes)
        return ls_fail(error, LS_INVALID,
                       "%s: %" PRIu64
                       " bytes after '%.200s' belong to no tensor; the file is damaged",
                       path, file->file.bytes - at, last);
    qsort(file->tensors, file->count, sizeof *file->tensors, compare_names);
    return LS_OK;
}

static ls_status read_header_length(ls_safetensors *file, uint64_t *length, ls_error *error)
{
    const ls_file *source = &file->file;
    unsigned char raw[8];
    if (source->bytes < sizeof raw)
        return ls_fail(error, LS_INVALID,
                       "%s: %" PRIu64 " bytes; a safetensors file has at least 8", source->path,
                       source->bytes);
    LS_TRY(ls_file_read_at(source, raw, sizeof raw, 0, error));
    *length = 0;
    for (int i = 7; i >= 0; i--)
        *length = *length << 8 | raw[i];
    if (*length > LS_SAFETENSORS_MAX_HEADER)
        return ls_fail(error, LS_INVALID,
                       "%s: a header of %" PRIu64
                       " bytes is announced, the limit is %d; this is no safetensors file",
                       source->path, *length, LS_SAFETENSORS_MAX_HEADER);
    if (*length > source->bytes - sizeof raw)
        return ls_fail(error, LS_INVALID,
                       "%s: a header of %" PRIu64 " bytes is announced, the file has %" PRIu64
                       "; it is cut short or no safetensors file",
                       source->path, *length, source->bytes);
    file->data_start = sizeof raw + *length;
    return LS_OK;
}

static ls_status read_header(ls_safetensors *file, ls_error *error)
{
    uint64_t length = 0;
    char *text = NULL;
    json_t *root = NULL;
    ls_status status;
    LS_TRY(read_header_length(file, &length, error));
    LS_TRY(LS_NEW(text, length, "safetensors header", error));
    LS_TRY_GOTO(status, ls_file_read_at(&file->file, text, length, sizeof length, error), done);
    if (length == 0 || text[0] != '{') {
        status =
            ls_fail(error, LS_INVALID, "%s: the header does not start with '{'", file->file.path);
        goto done;
    }
    LS_TRY_GOTO(status, ls_json_parse(&root, text, length, file->file.path, error), done);
    LS_TRY_GOTO(status, parse_header(file, root, error), done);
    status = check_cover(file, error);
done:
    ls_json_free(root);
    ls_free(text);
    return status;
}

ls_status ls_safetensors_open(ls_safetensors **out, const char *path, ls_error *error)
{
    ls_safetensors *file = NULL;
    *out = NULL;
    LS_TRY(LS_NEW(file, 1, "safetensors file", error));
    file->file.descriptor = -1;
    ls_status status = ls_file_open(&file->file, path, error);
    if (status == LS_OK) status = read_header(file, error);
    if (status == LS_OK)
        *out = file;
    else
        ls_safetensors_free(file);
    return status;
}

void ls_safetensors_free(ls_safetensors *file)
{
    if (!file) return;
    ls_file_close(&file->file);
    ls_arena_deinit(&file->arena);
    ls_free(file->tensors);
    ls_free(file->metadata);
    ls_free(file);
}

const char *ls_safetensors_path(const ls_safetensors *file)
{
    return file->file.path;
}

size_t ls_safetensors_count(const ls_safetensors *file)
{
    return file->count;
}

const ls_safetensors_tensor *ls_safetensors_at(const ls_safetensors *file, size_t index)
{
    return &file->tensors[index];
}

const ls_safetensors_tensor *ls_safetensors_find(const ls_safetensors *file, const char *name)
{
    ls_safetensors_tensor key = {.name = name};
    if (file->count == 0) return NULL;
    return bsearch(&key, file->tensors, file->count, sizeof key, compare_names);
}

const char *ls_safetensors_metadata(const ls_safetensors *file, const char *key)
{
    for (size_t i = 0; i < file->metadata_count; i++)
        if (strcmp(file->metadata[i].key, key) == 0) return file->metadata[i].value;
    return NULL;
}

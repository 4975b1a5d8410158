/* Writing a safetensors file with the bytes that the official serializer gives it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "formats/safetensors_internal.h"
#include "formats/utf8.h"

typedef struct planned_tensor {
    ls_safetensors_tensor tensor;
    size_t entry;
} planned_tensor;

struct ls_safetensors_writer {
    ls_writer file;
    ls_arena arena;
    planned_tensor *plan; /* in the file's order */
    size_t count, current;
    uint64_t written; /* bytes of the current tensor */
    ls_text header;   /* length and JSON, until it is written */
    uint64_t file_bytes;
};

/* The order of the official serializer: dtype rank falling, then name. */
static int compare_planned(const void *left, const void *right)
{
    const planned_tensor *a = left, *b = right;
    if (a->tensor.dtype != b->tensor.dtype) return a->tensor.dtype > b->tensor.dtype ? -1 : 1;
    return strcmp(a->tensor.name, b->tensor.name);
}

static int compare_names(const void *left, const void *right)
{
    const planned_tensor *a = left, *b = right;
    return strcmp(a->tensor.name, b->tensor.name);
}

static ls_status plan_tensor(ls_safetensors_writer *writer, size_t index,
                             const ls_safetensors_entry *entry, const char *path, ls_error *error)
{
    planned_tensor *planned = &writer->plan[index];
    ls_safetensors_tensor *tensor = &planned->tensor;
    planned->entry = index;
    LS_TRY(ls_arena_text(&writer->arena, &tensor->name, error, "%s", entry->name));
    tensor->dtype = entry->dtype;
    tensor->rank = entry->rank;
    bool valid = entry->rank >= 0 && entry->rank <= LS_SAFETENSORS_MAX_RANK &&
                 strcmp(entry->name, "__metadata__") != 0 &&
                 ls_utf8_valid_prefix(entry->name, strlen(entry->name)) == strlen(entry->name);
    for (int axis = 0; valid && axis < entry->rank; axis++) {
        tensor->shape[axis] = entry->shape[axis];
        valid = entry->shape[axis] >= 0;
    }
    if (!valid || !ls_safetensors_size(tensor))
        return ls_fail(error, LS_INTERNAL,
                       "%s: tensor '%.200s' has a name, rank or shape that cannot be written", path,
                       entry->name);
    return LS_OK;
}

static ls_status print_header(ls_text *header, ls_safetensors_writer *writer, ls_error *error)
{
    uint64_t offset = 0;
    LS_TRY(ls_text_print(header, error, "{\"__metadata__\":{\"format\":\"pt\"}"));
    for (size_t i = 0; i < writer->count; i++) {
        ls_safetensors_tensor *tensor = &writer->plan[i].tensor;
        LS_TRY(ls_text_append(header, ",", 1, error));
        LS_TRY(ls_text_json_string(header, tensor->name, error));
        LS_TRY(ls_text_print(header, error, ":{\"dtype\":\"%s\",\"shape\":[",
                             ls_safetensors_dtype_name(tensor->dtype)));
        for (int axis = 0; axis < tensor->rank; axis++)
            LS_TRY(
                ls_text_print(header, error, "%s%" PRId64, axis ? "," : "", tensor->shape[axis]));
        LS_TRY(ls_text_print(header, error, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", offset,
                             offset + tensor->bytes));
        tensor->offset = offset;
        offset += tensor->bytes;
    }
    LS_TRY(ls_text_append(header, "}", 1, error));
    while (header->length % 8)
        LS_TRY(ls_text_append(header, " ", 1, error));
    writer->file_bytes = header->length + offset;
    return LS_OK;
}

static void pass_empty(ls_safetensors_writer *writer)
{
    while (writer->current < writer->count &&
           writer->written == writer->plan[writer->current].tensor.bytes) {
        writer->current++;
        writer->written = 0;
    }
}

/* Order, offsets and header of the file. */
static ls_status plan_file(ls_safetensors_writer *writer, const char *path,
                           const ls_safetensors_entry *entries, size_t count, ls_error *error)
{
    unsigned char length[8] = {0};
    LS_TRY(LS_NEW(writer->plan, count, "safetensors header", error));
    writer->count = count;
    for (size_t i = 0; i < count; i++)
        LS_TRY(plan_tensor(writer, i, &entries[i], path, error));
    qsort(writer->plan, count, sizeof *writer->plan, compare_names);
    for (size_t i = 1; i < count; i++)
        if (strcmp(writer->plan[i - 1].tensor.name, writer->plan[i].tensor.name) == 0)
            return ls_fail(error, LS_INTERNAL, "%s: tensor '%.200s' is declared twice", path,
                           writer->plan[i].tensor.name);
    qsort(writer->plan, count, sizeof *writer->plan, compare_planned);
    LS_TRY(ls_text_append(&writer->header, length, sizeof length, error));
    LS_TRY(print_header(&writer->header, writer, error));
    uint64_t bytes = writer->header.length - sizeof length;
    if (bytes > LS_SAFETENSORS_MAX_HEADER)
        return ls_fail(error, LS_INTERNAL, "%s: the header takes %llu bytes, the limit is %d", path,
                       (unsigned long long)bytes, LS_SAFETENSORS_MAX_HEADER);
    for (int i = 0; i < 8; i++)
        writer->header.data[i] = (char)(unsigned char)(bytes >> 8 * i);
    return LS_OK;
}

static ls_status start_file(ls_safetensors_writer *writer, const char *path,
                            const ls_safetensors_entry *entries, size_t count, ls_error *error)
{
    LS_TRY(plan_file(writer, path, entries, count, error));
    LS_TRY(ls_writer_open(&writer->file, path, error));
    LS_TRY(ls_writer_write(&writer->file, writer->header.data, writer->header.length, error));
    pass_empty(writer);
    return LS_OK;
}

ls_status ls_safetensors_writer_new(ls_safetensors_writer **out, const char *path,
                                    const ls_safetensors_entry *entries, size_t count,
                                    ls_error *error)
{
    ls_safetensors_writer *writer = NULL;
    *out = NULL;
    LS_TRY(LS_NEW(writer, 1, "safetensors writer", error));
    writer->file.descriptor = -1;
    ls_status status = start_file(writer, path, entries, count, error);
    if (status == LS_OK)
        *out = writer;
    else
        ls_safetensors_writer_free(writer);
    return status;
}

bool ls_safetensors_writer_next(const ls_safetensors_writer *writer, size_t *entry)
{
    if (writer->current == writer->count) return false;
    *entry = writer->plan[writer->current].entry;
    return true;
}

ls_status ls_safetensors_writer_write(ls_safetensors_writer *writer, size_t entry,
                                      const void *bytes, size_t count, ls_error *error)
{
    if (count == 0) return LS_OK;
    const planned_tensor *planned =
        writer->current < writer->count ? &writer->plan[writer->current] : NULL;
    if (!planned || planned->entry != entry || count > planned->tensor.bytes - writer->written)
        return ls_fail(error, LS_INTERNAL,
                       "%s: %zu bytes of entry %zu do not come next in the file; next is '%.200s'",
                       writer->file.path, count, entry, planned ? planned->tensor.name : "the end");
    LS_TRY(ls_writer_write(&writer->file, bytes, count, error));
    writer->written += count;
    pass_empty(writer);
    return LS_OK;
}

ls_status ls_safetensors_writer_finish(ls_safetensors_writer *writer, ls_error *error)
{
    if (writer->current < writer->count)
        return ls_fail(error, LS_INTERNAL, "%s: tensor '%.200s' was not written whole",
                       writer->file.path, writer->plan[writer->current].tensor.name);
    return ls_writer_finish(&writer->file, error);
}

uint64_t ls_safetensors_writer_bytes(const ls_safetensors_writer *writer)
{
    return writer->file_bytes;
}

void ls_safetensors_writer_free(ls_safetensors_writer *writer)
{
    if (!writer) return;
    ls_writer_abandon(&writer->file);
    ls_arena_deinit(&writer->arena);
    ls_text_deinit(&writer->header);
    ls_free(writer->plan);
    ls_free(writer);
}

ls_status ls_safetensors_layout_make(ls_safetensors_layout *layout, const char *path,
                                     const ls_safetensors_entry *entries, size_t count,
                                     ls_error *error)
{
    ls_safetensors_writer *writer = NULL;
    ls_status status;
    *layout = (ls_safetensors_layout){0};
    LS_TRY(LS_NEW(writer, 1, "safetensors layout", error));
    writer->file.descriptor = -1;
    LS_TRY_GOTO(status, plan_file(writer, path, entries, count, error), done);
    LS_TRY_GOTO(status, LS_NEW(layout->offset, count, "safetensors layout", error), done);
    for (size_t i = 0; i < count; i++)
        layout->offset[writer->plan[i].entry] =
            writer->header.length + writer->plan[i].tensor.offset;
    layout->header = writer->header;
    writer->header = (ls_text){0};
    layout->bytes = writer->file_bytes;
done:
    ls_safetensors_writer_free(writer);
    return status;
}

void ls_safetensors_layout_deinit(ls_safetensors_layout *layout)
{
    ls_text_deinit(&layout->header);
    ls_free(layout->offset);
    *layout = (ls_safetensors_layout){0};
}

#include "engine/checkpoint/tensor_file.h"

#include <string.h>

#include "base/alloc.h"

static void describe(const ls_tensor_file *file, ls_safetensors_entry *entries)
{
    const ls_program *program = file->state->assembly->program;
    for (size_t i = 0; i < file->count; i++) {
        const ls_state_tensor *tensor = &file->state->tensors[file->first + i];
        const ls_value *value = ls_value_of(program, tensor->value);
        entries[i] = (ls_safetensors_entry){
            .name = tensor->name, .dtype = LS_SAFETENSORS_F32, .rank = value->rank};
        for (int axis = 0; axis < value->rank; axis++)
            entries[i].shape[axis] = value->shape[axis].constant;
    }
}

/* As in the file: by offset, then by name where a tensor has no bytes. */
static bool comes_before(const ls_tensor_file *file, size_t left, size_t right)
{
    const uint64_t *offset = file->layout.offset;
    const ls_state_tensor *tensors = file->state->tensors + file->first;
    if (offset[left] != offset[right]) return offset[left] < offset[right];
    return strcmp(tensors[left].name, tensors[right].name) < 0;
}

static void put_in_order(ls_tensor_file *file)
{
    const ls_state_tensor *tensors = file->state->tensors + file->first;
    for (size_t i = 0; i < file->count; i++) {
        size_t at = i;
        for (; at > 0 && comes_before(file, i, file->order[at - 1]); at--)
            file->order[at] = file->order[at - 1];
        file->order[at] = i;
    }
    for (size_t i = 0; i < file->count; i++) {
        size_t index = file->order[i];
        file->names[i] = tensors[index].name;
        file->parts[i] =
            (ls_checksum_part){.offset = file->layout.offset[index],
                               .bytes = (uint64_t)tensors[index].elements * sizeof(float)};
    }
}

static ls_status lay_out(ls_tensor_file *file, const char *path, const ls_state *state,
                         size_t first, size_t count, ls_error *error)
{
    ls_safetensors_entry *entries = NULL;
    ls_status status;
    *file = (ls_tensor_file){.state = state, .first = first, .count = count};
    file->file.descriptor = -1;
    LS_TRY_GOTO(status, LS_NEW(entries, count + 1, "tensors to save", error), done);
    LS_TRY_GOTO(status, LS_NEW(file->order, count + 1, "tensors to save", error), done);
    LS_TRY_GOTO(status, LS_NEW(file->names, count + 1, "tensors to save", error), done);
    LS_TRY_GOTO(status, LS_NEW(file->parts, count + 1, "tensors to save", error), done);
    describe(file, entries);
    LS_TRY_GOTO(status, ls_safetensors_layout_make(&file->layout, path, entries, count, error),
                done);
    put_in_order(file);
done:
    ls_free(entries);
    return status;
}

ls_status ls_tensor_file_create(ls_tensor_file *file, const char *path, const ls_state *state,
                                size_t first, size_t count, ls_error *error)
{
    ls_status status = lay_out(file, path, state, first, count, error);
    if (status == LS_OK)
        status = ls_sized_file_create(&file->file, path, file->layout.bytes, error);
    if (status != LS_OK) ls_tensor_file_deinit(file);
    return status;
}

ls_status ls_tensor_file_open(ls_tensor_file *file, const char *path, const ls_state *state,
                              size_t first, size_t count, ls_error *error)
{
    ls_status status = lay_out(file, path, state, first, count, error);
    if (status == LS_OK) status = ls_sized_file_open(&file->file, path, file->layout.bytes, error);
    if (status != LS_OK) ls_tensor_file_deinit(file);
    return status;
}

/* --- by one process --------------------------------------------------------------------------- */

/* Elements [begin, end) of a tensor, out of the device into the stream's own memory. */
static ls_status stream_from_device(ls_executor *executor, ls_value_id value, ls_range part,
                                    ls_stream *stream, ls_error *error)
{
    while (part.begin < part.end) {
        void *room;
        size_t bytes = (size_t)(part.end - part.begin) * sizeof(float);
        LS_TRY(ls_stream_room(stream, &room, &bytes, error));
        int64_t count = (int64_t)(bytes / sizeof(float));
        LS_TRY(ls_executor_get(executor, value, part.begin, count, room, error));
        LS_TRY(ls_stream_filled(stream, bytes, error));
        part.begin += count;
    }
    return LS_OK;
}

/* What the rank that has element `from` of tensor `index` (of the file) saves, from there on. */
static ls_status stream_part(const ls_tensor_file *file, size_t index,
                             const ls_state_owners *owners, const ls_snapshot *snapshots,
                             ls_stream *stream, int64_t *from, ls_error *error)
{
    const ls_state_tensor *tensor = &file->state->tensors[file->first + index];
    for (int i = 0; i < owners->count; i++) {
        ls_executor *executor = owners->executors[i];
        ls_range part = ls_state_saved(owners->assembly, tensor->value, ls_executor_rank(executor));
        if (*from < part.begin || *from >= part.end) continue;
        int64_t first = *from;
        *from = part.end;
        if (!snapshots)
            return stream_from_device(executor, tensor->value, (ls_range){first, part.end}, stream,
                                      error);
        const float *kept = ls_snapshot_part(&snapshots[i], file->first + index);
        return ls_stream_write(stream, kept + (first - part.begin),
                               (size_t)(part.end - first) * sizeof *kept, error);
    }
    return ls_fail(error, LS_INTERNAL, "engine: no rank saves element %lld of %s", (long long)*from,
                   tensor->name);
}

static ls_status stream_all(const ls_tensor_file *file, const ls_state_owners *owners,
                            const ls_snapshot *snapshots, ls_stream *stream, atomic_llong *done,
                            ls_error *error)
{
    LS_TRY(ls_stream_write(stream, file->layout.header.data, file->layout.header.length, error));
    for (size_t i = 0; i < file->count; i++) {
        size_t index = file->order[i];
        int64_t elements = file->state->tensors[file->first + index].elements;
        for (int64_t from = 0; from < elements;) {
            int64_t begin = from;
            LS_TRY(stream_part(file, index, owners, snapshots, stream, &from, error));
            atomic_fetch_add(done, (from - begin) * (int64_t)sizeof(float));
        }
    }
    return LS_OK;
}

ls_status ls_tensor_file_stream(ls_tensor_file *file, const ls_state_owners *owners,
                                const ls_snapshot *snapshots, ls_stream *stream, atomic_llong *done,
                                ls_error *error)
{
    ls_stream_begin(stream, &file->file, file->parts, file->count);
    ls_status status = stream_all(file, owners, snapshots, stream, done, error);
    ls_status ended = ls_stream_end(stream, file->checksum, status == LS_OK ? error : NULL);
    return status == LS_OK ? ended : status;
}

/* --- by several ------------------------------------------------------------------------------- */

ls_status ls_tensor_file_write_header(const ls_tensor_file *file, ls_error *error)
{
    return ls_sized_file_write(&file->file, file->layout.header.data, file->layout.header.length, 0,
                               error);
}

/* The part of tensor `index` (of the file) that the rank saves, piece by piece through `buffer`, or
 * straight out of the snapshot. */
static ls_status write_part(const ls_tensor_file *file, size_t index, ls_executor *executor,
                            const ls_snapshot *snapshot, float *buffer, atomic_llong *done,
                            ls_error *error)
{
    const ls_assembly *assembly = file->state->assembly;
    ls_value_id value = file->state->tensors[file->first + index].value;
    ls_range part = ls_state_saved(assembly, value, ls_executor_rank(executor));
    const float *kept = snapshot ? ls_snapshot_part(snapshot, file->first + index) : NULL;
    for (int64_t first = part.begin; first < part.end; first += LS_STATE_PIECE) {
        int64_t count = part.end - first < LS_STATE_PIECE ? part.end - first : LS_STATE_PIECE;
        const float *from = kept ? kept + (first - part.begin) : buffer;
        size_t bytes = (size_t)count * sizeof(float);
        if (!kept) LS_TRY(ls_executor_get(executor, value, first, count, buffer, error));
        LS_TRY(ls_sized_file_write(&file->file, from, bytes,
                                   file->layout.offset[index] + (uint64_t)first * sizeof(float),
                                   error));
        atomic_fetch_add(done, (long long)bytes);
    }
    return LS_OK;
}

ls_status ls_tensor_file_write(const ls_tensor_file *file, ls_executor *executor,
                               const ls_snapshot *snapshot, float *buffer, atomic_llong *done,
                               ls_error *error)
{
    for (size_t i = 0; i < file->count; i++)
        LS_TRY(write_part(file, i, executor, snapshot, buffer, done, error));
    return LS_OK;
}

ls_status ls_tensor_file_finish(ls_tensor_file *file, ls_error *error)
{
    return ls_sized_file_finish(&file->file, error);
}

void ls_tensor_file_deinit(ls_tensor_file *file)
{
    ls_sized_file_deinit(&file->file);
    ls_safetensors_layout_deinit(&file->layout);
    ls_free(file->order);
    ls_free(file->names);
    ls_free(file->parts);
    *file = (ls_tensor_file){0};
    file->file.descriptor = -1;
}

#include "engine/tensor_file.h"

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

static ls_status lay_out(ls_tensor_file *file, const char *path, const ls_state *state,
                         size_t first, size_t count, ls_error *error)
{
    ls_safetensors_entry *entries = NULL;
    *file = (ls_tensor_file){.state = state, .first = first, .count = count};
    file->file.descriptor = -1;
    LS_TRY(LS_NEW(entries, count + 1, "tensors to save", error));
    describe(file, entries);
    ls_status status = ls_safetensors_layout_make(&file->layout, path, entries, count, error);
    ls_free(entries);
    return status;
}

ls_status ls_tensor_file_create(ls_tensor_file *file, const char *path, const ls_state *state,
                                size_t first, size_t count, ls_error *error)
{
    ls_status status = lay_out(file, path, state, first, count, error);
    if (status == LS_OK)
        status = ls_sized_file_create(&file->file, path, file->layout.bytes, error);
    if (status == LS_OK)
        status = ls_sized_file_write(&file->file, file->layout.header.data,
                                     file->layout.header.length, 0, error);
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
        if (done) atomic_fetch_add(done, (long long)bytes);
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
    *file = (ls_tensor_file){0};
    file->file.descriptor = -1;
}

/* The gradient of every parameter on the rows of a file, for check_gradients.py.
 *
 * dump_gradients MODEL DATA MAX_LENGTH SAMPLES_PER_PASS OUTPUT
 *
 * All rows of DATA are one batch, all of MODEL's dropout must be off. OUTPUT is a safetensors file
 * with a tensor a parameter, under the parameter's name; rows that a table's gradient does not hold
 * are zeros there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/dataset.h"
#include "engine/model_folder.h"
#include "engine/trainer.h"

typedef struct work {
    ls_model_folder folder;
    ls_labels *labels;
    ls_dataset *dataset;
    ls_batch_buffer *buffer;
    const ls_batch *batch;
    ls_device *device;
    ls_assembly assembly;
    ls_trainer *trainer;
} work;

static ls_status read_batch(work *w, const char *data, int max_length, ls_error *error)
{
    uint32_t *rows = NULL;
    LS_TRY(ls_labels_new(&w->labels, error));
    LS_TRY(ls_model_folder_labels(&w->folder, w->labels, error));
    ls_dataset_options options = {.path = data,
                                  .tokenizer = w->folder.tokenizer,
                                  .max_length = max_length,
                                  .labels = w->labels,
                                  .need_labels = true,
                                  .cache_folder = "."};
    LS_TRY(ls_dataset_open(&w->dataset, &options, error));
    uint32_t count = ls_dataset_count(w->dataset);
    LS_TRY(ls_batch_buffer_new(&w->buffer, w->dataset, count, error));
    LS_TRY(LS_NEW(rows, count, "rows", error));
    for (uint32_t row = 0; row < count; row++)
        rows[row] = row;
    ls_status status = ls_dataset_read_rows(w->dataset, rows, (int32_t)count, w->buffer, error);
    w->batch = ls_batch_buffer_batch(w->buffer);
    ls_free(rows);
    return status;
}

/* One step that moves nothing: learning rate 0. */
static ls_status step(work *w, int64_t samples_per_pass, ls_error *error)
{
    ls_parameters_notes notes = {0};
    ls_step_result result;
    ls_assembly_options options = {
        .config = &w->folder.config,
        .classes = w->folder.head_classes,
        .training = true,
        .optimizer = {.beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f, .max_norm = 1.0f},
        .batch_size = w->batch->samples,
        .leaf_size = 4,
        .samples_per_pass = samples_per_pass,
        .longest_row = ls_dataset_longest(w->dataset),
    };
    LS_TRY(ls_cpu_device_new(&w->device, 2, 0, error));
    LS_TRY(ls_assembly_make(&w->assembly, &options, w->device, error));
    ls_trainer_options training = {.assembly = &w->assembly,
                                   .device = w->device,
                                   .leaf_size = options.leaf_size,
                                   .schedule = {.total_steps = 1},
                                   .beta1 = 0.9,
                                   .beta2 = 0.999};
    LS_TRY(ls_trainer_new(&w->trainer, &training, error));
    ls_status status = ls_parameters_load(ls_trainer_executor(w->trainer), &w->assembly,
                                          w->folder.weights, 0, &notes, error);
    ls_parameters_notes_deinit(&notes);
    LS_TRY(status);
    LS_TRY(ls_trainer_step(w->trainer, 1, w->batch, &result, error));
    printf("loss %.9g, gradient norm %.9g\n", result.loss, result.gradient_norm);
    return LS_OK;
}

static bool is_touched(const ls_batch *batch, const char *table, int64_t row)
{
    for (int32_t s = 0; s < batch->samples; s++)
        for (int32_t t = batch->offsets[s]; t < batch->offsets[s + 1]; t++)
            if ((strstr(table, "word")       ? batch->ids[t]
                 : strstr(table, "position") ? t - batch->offsets[s]
                                             : batch->types[t]) == row)
                return true;
    return false;
}

/* A table's gradient holds the touched rows, in ascending order. */
static void spread_rows(const work *w, const ls_value *gradient, const float *from, float *whole)
{
    const ls_value *table = ls_value_of(w->assembly.program, gradient->parameter);
    int64_t hidden = table->shape[1].constant;
    for (int64_t row = 0; row < table->shape[0].constant; row++) {
        if (!is_touched(w->batch, table->name, row)) continue;
        memcpy(whole + row * hidden, from, (size_t)hidden * sizeof *from);
        from += hidden;
    }
}

static ls_status write_gradient(const work *w, ls_safetensors_writer *writer, size_t entry,
                                ls_value_id id, ls_error *error)
{
    const ls_program *program = w->assembly.program;
    const ls_value *gradient = ls_value_of(program, id);
    int64_t count = ls_value_elements(ls_value_of(program, gradient->parameter), &ls_fixed_extents);
    const float *from = ls_executor_address(ls_trainer_executor(w->trainer), id);
    float *whole = NULL;
    LS_TRY(LS_NEW(whole, count, "a gradient", error));
    if (gradient->row_sparse)
        spread_rows(w, gradient, from, whole);
    else
        memcpy(whole, from, (size_t)count * sizeof *whole);
    ls_status status =
        ls_safetensors_writer_write(writer, entry, whole, (size_t)count * sizeof *whole, error);
    ls_free(whole);
    return status;
}

static ls_status write_gradients(const work *w, const char *path, ls_error *error)
{
    const ls_program *program = w->assembly.program;
    ls_safetensors_writer *writer = NULL;
    ls_safetensors_entry *entries = NULL;
    ls_value_id *ids = NULL;
    size_t count = 0, next;
    ls_status status;
    LS_TRY_GOTO(status, LS_NEW(entries, program->value_count, "gradients", error), done);
    LS_TRY_GOTO(status, LS_NEW(ids, program->value_count, "gradients", error), done);
    for (ls_value_id id = 0; id < program->value_count; id++) {
        if (ls_value_of(program, id)->role != LS_ROLE_GRADIENT) continue;
        const ls_value *of = ls_value_of(program, ls_value_of(program, id)->parameter);
        entries[count] = (ls_safetensors_entry){of->name, LS_SAFETENSORS_F32, of->rank, {0}};
        for (int axis = 0; axis < of->rank; axis++)
            entries[count].shape[axis] = of->shape[axis].constant;
        ids[count++] = id;
    }
    LS_TRY_GOTO(status, ls_safetensors_writer_new(&writer, path, entries, count, error), done);
    while (ls_safetensors_writer_next(writer, &next))
        LS_TRY_GOTO(status, write_gradient(w, writer, next, ids[next], error), done);
    status = ls_safetensors_writer_finish(writer, error);
done:
    ls_safetensors_writer_free(writer);
    ls_free(entries);
    ls_free(ids);
    return status;
}

static ls_status run(work *w, char **arguments, ls_error *error)
{
    LS_TRY(ls_model_folder_open(&w->folder, arguments[1], error));
    LS_TRY(read_batch(w, arguments[2], atoi(arguments[3]), error));
    LS_TRY(step(w, atoi(arguments[4]), error));
    return write_gradients(w, arguments[5], error);
}

int main(int count, char **arguments)
{
    work w = {0};
    ls_error error = {0};
    if (count != 6) return 2;
    ls_status status = run(&w, arguments, &error);
    if (status != LS_OK) fprintf(stderr, "dump_gradients: %s\n", error.text);
    ls_trainer_free(w.trainer);
    ls_assembly_deinit(&w.assembly);
    ls_device_free(w.device);
    ls_batch_buffer_free(w.buffer);
    ls_dataset_free(w.dataset);
    ls_labels_free(w.labels);
    ls_model_folder_close(&w.folder);
    return status == LS_OK ? 0 : 1;
}

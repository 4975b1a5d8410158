/* A tiny model, its trainer and a reader of batches, put together by hand: for tests that look
 * into a step, or change what a device does. */
#ifndef LS_TESTS_TINY_ENGINE_H
#define LS_TESTS_TINY_ENGINE_H

#include "tiny_runs.h"

#include "data/reader.h"
#include "engine/model_folder.h"
#include "engine/trainer.h"

typedef struct tiny_engine {
    ls_model_folder folder;
    ls_labels *labels;
    ls_device *device;
    ls_dataset *dataset;
    ls_sampler *sampler;
    ls_reader *reader;
    ls_assembly assembly;
    ls_trainer *trainer;
} tiny_engine;

static inline void tiny_engine_open_data(tiny_engine *engine, const char *model, const char *train,
                                         const char *cache_folder, int32_t batch_size)
{
    ls_error error;
    assert_ok(ls_model_folder_open(&engine->folder, tiny_model(model), &error), error);
    assert_ok(ls_labels_new(&engine->labels, &error), error);
    if (engine->folder.head_classes)
        assert_ok(ls_model_folder_labels(&engine->folder, engine->labels, &error), error);
    ls_dataset_options reading = {.path = train,
                                  .tokenizer = engine->folder.tokenizer,
                                  .max_length = 64,
                                  .labels = engine->labels,
                                  .need_labels = true,
                                  .cache_folder = cache_folder};
    assert_ok(ls_dataset_open(&engine->dataset, &reading, &error), error);
    ls_sampler_options order = {.count = ls_dataset_count(engine->dataset),
                                .lengths = ls_dataset_lengths(engine->dataset),
                                .batch_size = batch_size,
                                .leaf_size = 4,
                                .seed = 42};
    assert_ok(ls_sampler_new(&engine->sampler, &order, &error), error);
    ls_reader_options batches = {.dataset = engine->dataset, .sampler = engine->sampler};
    assert_ok(ls_reader_new(&engine->reader, &batches, &error), error);
}

/* `operations` stand in for the device's own; NULL: they do not. A file of `offload` is made in the
 * cache folder. */
static inline void tiny_engine_open_offloaded(tiny_engine *engine, const char *model,
                                              const char *train, const char *cache_folder,
                                              int64_t samples_per_pass,
                                              const ls_device_operations *operations,
                                              ls_offload_options offload)
{
    ls_error error;
    *engine = (tiny_engine){0};
    tiny_engine_open_data(engine, model, train, cache_folder, TINY_BATCH);
    assert_ok(ls_cpu_device_new(&engine->device, 2, 0, &error), error);
    if (operations) engine->device->operations = operations;
    ls_assembly_options assembly = {
        .config = &engine->folder.config,
        .classes = ls_labels_count(engine->labels),
        .training = true,
        .optimizer = {.beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f, .max_norm = 1.0f},
        .batch_size = TINY_BATCH,
        .leaf_size = 4,
        .samples_per_pass = samples_per_pass,
        .longest_row = ls_dataset_longest(engine->dataset),
        .offload = offload,
    };
    assert_ok(ls_assembly_make(&engine->assembly, &assembly, engine->device, &error), error);
    ls_trainer_options trainer = {
        .assembly = &engine->assembly,
        .device = engine->device,
        .leaf_size = 4,
        .seed = 42,
        .schedule = {.kind = LS_SCHEDULE_CONSTANT, .peak = 1e-3, .total_steps = 100},
        .beta1 = 0.9,
        .beta2 = 0.999,
        .offload_folder = cache_folder};
    assert_ok(ls_trainer_new(&engine->trainer, &trainer, &error), error);
    ls_parameters_notes notes = {0};
    assert_ok(ls_parameters_load(ls_trainer_executor(engine->trainer), &engine->assembly,
                                 engine->folder.weights, 42, &notes, &error),
              error);
    ls_parameters_notes_deinit(&notes);
}

static inline void tiny_engine_open(tiny_engine *engine, const char *model, const char *train,
                                    const char *cache_folder, int64_t samples_per_pass,
                                    const ls_device_operations *operations)
{
    tiny_engine_open_offloaded(engine, model, train, cache_folder, samples_per_pass, operations,
                               (ls_offload_options){0});
}

static inline ls_step_result tiny_engine_step(tiny_engine *engine, int64_t step)
{
    ls_error error;
    const ls_batch *batch;
    bool more;
    ls_step_result result;
    assert_ok(ls_reader_next(engine->reader, &batch, &more, &error), error);
    assert_true(more);
    assert_ok(ls_trainer_step(engine->trainer, step, batch, &result, &error), error);
    return result;
}

/* A ls_tensor_reader of an engine, whose one rank has everything. */
static inline ls_status tiny_engine_read(void *context, ls_value_id value, int64_t first,
                                         int64_t count, float *to, ls_error *error)
{
    const tiny_engine *engine = context;
    const ls_executor *executor = ls_trainer_executor(engine->trainer);
    (void)error;
    memcpy(to, (const float *)ls_executor_address(executor, value) + first,
           (size_t)count * sizeof *to);
    return LS_OK;
}

static inline void tiny_engine_close(tiny_engine *engine)
{
    ls_trainer_free(engine->trainer);
    ls_assembly_deinit(&engine->assembly);
    ls_reader_free(engine->reader);
    ls_sampler_free(engine->sampler);
    ls_dataset_free(engine->dataset);
    ls_labels_free(engine->labels);
    ls_model_folder_close(&engine->folder);
    ls_device_free(engine->device);
}

#endif

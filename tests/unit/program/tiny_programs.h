/* The training and evaluation programs of the tiny models, as a run would make them. */
#ifndef LS_TESTS_TINY_PROGRAMS_H
#define LS_TESTS_TINY_PROGRAMS_H

#include "testing.h"

#include <stdio.h>

#include "engine/assembly.h"

typedef struct tiny_program {
    ls_model_config config;
    ls_device *device;
    ls_assembly assembly;
} tiny_program;

static inline void tiny_program_open_ranks(tiny_program *tiny, const char *model, bool training,
                                           int64_t samples_per_pass, const char *strategy,
                                           int ranks)
{
    char path[4096];
    ls_error error;
    *tiny = (tiny_program){0};
    snprintf(path, sizeof path, "%s/tests/data/%s", LS_TEST_SOURCE, model);
    assert_ok(ls_model_config_load(&tiny->config, path, &error), error);
    assert_ok(ls_cpu_device_new(&tiny->device, 1, 0, &error), error);
    ls_assembly_options options = {
        .config = &tiny->config,
        .classes = 3,
        .training = training,
        .optimizer = {.beta1 = 0.9f,
                      .beta2 = 0.999f,
                      .epsilon = 1e-8f,
                      .weight_decay = 0.01f,
                      .max_norm = 1.0f},
        .batch_size = 16,
        .leaf_size = 4,
        .strategy = strategy,
        .ranks = ranks,
        .bucket_bytes = 16 << 10,
        .samples_per_pass = samples_per_pass,
        .longest_row = 64,
    };
    assert_ok(ls_assembly_make(&tiny->assembly, &options, tiny->device, &error), error);
}

static inline void tiny_program_open(tiny_program *tiny, const char *model, bool training,
                                     int64_t samples_per_pass)
{
    tiny_program_open_ranks(tiny, model, training, samples_per_pass, NULL, 1);
}

static inline void tiny_program_close(tiny_program *tiny)
{
    ls_assembly_deinit(&tiny->assembly);
    ls_device_free(tiny->device);
    ls_model_config_deinit(&tiny->config);
}

#endif

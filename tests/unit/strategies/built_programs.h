/* Training programs of the tiny models, as the rewrites find them. */
#ifndef LS_TESTS_BUILT_PROGRAMS_H
#define LS_TESTS_BUILT_PROGRAMS_H

#include "testing.h"

#include <stdio.h>
#include <string.h>

#include "models/model.h"
#include "ops/registry.h"
#include "optimizers/optimizer.h"
#include "strategies/strategy.h"

typedef struct built {
    ls_model_config config;
    ls_program *program;
    ls_model model;
} built;

static ls_error error;

/* Forward and backward pass of a model with `layers` layers; 0: as many as its file says. */
static inline void build_passes(built *b, const char *name, int64_t layers)
{
    char path[4096];
    *b = (built){0};
    snprintf(path, sizeof path, "%s/tests/data/%s", LS_TEST_SOURCE, name);
    assert_ok(ls_model_config_load(&b->config, path, &error), error);
    if (layers) b->config.layers = layers;
    assert_ok(ls_program_new(&b->program, ls_op_definitions, &error), error);
    b->program->training = true;
    b->program->gradient_slots = 2;
    ls_model_options options = {.classes = 3, .touched = {.word = 40, .position = 20, .type = 2}};
    assert_ok(ls_model_build(b->program, &b->model, &b->config, &options, &error), error);
    assert_ok(ls_program_differentiate(b->program, b->model.inputs.schedules, &error), error);
}

static inline void build_update(built *b)
{
    ls_optimizer_options optimizer = {.max_norm = 1.0f};
    ls_gradient_norm_results norm;
    assert_ok(ls_adamw(b->program, &b->model.inputs, &optimizer, &norm, &error), error);
}

static inline void build(built *b, const char *name)
{
    build_passes(b, name, 0);
    build_update(b);
}

static inline void close_built(built *b)
{
    ls_program_free(b->program);
    ls_model_deinit(&b->model);
    ls_model_config_deinit(&b->config);
}

static inline void check_text(const char *what, const char *got, const char *wanted)
{
    if (strcmp(got, wanted) == 0) return;
    size_t at = 0;
    while (got[at] && got[at] == wanted[at])
        at++;
    fail_msg("%s differ at\n%.300s\nwanted\n%.300s", what, got + at, wanted + at);
}

#endif

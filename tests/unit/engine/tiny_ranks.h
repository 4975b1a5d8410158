/* A tiny model on several ranks, put together by hand: for tests that look into what they hold and
 * what they send. */
#ifndef LS_TESTS_TINY_RANKS_H
#define LS_TESTS_TINY_RANKS_H

#include "tiny_engine.h"

#include "engine/exchange/message_bytes.h"
#include "engine/ranks.h"

enum { TINY_MOST_RANKS = 8 };

typedef struct tiny_ranks_options {
    const char *model; /* NULL: tiny-bert */
    const char *rows, *folder;
    const char *strategy; /* NULL: ddp */
    int count;
    int hosts, host_ranks[TINY_MOST_RANKS]; /* above 1: as if on so many hosts; count follows */
    int64_t batch_size, samples_per_pass;
    const ls_device_operations *operations; /* in place of the devices' own; NULL: those */
    bool poison;
    ls_offload_options offload; /* with a file: in `folder` */
    ls_recompute_what recompute;
} tiny_ranks_options;

typedef struct tiny_ranks {
    tiny_engine data; /* its folder, labels, data set and reader */
    ls_device *devices[TINY_MOST_RANKS];
    int count;
    ls_run_programs programs;
    ls_comm *comms[TINY_MOST_RANKS];
    ls_ranks_options options;
    ls_ranks *ranks;
} tiny_ranks;

static inline void tiny_ranks_plan(tiny_ranks *r, const tiny_ranks_options *options)
{
    ls_error error;
    int host_begin[TINY_MOST_RANKS + 1] = {0};
    *r = (tiny_ranks){.count = options->count};
    for (int host = 0; host < options->hosts; host++)
        host_begin[host + 1] = r->count = host_begin[host] + options->host_ranks[host];
    tiny_engine_open_data(&r->data, options->model ? options->model : "tiny-bert", options->rows,
                          options->folder, (int32_t)options->batch_size);
    for (int i = 0; i < r->count; i++) {
        assert_ok(ls_cpu_device_new(&r->devices[i], 1, 0, &error), error);
        if (options->operations) r->devices[i]->operations = options->operations;
    }
    ls_run_memory_options memory = {
        .training = {.config = &r->data.folder.config,
                     .classes = ls_labels_count(r->data.labels),
                     .training = true,
                     .optimizer = {.beta1 = 0.9f,
                                   .beta2 = 0.999f,
                                   .epsilon = 1e-8f,
                                   .weight_decay = 0.01f,
                                   .max_norm = 1.0f},
                     .batch_size = options->batch_size,
                     .leaf_size = 4,
                     .strategy = options->strategy,
                     .ranks = r->count,
                     .bucket_bytes = 16 << 10,
                     .message_bytes = options->hosts
                                          ? ls_collectives_message_bytes(host_begin, options->hosts)
                                          : 0,
                     .offload = options->offload,
                     .recompute = options->recompute,
                     .longest_row = ls_dataset_longest(r->data.dataset)},
        .samples_per_pass = options->samples_per_pass,
        .evaluation_longest_row = ls_dataset_longest(r->data.dataset)};
    assert_ok(ls_run_programs_find(&r->programs, &memory, r->devices[0], &error), error);
    assert_true(ls_run_programs_fit(&r->programs, r->devices[0]));
    if (options->hosts)
        assert_ok(ls_comm_threads_apart_new(r->comms, options->host_ranks, options->hosts, &error),
                  error);
    r->options = (ls_ranks_options){
        .comms = options->hosts ? r->comms : NULL,
        .programs = &r->programs,
        .devices = r->devices,
        .count = r->count,
        .trainer = {.leaf_size = 4,
                    .seed = 42,
                    .poison = options->poison,
                    .offload_folder = options->folder,
                    .schedule = {.kind = LS_SCHEDULE_CONSTANT, .peak = 1e-3, .total_steps = 100},
                    .beta1 = 0.9,
                    .beta2 = 0.999}};
}

/* After the plan: take the memory, load the weights. */
static inline void tiny_ranks_load(tiny_ranks *r)
{
    ls_error error;
    assert_ok(ls_ranks_new(&r->ranks, &r->options, &error), error);
    ls_parameters_notes notes = {0};
    assert_ok(ls_ranks_load(r->ranks, r->data.folder.weights, 42, &notes, &error), error);
    ls_parameters_notes_deinit(&notes);
}

static inline void tiny_ranks_open(tiny_ranks *r, const tiny_ranks_options *options)
{
    tiny_ranks_plan(r, options);
    tiny_ranks_load(r);
}

static inline const ls_batch *tiny_ranks_batch(tiny_ranks *r)
{
    ls_error error;
    const ls_batch *batch;
    bool more;
    assert_ok(ls_reader_next(r->data.reader, &batch, &more, &error), error);
    assert_true(more);
    return batch;
}

static inline void tiny_ranks_steps(tiny_ranks *r, int64_t steps)
{
    ls_error error;
    ls_step_result result;
    for (int64_t step = 1; step <= steps; step++)
        assert_ok(ls_ranks_step(r->ranks, step, tiny_ranks_batch(r), &result, &error), error);
}

static inline void tiny_ranks_close(tiny_ranks *r)
{
    ls_ranks_free(r->ranks);
    ls_run_programs_deinit(&r->programs);
    for (int i = 0; i < r->count; i++)
        ls_device_free(r->devices[i]);
    tiny_engine_close(&r->data);
}

/* Whole parameters and moments, in the order of the model's parameters: parameter, first and second
 * moment of each. */
typedef struct tiny_held {
    float *elements;
    int64_t count;
} tiny_held;

static inline tiny_held tiny_ranks_held(tiny_ranks *r)
{
    static const char *const prefixes[] = {"", "first_moment.", "second_moment."};
    const ls_assembly *assembly = &r->programs.training;
    tiny_held held = {0};
    ls_error error;
    for (size_t i = 0; i < 3 * assembly->model.parameter_count; i++) {
        char name[300];
        const ls_value *parameter =
            ls_value_of(assembly->program, assembly->model.parameters[i / 3].value);
        int64_t elements = ls_value_elements(parameter, &ls_fixed_extents);
        snprintf(name, sizeof name, "%s%s", prefixes[i % 3], parameter->name);
        ls_value_id id = ls_program_find(assembly->program, name);
        assert_int_not_equal(id, LS_NO_VALUE);
        held.elements = realloc(held.elements, (size_t)(held.count + elements) * sizeof(float));
        assert_non_null(held.elements);
        assert_ok(ls_ranks_read(r->ranks, id, 0, elements, held.elements + held.count, &error),
                  error);
        held.count += elements;
    }
    return held;
}

static inline bool tiny_same(const tiny_held *a, const tiny_held *b)
{
    return a->count == b->count &&
           memcmp(a->elements, b->elements, (size_t)a->count * sizeof *a->elements) == 0;
}

#endif

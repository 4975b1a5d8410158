#include "engine/feeder.h"

#include "base/alloc.h"
#include "data/row_schedule.h"

/* One embedding table's side: which rows, in which order. */
typedef struct table_feed {
    ls_row_scheduler *scheduler;
    ls_row_schedule schedule;
    ls_touched_rows touched;
    uint8_t *present; /* [rows][roots] with several ranks, see ls_touched_rows */
} table_feed;

struct ls_feeder {
    const ls_assembly *assembly;
    ls_executor *executor;
    /* [tokens of a pass] or [samples of a pass (+ 1)] */
    int32_t *positions, *types, *token_samples, *offsets;
    /* Training only: [tokens of a step]. */
    int32_t *row, *leaf;
    table_feed word, position, type;
    /* The pass's pieces of leaves, over tokens and over samples. */
    int32_t *token_borders, *sample_borders;
    uint8_t *merges;
    ls_leaf_schedule token_schedule, sample_schedule;
    ls_tree_range range;
    ls_tree_stack stack;
    int64_t leaf_size;
    /* The step's roots over all ranks, and which one each leaf lies below. */
    ls_tree_root *roots;
    ls_step_roots step_roots;
    int32_t *root_of_leaf;
};

static ls_status new_table(table_feed *table, ls_feeder *feeder, const ls_table_inputs *inputs,
                           int64_t rows, ls_error *error)
{
    if (rows == 0) return LS_OK; /* the model has no such table */
    LS_TRY(ls_row_scheduler_new(&table->scheduler, rows, feeder->assembly->step_token_capacity,
                                error));
    if (feeder->assembly->ranks > 1) {
        int64_t capacity =
            ls_value_of(feeder->assembly->program, inputs->touched)->shape[0].constant;
        LS_TRY(LS_NEW(table->present, capacity * feeder->assembly->root_capacity, "touched rows",
                      error));
        table->touched.present = table->present;
    }
    ls_executor_bind(feeder->executor, inputs->schedule, &table->schedule);
    ls_executor_bind(feeder->executor, inputs->touched, &table->touched);
    return LS_OK;
}

static ls_status new_training(ls_feeder *feeder, ls_error *error)
{
    const ls_assembly *assembly = feeder->assembly;
    const ls_model_config *config = assembly->model.config;
    const ls_inputs *inputs = &assembly->model.inputs;
    int64_t pieces = assembly->samples_per_pass + 1; /* at most one a sample */
    LS_TRY(LS_NEW(feeder->row, assembly->step_token_capacity, "token rows", error));
    LS_TRY(LS_NEW(feeder->leaf, assembly->step_token_capacity, "token leaves", error));
    LS_TRY(LS_NEW(feeder->token_borders, pieces + 1, "leaf borders", error));
    LS_TRY(LS_NEW(feeder->sample_borders, pieces + 1, "leaf borders", error));
    LS_TRY(LS_NEW(feeder->merges, pieces, "leaf merges", error));
    LS_TRY(LS_NEW(feeder->roots, assembly->root_capacity, "roots", error));
    LS_TRY(LS_NEW(feeder->root_of_leaf, assembly->step_token_capacity, "roots", error));
    ls_executor_bind(feeder->executor, inputs->roots, &feeder->step_roots);
    LS_TRY(new_table(&feeder->word, feeder, &inputs->word, config->vocab_size, error));
    LS_TRY(new_table(&feeder->position, feeder, &inputs->position, config->max_positions, error));
    LS_TRY(new_table(&feeder->type, feeder, &inputs->type, config->type_vocab_size, error));
    ls_executor_bind(feeder->executor, inputs->schedules.tokens, &feeder->token_schedule);
    ls_executor_bind(feeder->executor, inputs->schedules.samples, &feeder->sample_schedule);
    return LS_OK;
}

ls_status ls_feeder_new(ls_feeder **out, const ls_assembly *assembly, ls_executor *executor,
                        ls_error *error)
{
    ls_feeder *feeder = NULL;
    ls_status status;
    LS_TRY(LS_NEW(feeder, 1, "feeder", error));
    feeder->assembly = assembly;
    feeder->executor = executor;
    int64_t tokens = assembly->token_capacity;
    LS_TRY_GOTO(status, LS_NEW(feeder->positions, tokens, "positions", error), fail);
    LS_TRY_GOTO(status, LS_NEW(feeder->types, tokens, "token types", error), fail);
    LS_TRY_GOTO(status, LS_NEW(feeder->token_samples, tokens, "token samples", error), fail);
    LS_TRY_GOTO(status, LS_NEW(feeder->offsets, assembly->samples_per_pass + 1, "offsets", error),
                fail);
    if (assembly->program->training) LS_TRY_GOTO(status, new_training(feeder, error), fail);
    *out = feeder;
    return LS_OK;
fail:
    ls_feeder_free(feeder);
    return status;
}

void ls_feeder_free(ls_feeder *feeder)
{
    if (!feeder) return;
    ls_row_scheduler_free(feeder->word.scheduler);
    ls_row_scheduler_free(feeder->position.scheduler);
    ls_row_scheduler_free(feeder->type.scheduler);
    int32_t *arrays[] = {feeder->positions,     feeder->types,         feeder->token_samples,
                         feeder->offsets,       feeder->row,           feeder->leaf,
                         feeder->token_borders, feeder->sample_borders};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        ls_free(arrays[i]);
    ls_free(feeder->word.present);
    ls_free(feeder->position.present);
    ls_free(feeder->type.present);
    ls_free(feeder->roots);
    ls_free(feeder->root_of_leaf);
    ls_free(feeder->merges);
    ls_free(feeder);
}

static void start_table(table_feed *table, const ls_feeder *feeder, const ls_batch *batch,
                        const int32_t *rows, int32_t begin, int32_t end)
{
    if (!table->scheduler) return;
    ls_row_scheduler_start(table->scheduler, feeder->range, batch->offsets[batch->samples], rows,
                           feeder->leaf, batch->offsets[begin], batch->offsets[end]);
    table->touched.count = ls_row_scheduler_touched(table->scheduler, &table->touched.rows);
    if (table->present)
        ls_row_scheduler_presence(table->scheduler, feeder->root_of_leaf, feeder->step_roots.count,
                                  table->present);
}

static void find_roots(ls_feeder *feeder, int64_t leaves)
{
    int count = ls_tree_roots(leaves, feeder->assembly->ranks, feeder->roots,
                              feeder->assembly->root_capacity);
    feeder->step_roots = (ls_step_roots){count, feeder->roots};
    for (int root = 0; root < count; root++)
        for (int64_t leaf = feeder->roots[root].first; leaf <= feeder->roots[root].last; leaf++)
            feeder->root_of_leaf[leaf] = root;
}

void ls_feeder_start(ls_feeder *feeder, const ls_batch *batch, int64_t leaf_size, int rank,
                     int32_t *begin, int32_t *end)
{
    int64_t tokens = batch->offsets[batch->samples];
    int64_t leaves = (batch->samples + leaf_size - 1) / leaf_size;
    feeder->leaf_size = leaf_size;
    feeder->range = ls_tree_rank_range(leaves, feeder->assembly->ranks, rank);
    feeder->stack = (ls_tree_stack){0};
    *begin = (int32_t)(feeder->range.begin * leaf_size);
    *end = (int32_t)(feeder->range.end * leaf_size);
    if (*begin > batch->samples) *begin = batch->samples;
    if (*end > batch->samples) *end = batch->samples;
    find_roots(feeder, leaves);
    for (int32_t sample = 0; sample < batch->samples; sample++)
        for (int32_t t = batch->offsets[sample]; t < batch->offsets[sample + 1]; t++)
            feeder->leaf[t] = (int32_t)(sample / leaf_size);
    start_table(&feeder->word, feeder, batch, batch->ids, *begin, *end);
    for (int32_t sample = 0; sample < batch->samples; sample++)
        for (int32_t t = batch->offsets[sample]; t < batch->offsets[sample + 1]; t++)
            feeder->row[t] = t - batch->offsets[sample];
    start_table(&feeder->position, feeder, batch, feeder->row, *begin, *end);
    for (int64_t t = 0; t < tokens; t++)
        feeder->row[t] = batch->types[t];
    start_table(&feeder->type, feeder, batch, feeder->row, *begin, *end);
}

/* The pieces of leaves in samples [begin, end), and what is added after each. */
static void schedule_leaves(ls_feeder *feeder, const ls_batch *batch, int32_t begin, int32_t end)
{
    int32_t pieces = 0, first_token = batch->offsets[begin];
    ls_leaf_schedule schedule = {.merges = feeder->merges,
                                 .depth = feeder->stack.depth,
                                 .resume = begin % feeder->leaf_size != 0};
    for (int32_t sample = begin; sample < end;) {
        int64_t leaf = sample / feeder->leaf_size;
        int64_t leaf_end = (leaf + 1) * feeder->leaf_size;
        if (leaf_end > batch->samples) leaf_end = batch->samples;
        feeder->token_borders[pieces] = batch->offsets[sample] - first_token;
        feeder->sample_borders[pieces] = sample - begin;
        schedule.leave_open = leaf_end > end;
        int64_t next = leaf + 1 < feeder->range.end ? leaf + 1 : -1;
        feeder->merges[pieces++] =
            schedule.leave_open ? 0
                                : (uint8_t)ls_tree_push(&feeder->stack, feeder->range, leaf, next);
        sample = leaf_end > end ? end : (int32_t)leaf_end;
    }
    feeder->token_borders[pieces] = batch->offsets[end] - first_token;
    feeder->sample_borders[pieces] = end - begin;
    schedule.pieces = pieces;
    schedule.offsets = feeder->token_borders;
    feeder->token_schedule = schedule;
    schedule.offsets = feeder->sample_borders;
    feeder->sample_schedule = schedule;
}

static void schedule_table(table_feed *table, int64_t token_end)
{
    if (table->scheduler) table->schedule = ls_row_scheduler_pass(table->scheduler, token_end);
}

ls_extents ls_feeder_pass(ls_feeder *feeder, const ls_batch *batch, int32_t begin, int32_t end)
{
    int32_t first = batch->offsets[begin];
    ls_extents extents = {{1, batch->offsets[end] - first, end - begin}};
    for (int32_t sample = begin; sample < end; sample++) {
        feeder->offsets[sample - begin] = batch->offsets[sample] - first;
        for (int32_t t = batch->offsets[sample]; t < batch->offsets[sample + 1]; t++) {
            feeder->positions[t - first] = t - batch->offsets[sample];
            feeder->types[t - first] = batch->types[t];
            feeder->token_samples[t - first] = (int32_t)batch->sample_ids[sample];
        }
    }
    feeder->offsets[end - begin] = batch->offsets[end] - first;
    const ls_inputs *inputs = &feeder->assembly->model.inputs;
    ls_executor *executor = feeder->executor;
    ls_executor_write(executor, inputs->ids, batch->ids + first, &extents);
    ls_executor_write(executor, inputs->positions, feeder->positions, &extents);
    ls_executor_write(executor, inputs->types, feeder->types, &extents);
    ls_executor_write(executor, inputs->token_samples, feeder->token_samples, &extents);
    ls_executor_write(executor, inputs->offsets, feeder->offsets, &extents);
    ls_executor_write(executor, inputs->samples, batch->sample_ids + begin, &extents);
    ls_executor_write(executor, inputs->labels, batch->labels + begin, &extents);
    if (feeder->assembly->program->training) {
        schedule_leaves(feeder, batch, begin, end);
        schedule_table(&feeder->word, batch->offsets[end]);
        schedule_table(&feeder->position, batch->offsets[end]);
        schedule_table(&feeder->type, batch->offsets[end]);
    }
    return extents;
}

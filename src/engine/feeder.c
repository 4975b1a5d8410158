#include "engine/feeder.h"

#include "base/alloc.h"
#include "data/row_schedule.h"
#include "engine/moved_rows.h"

/* One embedding table's side: which rows, in which order. */
typedef struct table_feed {
    ls_row_scheduler *scheduler;
    ls_row_schedule schedule;
    ls_touched_rows touched;
    /* With several ranks, see ls_touched_rows: [rows][roots], [rows] */
    uint8_t *present, *in_pass;
    uint8_t *moved;   /* training: [rows of the table], see ls_touched_rows */
    ls_value_id rows; /* input that says which touched row is each token's, or LS_NO_VALUE */
} table_feed;

struct ls_feeder {
    const ls_assembly *assembly;
    ls_executor *executor;
    /* [tokens of a pass] or [samples of a pass (+ 1)] */
    int32_t *positions, *types, *token_samples, *offsets;
    /* Where touched rows are listed: [tokens of a step]. */
    int32_t *row, *leaf;
    table_feed word, position, type;
    /* The pass's pieces of leaves, over tokens and over samples. */
    int32_t *token_borders, *sample_borders;
    uint8_t *merges;
    ls_leaf_schedule token_schedule, sample_schedule;
    ls_tree_range range; /* leaves over whose passes the rank's sums go on */
    ls_tree_stack stack;
    int64_t leaf_size, leaves; /* of the batch */
    int rank;
    /* The step's roots over all ranks, and which one each leaf lies below. */
    ls_tree_root *roots;
    ls_step_roots step_roots;
    int32_t *root_of_leaf;
};

static ls_status new_table(table_feed *table, ls_feeder *feeder, const ls_table_inputs *inputs,
                           int64_t rows, ls_error *error)
{
    const ls_assembly *assembly = feeder->assembly;
    table->rows = inputs->rows;
    if (rows == 0) return LS_OK; /* the model has no such table */
    LS_TRY(ls_row_scheduler_new(&table->scheduler, rows, assembly->step_token_capacity, error));
    int64_t capacity = ls_value_of(assembly->program, inputs->touched)->shape[0].constant;
    if (assembly->program->training && assembly->collective) {
        LS_TRY(LS_NEW(table->present, capacity * assembly->root_capacity, "touched rows", error));
        table->touched.present = table->present;
    }
    if (assembly->program->training && assembly->shard.parameters) {
        LS_TRY(LS_NEW(table->in_pass, capacity, "touched rows", error));
        table->touched.in_pass = table->in_pass;
    }
    if (assembly->program->training) {
        LS_TRY(LS_NEW(table->moved, rows, "moved rows", error));
        table->touched.moved = table->moved;
    }
    ls_executor_bind(feeder->executor, inputs->schedule, &table->schedule);
    ls_executor_bind(feeder->executor, inputs->touched, &table->touched);
    return LS_OK;
}

static ls_status new_tables(ls_feeder *feeder, ls_error *error)
{
    const ls_assembly *assembly = feeder->assembly;
    const ls_model_config *config = assembly->model.config;
    const ls_inputs *inputs = &assembly->model.inputs;
    if (inputs->word.touched == LS_NO_VALUE) return LS_OK;
    LS_TRY(LS_NEW(feeder->row, assembly->step_token_capacity, "token rows", error));
    LS_TRY(LS_NEW(feeder->leaf, assembly->step_token_capacity, "token leaves", error));
    LS_TRY(new_table(&feeder->word, feeder, &inputs->word, config->vocab_size, error));
    LS_TRY(new_table(&feeder->position, feeder, &inputs->position, config->max_positions, error));
    return new_table(&feeder->type, feeder, &inputs->type, config->type_vocab_size, error);
}

static ls_status new_training(ls_feeder *feeder, ls_error *error)
{
    const ls_assembly *assembly = feeder->assembly;
    const ls_inputs *inputs = &assembly->model.inputs;
    int64_t pieces = assembly->samples_per_pass + 1; /* at most one a sample */
    LS_TRY(LS_NEW(feeder->token_borders, pieces + 1, "leaf borders", error));
    LS_TRY(LS_NEW(feeder->sample_borders, pieces + 1, "leaf borders", error));
    LS_TRY(LS_NEW(feeder->merges, pieces, "leaf merges", error));
    LS_TRY(LS_NEW(feeder->roots, assembly->root_capacity, "roots", error));
    LS_TRY(LS_NEW(feeder->root_of_leaf, assembly->step_token_capacity, "roots", error));
    ls_executor_bind(feeder->executor, inputs->roots, &feeder->step_roots);
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
    LS_TRY_GOTO(status, new_tables(feeder, error), fail);
    if (assembly->program->training) LS_TRY_GOTO(status, new_training(feeder, error), fail);
    *out = feeder;
    return LS_OK;
fail:
    ls_feeder_free(feeder);
    return status;
}

static void free_table(table_feed *table)
{
    ls_row_scheduler_free(table->scheduler);
    ls_free(table->present);
    ls_free(table->in_pass);
    ls_free(table->moved);
}

void ls_feeder_free(ls_feeder *feeder)
{
    if (!feeder) return;
    free_table(&feeder->word);
    free_table(&feeder->position);
    free_table(&feeder->type);
    int32_t *arrays[] = {feeder->positions,     feeder->types,         feeder->token_samples,
                         feeder->offsets,       feeder->row,           feeder->leaf,
                         feeder->token_borders, feeder->sample_borders};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        ls_free(arrays[i]);
    ls_free(feeder->roots);
    ls_free(feeder->root_of_leaf);
    ls_free(feeder->merges);
    ls_free(feeder);
}

ls_status ls_feeder_find_moved(ls_feeder *feeder, ls_error *error)
{
    const ls_inputs *inputs = &feeder->assembly->model.inputs;
    const table_feed *tables[] = {&feeder->word, &feeder->position, &feeder->type};
    const ls_value_id touched[] = {inputs->word.touched, inputs->position.touched,
                                   inputs->type.touched};
    for (int i = 0; i < 3; i++)
        if (tables[i]->moved)
            LS_TRY(ls_moved_rows_find(feeder->executor, feeder->assembly->program, touched[i],
                                      tables[i]->moved, error));
    return LS_OK;
}

/* --- the step --------------------------------------------------------------------------------- */

static void start_table(table_feed *table, const ls_feeder *feeder, const ls_batch *batch,
                        const int32_t *rows)
{
    if (!table->scheduler) return;
    ls_row_scheduler_start(table->scheduler, batch->offsets[batch->samples], rows, feeder->leaf);
    table->touched.count = ls_row_scheduler_touched(table->scheduler, &table->touched.rows);
    if (table->moved)
        for (int32_t i = 0; i < table->touched.count; i++)
            table->moved[table->touched.rows[i]] = 1;
    if (table->present)
        ls_row_scheduler_presence(table->scheduler, feeder->root_of_leaf, feeder->step_roots.count,
                                  table->present);
}

/* Which rows the batch touches, on all ranks. */
static void start_tables(ls_feeder *feeder, const ls_batch *batch, int64_t leaf_size)
{
    for (int32_t sample = 0; sample < batch->samples; sample++)
        for (int32_t t = batch->offsets[sample]; t < batch->offsets[sample + 1]; t++)
            feeder->leaf[t] = (int32_t)(sample / leaf_size);
    start_table(&feeder->word, feeder, batch, batch->ids);
    for (int32_t sample = 0; sample < batch->samples; sample++)
        for (int32_t t = batch->offsets[sample]; t < batch->offsets[sample + 1]; t++)
            feeder->row[t] = t - batch->offsets[sample];
    start_table(&feeder->position, feeder, batch, feeder->row);
    for (int64_t t = 0; t < batch->offsets[batch->samples]; t++)
        feeder->row[t] = batch->types[t];
    start_table(&feeder->type, feeder, batch, feeder->row);
}

void ls_feeder_start_evaluation(ls_feeder *feeder, const ls_batch *batch)
{
    if (feeder->leaf) start_tables(feeder, batch, batch->samples);
}

/* Leaves of a pass of all ranks, 0 where each rank has passes of its own. */
static int64_t shared_pass(const ls_feeder *feeder)
{
    if (!feeder->assembly->shard.gradients) return 0;
    return ls_assembly_pass_leaves(feeder->assembly, feeder->leaf_size);
}

/* As ls_tree_share cuts it. */
static ls_tree_range pass_range(const ls_feeder *feeder, int32_t pass)
{
    int64_t leaves = shared_pass(feeder), full = feeder->assembly->step_leaves;
    if (leaves == 0) return (ls_tree_range){0, full, feeder->leaves};
    int64_t begin = pass * leaves, end = begin + leaves;
    return (ls_tree_range){begin, end < full ? end : full, feeder->leaves};
}

static void find_roots(ls_feeder *feeder)
{
    ls_step_roots *step = &feeder->step_roots;
    int64_t end = 0;
    *step = (ls_step_roots){.roots = feeder->roots};
    for (int32_t pass = 0; end < feeder->leaves; pass++) {
        ls_tree_range all = pass_range(feeder, pass);
        step->count += ls_tree_roots(all, feeder->assembly->ranks, feeder->roots + step->count,
                                     feeder->assembly->root_capacity - step->count);
        end = all.end;
    }
    step->end = step->count;
    for (int root = 0; root < step->count; root++)
        for (int64_t leaf = feeder->roots[root].first; leaf <= feeder->roots[root].last; leaf++)
            feeder->root_of_leaf[leaf] = root;
}

static int32_t first_sample(const ls_feeder *feeder, const ls_batch *batch, int64_t leaf)
{
    int64_t sample = leaf * feeder->leaf_size;
    return sample < batch->samples ? (int32_t)sample : batch->samples;
}

static void own_table(table_feed *table, const ls_feeder *feeder, const ls_batch *batch,
                      int32_t begin, int32_t end)
{
    if (table->scheduler)
        ls_row_scheduler_own(table->scheduler, feeder->range, batch->offsets[begin],
                             batch->offsets[end]);
}

/* The rank's sums begin afresh, on its share of `all`. */
static void own_leaves(ls_feeder *feeder, const ls_batch *batch, ls_tree_range all)
{
    feeder->range = ls_tree_share(all, feeder->assembly->ranks, feeder->rank);
    feeder->stack = (ls_tree_stack){0};
    int32_t begin = first_sample(feeder, batch, feeder->range.begin);
    int32_t end = first_sample(feeder, batch, feeder->range.end);
    own_table(&feeder->word, feeder, batch, begin, end);
    own_table(&feeder->position, feeder, batch, begin, end);
    own_table(&feeder->type, feeder, batch, begin, end);
}

int32_t ls_feeder_start(ls_feeder *feeder, const ls_batch *batch, int64_t leaf_size, int rank)
{
    feeder->leaf_size = leaf_size;
    feeder->leaves = (batch->samples + leaf_size - 1) / leaf_size;
    feeder->rank = rank;
    find_roots(feeder);
    start_tables(feeder, batch, leaf_size);
    int64_t together = shared_pass(feeder);
    if (together) return (int32_t)((feeder->leaves + together - 1) / together);
    own_leaves(feeder, batch, pass_range(feeder, 0));
    int64_t samples = first_sample(feeder, batch, feeder->range.end) -
                      first_sample(feeder, batch, feeder->range.begin);
    int64_t pass = feeder->assembly->samples_per_pass;
    return (int32_t)((samples + pass - 1) / pass);
}

/* Which of a table's rows the pass touches on any rank, and which roots it has. */
static void find_pass(ls_feeder *feeder, const ls_batch *batch, ls_tree_range all)
{
    ls_step_roots *step = &feeder->step_roots;
    const table_feed *tables[] = {&feeder->word, &feeder->position, &feeder->type};
    int32_t begin = batch->offsets[first_sample(feeder, batch, all.begin)];
    int64_t leaves = all.end < all.total ? all.end : all.total;
    int32_t end = batch->offsets[first_sample(feeder, batch, leaves)];
    for (int i = 0; i < 3; i++)
        if (tables[i]->in_pass)
            ls_row_scheduler_in_pass(tables[i]->scheduler, begin, end, tables[i]->in_pass);
    step->begin = feeder->root_of_leaf[all.begin];
    step->end = feeder->root_of_leaf[leaves - 1] + 1;
}

void ls_feeder_share(ls_feeder *feeder, const ls_batch *batch, int32_t pass, int32_t *begin,
                     int32_t *end)
{
    if (shared_pass(feeder)) {
        ls_tree_range all = pass_range(feeder, pass);
        find_pass(feeder, batch, all);
        own_leaves(feeder, batch, all);
        *begin = first_sample(feeder, batch, feeder->range.begin);
        *end = first_sample(feeder, batch, feeder->range.end);
        return;
    }
    int64_t samples = feeder->assembly->samples_per_pass;
    int32_t last = first_sample(feeder, batch, feeder->range.end);
    *begin = first_sample(feeder, batch, feeder->range.begin) + pass * (int32_t)samples;
    *end = last - *begin > samples ? *begin + (int32_t)samples : last;
}

/* --- the pass --------------------------------------------------------------------------------- */

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

/* Which touched row is each token's. */
static void write_rows(const ls_feeder *feeder, const table_feed *table, int32_t first,
                       const ls_extents *extents)
{
    if (table->scheduler && table->rows != LS_NO_VALUE)
        ls_executor_write(feeder->executor, table->rows,
                          ls_row_scheduler_rows(table->scheduler) + first, extents);
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
    write_rows(feeder, &feeder->word, first, &extents);
    write_rows(feeder, &feeder->position, first, &extents);
    write_rows(feeder, &feeder->type, first, &extents);
    if (feeder->assembly->program->training) {
        schedule_leaves(feeder, batch, begin, end);
        schedule_table(&feeder->word, batch->offsets[end]);
        schedule_table(&feeder->position, batch->offsets[end]);
        schedule_table(&feeder->type, batch->offsets[end]);
    }
    return extents;
}

#include "engine/assembly.h"

#include "comm/tree.h"
#include "engine/audit.h"
#include "engine/state.h"
#include "ops/registry.h"
#include "strategies/strategy.h"

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

enum { FIRST_BUCKET_BYTES = 1 << 20 };

/* Samples of the rank that has most. */
static int64_t largest_share(const ls_assembly_options *options, int ranks)
{
    int64_t leaves = (options->batch_size + options->leaf_size - 1) / options->leaf_size;
    int64_t share = (leaves + ranks - 1) / ranks * options->leaf_size;
    return least(share, options->batch_size);
}

/* Slots and roots for batches of every size up to the largest: a short one is cut otherwise. */
static void size_gradients(ls_assembly *assembly, const ls_assembly_options *options)
{
    int64_t leaves = (options->batch_size + options->leaf_size - 1) / options->leaf_size;
    int32_t slots = 1;
    for (int64_t total = assembly->ranks > 1 ? 1 : leaves; total <= leaves; total++) {
        int64_t samples = least(total * options->leaf_size, options->batch_size);
        for (int rank = 0; rank < assembly->ranks; rank++) {
            ls_tree_range range = ls_tree_rank_range(total, assembly->ranks, rank);
            int needed =
                ls_tree_slots(range, samples, options->leaf_size, assembly->samples_per_pass);
            if (needed > slots) slots = needed;
        }
        int roots = ls_tree_roots(total, assembly->ranks, NULL, 0);
        if (roots > assembly->root_capacity) assembly->root_capacity = roots;
    }
    assembly->program->gradient_slots = slots;
}

static ls_status build_training(ls_assembly *assembly, const ls_assembly_options *options,
                                ls_error *error)
{
    ls_program *program = assembly->program;
    size_gradients(assembly, options);
    const ls_model_config *config = options->config;
    ls_model_options model = {
        .classes = options->classes,
        .touched = {.word = least(config->vocab_size, assembly->step_token_capacity),
                    .position = least(config->max_positions, options->longest_row),
                    .type = config->type_vocab_size}};
    LS_TRY(ls_model_build(program, &assembly->model, config, &model, error));
    LS_TRY(ls_program_differentiate(program, assembly->model.inputs.schedules, error));
    LS_TRY(ls_adamw(program, &assembly->model.inputs, &options->optimizer, &assembly->norm, error));
    ls_gradient_norm_watch_loss(program, assembly->model.results.loss);
    if (assembly->ranks == 1) return LS_OK;
    int64_t bucket = options->bucket_bytes;
    ls_data_parallel_options strategy = {.bucket_bytes = bucket,
                                         .first_bucket_bytes = least(bucket, FIRST_BUCKET_BYTES),
                                         .roots = assembly->model.inputs.roots,
                                         .loss = assembly->model.results.loss};
    return ls_data_parallel(program, &strategy, error);
}

static void find_limits(ls_assembly *assembly, const ls_assembly_options *options)
{
    const ls_model_config *config = options->config;
    int64_t widest = config->intermediate_size;
    if (config->hidden_size > widest) widest = config->hidden_size;
    if (options->classes > widest) widest = options->classes;
    assembly->limits = (ls_device_limits){
        .tokens = assembly->token_capacity,
        .sequence_length = options->longest_row,
        .largest_depth = widest,
        .head_size = config->hidden_size / config->heads,
    };
}

/* A tree that no kernel's stack holds, or one that takes too long to cut for every size of batch.
 */
static ls_status check_leaves(const ls_assembly_options *options, ls_error *error)
{
    int64_t leaves = (options->batch_size + options->leaf_size - 1) / options->leaf_size;
    int64_t most = options->ranks > 1 ? 1 << 14 : 1 << 19;
    if (!options->training || leaves <= most) return LS_OK;
    return ls_fail(error, LS_USAGE,
                   "a batch of %lld samples has %lld leaves of %lld: at most %lld are summed%s, "
                   "raise --leaf-size or lower --batch-size",
                   (long long)options->batch_size, (long long)leaves, (long long)options->leaf_size,
                   (long long)most, options->ranks > 1 ? " over several devices" : "");
}

ls_status ls_assembly_make(ls_assembly *assembly, const ls_assembly_options *options,
                           const ls_device *device, ls_error *error)
{
    *assembly = (ls_assembly){0};
    assembly->ranks = options->training && options->ranks > 1 ? options->ranks : 1;
    assembly->samples_per_pass = options->samples_per_pass;
    if (options->training)
        assembly->samples_per_pass =
            least(options->samples_per_pass, largest_share(options, assembly->ranks));
    assembly->token_capacity = assembly->samples_per_pass * options->longest_row;
    assembly->step_token_capacity = options->batch_size * options->longest_row;
    if (assembly->step_token_capacity > INT32_MAX / 2)
        return ls_fail(error, LS_USAGE,
                       "a step of %lld samples of up to %lld tokens is more than Lockstep can "
                       "count: lower --batch-size or --max-length",
                       (long long)options->batch_size, (long long)options->longest_row);
    LS_TRY(check_leaves(options, error));
    find_limits(assembly, options);
    ls_status status;
    LS_TRY_GOTO(status, ls_program_new(&assembly->program, ls_op_definitions, error), fail);
    assembly->program->training = options->training;
    if (options->training) {
        LS_TRY_GOTO(status, build_training(assembly, options, error), fail);
    } else {
        ls_model_options model = {.classes = options->classes};
        LS_TRY_GOTO(
            status,
            ls_model_build(assembly->program, &assembly->model, options->config, &model, error),
            fail);
    }
    LS_TRY_GOTO(status, ls_program_verify(assembly->program, error), fail);
    ls_extents capacity = {{1, assembly->token_capacity, assembly->samples_per_pass}};
    LS_TRY_GOTO(status, ls_plan_make(&assembly->plan, assembly->program, &capacity, error), fail);
    assembly->plan.bytes[LS_PLAN_SCRATCH] =
        device->operations->scratch_bytes(device, &assembly->limits);
    if (options->training && options->audit)
        assembly->plan.bytes[LS_PLAN_AUDIT] = ls_audit_bytes(&assembly->plan);
    if (options->training && options->snapshot)
        assembly->plan.bytes[LS_PLAN_SNAPSHOT] = ls_state_snapshot_bytes(assembly);
    return LS_OK;
fail:
    ls_assembly_deinit(assembly);
    return status;
}

void ls_assembly_deinit(ls_assembly *assembly)
{
    ls_plan_deinit(&assembly->plan);
    ls_model_deinit(&assembly->model);
    ls_program_free(assembly->program);
    *assembly = (ls_assembly){0};
}

#include "engine/assembly.h"

#include <string.h>

#include "engine/audit.h"
#include "engine/state.h"
#include "ops/registry.h"

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

enum { FIRST_BUCKET_BYTES = 1 << 20 };

int64_t ls_assembly_leaves(const ls_assembly_options *options)
{
    return (options->batch_size + options->leaf_size - 1) / options->leaf_size;
}

/* Samples of the rank that has most. */
static int64_t largest_share(const ls_assembly_options *options, int ranks)
{
    int64_t share = (ls_assembly_leaves(options) + ranks - 1) / ranks * options->leaf_size;
    return least(share, options->batch_size);
}

static ls_status find_sharding(ls_assembly *assembly, const ls_assembly_options *options,
                               ls_error *error)
{
    ls_sharding shard = {0};
    if (options->strategy) {
        const ls_strategy_kind *kind = ls_strategy_kind_of(options->strategy);
        if (!kind)
            return ls_fail(error, LS_UNSUPPORTED, "--strategy %s is not built", options->strategy);
        shard = kind->shard;
    }
    /* A program that trains nothing has parameters only, and no other reason for several ranks. */
    if (!options->training) shard.optimizer_state = shard.gradients = false;
    bool together = options->training || shard.parameters;
    assembly->ranks = together && options->ranks > 1 ? options->ranks : 1;
    /* One rank owns everything: there is nothing to divide, unless its part lies elsewhere. */
    if (assembly->ranks > 1 || options->offload.parameters != LS_SPACE_DEVICE)
        assembly->shard = shard;
    assembly->collective = assembly->ranks > 1 || assembly->shard.parameters;
    return LS_OK;
}

static ls_tree_sizes size_gradients(ls_assembly *assembly, const ls_assembly_options *options)
{
    ls_tree_sizes_options step = {.batch_size = options->batch_size,
                                  .leaf_size = options->leaf_size,
                                  .samples_per_pass = assembly->samples_per_pass,
                                  .ranks = assembly->ranks};
    if (assembly->shard.gradients)
        step.pass_leaves = ls_assembly_pass_leaves(assembly, options->leaf_size);
    ls_tree_sizes sizes = ls_tree_sizes_of(&step);
    assembly->root_capacity = sizes.step_roots;
    assembly->program->gradient_slots = sizes.slots;
    return sizes;
}

static ls_touched_capacity touched_capacity(const ls_assembly *assembly,
                                            const ls_assembly_options *options)
{
    const ls_model_config *config = options->config;
    return (ls_touched_capacity){.word = least(config->vocab_size, assembly->step_token_capacity),
                                 .position = least(config->max_positions, options->longest_row),
                                 .type = config->type_vocab_size};
}

static ls_status spread(ls_assembly *assembly, const ls_assembly_options *options, int32_t open,
                        ls_error *error)
{
    int64_t bucket = options->bucket_bytes, first = least(bucket, FIRST_BUCKET_BYTES);
    if (!assembly->collective) return LS_OK;
    if (assembly->shard.optimizer_state || assembly->shard.parameters) {
        ls_zero_options zero = {.shard = assembly->shard,
                                .prefetch_limited = options->prefetch_limited,
                                .prefetch_elements = options->prefetch_elements,
                                .whole_below = options->whole_below,
                                .ranks = assembly->ranks,
                                .bucket_bytes = bucket,
                                .first_bucket_bytes = first,
                                .root_slots = open,
                                .inputs = &assembly->model.inputs,
                                .loss = &assembly->model.results.loss};
        return ls_zero(assembly->program, &zero, error);
    }
    ls_data_parallel_options strategy = {.bucket_bytes = bucket,
                                         .first_bucket_bytes = first,
                                         .roots = assembly->model.inputs.roots,
                                         .loss = assembly->model.results.loss};
    return ls_data_parallel(assembly->program, &strategy, error);
}

static ls_status offload(ls_assembly *assembly, const ls_assembly_options *options, ls_error *error)
{
    ls_offload_options wanted = options->offload;
    /* A program without an update has parameters only. */
    if (!options->training) wanted.optimizer = LS_SPACE_DEVICE;
    if (!assembly->shard.parameters) wanted.parameters = LS_SPACE_DEVICE;
    if (wanted.optimizer == LS_SPACE_DEVICE && wanted.parameters == LS_SPACE_DEVICE) return LS_OK;
    return ls_offload_state(assembly->program, &wanted, error);
}

static ls_status build_training(ls_assembly *assembly, const ls_assembly_options *options,
                                ls_error *error)
{
    ls_program *program = assembly->program;
    ls_tree_sizes sizes = size_gradients(assembly, options);
    ls_model_options model = {.classes = options->classes,
                              .touched = touched_capacity(assembly, options)};
    LS_TRY(ls_model_build(program, &assembly->model, options->config, &model, error));
    LS_TRY(ls_program_differentiate(program, assembly->model.inputs.schedules, error));
    /* Unit 0 is the embeddings, then come the layers. */
    ls_recompute_options recompute = {options->recompute, 1, 1 + (int)options->config->layers};
    if (recompute.what != LS_RECOMPUTE_NONE) LS_TRY(ls_recompute(program, &recompute, error));
    LS_TRY(ls_adamw(program, &assembly->model.inputs, &options->optimizer, &assembly->norm, error));
    LS_TRY(spread(assembly, options, sizes.open, error));
    ls_gradient_norm_watch_loss(program, assembly->model.results.loss);
    return offload(assembly, options, error);
}

static ls_status build_evaluation(ls_assembly *assembly, const ls_assembly_options *options,
                                  ls_error *error)
{
    ls_model_options model = {.classes = options->classes};
    if (assembly->shard.parameters) model.touched = touched_capacity(assembly, options);
    LS_TRY(ls_model_build(assembly->program, &assembly->model, options->config, &model, error));
    LS_TRY(spread(assembly, options, 0, error));
    return offload(assembly, options, error);
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

static void find_shared_arenas(ls_assembly *assembly)
{
    const ls_program *program = assembly->program;
    for (int32_t b = 0; b < program->bucket_count; b++)
        for (int32_t i = 0; i < program->buckets[b].count; i++) {
            const ls_bucket *bucket = &program->buckets[b];
            assembly->shared_arenas |= 1u << assembly->plan.arena[bucket->values[i]];
            assembly->shared_arenas |= 1u << assembly->plan.arena[ls_bucket_result(bucket, i)];
        }
}

/* A tree that no kernel's stack holds. */
static ls_status check_leaves(const ls_assembly_options *options, ls_error *error)
{
    int64_t leaves = ls_assembly_leaves(options);
    int64_t most = 1 << 19;
    if (!options->training || leaves <= most) return LS_OK;
    return ls_fail(error, LS_USAGE,
                   "a batch of %lld samples has %lld leaves of %lld: at most %lld are summed, "
                   "raise --leaf-size or lower --batch-size",
                   (long long)options->batch_size, (long long)leaves, (long long)options->leaf_size,
                   (long long)most);
}

int64_t ls_assembly_pass_leaves(const ls_assembly *assembly, int64_t leaf_size)
{
    return assembly->ranks * ((assembly->samples_per_pass + leaf_size - 1) / leaf_size);
}

/* Passes whose sums leave the rank end with a leaf. */
static ls_status check_pass(const ls_assembly *assembly, const ls_assembly_options *options,
                            ls_error *error)
{
    int64_t pass = assembly->samples_per_pass, leaf = options->leaf_size;
    if (!assembly->shard.gradients || pass % leaf == 0) return LS_OK;
    if (pass == largest_share(options, assembly->ranks)) return LS_OK;
    while (pass % leaf)
        leaf--;
    return ls_fail(
        error, LS_USAGE,
        "--samples-per-pass %lld is no multiple of --leaf-size %lld: with --strategy "
        "%s a pass holds whole leaves; use --leaf-size %lld, or --samples-per-pass %lld",
        (long long)pass, (long long)options->leaf_size, options->strategy, (long long)leaf,
        (long long)((pass + options->leaf_size - 1) / options->leaf_size * options->leaf_size));
}

ls_status ls_assembly_make(ls_assembly *assembly, const ls_assembly_options *options,
                           const ls_device *device, ls_error *error)
{
    *assembly = (ls_assembly){0};
    LS_TRY(find_sharding(assembly, options, error));
    assembly->samples_per_pass = options->samples_per_pass;
    if (options->training) {
        assembly->samples_per_pass =
            least(options->samples_per_pass, largest_share(options, assembly->ranks));
        assembly->step_leaves = ls_assembly_leaves(options);
    }
    assembly->token_capacity = assembly->samples_per_pass * options->longest_row;
    int64_t together =
        options->training ? options->batch_size : assembly->samples_per_pass * assembly->ranks;
    assembly->step_token_capacity = together * options->longest_row;
    if (assembly->step_token_capacity > INT32_MAX / 2)
        return ls_fail(error, LS_USAGE,
                       "a step of %lld samples of up to %lld tokens is more than Lockstep can "
                       "count: lower --batch-size or --max-length",
                       (long long)together, (long long)options->longest_row);
    if (options->audit && assembly->shard.parameters)
        return ls_fail(
            error, LS_USAGE,
            "--audit-every: with --strategy %s no two ranks hold the same parameters, and "
            "none can compute a pass alone: there is nothing to compare",
            options->strategy);
    LS_TRY(check_leaves(options, error));
    LS_TRY(check_pass(assembly, options, error));
    find_limits(assembly, options);
    ls_status status;
    LS_TRY_GOTO(status, ls_program_new(&assembly->program, ls_op_definitions, error), fail);
    assembly->program->training = options->training;
    LS_TRY_GOTO(status,
                options->training ? build_training(assembly, options, error)
                                  : build_evaluation(assembly, options, error),
                fail);
    LS_TRY_GOTO(status, ls_program_verify(assembly->program, error), fail);
    ls_extents capacity = {{1, assembly->token_capacity, assembly->samples_per_pass}};
    LS_TRY_GOTO(status, ls_plan_make(&assembly->plan, assembly->program, &capacity, error), fail);
    find_shared_arenas(assembly);
    if (assembly->collective) assembly->plan.bytes[LS_PLAN_MESSAGES] = options->message_bytes;
    assembly->plan.bytes[LS_PLAN_SCRATCH] =
        device->operations->scratch_bytes(device, &assembly->limits);
    if (options->training && options->audit)
        assembly->plan.bytes[LS_PLAN_AUDIT] = ls_audit_bytes(assembly);
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

/* What a run asks of memory: its assembly, as settings and data say. */
#include "api/training_memory.h"

#include <stdio.h>
#include <string.h>

#include "api/checkpoints.h"
#include "base/memory_limit.h"

/* Tokens of the longest row that is evaluated; with neither file, room for the training rows. */
static int64_t longest_evaluated(const ls_dataset *validation, const ls_dataset *test,
                                 int64_t longest_row)
{
    if (!validation && !test) return longest_row;
    int64_t longest = validation ? ls_dataset_longest(validation) : 1;
    if (test && ls_dataset_longest(test) > longest) longest = ls_dataset_longest(test);
    return longest;
}

/* As PyTorch DDP has it; between hosts, where sending a bucket takes longer than adding it, smaller
 * ones, so that the last one, which nothing hides, is small too. */
static int64_t bucket_bytes(const ls_session *session)
{
    enum { ON_A_HOST = 25 << 20, BETWEEN_HOSTS = 4 << 20 };
    int64_t asked = session->options->bucket_size;
    if (asked != LS_BUCKET_AUTO) return asked;
    return ls_session_place(session)->hosts > 1 ? BETWEEN_HOSTS : ON_A_HOST;
}

ls_run_memory_options ls_training_memory_options(const ls_session *session, int64_t classes,
                                                 const ls_dataset *train,
                                                 const ls_dataset *validation,
                                                 const ls_dataset *test)
{
    const ls_options *options = session->options;
    int64_t longest_row = train ? ls_dataset_longest(train) : session->max_length;
    int64_t batch_size = options->batch_size;
    /* A batch larger than the data is one short batch an epoch. */
    if (train && batch_size > (int64_t)ls_dataset_count(train))
        batch_size = ls_dataset_count(train);
    ls_run_memory_options memory = {
        .training = {.config = &session->folder.config,
                     .classes = classes,
                     .training = true,
                     .optimizer = {.kind = strcmp(options->optimizer, "adam") == 0
                                               ? LS_OPTIMIZER_ADAM
                                               : LS_OPTIMIZER_ADAMW,
                                   .beta1 = (float)options->adam_beta1,
                                   .beta2 = (float)options->adam_beta2,
                                   .epsilon = (float)options->adam_epsilon,
                                   .weight_decay = (float)options->weight_decay,
                                   .decay_all = options->weight_decay_all,
                                   .max_norm = (float)options->max_grad_norm},
                     .batch_size = batch_size,
                     .bucket_bytes = bucket_bytes(session),
                     .leaf_size = options->leaf_size,
                     .prefetch_limited = options->prefetch_bucket_size >= 0,
                     .prefetch_elements = options->prefetch_bucket_size,
                     .whole_below = options->persistence_threshold,
                     .longest_row = longest_row,
                     .audit = options->audit_every > 0,
                     .snapshot = ls_checkpoints_use_snapshots(options)},
        .samples_per_pass = options->samples_per_pass,
        .evaluation_longest_row = longest_evaluated(validation, test, longest_row),
    };
    ls_training_use_strategy(&memory.training, options, &session->strategy,
                             ls_session_ranks(session));
    return memory;
}

void ls_training_use_strategy(ls_assembly_options *training, const ls_options *options,
                              const ls_strategy *strategy, int64_t ranks)
{
    training->strategy = strategy->kind ? strategy->kind->name : NULL;
    training->ranks = (int)ranks;
    training->recompute = strategy->recompute;
    training->offload = (ls_offload_options){.optimizer = ls_strategy_space(strategy->optimizer),
                                             .parameters = ls_strategy_space(strategy->parameters),
                                             .block_elements = options->offload_block_size /
                                                               (int64_t)sizeof(float)};
}

double ls_training_row_tokens(const ls_dataset *train, const ls_run_memory_options *memory)
{
    if (!train) return (double)memory->training.longest_row;
    return (double)ls_dataset_tokens(train) / (double)ls_dataset_count(train);
}

/* Every rank of a full batch has work to do. */
ls_status ls_training_check_leaves(const ls_run_memory_options *memory, const char *ranks,
                                   ls_error *error)
{
    int64_t batch = memory->training.batch_size, leaf = memory->training.leaf_size;
    int64_t leaves = (batch + leaf - 1) / leaf;
    if (leaves >= memory->training.ranks) return LS_OK;
    int64_t fitting = batch / memory->training.ranks;
    return ls_fail(error, LS_USAGE,
                   "%s more than the %lld leaves of a batch (%lld samples, --leaf-size %lld): %s "
                   "%lld",
                   ranks, (long long)leaves, (long long)batch, (long long)leaf,
                   fitting ? "use --leaf-size" : "use a --batch-size of at least",
                   (long long)(fitting ? fitting : memory->training.ranks));
}

ls_status ls_training_check_ranks(const ls_session *session, const ls_run_memory_options *memory,
                                  ls_error *error)
{
    char ranks[80];
    int count = ls_session_place(session)->count, devices = (int)session->options->devices;
    snprintf(ranks, sizeof ranks, "--devices %d is", devices);
    if (count > 1)
        snprintf(ranks, sizeof ranks, "%d ranks (%d processes of --devices %d) are",
                 count * devices, count, devices);
    const ls_strategy_kind *kind = session->strategy.kind;
    if (memory->training.ranks > 1 && kind && kind->one_device)
        return ls_fail(error, LS_USAGE,
                       "--strategy %s runs on one rank, and %d are started: use --strategy ddp",
                       kind->name, memory->training.ranks);
    return ls_training_check_leaves(memory, ranks, error);
}

ls_status ls_training_check_memory(const ls_session *session, const ls_run_programs *programs,
                                   ls_error *error)
{
    ls_memory_limit limit = ls_memory_limit_read("");
    int64_t devices = session->options->devices * ls_session_place(session)->local_count;
    int64_t on_device = ls_run_programs_bytes(programs);
    int64_t elsewhere = programs->training.plan.bytes[LS_PLAN_HOST_MEMORY], needed;
    if (!__builtin_mul_overflow(on_device + elsewhere, devices, &needed) && needed <= limit.bytes)
        return LS_OK;
    return ls_fail(error, LS_NO_MEMORY,
                   "the run needs %lld bytes of memory on this host (%lld device%s of %lld bytes, "
                   "and %lld of each in host memory), %s %lld: with --device-memory %lld the "
                   "smallest change that fits is named; lockstep plan shows what takes how much",
                   (long long)needed, (long long)devices, devices == 1 ? "" : "s",
                   (long long)on_device, (long long)elsewhere, limit.who, (long long)limit.bytes,
                   (long long)(limit.bytes / devices));
}

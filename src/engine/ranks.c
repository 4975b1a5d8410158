#include "engine/ranks.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/topology.h"
#include "engine/ranks_internal.h"

static ls_status new_rank(ls_ranks *ranks, const ls_ranks_options *options, int rank,
                          ls_error *error)
{
    ls_trainer_options trainer = options->trainer;
    trainer.assembly = &options->programs->training;
    trainer.device = options->devices[rank];
    trainer.rank = ranks->first + rank;
    LS_TRY(ls_trainer_new(&ranks->trainers[rank], &trainer, error));
    ranks->executors[rank] = ls_trainer_executor(ranks->trainers[rank]);
    return ls_evaluator_new(&ranks->evaluators[rank], &options->programs->evaluation,
                            options->devices[rank], trainer.rank,
                            ls_trainer_executor(ranks->trainers[rank]), error);
}

static ls_status connect(void *context, int rank, ls_error *error)
{
    ls_ranks *ranks = context;
    ls_comm *comm = ls_rank_group_comm(ranks->group, rank);
    LS_TRY(ls_trainer_connect(ranks->trainers[rank], comm, error));
    if (!ranks->programs->evaluation.collective) return LS_OK;
    return ls_evaluator_connect(ranks->evaluators[rank], comm, error);
}

/* Each device on cores of its own, where there are enough; processes that nobody bound to some
 * divide theirs too. */
static ls_status divide_cores(const ls_ranks_options *options, ls_cores *cores, bool *divided,
                              ls_error *error)
{
    int count = options->count, parts = count, first = 0;
    ls_cores all = ls_cores_own();
    ls_topology *topology = NULL;
    const ls_processes_place *here =
        options->processes ? ls_processes_here(options->processes) : NULL;
    if (here && here->shares_cores) {
        parts = here->local_count * count;
        first = here->local_index * count;
    }
    *divided = false;
    if (parts == 1) return LS_OK;
    LS_TRY(ls_topology_new(&topology, NULL, error));
    *divided = parts * ls_cpu_device_threads(options->devices[0]) <=
               ls_topology_core_count(topology, &all);
    for (int i = 0; *divided && i < count; i++) {
        cores[i] = ls_topology_part(topology, &all, parts, first + i);
        ls_threads_bind(ls_cpu_device_pool(options->devices[i]), &cores[i]);
    }
    ls_topology_free(topology);
    return LS_OK;
}

static ls_status new_comms(ls_comm **comms, const ls_ranks_options *options, ls_error *error)
{
    if (options->comms) {
        memcpy(comms, options->comms, (size_t)options->count * sizeof *comms);
        return LS_OK;
    }
    if (options->processes)
        return ls_processes_comms(options->processes, comms, options->count, error);
    return ls_comm_threads_new(comms, options->count, error);
}

static ls_status new_group(ls_ranks *ranks, const ls_ranks_options *options, ls_error *error)
{
    int count = options->count;
    ls_cores *cores = NULL;
    ls_comm **comms = NULL;
    bool divided;
    ls_status status;
    LS_TRY_GOTO(status, LS_NEW(cores, count, "ranks", error), done);
    LS_TRY_GOTO(status, LS_NEW(comms, count, "ranks", error), done);
    LS_TRY_GOTO(status, divide_cores(options, cores, &divided, error), done);
    LS_TRY_GOTO(status, new_comms(comms, options, error), done);
    status = ls_rank_group_new(&ranks->group, comms, count, divided ? cores : NULL, error);
done:
    ls_free(cores);
    ls_free(comms);
    return status;
}

ls_status ls_ranks_new(ls_ranks **out, const ls_ranks_options *options, ls_error *error)
{
    ls_ranks *ranks = NULL;
    ls_status status;
    LS_TRY(LS_NEW(ranks, 1, "ranks", error));
    ranks->programs = options->programs;
    ranks->processes = options->processes;
    ranks->count = options->count;
    ranks->should_stop = options->should_stop;
    ranks->context = options->context;
    LS_TRY_GOTO(status, LS_NEW(ranks->shares, ls_ranks_processes(ranks), "ranks", error), fail);
    LS_TRY_GOTO(status, LS_NEW(ranks->trainers, options->count, "ranks", error), fail);
    LS_TRY_GOTO(status, LS_NEW(ranks->evaluators, options->count, "ranks", error), fail);
    LS_TRY_GOTO(status, LS_NEW(ranks->executors, options->count, "ranks", error), fail);
    LS_TRY_GOTO(status, LS_NEW(ranks->findings, options->count, "ranks", error), fail);
    LS_TRY_GOTO(status, LS_NEW(ranks->results, options->count, "ranks", error), fail);
    LS_TRY_GOTO(status, LS_NEW(ranks->notes, options->count, "ranks", error), fail);
    LS_TRY_GOTO(status, new_group(ranks, options, error), fail);
    ranks->first = ls_rank_group_comm(ranks->group, 0)->rank;
    for (int rank = 0; rank < options->count; rank++)
        LS_TRY_GOTO(status, new_rank(ranks, options, rank, error), fail);
    if (options->programs->training.collective)
        LS_TRY_GOTO(status, ls_rank_group_run(ranks->group, connect, ranks, error), fail);
    if (options->trainer.audit) LS_TRY_GOTO(status, ls_ranks_new_audits(ranks, error), fail);
    *out = ranks;
    return LS_OK;
fail:
    ls_ranks_free(ranks);
    return status;
}

void ls_ranks_free(ls_ranks *ranks)
{
    if (!ranks) return;
    for (int rank = 0; rank < ranks->count; rank++) {
        if (ranks->evaluators) ls_evaluator_free(ranks->evaluators[rank]);
        if (ranks->trainers) ls_trainer_free(ranks->trainers[rank]);
    }
    ls_rank_group_free(ranks->group);
    ls_free(ranks->evaluators);
    ls_free(ranks->trainers);
    ls_free(ranks->results);
    ls_free(ranks->shares);
    ls_free(ranks->executors);
    ls_free(ranks->findings);
    ls_free(ranks->own_hashes);
    ls_free(ranks->all_hashes);
    ls_free(ranks->notes);
    ls_free(ranks);
}

ls_executor *ls_ranks_executor(ls_ranks *ranks, int rank)
{
    return ls_trainer_executor(ranks->trainers[rank]);
}

int64_t ls_ranks_offloaded(const ls_ranks *ranks, ls_plan_arena arena)
{
    int64_t most = 0;
    for (int rank = 0; rank < ranks->count; rank++) {
        const ls_offload *offload = ls_executor_offload(ls_trainer_executor(ranks->trainers[rank]));
        int64_t bytes = offload ? ls_offload_bytes(offload, arena) : 0;
        if (bytes > most) most = bytes;
    }
    return most;
}

bool ls_ranks_are_direct(const ls_ranks *ranks)
{
    const ls_offload *offload = ls_executor_offload(ls_trainer_executor(ranks->trainers[0]));
    return !offload || ls_offload_is_direct(offload);
}

ls_state_owners ls_ranks_owners(const ls_ranks *ranks)
{
    return (ls_state_owners){&ranks->programs->training, ranks->executors, ranks->count};
}

ls_rank_group *ls_ranks_group(const ls_ranks *ranks)
{
    return ranks->group;
}

static ls_status load(void *context, int rank, ls_error *error)
{
    ls_ranks *ranks = context;
    return ls_parameters_load(ls_trainer_executor(ranks->trainers[rank]),
                              &ranks->programs->training, ranks->weights, ranks->seed,
                              &ranks->notes[rank], error);
}

ls_status ls_ranks_load(ls_ranks *ranks, const ls_weights *weights, uint64_t seed,
                        ls_parameters_notes *notes, ls_error *error)
{
    ranks->weights = weights;
    ranks->seed = seed;
    ls_status status = ls_rank_group_run(ranks->group, load, ranks, error);
    for (int rank = 1; rank < ranks->count; rank++)
        ls_parameters_notes_deinit(&ranks->notes[rank]);
    *notes = ranks->notes[0];
    return status;
}

static ls_status step(void *context, int rank, ls_error *error)
{
    ls_ranks *ranks = context;
    return ls_trainer_step(ranks->trainers[rank], ranks->step, ranks->batch, &ranks->results[rank],
                           error);
}

/* Before a rank began it was told of the step; after it ended it waited for the others. */
static void sum_up(const ls_ranks *ranks, double begin, double end, ls_step_share *share)
{
    ls_step_times *sum = &share->times;
    bool alone = ranks->count == 1 && ls_ranks_processes(ranks) == 1;
    for (int index = 0; index < ranks->count; index++) {
        const ls_step_result *one = &ranks->results[index];
        sum->data += one->times.data + one->begin - begin;
        sum->forward += one->times.forward;
        sum->backward += one->times.backward;
        sum->exchange += one->times.exchange;
        *(alone ? &sum->optimizer : &sum->exchange) += end - one->end;
        sum->optimizer += one->times.optimizer;
        share->flops += one->flops;
        share->samples_digest += one->samples_digest;
        share->elements += ls_trainer_elements(ranks->trainers[index]);
    }
}

/* Of all processes, into the result. */
static void add_shares(ls_ranks *ranks, ls_step_result *result)
{
    int processes = ls_ranks_processes(ranks);
    double ranks_in_all = (double)processes * ranks->count;
    result->times = (ls_step_times){0};
    result->flops = 0;
    result->samples_digest = 0;
    ranks->elements = 0;
    for (int i = 0; i < processes; i++) {
        const ls_step_share *share = &ranks->shares[i];
        result->times.data += share->times.data / ranks_in_all;
        result->times.forward += share->times.forward / ranks_in_all;
        result->times.backward += share->times.backward / ranks_in_all;
        result->times.exchange += share->times.exchange / ranks_in_all;
        result->times.optimizer += share->times.optimizer / ranks_in_all;
        result->flops += share->flops;
        result->samples_digest += share->samples_digest;
        result->stop = result->stop || share->stop;
        ranks->elements += share->elements;
    }
}

/* What one of several ranks ran out of is said with its number. */
static void name_rank(ls_error *error)
{
    if (!error) return;
    ls_error own = *error;
    snprintf(error->text, sizeof error->text, "rank %d: %.980s", own.rank, own.text);
}

ls_status ls_ranks_step(ls_ranks *ranks, int64_t number, const ls_batch *batch,
                        ls_step_result *result, ls_error *error)
{
    double begin = ls_seconds();
    ls_step_share own = {0};
    ranks->step = number;
    ranks->batch = batch;
    ls_status status = ls_rank_group_run(ranks->group, step, ranks, error);
    if (ranks->count > 1 && (status == LS_IO || status == LS_NO_MEMORY)) name_rank(error);
    LS_TRY(status);
    *result = ranks->results[0];
    result->begin = begin;
    result->end = ls_seconds();
    sum_up(ranks, begin, result->end, &own);
    own.stop = ranks->should_stop && ranks->should_stop(ranks->context);
    ranks->shares[0] = own;
    if (ls_ranks_processes(ranks) > 1)
        LS_TRY(ls_processes_gather(ranks->processes, &own, sizeof own, ranks->shares,
                                   "the end of the step", error));
    add_shares(ranks, result);
    result->finding = "";
    return result->finite ? LS_OK : ls_ranks_find_beginning(ranks, &result->finding, error);
}

void ls_ranks_trace(ls_ranks *ranks, ls_trace *trace)
{
    for (int rank = 0; rank < ranks->count; rank++) {
        ls_trainer_tracks tracks = {ls_trace_track(trace, rank, LS_TRACE_COMPUTE),
                                    ls_trace_track(trace, rank, LS_TRACE_COMMUNICATION),
                                    ls_trace_track(trace, rank, LS_TRACE_GATHERS),
                                    ls_trace_track(trace, rank, LS_TRACE_COPIES)};
        ls_trainer_trace(ranks->trainers[rank], &tracks);
    }
}

int64_t ls_ranks_elements(const ls_ranks *ranks)
{
    return ranks->elements;
}

void ls_ranks_abort(ls_ranks *ranks, const ls_error *why)
{
    ls_comm *comm = ls_rank_group_comm(ranks->group, 0);
    comm->operations->abort(comm, why);
}

ls_status ls_ranks_evaluate(ls_ranks *ranks, const ls_dataset *dataset, int64_t leaf_size,
                            ls_evaluation *evaluation, ls_error *error)
{
    ls_evaluators evaluators = {ranks->evaluators, ranks->group, ranks->count, ranks->processes};
    return ls_evaluator_dataset(&evaluators, dataset, leaf_size, evaluation, NULL, NULL, error);
}

#include "engine/ranks.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/topology.h"
#include "engine/rank_group.h"

struct ls_ranks {
    const ls_run_programs *programs;
    int count;
    ls_rank_group *group;
    ls_trainer **trainers;
    ls_evaluator **evaluators;
    ls_executor **executors; /* of the trainers */
    /* What the ranks are working on: */
    const ls_weights *weights;
    uint64_t seed;
    ls_parameters_notes *notes; /* [count] */
    int64_t step;
    const ls_batch *batch;
    ls_step_result *results; /* [count] */
    ls_audit **sides;        /* [count] of an audit */
    int64_t audits;          /* so far */
    ls_finding *findings;    /* [count] */
    char finding[LS_FINDING_BYTES];
};

static ls_status new_rank(ls_ranks *ranks, const ls_ranks_options *options, int rank,
                          ls_error *error)
{
    ls_trainer_options trainer = options->trainer;
    trainer.assembly = &options->programs->training;
    trainer.device = options->devices[rank];
    trainer.rank = rank;
    LS_TRY(ls_trainer_new(&ranks->trainers[rank], &trainer, error));
    ranks->executors[rank] = ls_trainer_executor(ranks->trainers[rank]);
    return ls_evaluator_new(&ranks->evaluators[rank], &options->programs->evaluation,
                            options->devices[rank], rank,
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

/* Each device on cores of its own, where there are enough. */
static ls_status new_group(ls_ranks *ranks, const ls_ranks_options *options, ls_error *error)
{
    int count = options->count;
    ls_cores all = ls_cores_own(), *cores = NULL;
    ls_topology *topology = NULL;
    ls_status status;
    if (count == 1) return ls_rank_group_new(&ranks->group, count, NULL, error);
    LS_TRY(ls_topology_new(&topology, NULL, error));
    if (count * ls_cpu_device_threads(options->devices[0]) >
        ls_topology_core_count(topology, &all)) {
        status = ls_rank_group_new(&ranks->group, count, NULL, error);
        goto end;
    }
    LS_TRY_GOTO(status, LS_NEW(cores, count, "ranks", error), end);
    for (int rank = 0; rank < count; rank++) {
        cores[rank] = ls_topology_part(topology, &all, count, rank);
        ls_threads_bind(ls_cpu_device_pool(options->devices[rank]), &cores[rank]);
    }
    status = ls_rank_group_new(&ranks->group, count, cores, error);
end:
    ls_topology_free(topology);
    ls_free(cores);
    return status;
}

ls_status ls_ranks_new(ls_ranks **out, const ls_ranks_options *options, ls_error *error)
{
    ls_ranks *ranks = NULL;
    ls_status status;
    LS_TRY(LS_NEW(ranks, 1, "ranks", error));
    ranks->programs = options->programs;
    ranks->count = options->count;
    LS_TRY_GOTO(status, LS_NEW(ranks->trainers, options->count, "ranks", error), fail);
    LS_TRY_GOTO(status, LS_NEW(ranks->evaluators, options->count, "ranks", error), fail);
    LS_TRY_GOTO(status, LS_NEW(ranks->executors, options->count, "ranks", error), fail);
    LS_TRY_GOTO(status, LS_NEW(ranks->sides, options->count, "ranks", error), fail);
    LS_TRY_GOTO(status, LS_NEW(ranks->findings, options->count, "ranks", error), fail);
    LS_TRY_GOTO(status, LS_NEW(ranks->results, options->count, "ranks", error), fail);
    LS_TRY_GOTO(status, LS_NEW(ranks->notes, options->count, "ranks", error), fail);
    LS_TRY_GOTO(status, new_group(ranks, options, error), fail);
    for (int rank = 0; rank < options->count; rank++)
        LS_TRY_GOTO(status, new_rank(ranks, options, rank, error), fail);
    if (options->programs->training.collective)
        LS_TRY_GOTO(status, ls_rank_group_run(ranks->group, connect, ranks, error), fail);
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
    ls_free(ranks->executors);
    ls_free(ranks->sides);
    ls_free(ranks->findings);
    ls_free(ranks->notes);
    ls_free(ranks);
}

ls_executor *ls_ranks_executor(ls_ranks *ranks, int rank)
{
    return ls_trainer_executor(ranks->trainers[rank]);
}

/* What of the elements the rank holds. */
static ls_range held_part(const ls_ranks *ranks, int rank, ls_value_id value, ls_range range)
{
    ls_range held = ls_executor_held(ls_trainer_executor(ranks->trainers[rank]), value);
    if (range.begin < held.begin) range.begin = held.begin;
    if (range.end > held.end) range.end = held.end;
    return range;
}

ls_status ls_ranks_read(ls_ranks *ranks, ls_value_id value, int64_t first, int64_t count, float *to,
                        ls_error *error)
{
    int64_t done = first;
    for (int rank = 0; rank < ranks->count && done < first + count; rank++) {
        ls_range range = held_part(ranks, rank, value, (ls_range){done, first + count});
        if (range.begin >= range.end || range.begin != done) continue;
        LS_TRY(ls_executor_get(ls_ranks_executor(ranks, rank), value, range.begin,
                               range.end - range.begin, to + (done - first), error));
        done = range.end;
    }
    if (done == first + count) return LS_OK;
    return ls_fail(error, LS_INTERNAL, "engine: no rank has element %lld of %s", (long long)done,
                   ls_value_of(ranks->programs->training.program, value)->name);
}

ls_status ls_ranks_write(ls_ranks *ranks, ls_value_id value, int64_t first, int64_t count,
                         const float *from, ls_error *error)
{
    for (int rank = 0; rank < ranks->count; rank++) {
        ls_range range = held_part(ranks, rank, value, (ls_range){first, first + count});
        if (range.begin >= range.end) continue;
        LS_TRY(ls_executor_put(ls_ranks_executor(ranks, rank), value, range.begin,
                               range.end - range.begin, from + (range.begin - first), error));
    }
    return LS_OK;
}

static ls_status read_tensor(void *context, ls_value_id value, int64_t first, int64_t count,
                             float *to, ls_error *error)
{
    return ls_ranks_read(context, value, first, count, to, error);
}

ls_tensor_reader ls_ranks_reader(ls_ranks *ranks)
{
    return (ls_tensor_reader){read_tensor, ranks};
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
static void sum_up(const ls_ranks *ranks, double begin, double end, ls_step_result *result)
{
    ls_step_times sum = {0};
    result->begin = begin;
    result->end = end;
    result->flops = 0;
    for (int rank = 0; rank < ranks->count; rank++) {
        const ls_step_result *one = &ranks->results[rank];
        sum.data += one->times.data + one->begin - begin;
        sum.forward += one->times.forward;
        sum.backward += one->times.backward;
        sum.exchange += one->times.exchange;
        *(ranks->count > 1 ? &sum.exchange : &sum.optimizer) += end - one->end;
        sum.optimizer += one->times.optimizer;
        result->flops += one->flops;
    }
    result->times = (ls_step_times){sum.data / ranks->count, sum.forward / ranks->count,
                                    sum.backward / ranks->count, sum.exchange / ranks->count,
                                    sum.optimizer / ranks->count};
}

static ls_status diagnose(void *context, int rank, ls_error *error)
{
    ls_ranks *ranks = context;
    return ls_trainer_diagnose(ranks->trainers[rank], ranks->batch, &ranks->findings[rank], error);
}

static ls_status find_beginning(ls_ranks *ranks, ls_step_result *result, ls_error *error)
{
    result->finding = ranks->finding;
    LS_TRY(ls_rank_group_run(ranks->group, diagnose, ranks, error));
    for (int rank = 1; rank < ranks->count; rank++)
        ls_finding_merge(&ranks->findings[0], &ranks->findings[rank]);
    ls_finding_print(&ranks->findings[0], ranks->finding);
    return LS_OK;
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
    ranks->step = number;
    ranks->batch = batch;
    ls_status status = ls_rank_group_run(ranks->group, step, ranks, error);
    if (ranks->count > 1 && (status == LS_IO || status == LS_NO_MEMORY)) name_rank(error);
    LS_TRY(status);
    *result = ranks->results[0];
    for (int rank = 1; rank < ranks->count; rank++)
        result->samples_digest += ranks->results[rank].samples_digest;
    sum_up(ranks, begin, ls_seconds(), result);
    return result->finite ? LS_OK : find_beginning(ranks, result, error);
}

static ls_status hash_state(void *context, int rank, ls_error *error)
{
    ls_ranks *ranks = context;
    return ls_audit_hash_state(ls_trainer_audit(ranks->trainers[rank]), error);
}

/* The ranks take turns to be checked. */
ls_status ls_ranks_step_audited(ls_ranks *ranks, int64_t number, const ls_batch *batch,
                                ls_step_result *result, ls_error *error)
{
    int audited = (int)(ranks->audits++ % ranks->count), checker = (audited + 1) % ranks->count;
    LS_TRY(ls_rank_group_run(ranks->group, hash_state, ranks, error));
    for (int rank = 0; rank < ranks->count; rank++) {
        ranks->sides[rank] = ls_trainer_audit(ranks->trainers[rank]);
        ls_trainer_audit_next(ranks->trainers[rank], audited);
    }
    LS_TRY(ls_audit_compare_state(ranks->sides, ranks->count, number, error));
    LS_TRY(ls_ranks_step(ranks, number, batch, result, error));
    return ls_audit_compare_pass(ranks->sides, audited, checker, number, error);
}

void ls_ranks_trace(ls_ranks *ranks, ls_trace *trace)
{
    for (int rank = 0; rank < ranks->count; rank++) {
        ls_trainer_tracks tracks = {ls_trace_track(trace, rank, LS_TRACE_COMPUTE),
                                    ls_trace_track(trace, rank, LS_TRACE_COMMUNICATION),
                                    ls_trace_track(trace, rank, LS_TRACE_COPIES)};
        ls_trainer_trace(ranks->trainers[rank], &tracks);
    }
}

int64_t ls_ranks_elements(const ls_ranks *ranks)
{
    int64_t elements = 0;
    for (int rank = 0; rank < ranks->count; rank++)
        elements += ls_trainer_elements(ranks->trainers[rank]);
    return elements;
}

ls_status ls_ranks_evaluate(ls_ranks *ranks, const ls_dataset *dataset, int64_t leaf_size,
                            ls_evaluation *evaluation, ls_error *error)
{
    ls_evaluators evaluators = {ranks->evaluators, ranks->group, ranks->count};
    return ls_evaluator_dataset(&evaluators, dataset, leaf_size, evaluation, NULL, NULL, error);
}

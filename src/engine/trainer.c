#include "engine/trainer.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail_point.h"
#include "base/scalar_math.h"
#include "data/sampler.h"
#include "engine/exchange/exchange.h"
#include "engine/faults.h"
#include "engine/feeder.h"

struct ls_trainer {
    ls_trainer_options options;
    ls_comm *comm; /* NULL: one rank */
    ls_executor *executor;
    ls_feeder *feeder;
    ls_exchange *exchange; /* with several ranks */
    float *loss_slots;     /* of the step's loss; the first one is the sum */
    double update_flops;
    ls_trainer_tracks tracks;
    ls_audit *audit;    /* NULL: none */
    int audited;        /* rank whose passes are computed again in this step, -1: none */
    int64_t skipped;    /* steps so far that updated nothing */
    bool has_begun;     /* a step has */
    ls_pass_look *look; /* of a diagnosis that goes on */
};

ls_status ls_trainer_new(ls_trainer **out, const ls_trainer_options *options, ls_error *error)
{
    ls_trainer *trainer = NULL;
    ls_status status;
    const ls_assembly *assembly = options->assembly;
    LS_TRY(LS_NEW(trainer, 1, "trainer", error));
    trainer->options = *options;
    trainer->skipped = options->skipped;
    trainer->audited = -1;
    ls_executor_options executor = {.program = assembly->program,
                                    .plan = &assembly->plan,
                                    .device = options->device,
                                    .limits = assembly->limits,
                                    .offload_folder = options->offload_folder,
                                    .shared_arenas = assembly->shared_arenas,
                                    .rank = options->rank,
                                    .poison = options->poison};
    LS_TRY_GOTO(status, ls_executor_new(&trainer->executor, &executor, error), fail);
    LS_TRY_GOTO(status, ls_feeder_new(&trainer->feeder, assembly, trainer->executor, error), fail);
    const ls_value *loss = ls_value_of(assembly->program, assembly->model.results.loss);
    LS_TRY_GOTO(status, LS_NEW(trainer->loss_slots, loss->shape[0].constant, "loss", error), fail);
    trainer->update_flops = ls_executor_flops(trainer->executor, LS_RUN_UPDATE, &ls_fixed_extents);
    if (options->audit)
        LS_TRY_GOTO(status, ls_audit_new(&trainer->audit, assembly, trainer->executor, error),
                    fail);
    *out = trainer;
    return LS_OK;
fail:
    ls_trainer_free(trainer);
    return status;
}

void ls_trainer_free(ls_trainer *trainer)
{
    if (!trainer) return;
    ls_exchange_free(trainer->exchange);
    ls_audit_free(trainer->audit);
    ls_feeder_free(trainer->feeder);
    ls_executor_free(trainer->executor);
    ls_free(trainer->loss_slots);
    ls_free(trainer);
}

ls_executor *ls_trainer_executor(ls_trainer *trainer)
{
    return trainer->executor;
}

ls_status ls_trainer_connect(ls_trainer *trainer, ls_comm *comm, ls_error *error)
{
    trainer->comm = comm;
    return ls_exchange_new(&trainer->exchange, comm, trainer->executor,
                           trainer->options.assembly->program, &trainer->options.assembly->plan,
                           error);
}

void ls_trainer_trace(ls_trainer *trainer, const ls_trainer_tracks *tracks)
{
    trainer->tracks = tracks ? *tracks : (ls_trainer_tracks){0};
    ls_executor_trace(trainer->executor, trainer->tracks.compute);
    if (trainer->exchange)
        ls_exchange_trace(trainer->exchange, trainer->tracks.communication,
                          trainer->tracks.gathers);
}

int64_t ls_trainer_elements(const ls_trainer *trainer)
{
    return trainer->exchange ? ls_exchange_elements(trainer->exchange) : 0;
}

static void write_scalar(ls_trainer *trainer, ls_value_id value, double number)
{
    float single = (float)number;
    ls_executor_write(trainer->executor, value, &single, &ls_fixed_extents);
}

static float read_scalar(ls_trainer *trainer, ls_value_id value)
{
    float single;
    ls_executor_read(trainer->executor, value, &single, &ls_fixed_extents);
    return single;
}

/* What a step's ops read besides its tokens. */
static void write_step_inputs(ls_trainer *trainer, int64_t step, int32_t samples, double rate)
{
    const ls_trainer_options *options = &trainer->options;
    const ls_inputs *inputs = &options->assembly->model.inputs;
    uint32_t key[2] = {(uint32_t)options->seed ^ (uint32_t)(options->seed >> 32), (uint32_t)step};
    double count = (double)(step - trainer->skipped); /* the optimizer's own steps */
    ls_executor_write(trainer->executor, inputs->random_key, key, &ls_fixed_extents);
    write_scalar(trainer, inputs->loss_scale, 1.0 / samples);
    write_scalar(trainer, inputs->learning_rate, rate);
    write_scalar(trainer, inputs->correction1,
                 1.0 - ls_math_pow((double)(float)options->beta1, count));
    write_scalar(trainer, inputs->correction2_root,
                 __builtin_sqrt(1.0 - ls_math_pow((double)(float)options->beta2, count)));
}

/* Adds the time since *border to *part and moves the border. */
static void close_part(double *border, double *part)
{
    double now = ls_seconds();
    *part += now - *border;
    *border = now;
}

static void add_span(ls_track *track, const char *name, double begin, double end)
{
    ls_span span = {.name = name, .begin = begin, .end = end, .op = LS_TRACE_NO_OP};
    ls_track_add(track, &span);
}

/* Ops of a run from *border on, the exchanges that were waited for among them apart. */
static void run_ops(ls_trainer *trainer, unsigned segments, const ls_extents *extents,
                    double *border, ls_step_result *result)
{
    ls_executor_run(trainer->executor, segments, extents);
    ls_run_times run = ls_executor_times(trainer->executor);
    ls_step_times *times = &result->times;
    double forward = run.backward_began - *border - run.exchange_before;
    *border = run.backward_began;
    close_part(border, &times->backward);
    times->forward += forward;
    times->backward -= run.exchange_after;
    times->exchange += run.exchange_before + run.exchange_after;
    result->flops += ls_executor_flops(trainer->executor, segments & LS_RUN_PASS, extents);
}

static ls_status finish_exchanges(ls_trainer *trainer, double *border, ls_step_result *result,
                                  ls_error *error)
{
    if (!trainer->exchange) return LS_OK;
    double begin = *border;
    ls_status status = ls_exchange_finish(trainer->exchange, error);
    close_part(border, &result->times.exchange);
    add_span(trainer->tracks.compute, "wait for exchanges", begin, *border);
    return status;
}

ls_audit *ls_trainer_audit(ls_trainer *trainer)
{
    return trainer->audit;
}

void ls_trainer_audit_next(ls_trainer *trainer, int rank)
{
    trainer->audited = trainer->options.assembly->shard.gradients ? -1 : rank;
}

/* Between the passes and the exchange, which changes the gradients: hash, or compute again. */
static void audit_passes(ls_trainer *trainer, const ls_batch *batch)
{
    const ls_trainer_options *options = &trainer->options;
    int audited = trainer->audited, checker = (audited + 1) % options->assembly->ranks;
    if (options->rank == audited) ls_audit_hash_pass(trainer->audit, trainer->executor);
    if (options->rank == checker)
        ls_audit_repeat(trainer->audit, trainer->executor, batch, options->leaf_size, audited);
    trainer->audited = -1;
}

/* What is known of a pass before it runs. */
static void note_samples(ls_trainer *trainer, const ls_batch *batch, int32_t begin, int32_t end,
                         ls_step_result *result)
{
    if (trainer->look) ls_pass_look_at(trainer->look, trainer->executor, batch, begin, end);
    for (int32_t sample = begin; sample < end; sample++)
        result->samples_digest += ls_sample_digest(batch->sample_ids[sample]);
}

/* The rank's samples, pass by pass; the exchanges start in the last one, those of passes of all
 * ranks in each. A rank without leaves (of a short batch) adds nothing, but takes part in all that
 * is done together. */
static ls_status run_passes(ls_trainer *trainer, const ls_batch *batch, double *border,
                            ls_step_result *result, ls_error *error)
{
    double feeding = *border;
    int32_t passes =
        ls_feeder_start(trainer->feeder, batch, trainer->options.leaf_size, trainer->options.rank);
    bool alone = passes == 0 || trainer->audited >= 0 || /* the exchanges */
                 trainer->options.exchange_last;
    for (int32_t pass = 0; pass < passes; pass++) {
        int32_t begin, end;
        bool last = pass + 1 == passes && !alone;
        unsigned segments = last ? LS_RUN_PASS | LS_RUN_EXCHANGE : LS_RUN_PASS;
        ls_extents extents = ls_fixed_extents;
        ls_feeder_share(trainer->feeder, batch, pass, &begin, &end);
        if (begin < end)
            extents = ls_feeder_pass(trainer->feeder, batch, begin, end);
        else
            segments |= LS_RUN_COLLECTIVES;
        note_samples(trainer, batch, begin, end, result);
        close_part(border, &result->times.data);
        add_span(trainer->tracks.copies, "write inputs", feeding, *border);
        run_ops(trainer, segments, &extents, border, result);
        feeding = *border;
    }
    ls_fault_gradient(trainer->executor, trainer->options.assembly);
    if (trainer->audited >= 0) audit_passes(trainer, batch);
    if (alone) {
        close_part(border, &result->times.data);
        run_ops(trainer, LS_RUN_EXCHANGE, &ls_fixed_extents, border, result);
    }
    return finish_exchanges(trainer, border, result, error);
}

/* "-nan" tells nobody more than "nan". */
static double without_sign(double value)
{
    return value != value ? __builtin_nan("") : value;
}

ls_status ls_trainer_step(ls_trainer *trainer, int64_t step, const ls_batch *batch,
                          ls_step_result *result, ls_error *error)
{
    const ls_assembly *assembly = trainer->options.assembly;
    double border = ls_seconds();
    if (trainer->comm) trainer->comm->step = step;
    if (!trainer->has_begun) LS_TRY(ls_feeder_find_moved(trainer->feeder, error));
    trainer->has_begun = true;
    LS_TRY(ls_fault_weights(trainer->executor, assembly, "weights", error));
    (void)ls_fault_point(trainer->executor, "step");
    *result = (ls_step_result){.begin = border, .flops = trainer->update_flops};
    result->learning_rate = ls_schedule_rate(&trainer->options.schedule, step - 1);
    write_step_inputs(trainer, step, batch->samples, result->learning_rate);
    LS_TRY(run_passes(trainer, batch, &border, result, error));
    LS_TRY(ls_executor_check(trainer->executor, error)); /* before others get to see what it made */
    (void)ls_fail_point("update");
    ls_executor_run(trainer->executor, LS_RUN_UPDATE, &ls_fixed_extents);
    ls_run_times run = ls_executor_times(trainer->executor);
    close_part(&border, &result->times.optimizer);
    result->times.optimizer -= run.exchange_before + run.exchange_after;
    result->times.exchange += run.exchange_before + run.exchange_after;
    LS_TRY(ls_executor_check(trainer->executor, error));
    if (assembly->shard.optimizer_state) LS_TRY(finish_exchanges(trainer, &border, result, error));
    ls_executor_read(trainer->executor, assembly->model.results.loss, trainer->loss_slots,
                     &ls_fixed_extents);
    result->loss = without_sign((double)trainer->loss_slots[0] / batch->samples);
    result->gradient_norm = without_sign((double)read_scalar(trainer, assembly->norm.norm));
    close_part(&border, &result->times.optimizer);
    result->end = border;
    result->finite = __builtin_isfinite(result->loss) && __builtin_isfinite(result->gradient_norm);
    trainer->skipped += !result->finite;
    return LS_OK;
}

ls_status ls_trainer_diagnose(ls_trainer *trainer, const ls_batch *batch, ls_finding *finding,
                              ls_error *error)
{
    const ls_assembly *assembly = trainer->options.assembly;
    ls_pass_look look = {.finding = finding, .program = assembly->program};
    ls_step_result again = {0};
    double border = ls_seconds();
    LS_TRY(ls_diagnose_state(finding, assembly, trainer->executor, error));
    look.device = ls_executor_device(trainer->executor);
    trainer->look = &look;
    trainer->audited = -1;
    ls_status status = run_passes(trainer, batch, &border, &again, error);
    trainer->look = NULL;
    ls_executor_observe(trainer->executor, NULL, NULL);
    return status;
}

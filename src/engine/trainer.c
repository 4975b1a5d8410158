#include "engine/trainer.h"

#include "base/alloc.h"
#include "base/fail_point.h"
#include "base/scalar_math.h"
#include "data/sampler.h"
#include "engine/exchange.h"
#include "engine/faults.h"
#include "engine/feeder.h"

struct ls_trainer {
    ls_trainer_options options;
    ls_executor *executor;
    ls_feeder *feeder;
    ls_comm *comm;         /* NULL: one rank */
    ls_exchange *exchange; /* with several ranks */
    float *loss_slots;     /* [gradient slots] */
    ls_audit *audit;       /* NULL: none */
    int audited;           /* rank whose passes are computed again in this step, -1: none */
    int64_t skipped;       /* steps so far that updated nothing */
};

ls_status ls_trainer_new(ls_trainer **out, const ls_trainer_options *options, ls_error *error)
{
    ls_trainer *trainer = NULL;
    ls_status status;
    const ls_assembly *assembly = options->assembly;
    LS_TRY(LS_NEW(trainer, 1, "trainer", error));
    trainer->options = *options;
    trainer->skipped = options->skipped;
    ls_executor_options executor = {.program = assembly->program,
                                    .plan = &assembly->plan,
                                    .device = options->device,
                                    .limits = assembly->limits,
                                    .rank = options->rank};
    LS_TRY_GOTO(status, ls_executor_new(&trainer->executor, &executor, error), fail);
    LS_TRY_GOTO(status, ls_feeder_new(&trainer->feeder, assembly, trainer->executor, error), fail);
    LS_TRY_GOTO(status,
                LS_NEW(trainer->loss_slots, assembly->program->gradient_slots, "loss", error),
                fail);
    trainer->audited = -1;
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

int64_t ls_trainer_elements(const ls_trainer *trainer)
{
    return trainer->exchange ? ls_exchange_elements(trainer->exchange) : 0;
}

static void write_scalar(ls_trainer *trainer, ls_value_id value, double number)
{
    static const ls_extents fixed = {{1}};
    float single = (float)number;
    ls_executor_write(trainer->executor, value, &single, &fixed);
}

static float read_scalar(ls_trainer *trainer, ls_value_id value)
{
    static const ls_extents fixed = {{1}};
    float single;
    ls_executor_read(trainer->executor, value, &single, &fixed);
    return single;
}

/* What a step's ops read besides its tokens. */
static void write_step_inputs(ls_trainer *trainer, int64_t step, int32_t samples, double rate)
{
    static const ls_extents fixed = {{1}};
    const ls_trainer_options *options = &trainer->options;
    const ls_inputs *inputs = &options->assembly->model.inputs;
    uint32_t key[2] = {(uint32_t)options->seed ^ (uint32_t)(options->seed >> 32), (uint32_t)step};
    double count = (double)(step - trainer->skipped); /* the optimizer's own steps */
    ls_executor_write(trainer->executor, inputs->random_key, key, &fixed);
    write_scalar(trainer, inputs->loss_scale, 1.0 / samples);
    write_scalar(trainer, inputs->learning_rate, rate);
    write_scalar(trainer, inputs->correction1,
                 1.0 - ls_math_pow((double)(float)options->beta1, count));
    write_scalar(trainer, inputs->correction2_root,
                 __builtin_sqrt(1.0 - ls_math_pow((double)(float)options->beta2, count)));
}

ls_audit *ls_trainer_audit(ls_trainer *trainer)
{
    return trainer->audit;
}

void ls_trainer_audit_next(ls_trainer *trainer, int rank)
{
    trainer->audited = rank;
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

/* The rank's samples, pass by pass; the exchanges start in the last one. A rank without leaves (of
 * a short batch) adds nothing, but takes part in the exchanges. */
static ls_status run_passes(ls_trainer *trainer, const ls_batch *batch, uint64_t *digest,
                            ls_error *error)
{
    static const ls_extents fixed = {{1}};
    int64_t pass = trainer->options.assembly->samples_per_pass;
    int32_t begin, last;
    ls_feeder_start(trainer->feeder, batch, trainer->options.leaf_size, trainer->options.rank,
                    &begin, &last);
    bool audited = trainer->audited >= 0, alone = begin == last || audited;
    while (begin < last) {
        int32_t end = last - begin > pass ? begin + (int32_t)pass : last;
        unsigned segments = end == last && !alone ? LS_RUN_PASS | LS_RUN_EXCHANGE : LS_RUN_PASS;
        ls_extents extents = ls_feeder_pass(trainer->feeder, batch, begin, end);
        ls_executor_run(trainer->executor, segments, &extents);
        for (int32_t sample = begin; sample < end; sample++)
            *digest += ls_sample_digest(batch->sample_ids[sample]);
        begin = end;
    }
    ls_fault_gradient(trainer->executor, trainer->options.assembly);
    if (audited) audit_passes(trainer, batch);
    if (alone) ls_executor_run(trainer->executor, LS_RUN_EXCHANGE, &fixed);
    return trainer->exchange ? ls_exchange_finish(trainer->exchange, error) : LS_OK;
}

ls_status ls_trainer_step(ls_trainer *trainer, int64_t step, const ls_batch *batch,
                          ls_step_result *result, ls_error *error)
{
    static const ls_extents fixed = {{1}};
    const ls_assembly *assembly = trainer->options.assembly;
    ls_fault_weights(trainer->executor, assembly);
    (void)ls_fail_point("step");
    result->learning_rate = ls_schedule_rate(&trainer->options.schedule, step - 1);
    write_step_inputs(trainer, step, batch->samples, result->learning_rate);
    result->samples_digest = 0;
    LS_TRY(run_passes(trainer, batch, &result->samples_digest, error));
    (void)ls_fail_point("update");
    ls_executor_run(trainer->executor, LS_RUN_UPDATE, &fixed);
    ls_executor_read(trainer->executor, assembly->model.results.loss, trainer->loss_slots, &fixed);
    result->loss = (double)trainer->loss_slots[0] / batch->samples;
    result->gradient_norm = (double)read_scalar(trainer, assembly->norm.norm);
    result->finite = __builtin_isfinite(result->loss) && __builtin_isfinite(result->gradient_norm);
    trainer->skipped += !result->finite;
    return LS_OK;
}

void ls_trainer_diagnose(ls_trainer *trainer, const ls_batch *batch, ls_finding *finding)
{
    const ls_assembly *assembly = trainer->options.assembly;
    int32_t begin, last;
    if (!ls_diagnose_state(finding, assembly, trainer->executor)) return;
    ls_feeder_start(trainer->feeder, batch, trainer->options.leaf_size, trainer->options.rank,
                    &begin, &last);
    while (begin < last) {
        int32_t most = (int32_t)assembly->samples_per_pass;
        int32_t end = last - begin > most ? begin + most : last;
        ls_extents extents = ls_feeder_pass(trainer->feeder, batch, begin, end);
        ls_diagnose_pass(finding, assembly, trainer->executor, batch, begin, end, &extents);
        begin = end;
    }
}

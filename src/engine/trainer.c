#include "engine/trainer.h"

#include "base/alloc.h"
#include "base/scalar_math.h"
#include "engine/feeder.h"

struct ls_trainer {
    ls_trainer_options options;
    ls_executor *executor;
    ls_feeder *feeder;
    float *loss_slots; /* [gradient slots] */
};

ls_status ls_trainer_new(ls_trainer **out, const ls_trainer_options *options, ls_error *error)
{
    ls_trainer *trainer = NULL;
    ls_status status;
    const ls_assembly *assembly = options->assembly;
    LS_TRY(LS_NEW(trainer, 1, "trainer", error));
    trainer->options = *options;
    ls_executor_options executor = {.program = assembly->program,
                                    .plan = &assembly->plan,
                                    .device = options->device,
                                    .limits = assembly->limits};
    LS_TRY_GOTO(status, ls_executor_new(&trainer->executor, &executor, error), fail);
    LS_TRY_GOTO(status, ls_feeder_new(&trainer->feeder, assembly, trainer->executor, error), fail);
    LS_TRY_GOTO(status,
                LS_NEW(trainer->loss_slots, assembly->program->gradient_slots, "loss", error),
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
    ls_feeder_free(trainer->feeder);
    ls_executor_free(trainer->executor);
    ls_free(trainer->loss_slots);
    ls_free(trainer);
}

ls_executor *ls_trainer_executor(ls_trainer *trainer)
{
    return trainer->executor;
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
    double count = (double)step;
    ls_executor_write(trainer->executor, inputs->random_key, key, &fixed);
    write_scalar(trainer, inputs->loss_scale, 1.0 / samples);
    write_scalar(trainer, inputs->learning_rate, rate);
    write_scalar(trainer, inputs->correction1,
                 1.0 - ls_math_pow((double)(float)options->beta1, count));
    write_scalar(trainer, inputs->correction2_root,
                 __builtin_sqrt(1.0 - ls_math_pow((double)(float)options->beta2, count)));
}

ls_status ls_trainer_step(ls_trainer *trainer, int64_t step, const ls_batch *batch,
                          ls_step_result *result, ls_error *error)
{
    static const ls_extents fixed = {{1}};
    const ls_assembly *assembly = trainer->options.assembly;
    int64_t pass = assembly->samples_per_pass;
    result->learning_rate = ls_schedule_rate(&trainer->options.schedule, step - 1);
    write_step_inputs(trainer, step, batch->samples, result->learning_rate);
    ls_feeder_start(trainer->feeder, batch, trainer->options.leaf_size);
    for (int64_t begin = 0; begin < batch->samples; begin += pass) {
        int64_t end = begin + pass < batch->samples ? begin + pass : batch->samples;
        ls_extents extents = ls_feeder_pass(trainer->feeder, batch, (int32_t)begin, (int32_t)end);
        ls_executor_run(trainer->executor, LS_SEGMENT_PASS, &extents);
    }
    ls_executor_run(trainer->executor, LS_SEGMENT_EXCHANGE, &fixed);
    ls_executor_run(trainer->executor, LS_SEGMENT_UPDATE, &fixed);
    ls_executor_read(trainer->executor, assembly->model.results.loss, trainer->loss_slots, &fixed);
    result->loss = (double)trainer->loss_slots[0] / batch->samples;
    result->gradient_norm = (double)read_scalar(trainer, assembly->norm.norm);
    if (__builtin_isfinite(result->loss) && __builtin_isfinite(result->gradient_norm)) return LS_OK;
    return ls_fail(error, LS_NOT_FINITE,
                   "step %lld: loss %g, gradient norm %g: the run has diverged; nothing was "
                   "updated in this step. Try a lower --learning-rate or more --warmup-steps",
                   (long long)step, result->loss, result->gradient_norm);
}

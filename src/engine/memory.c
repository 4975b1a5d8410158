#include "engine/memory.h"

#include "lockstep/options.h"

static int64_t evaluation_bytes(const ls_plan *plan)
{
    int64_t bytes = 0;
    for (int arena = 0; arena < LS_PLAN_ARENA_COUNT; arena++)
        if (arena != LS_PLAN_PARAMETERS && arena != LS_PLAN_ACTIVATIONS && arena != LS_PLAN_SCRATCH)
            bytes += plan->bytes[arena];
    return bytes;
}

int64_t ls_run_programs_bytes(const ls_run_programs *programs)
{
    return ls_plan_total(&programs->training.plan) + evaluation_bytes(&programs->evaluation.plan);
}

static void share(ls_run_programs *programs, ls_plan_arena arena)
{
    int64_t *bytes = &programs->training.plan.bytes[arena];
    if (*bytes < programs->evaluation.plan.bytes[arena])
        *bytes = programs->evaluation.plan.bytes[arena];
}

/* Evaluation uses training's activations and scratch, and has a rank's share of samples in a pass
 * too: both are planned for the larger of the two. */
static ls_status make(ls_run_programs *programs, const ls_assembly_options *training,
                      int64_t evaluation_longest_row, const ls_device *device, ls_error *error)
{
    *programs = (ls_run_programs){0};
    ls_assembly_options evaluation = *training;
    evaluation.training = false;
    evaluation.longest_row = evaluation_longest_row;
    ls_status status = ls_assembly_make(&programs->training, training, device, error);
    evaluation.samples_per_pass = programs->training.samples_per_pass;
    if (status == LS_OK)
        status = ls_assembly_make(&programs->evaluation, &evaluation, device, error);
    if (status != LS_OK) {
        ls_run_programs_deinit(programs);
        return status;
    }
    share(programs, LS_PLAN_ACTIVATIONS);
    share(programs, LS_PLAN_SCRATCH);
    ls_device_limits *limits = &programs->training.limits;
    if (limits->sequence_length < evaluation_longest_row) {
        limits->sequence_length = evaluation_longest_row;
        limits->tokens = programs->training.samples_per_pass * evaluation_longest_row;
    }
    return LS_OK;
}

static bool fits(const ls_run_programs *programs, const ls_device *device)
{
    return device->budget == 0 || ls_run_programs_bytes(programs) <= device->budget;
}

ls_status ls_run_programs_make(ls_run_programs *programs, const ls_run_memory_options *options,
                               const ls_device *device, ls_error *error)
{
    ls_assembly_options training = options->training;
    int64_t batch = training.batch_size, passes = 1;
    bool automatic = options->samples_per_pass == LS_SAMPLES_AUTO;
    training.samples_per_pass = options->samples_per_pass > 0 ? options->samples_per_pass : batch;
    if (training.samples_per_pass > batch) training.samples_per_pass = batch;
    for (;;) {
        LS_TRY(make(programs, &training, options->evaluation_longest_row, device, error));
        if (fits(programs, device)) return LS_OK;
        if (!automatic || training.samples_per_pass == 1) break;
        ls_run_programs_deinit(programs);
        while ((batch + passes - 1) / passes >= training.samples_per_pass)
            passes++;
        training.samples_per_pass = (batch + passes - 1) / passes;
    }
    int64_t bytes = ls_run_programs_bytes(programs);
    int64_t states = programs->training.plan.bytes[LS_PLAN_PARAMETERS] +
                     programs->training.plan.bytes[LS_PLAN_GRADIENTS] +
                     programs->training.plan.bytes[LS_PLAN_OPTIMIZER_STATE];
    int64_t pass = programs->training.samples_per_pass;
    ls_run_programs_deinit(programs);
    return ls_fail(error, LS_NO_MEMORY,
                   "the run needs %lld bytes of device memory with %lld samples a pass (%lld of "
                   "them for parameters, gradients and optimizer state), --device-memory allows "
                   "%lld: raise it%s",
                   (long long)bytes, (long long)pass, (long long)states, (long long)device->budget,
                   automatic ? " or lower --max-length" : " or lower --samples-per-pass");
}

void ls_run_programs_deinit(ls_run_programs *programs)
{
    ls_assembly_deinit(&programs->training);
    ls_assembly_deinit(&programs->evaluation);
}

static ls_status print_line(ls_text *text, const char *name, int64_t bytes, ls_error *error)
{
    return ls_text_print(text, error, "%-28s %15lld bytes %9.1f MiB\n", name, (long long)bytes,
                         (double)bytes / (1024.0 * 1024.0));
}

ls_status ls_run_programs_print(const ls_run_programs *programs, ls_text *text, ls_error *error)
{
    const ls_assembly *training = &programs->training;
    int64_t pass = training->samples_per_pass;
    LS_TRY(ls_text_print(text, error,
                         "A pass holds up to %lld samples of up to %lld tokens in all; gradients "
                         "wait in %d slot%s.\n\n",
                         (long long)pass, (long long)training->token_capacity,
                         training->program->gradient_slots,
                         training->program->gradient_slots == 1 ? "" : "s"));
    for (ls_plan_arena arena = 0; arena < LS_PLAN_ARENA_COUNT; arena++)
        if (arena <= LS_PLAN_SCRATCH || training->plan.bytes[arena])
            LS_TRY(print_line(text, ls_plan_arena_name(arena), training->plan.bytes[arena], error));
    LS_TRY(print_line(text, "evaluation's own inputs", evaluation_bytes(&programs->evaluation.plan),
                      error));
    return print_line(text, "total on the device", ls_run_programs_bytes(programs), error);
}

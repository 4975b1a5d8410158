#include "engine/memory.h"

#include "lockstep/options.h"

int64_t ls_run_programs_evaluation_bytes(const ls_run_programs *programs)
{
    const ls_plan *plan = &programs->evaluation.plan;
    int64_t bytes = 0;
    for (ls_plan_arena arena = 0; arena < LS_PLAN_SCRATCH; arena++)
        if (arena != LS_PLAN_PARAMETERS && arena != LS_PLAN_MESSAGES &&
            !ls_plan_is_transient(arena))
            bytes += plan->bytes[arena];
    return bytes;
}

int64_t ls_run_programs_bytes(const ls_run_programs *programs)
{
    return ls_plan_total(&programs->training.plan) + ls_run_programs_evaluation_bytes(programs);
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
    share(programs, LS_PLAN_COMMUNICATION);
    share(programs, LS_PLAN_STAGING);
    share(programs, LS_PLAN_MESSAGES);
    share(programs, LS_PLAN_SCRATCH);
    ls_device_limits *limits = &programs->training.limits;
    if (limits->sequence_length < evaluation_longest_row) {
        limits->sequence_length = evaluation_longest_row;
        limits->tokens = programs->training.samples_per_pass * evaluation_longest_row;
    }
    return LS_OK;
}

bool ls_run_programs_fit(const ls_run_programs *programs, const ls_device *device)
{
    return device->budget == 0 || ls_run_programs_bytes(programs) <= device->budget;
}

/* At least what a run with passes of `samples` takes, from the program with larger ones: of what
 * more passes change only slots are left out, of which they never need fewer (where gradients are
 * on their way, neither the slots nor what is there is counted). */
static ls_status least_bytes(int64_t *bytes, const ls_assembly *training, int64_t samples,
                             const ls_device *device, ls_error *error)
{
    ls_plan plan;
    ls_device_limits limits = training->limits;
    int64_t longest_row = training->token_capacity / training->samples_per_pass;
    ls_extents capacity = {{1, samples * longest_row, samples}};
    limits.tokens = samples * longest_row;
    LS_TRY(ls_plan_make(&plan, training->program, &capacity, error));
    if (training->shard.gradients) plan.bytes[LS_PLAN_COMMUNICATION] = 0;
    plan.bytes[LS_PLAN_SCRATCH] = device->operations->scratch_bytes(device, &limits);
    *bytes = ls_plan_total(&plan);
    ls_plan_deinit(&plan);
    return LS_OK;
}

/* Passes that are tried: the batch in `count` of them, of whole leaves where they must be. */
static int64_t samples_of(const ls_assembly_options *training, int64_t count, int64_t unit)
{
    int64_t samples = (training->batch_size + count - 1) / count / unit * unit;
    return samples ? samples : unit;
}

/* The next smaller pass that may fit, or the smallest one; 0: there is no smaller one. Bytes fall
 * as passes become more, so that the border is found by halving. */
static ls_status next_samples(int64_t *samples, const ls_run_programs *programs,
                              const ls_assembly_options *options, const ls_device *device,
                              ls_error *error)
{
    const ls_assembly *training = &programs->training;
    const int64_t *planned = training->plan.bytes;
    int64_t unit = training->shard.gradients ? options->leaf_size : 1;
    int64_t former = training->samples_per_pass, last = options->batch_size, bytes;
    bool never = planned[LS_PLAN_PARAMETERS] + planned[LS_PLAN_GRADIENTS] +
                     planned[LS_PLAN_OPTIMIZER_STATE] + planned[LS_PLAN_STAGING] >
                 device->budget;
    *samples = former > unit ? unit : 0;
    if (*samples == 0 || never) return LS_OK;
    int64_t too_few = (last + former - 2) / (former - 1) - 1, enough = too_few + 1;
    for (;; enough = last) {
        LS_TRY(least_bytes(&bytes, training, samples_of(options, enough, unit), device, error));
        if (bytes <= device->budget) break;
        if (enough == last) return LS_OK;
        too_few = enough;
    }
    while (enough - too_few > 1) {
        int64_t middle = too_few + (enough - too_few) / 2;
        LS_TRY(least_bytes(&bytes, training, samples_of(options, middle, unit), device, error));
        if (bytes <= device->budget)
            enough = middle;
        else
            too_few = middle;
    }
    *samples = samples_of(options, enough, unit);
    return LS_OK;
}

ls_status ls_run_programs_find(ls_run_programs *programs, const ls_run_memory_options *options,
                               const ls_device *device, ls_error *error)
{
    ls_assembly_options training = options->training;
    int64_t batch = training.batch_size, least = INT64_MAX, least_samples = 0, fewer = 0;
    training.samples_per_pass = options->samples_per_pass > 0 ? options->samples_per_pass : batch;
    if (training.samples_per_pass > batch) training.samples_per_pass = batch;
    for (;;) {
        LS_TRY(make(programs, &training, options->evaluation_longest_row, device, error));
        if (options->samples_per_pass != LS_SAMPLES_AUTO) return LS_OK;
        if (ls_run_programs_fit(programs, device)) return LS_OK;
        if (ls_run_programs_bytes(programs) < least) {
            least = ls_run_programs_bytes(programs);
            least_samples = programs->training.samples_per_pass;
        }
        ls_status status = next_samples(&fewer, programs, &training, device, error);
        if (status == LS_OK && fewer == 0 && least_samples == programs->training.samples_per_pass)
            return LS_OK;
        ls_run_programs_deinit(programs);
        LS_TRY(status);
        if (fewer == 0) break;
        training.samples_per_pass = fewer;
    }
    /* Nothing fits, and small passes with all their slots took more than larger ones. */
    training.samples_per_pass = least_samples;
    return make(programs, &training, options->evaluation_longest_row, device, error);
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
    for (ls_plan_arena arena = 0; arena <= LS_PLAN_AUDIT; arena++) {
        bool always =
            arena <= LS_PLAN_SCRATCH && arena != LS_PLAN_STAGING && arena != LS_PLAN_MESSAGES;
        if (always || training->plan.bytes[arena])
            LS_TRY(print_line(text, ls_plan_arena_name(arena), training->plan.bytes[arena], error));
    }
    LS_TRY(print_line(text, "evaluation's own inputs", ls_run_programs_evaluation_bytes(programs),
                      error));
    LS_TRY(print_line(text, "total on the device", ls_run_programs_bytes(programs), error));
    for (ls_plan_arena arena = LS_PLAN_HOST_MEMORY; arena < LS_PLAN_ARENA_COUNT; arena++)
        if (training->plan.bytes[arena])
            LS_TRY(print_line(text, ls_plan_arena_name(arena), training->plan.bytes[arena], error));
    return LS_OK;
}

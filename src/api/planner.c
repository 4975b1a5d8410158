#include "api/planner.h"

#include <stdio.h>
#include <string.h>

#include "api/training_memory.h"

void ls_planner_init(ls_planner *planner, const ls_session *session,
                     const ls_run_memory_options *base)
{
    *planner = (ls_planner){
        .session = session, .base = *base, .row_tokens = (double)base->training.longest_row};
}

void ls_planner_deinit(ls_planner *planner)
{
    ls_device_free(planner->device);
    planner->device = NULL;
}

/* A device as a run on so many of them would have, on the hosts and processes that there are. */
static ls_status find_device(ls_planner *planner, int devices, ls_error *error)
{
    const ls_options *options = planner->session->options;
    const ls_processes_place *here = ls_session_place(planner->session);
    int cores_of_own = here->shares_cores ? here->hosts : here->count, threads;
    LS_TRY(
        ls_session_threads(options, (devices + cores_of_own - 1) / cores_of_own, &threads, error));
    if (planner->device && planner->threads == threads) return LS_OK;
    ls_planner_deinit(planner);
    planner->threads = threads;
    return ls_cpu_device_new(&planner->device, threads, options->device_memory, error);
}

static void fill(const ls_planner *planner, ls_plan_row *row, const ls_run_programs *programs,
                 const ls_assembly_options *options)
{
    const ls_assembly *training = &programs->training;
    memcpy(row->bytes, training->plan.bytes, sizeof row->bytes);
    row->evaluation_bytes = ls_run_programs_evaluation_bytes(programs);
    row->total = ls_run_programs_bytes(programs);
    row->samples_per_pass = training->samples_per_pass;
    row->gradient_slots = training->program->gradient_slots;
    row->longest_row = options->longest_row;
    row->passes = ls_forecast_passes(training, options);
    row->elements = ls_forecast_elements(training, options, NULL);
    row->fits = ls_run_programs_fit(programs, planner->device);
    if (planner->rates)
        row->seconds = ls_forecast_seconds(training, options, planner->row_tokens, planner->rates);
}

ls_status ls_planner_row(ls_planner *planner, ls_plan_row *row, const ls_candidate *candidate,
                         ls_error *error)
{
    ls_run_memory_options memory = planner->base;
    ls_run_programs programs = {0};
    ls_error refusal = {0};
    *row = (ls_plan_row){.candidate = *candidate};
    ls_training_use_strategy(&memory.training, planner->session->options, &row->candidate.strategy,
                             candidate->devices);
    LS_TRY(find_device(planner, candidate->devices, error));
    ls_status status =
        ls_strategy_check_devices(&candidate->strategy, candidate->devices, &refusal);
    char ranks[40];
    snprintf(ranks, sizeof ranks, "--devices %d is", (int)candidate->devices);
    if (status == LS_OK) status = ls_training_check_leaves(&memory, ranks, &refusal);
    if (status == LS_OK)
        status = ls_run_programs_find(&programs, &memory, planner->device, &refusal);
    if (status == LS_OK)
        fill(planner, row, &programs, &memory.training);
    else if (status == LS_USAGE)
        memcpy(row->refused, refusal.text, sizeof row->refused);
    else if (error)
        *error = refusal;
    ls_run_programs_deinit(&programs);
    return status == LS_USAGE ? LS_OK : status;
}

int64_t ls_plan_row_others(const ls_plan_row *row)
{
    const int64_t *bytes = row->bytes;
    return row->total - bytes[LS_PLAN_PARAMETERS] - bytes[LS_PLAN_GRADIENTS] -
           bytes[LS_PLAN_OPTIMIZER_STATE] - bytes[LS_PLAN_ACTIVATIONS] -
           bytes[LS_PLAN_COMMUNICATION];
}

double ls_plan_row_seconds(const ls_plan_row *row)
{
    return row->seconds.compute + row->seconds.exchange + row->seconds.offload;
}

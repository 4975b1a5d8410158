/* run.json's "results": what a comparison of runs reads. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "api/run_monitor.h"
#include "api/run_record.h"
#include "base/alloc.h"

enum { PART_NAME_BYTES = 32, PARTS = LS_PLAN_ARENA_COUNT + 1, SHARES = 5, EVALUATION_FACTS = 4 };

typedef struct memory {
    ls_run_fact facts[LS_RESULT_FACTS];
    ls_run_fact parts[PARTS], shares[SHARES];
    ls_run_fact evaluations[LS_MONITORED_EVALUATIONS];
    ls_run_fact of_evaluation[LS_MONITORED_EVALUATIONS][EVALUATION_FACTS];
    char part_names[PARTS][PART_NAME_BYTES];
} memory;

static ls_run_fact number(const char *key, double value)
{
    return (ls_run_fact){.key = key, .kind = LS_RUN_NUMBER, .number = value};
}

static ls_run_fact integer(const char *key, int64_t value)
{
    return (ls_run_fact){.key = key, .kind = LS_RUN_INTEGER, .integer = value};
}

static ls_run_fact object(const char *key, const ls_run_fact *facts, size_t count)
{
    return (ls_run_fact){.key = key, .kind = LS_RUN_OBJECT, .facts = facts, .count = count};
}

/* "optimizer state" as a key: "optimizer_state". */
static const char *key_of(char into[PART_NAME_BYTES], const char *name)
{
    size_t length = strnlen(name, PART_NAME_BYTES - 1);
    for (size_t i = 0; i < length; i++)
        into[i] = isalnum((unsigned char)name[i]) ? name[i] : '_';
    into[length] = '\0';
    return into;
}

/* The plan's parts; those on the device add up to planned_bytes. */
static void fill_parts(memory *m, const ls_run_programs *programs)
{
    const ls_plan *plan = &programs->training.plan;
    for (int part = 0; part < LS_PLAN_ARENA_COUNT; part++) {
        const char *key = key_of(m->part_names[part], ls_plan_arena_name((ls_plan_arena)part));
        m->parts[part] = integer(key, plan->bytes[part]);
    }
    m->parts[PARTS - 1] = integer("evaluation_inputs", ls_run_programs_evaluation_bytes(programs));
}

static void fill_shares(memory *m, const ls_step_times *share)
{
    m->shares[0] = number("forward", share->forward);
    m->shares[1] = number("backward", share->backward);
    m->shares[2] = number("exchange", share->exchange);
    m->shares[3] = number("optimizer", share->optimizer);
    m->shares[4] = number("data", share->data);
}

static void fill_evaluations(memory *m, const ls_run_monitor *monitor)
{
    for (int i = 0; i < monitor->evaluation_count; i++) {
        const ls_evaluation_report *report = &monitor->evaluations[i];
        ls_run_fact *facts = m->of_evaluation[i];
        facts[0] = number("loss", report->loss);
        facts[1] = number("accuracy", report->accuracy);
        facts[2] = number("macro_f1", report->macro_f1);
        facts[3] = integer("samples", report->samples);
        m->evaluations[i] = object(report->name, facts, EVALUATION_FACTS);
    }
}

static size_t fill_facts(memory *m, ls_run_monitor *monitor, const ls_train_report *report,
                         const ls_saves *saves)
{
    ls_step_summary steps = ls_step_statistics_summary(monitor->statistics);
    ls_run_fact *at = m->facts;
    double peak = monitor->peak.flops_per_second;
    /* The steps may have had more of the machine than the measurement. */
    if (peak > 0) peak = fmax(peak, steps.flops_per_second);
    int64_t host_peak = ls_usage_now().peak_bytes;
    fill_shares(m, &steps.share);
    *at++ = integer("steps_measured", steps.steps);
    *at++ = number("samples_per_second", steps.samples_per_second);
    *at++ = number("real_tokens_per_second", steps.tokens_per_second);
    *at++ = number("step_ms_median", 1e3 * steps.step_seconds_median);
    *at++ = number("step_ms_p95", 1e3 * steps.step_seconds_p95);
    *at++ = integer("planned_bytes", report->planned_bytes);
    *at++ = integer("measured_bytes", report->measured_bytes);
    *at++ = object("memory", m->parts, PARTS);
    *at++ =
        integer("host_peak_bytes", host_peak > monitor->host_peak ? host_peak : monitor->host_peak);
    *at++ = number("elements_sent_per_step", steps.elements_per_step);
    *at++ = number("bytes_sent_per_step", sizeof(float) * steps.elements_per_step);
    *at++ = number("exposed_communication_ms", 1e3 * steps.mean.exchange);
    *at++ = object("share", m->shares, SHARES);
    *at++ = number("flops_per_step", steps.flops_per_step);
    *at++ = number("flops_per_second", steps.flops_per_second);
    *at++ = number("share_of_peak", peak > 0 ? steps.flops_per_second / peak : NAN);
    *at++ = integer("skipped_steps", monitor->skipped);
    *at++ = integer("checkpoints_saved", saves->count);
    *at++ = number("checkpoint_seconds", saves->seconds);
    *at++ = object("evaluations", m->evaluations, (size_t)monitor->evaluation_count);
    *at++ =
        (ls_run_fact){.key = "weights_sha256", .kind = LS_RUN_TEXT, .text = report->weights_sha256};
    return (size_t)(at - m->facts);
}

ls_status ls_run_results_make(ls_run_results *results, ls_run_monitor *monitor,
                              const ls_run_programs *programs, const ls_train_report *report,
                              const ls_saves *saves, ls_error *error)
{
    memory *m = NULL;
    LS_TRY(LS_NEW(m, 1, "results", error));
    fill_parts(m, programs);
    fill_evaluations(m, monitor);
    *results = (ls_run_results){m->facts, fill_facts(m, monitor, report, saves), m};
    return LS_OK;
}

void ls_run_results_deinit(ls_run_results *results)
{
    ls_free(results->memory);
    *results = (ls_run_results){0};
}

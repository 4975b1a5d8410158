#include "engine/diagnosis.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/leaf_schedule.h"

/* Numbers are looked at in pieces that fit on the stack. */
enum { PIECE = 1024 };

/* Index of the first number in [first, count) of a device array that is not finite, or -1. */
static int64_t find(ls_device *device, const float *data, int64_t first, int64_t count)
{
    float piece[PIECE];
    for (int64_t at = first; at < count; at += PIECE) {
        int64_t here = count - at < PIECE ? count - at : PIECE;
        device->operations->download(device, piece, data + at, here * (int64_t)sizeof *piece);
        device->operations->wait(device);
        for (int64_t i = 0; i < here; i++)
            if (!__builtin_isfinite(piece[i])) return at + i;
    }
    return -1;
}

/* --- what the step has left ------------------------------------------------------------------ */

static bool look_at_parameters(ls_finding *finding, const ls_assembly *assembly,
                               const ls_executor *executor)
{
    static const ls_extents fixed = {{1}};
    for (size_t i = 0; i < assembly->model.parameter_count; i++) {
        ls_value_id id = assembly->model.parameters[i].value;
        const ls_value *value = ls_value_of(assembly->program, id);
        const float *data = ls_executor_address(executor, id);
        int64_t count = ls_value_elements(value, &fixed);
        int64_t at = data ? find(ls_executor_device(executor), data, 0, count) : -1;
        if (at < 0) continue;
        finding->op = LS_FINDING_WEIGHT;
        snprintf(finding->where, sizeof finding->where,
                 "the weights: tensor %.200s, element %" PRId64, value->name, at);
        return true;
    }
    return false;
}

/* Elements of slot 0 that a step writes. */
static int64_t written(const ls_program *program, const ls_executor *executor,
                       const ls_value *gradient)
{
    static const ls_extents fixed = {{1}};
    if (!gradient->row_sparse) return ls_value_elements(gradient, &fixed) / program->gradient_slots;
    const ls_touched_rows *touched = ls_executor_bound(executor, gradient->touched);
    return touched ? touched->count * gradient->shape[2].constant : 0;
}

static void look_at_gradients(ls_finding *finding, const ls_program *program,
                              const ls_executor *executor)
{
    for (ls_value_id id = 0; id < program->value_count; id++) {
        const ls_value *value = ls_value_of(program, id);
        const float *data = ls_executor_address(executor, id);
        if (value->role != LS_ROLE_GRADIENT || !data) continue;
        int64_t count = written(program, executor, value);
        if (find(ls_executor_device(executor), data, 0, count) < 0) continue;
        snprintf(finding->gradient, sizeof finding->gradient, "%.190s",
                 ls_value_of(program, value->parameter)->name);
        return;
    }
}

bool ls_diagnose_state(ls_finding *finding, const ls_assembly *assembly,
                       const ls_executor *executor)
{
    *finding = (ls_finding){.op = LS_FINDING_NOTHING};
    if (look_at_parameters(finding, assembly, executor)) return false;
    look_at_gradients(finding, assembly->program, executor);
    return true;
}

/* --- a pass ---------------------------------------------------------------------------------- */

typedef struct pass_look {
    ls_finding *finding;
    const ls_program *program;
    ls_device *device;
    const ls_batch *batch;
    int32_t begin, end;
} pass_look;

static int32_t sample_of_token(const pass_look *look, int64_t token)
{
    const ls_batch *batch = look->batch;
    int32_t sample = look->begin;
    while (sample + 1 < look->end &&
           batch->offsets[sample + 1] - batch->offsets[look->begin] <= token)
        sample++;
    return sample;
}

/* The samples whose rows of a result have such numbers, from element `first` on. */
static void add_samples(const pass_look *look, const ls_operand *result, int64_t first,
                        const ls_extents *extents)
{
    const ls_dimension rows = result->value->shape[0];
    if (result->value->rank == 0 || rows.symbol == LS_SYMBOL_NONE) return;
    ls_finding *finding = look->finding;
    int64_t count = ls_value_elements(result->value, extents);
    int64_t row_size = count / ls_dimension_size(rows, extents);
    int32_t last = -1;
    for (int64_t at = first; at >= 0;) {
        int64_t row = at / row_size;
        int32_t sample = rows.symbol == LS_SYMBOL_TOKENS ? sample_of_token(look, row)
                                                         : look->begin + (int32_t)row;
        if (sample != last && finding->sample_count++ < LS_FINDING_SAMPLES)
            finding->samples[finding->sample_count - 1] = look->batch->sample_ids[sample];
        last = sample;
        at = find(look->device, result->data, (row + 1) * row_size, count);
    }
}

/* Gradients of parameters have slots that a pass does not write: activations alone tell. */
static bool look_at_op(void *context, const ls_op_call *call)
{
    const pass_look *look = context;
    ls_finding *finding = look->finding;
    int32_t op = (int32_t)(call->op - look->program->ops);
    if (op > finding->op) return false;
    for (int i = 0; i < LS_MAX_OUTPUTS; i++) {
        const ls_value *value = call->outputs[i].value;
        if (!value || value->dtype != LS_F32 || value->role != LS_ROLE_ACTIVATION) continue;
        int64_t count = ls_value_elements(value, call->extents);
        int64_t at = find(look->device, call->outputs[i].data, 0, count);
        if (at < 0) continue;
        if (op < finding->op) finding->sample_count = 0;
        finding->op = op;
        snprintf(finding->where, sizeof finding->where, "tensor %.130s of %s %.130s", value->name,
                 ls_op_name(call->op->kind), call->op->name);
        add_samples(look, &call->outputs[i], at, call->extents);
        return false;
    }
    return true;
}

void ls_diagnose_pass(ls_finding *finding, const ls_assembly *assembly, ls_executor *executor,
                      const ls_batch *batch, int32_t begin, int32_t end, const ls_extents *extents)
{
    pass_look look = {finding, assembly->program, ls_executor_device(executor), batch, begin, end};
    ls_executor_observe(executor, look_at_op, &look);
    ls_executor_run(executor, LS_RUN_PASS, extents);
    ls_executor_observe(executor, NULL, NULL);
}

/* --- the answer ------------------------------------------------------------------------------ */

void ls_finding_merge(ls_finding *into, const ls_finding *other)
{
    if (other->op > into->op) return;
    if (other->op < into->op) {
        *into = *other;
        return;
    }
    for (int32_t i = 0; i < other->sample_count && i < LS_FINDING_SAMPLES; i++)
        if (into->sample_count + i < LS_FINDING_SAMPLES)
            into->samples[into->sample_count + i] = other->samples[i];
    into->sample_count += other->sample_count;
}

void ls_finding_print(const ls_finding *finding, char text[LS_FINDING_BYTES])
{
    *text = '\0';
    if (finding->op != LS_FINDING_NOTHING)
        snprintf(text, LS_FINDING_BYTES, "first in %s", finding->where);
    for (int32_t i = 0; i < finding->sample_count && i < LS_FINDING_SAMPLES; i++) {
        size_t used = strlen(text);
        snprintf(text + used, LS_FINDING_BYTES - used, "%s%" PRIu32, i ? ", " : ", samples ",
                 finding->samples[i]);
    }
    size_t used = strlen(text);
    if (finding->sample_count > LS_FINDING_SAMPLES)
        used += (size_t)snprintf(text + used, LS_FINDING_BYTES - used, " and %d more",
                                 finding->sample_count - LS_FINDING_SAMPLES);
    if (*finding->gradient && used < LS_FINDING_BYTES)
        snprintf(text + used, LS_FINDING_BYTES - used, "%s the gradient of tensor %s",
                 used ? "; then in" : "first in", finding->gradient);
}

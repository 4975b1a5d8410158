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

static ls_status look_at_parameter(ls_finding *finding, ls_executor *executor, ls_value_id id,
                                   const char *name, ls_error *error)
{
    float piece[PIECE];
    ls_range held = ls_executor_held(executor, id);
    for (int64_t first = held.begin; first < held.end; first += PIECE) {
        int64_t count = held.end - first < PIECE ? held.end - first : PIECE;
        LS_TRY(ls_executor_get(executor, id, first, count, piece, error));
        for (int64_t i = 0; i < count; i++) {
            if (__builtin_isfinite(piece[i])) continue;
            finding->op = LS_FINDING_WEIGHT;
            snprintf(finding->where, sizeof finding->where,
                     "the weights: tensor %.200s, element %" PRId64, name, first + i);
            return LS_OK;
        }
    }
    return LS_OK;
}

/* Elements of slot 0 that a step writes: the sum, or what the rank owns of it. */
static int64_t written(const ls_executor *executor, ls_value_id id, const ls_value *gradient)
{
    if (gradient->layout == LS_LAYOUT_RUN) {
        ls_range held = ls_executor_held(executor, id);
        return held.end - held.begin;
    }
    if (gradient->layout != LS_LAYOUT_WHOLE) return 0;
    if (!gradient->row_sparse)
        return ls_value_elements(gradient, &ls_fixed_extents) / gradient->shape[0].constant;
    const ls_touched_rows *touched = ls_executor_bound(executor, gradient->touched);
    return touched ? touched->count * gradient->shape[2].constant : 0;
}

static void look_at_gradients(ls_finding *finding, const ls_program *program,
                              const ls_executor *executor)
{
    for (ls_value_id id = 0; id < program->value_count; id++) {
        const ls_value *value = ls_value_of(program, id);
        if (value->role != LS_ROLE_GRADIENT || value->storage != id) continue;
        const float *data = ls_executor_address(executor, id);
        bool earlier = finding->parameter == LS_NO_VALUE || value->parameter < finding->parameter;
        if (!data || !earlier) continue;
        if (find(ls_executor_device(executor), data, 0, written(executor, id, value)) < 0) continue;
        finding->parameter = value->parameter;
        snprintf(finding->gradient, sizeof finding->gradient, "%.190s",
                 ls_value_of(program, value->parameter)->name);
    }
}

ls_status ls_diagnose_state(ls_finding *finding, const ls_assembly *assembly, ls_executor *executor,
                            ls_error *error)
{
    const ls_program *program = assembly->program;
    *finding = (ls_finding){.op = LS_FINDING_NOTHING, .parameter = LS_NO_VALUE};
    for (size_t i = 0; i < assembly->model.parameter_count && finding->op != LS_FINDING_WEIGHT;
         i++) {
        ls_value_id id = assembly->model.parameters[i].value;
        LS_TRY(look_at_parameter(finding, executor, id, ls_value_of(program, id)->name, error));
    }
    look_at_gradients(finding, program, executor);
    return LS_OK;
}

/* --- a pass ---------------------------------------------------------------------------------- */

static int32_t sample_of_token(const ls_pass_look *look, int64_t token)
{
    const ls_batch *batch = look->batch;
    int32_t sample = look->begin;
    while (sample + 1 < look->end &&
           batch->offsets[sample + 1] - batch->offsets[look->begin] <= token)
        sample++;
    return sample;
}

/* The samples whose rows of a result have such numbers, from element `first` on. */
static void add_samples(const ls_pass_look *look, const ls_operand *result, int64_t first,
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
    const ls_pass_look *look = context;
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

void ls_pass_look_at(ls_pass_look *look, ls_executor *executor, const ls_batch *batch,
                     int32_t begin, int32_t end)
{
    look->batch = batch;
    look->begin = begin;
    look->end = end;
    ls_executor_observe(executor, begin < end ? look_at_op : NULL, look);
}

/* --- the answer ------------------------------------------------------------------------------ */

static void merge_gradients(ls_finding *into, const ls_finding *other)
{
    bool earlier = into->parameter == LS_NO_VALUE || other->parameter < into->parameter;
    if (other->parameter == LS_NO_VALUE || !earlier) return;
    into->parameter = other->parameter;
    memcpy(into->gradient, other->gradient, sizeof into->gradient);
}

void ls_finding_merge(ls_finding *into, const ls_finding *other)
{
    merge_gradients(into, other);
    if (other->op > into->op) return;
    if (other->op < into->op) {
        into->op = other->op;
        memcpy(into->where, other->where, sizeof into->where);
        into->sample_count = 0;
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
    else if (finding->parameter != LS_NO_VALUE) /* each rank's part is finite, the sum is not */
        snprintf(text, LS_FINDING_BYTES, "first in the gradient of tensor %s", finding->gradient);
    for (int32_t i = 0; i < finding->sample_count && i < LS_FINDING_SAMPLES; i++) {
        size_t used = strlen(text);
        snprintf(text + used, LS_FINDING_BYTES - used, "%s%" PRIu32, i ? ", " : ", samples ",
                 finding->samples[i]);
    }
    size_t used = strlen(text);
    if (finding->sample_count > LS_FINDING_SAMPLES)
        snprintf(text + used, LS_FINDING_BYTES - used, " and %d more",
                 finding->sample_count - LS_FINDING_SAMPLES);
}

#include "program/gradient.h"

#include <stdio.h>

#include "base/alloc.h"

ls_value_id ls_gradient_of(const ls_gradient_pass *pass, ls_value_id value)
{
    return value == LS_NO_VALUE ? LS_NO_VALUE : pass->gradient[value];
}

ls_status ls_gradient_like(ls_gradient_pass *pass, ls_value_id like, const char *suffix,
                           ls_value_id *out, ls_error *error)
{
    ls_value template = *ls_value_of(pass->program, like);
    const char *name = template.name;
    template.role = LS_ROLE_ACTIVATION;
    return ls_program_value(pass->program, out, template, error, "gradient.%s%s", name, suffix);
}

ls_status ls_gradient_target(ls_gradient_pass *pass, ls_value_id value, ls_value_id *out,
                             ls_value_id *former, bool *accumulate, ls_error *error)
{
    *former = pass->gradient[value];
    *accumulate = *former != LS_NO_VALUE;
    char suffix[32] = "";
    if (*accumulate) {
        int version = 2;
        const ls_value *held = ls_value_of(pass->program, *former);
        for (ls_value_id id = held->storage + 1; id <= *former; id++)
            version += ls_value_of(pass->program, id)->storage == held->storage;
        snprintf(suffix, sizeof suffix, ".%d", version);
    }
    LS_TRY(ls_gradient_like(pass, value, suffix, out, error));
    if (*accumulate)
        pass->program->values[*out].storage = ls_value_of(pass->program, *former)->storage;
    pass->gradient[value] = *out;
    return LS_OK;
}

ls_status ls_gradient_set(ls_gradient_pass *pass, ls_value_id value, ls_value_id gradient,
                          ls_error *error)
{
    if (pass->gradient[value] != LS_NO_VALUE)
        return ls_fail(error, LS_INTERNAL, "program: %s has two gradients and one rule that adds",
                       ls_value_of(pass->program, value)->name);
    pass->gradient[value] = gradient;
    return LS_OK;
}

ls_status ls_gradient_parameter(ls_gradient_pass *pass, ls_value_id parameter, ls_value_id *out,
                                ls_error *error)
{
    const ls_value *held = ls_value_of(pass->program, parameter);
    if (pass->gradient[parameter] != LS_NO_VALUE)
        return ls_fail(error, LS_INTERNAL, "program: parameter %s is used by two ops", held->name);
    ls_value template = {.dtype = LS_F32, .role = LS_ROLE_GRADIENT, .rank = held->rank + 1};
    template.parameter = parameter;
    template.touched = held->touched;
    template.row_sparse = held->row_sparse;
    template.shape[0] = ls_fixed(pass->program->gradient_slots);
    for (int i = 0; i < held->rank; i++)
        template.shape[i + 1] = held->shape[i];
    if (held->row_sparse) template.shape[1] = ls_value_of(pass->program, held->touched)->shape[0];
    LS_TRY(ls_program_value(pass->program, out, template, error, "gradient.%s", held->name));
    pass->gradient[parameter] = *out;
    return LS_OK;
}

ls_status ls_program_differentiate(ls_program *program, ls_schedules schedules, ls_error *error)
{
    ls_gradient_pass pass = {
        .program = program, .schedules = schedules, .value_count = program->value_count};
    int32_t forward_ops = program->op_count;
    LS_TRY(LS_NEW(pass.gradient, program->value_count + 1, "gradient pass", error));
    for (ls_value_id id = 0; id < program->value_count; id++)
        pass.gradient[id] = LS_NO_VALUE;
    program->forward_count = program->op_count;
    ls_status status = LS_OK;
    for (int32_t i = program->op_count - 1; status == LS_OK && i >= 0; i--) {
        ls_op op = program->ops[i]; /* a copy: the rule appends to the list */
        const ls_op_definition *definition = program->definitions[op.kind];
        program->unit = op.unit; /* a backward op belongs where its forward op does */
        if (definition->gradient) status = definition->gradient(&pass, &op, error);
    }
    for (int32_t i = forward_ops; i < program->op_count; i++)
        program->ops[i].backward = true;
    ls_free(pass.gradient);
    return status;
}

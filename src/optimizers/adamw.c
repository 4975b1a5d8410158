#include "optimizers/optimizer.h"

static ls_status declare_moment(ls_program *program, ls_value_id *out, ls_value_id parameter,
                                const char *prefix, ls_error *error)
{
    const ls_value *held = ls_value_of(program, parameter);
    const char *name = held->name;
    ls_value moment = {.dtype = LS_F32,
                       .role = LS_ROLE_OPTIMIZER_STATE,
                       .rank = held->rank,
                       .parameter = parameter,
                       .unit = held->unit,
                       .touched = LS_NO_VALUE};
    for (int i = 0; i < held->rank; i++)
        moment.shape[i] = held->shape[i];
    return ls_program_value(program, out, moment, error, "%s.%s", prefix, name);
}

ls_status ls_adamw(ls_program *program, const ls_inputs *inputs,
                   const ls_optimizer_options *options, ls_gradient_norm_results *norm,
                   ls_error *error)
{
    program->unit = LS_NO_UNIT;
    LS_TRY(ls_gradient_norm(program, options->max_norm, norm, error));
    int32_t count = program->value_count;
    for (ls_value_id id = 0; id < count; id++) {
        if (ls_value_of(program, id)->role != LS_ROLE_GRADIENT) continue;
        ls_adamw_operands operands = {
            .parameter = ls_value_of(program, id)->parameter,
            .gradient = id,
            .beta1 = options->beta1,
            .beta2 = options->beta2,
            .epsilon = options->epsilon,
            .l2 = options->kind == LS_OPTIMIZER_ADAM,
        };
        program->unit = ls_value_of(program, operands.parameter)->unit;
        if (options->decay_all || ls_value_of(program, operands.parameter)->decay)
            operands.weight_decay = options->weight_decay;
        LS_TRY(declare_moment(program, &operands.first_moment, operands.parameter, "first_moment",
                              error));
        LS_TRY(declare_moment(program, &operands.second_moment, operands.parameter, "second_moment",
                              error));
        LS_TRY(ls_adamw_op(program, inputs, operands, norm, error));
    }
    return LS_OK;
}

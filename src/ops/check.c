#include "ops/check.h"

static bool same_dimension(ls_dimension a, ls_dimension b)
{
    if (a.factor == 0 || b.factor == 0) return a.factor == b.factor && a.constant == b.constant;
    return a.symbol == b.symbol && a.factor == b.factor && a.constant == b.constant;
}

ls_status ls_check_shape(const ls_program *program, const ls_op *op, ls_value_id id, ls_dtype dtype,
                         int rank, const ls_dimension *shape, ls_error *error)
{
    if (id == LS_NO_VALUE) return LS_OK;
    const ls_value *value = ls_value_of(program, id);
    bool fits = value->dtype == dtype && value->rank == rank;
    for (int i = 0; fits && i < rank; i++)
        fits = same_dimension(value->shape[i], shape[i]);
    if (fits) return LS_OK;
    return ls_fail(error, LS_INTERNAL, "program: %s (%s): operand %s has another shape or dtype",
                   op->name, ls_op_name(op->kind), value->name);
}

ls_status ls_check_matrix(const ls_program *program, const ls_op *op, ls_value_id id,
                          ls_dimension rows, ls_dimension columns, ls_error *error)
{
    return ls_check_shape(program, op, id, LS_F32, 2, (ls_dimension[]){rows, columns}, error);
}

ls_status ls_check_vector(const ls_program *program, const ls_op *op, ls_value_id id,
                          ls_dimension size, ls_error *error)
{
    return ls_check_shape(program, op, id, LS_F32, 1, &size, error);
}

ls_status ls_check_like(const ls_program *program, const ls_op *op, ls_value_id id,
                        ls_value_id like, ls_error *error)
{
    const ls_value *model = ls_value_of(program, like);
    return ls_check_shape(program, op, id, LS_F32, model->rank, model->shape, error);
}

ls_status ls_check_host(const ls_program *program, const ls_op *op, ls_value_id id, ls_error *error)
{
    if (id == LS_NO_VALUE || ls_value_of(program, id)->space == LS_SPACE_HOST) return LS_OK;
    return ls_fail(error, LS_INTERNAL, "program: %s (%s): %s must be a host value", op->name,
                   ls_op_name(op->kind), ls_value_of(program, id)->name);
}

ls_status ls_new_activation(ls_program *program, ls_value_id *out, const char *name,
                            const char *suffix, int rank, const ls_dimension *shape,
                            ls_error *error)
{
    ls_value value = {.dtype = LS_F32,
                      .role = LS_ROLE_ACTIVATION,
                      .rank = rank,
                      .parameter = LS_NO_VALUE,
                      .touched = LS_NO_VALUE};
    for (int i = 0; i < rank; i++)
        value.shape[i] = shape[i];
    return ls_program_value(program, out, value, error, "%s%s", name, suffix);
}

ls_cost ls_cost_of(const ls_program *program, const ls_op *op, const ls_extents *extents,
                   double flops)
{
    double bytes = 0;
    for (int i = 0; i < LS_MAX_INPUTS; i++)
        if (op->inputs[i] != LS_NO_VALUE)
            bytes += (double)ls_value_bytes(ls_value_of(program, op->inputs[i]), extents);
    for (int i = 0; i < LS_MAX_OUTPUTS; i++)
        if (op->outputs[i] != LS_NO_VALUE)
            bytes += (double)ls_value_bytes(ls_value_of(program, op->outputs[i]), extents);
    return (ls_cost){flops, bytes};
}

double ls_elements_of(const ls_program *program, ls_value_id id, const ls_extents *extents)
{
    return (double)ls_value_elements(ls_value_of(program, id), extents);
}

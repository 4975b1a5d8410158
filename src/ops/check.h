/* Shared by the shape rules. */
#ifndef LS_OPS_CHECK_H
#define LS_OPS_CHECK_H

#include "program/gradient.h"
#include "program/program.h"

/* LS_INTERNAL, naming op and value, unless `id` has this dtype and shape. */
ls_status ls_check_shape(const ls_program *program, const ls_op *op, ls_value_id id, ls_dtype dtype,
                         int rank, const ls_dimension *shape, ls_error *error) LS_MUST_CHECK;
/* The same for a matrix [rows][columns] and a vector [size] of f32. */
ls_status ls_check_matrix(const ls_program *program, const ls_op *op, ls_value_id id,
                          ls_dimension rows, ls_dimension columns, ls_error *error) LS_MUST_CHECK;
ls_status ls_check_vector(const ls_program *program, const ls_op *op, ls_value_id id,
                          ls_dimension size, ls_error *error) LS_MUST_CHECK;
/* f32 of the same shape as `like`. */
ls_status ls_check_like(const ls_program *program, const ls_op *op, ls_value_id id,
                        ls_value_id like, ls_error *error) LS_MUST_CHECK;
/* A host value (a schedule, a list of rows). */
ls_status ls_check_host(const ls_program *program, const ls_op *op, ls_value_id id,
                        ls_error *error) LS_MUST_CHECK;

/* An activation of f32. */
ls_status ls_new_activation(ls_program *program, ls_value_id *out, const char *name,
                            const char *suffix, int rank, const ls_dimension *shape,
                            ls_error *error) LS_MUST_CHECK;

static inline ls_dimension ls_rows_of(const ls_program *program, ls_value_id id)
{
    return program->values[id].shape[0];
}
static inline ls_dimension ls_columns_of(const ls_program *program, ls_value_id id)
{
    return program->values[id].shape[1];
}
/* The schedule that sums over a value's rows: tokens or samples. */
static inline ls_value_id ls_schedule_for(const ls_program *program, ls_schedules schedules,
                                          ls_value_id id)
{
    return ls_rows_of(program, id).symbol == LS_SYMBOL_TOKENS ? schedules.tokens
                                                              : schedules.samples;
}

/* Bytes of all operands once, and the given FLOPs. */
ls_cost ls_cost_of(const ls_program *program, const ls_op *op, const ls_extents *extents,
                   double flops);
/* Elements of a value at these extents. */
double ls_elements_of(const ls_program *program, ls_value_id id, const ls_extents *extents);

#endif

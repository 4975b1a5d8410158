/* The gradient pass: walk the forward ops backwards and let each op's rule append its backward ops
 * (reverse-mode differentiation, Griewank and Walther 2008). */
#ifndef LS_PROGRAM_GRADIENT_H
#define LS_PROGRAM_GRADIENT_H

#include "program/program.h"

/* Inputs that the sums over samples need: each is a host value that holds a ls_leaf_schedule, over
 * the tokens and over the samples of a pass. */
typedef struct ls_schedules {
    ls_value_id tokens, samples;
} ls_schedules;

typedef struct ls_gradient_pass {
    ls_program *program;
    ls_schedules schedules;
    ls_value_id *gradient; /* [values before the pass]: gradient of each, or LS_NO_VALUE */
    int32_t value_count;
} ls_gradient_pass;

/* Append backward ops for everything that leads to the classifier loss, whose rule starts the
 * chain. Every parameter that an op reads gets a gradient value "gradient.<name>". */
ls_status ls_program_differentiate(ls_program *program, ls_schedules schedules,
                                   ls_error *error) LS_MUST_CHECK;

/* --- for the rules in ops/ -------------------------------------------------------------------- */

/* Gradient of an output, LS_NO_VALUE if nothing downstream needs it. */
ls_value_id ls_gradient_of(const ls_gradient_pass *pass, ls_value_id value);

/* The value into which the gradient of activation `value` is written: a fresh one of its shape, or,
 * with *accumulate set, a new version of the one that is there, which the op must read as well
 * (*former) and add to. */
ls_status ls_gradient_target(ls_gradient_pass *pass, ls_value_id value, ls_value_id *out,
                             ls_value_id *former, bool *accumulate, ls_error *error) LS_MUST_CHECK;

/* Say that `gradient` is the gradient of `value`, which has none so far. */
ls_status ls_gradient_set(ls_gradient_pass *pass, ls_value_id value, ls_value_id gradient,
                          ls_error *error) LS_MUST_CHECK;

/* The gradient value of a parameter: [slots][shape], slots of partial sums (leaf_schedule.h);
 * [slots][touched rows][columns] for a row-sparse table. Its own value, made on first use. */
ls_status ls_gradient_parameter(ls_gradient_pass *pass, ls_value_id parameter, ls_value_id *out,
                                ls_error *error) LS_MUST_CHECK;

/* A new activation shaped as `like`, named "gradient.<like>" plus a suffix. */
ls_status ls_gradient_like(ls_gradient_pass *pass, ls_value_id like, const char *suffix,
                           ls_value_id *out, ls_error *error) LS_MUST_CHECK;

#endif

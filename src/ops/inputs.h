/* What the host hands to every pass and step, as values of the program. */
#ifndef LS_OPS_INPUTS_H
#define LS_OPS_INPUTS_H

#include "program/gradient.h"
#include "program/program.h"

/* An embedding table's schedule (host: ls_row_schedule), touched rows (host: ls_touched_rows) and,
 * where only those are at hand, [T] i32: which of them is each token's. */
typedef struct ls_table_inputs {
    ls_value_id schedule, touched, rows;
} ls_table_inputs;

/* T tokens and S samples of a pass. */
typedef struct ls_inputs {
    ls_value_id ids, positions, types; /* [T] i32 */
    ls_value_id token_samples;         /* [T] i32: sample id of each token */
    ls_value_id offsets;               /* [S + 1] i32: first token of each sequence */
    ls_value_id samples;               /* [S] i32: sample ids */
    ls_value_id labels;                /* [S] i32 */
    /* The following exist in training programs only. */
    ls_value_id random_key; /* [2] i32: Philox key, from (seed, step) */
    ls_value_id loss_scale; /* [] 1 / true batch count */
    ls_value_id learning_rate, correction1, correction2_root; /* [] see ls_adamw in kernels.h */
    ls_value_id roots;                                        /* host: ls_step_roots */
    ls_schedules schedules; /* host: ls_leaf_schedule over tokens and samples */
    ls_table_inputs word, position, type;
} ls_inputs;

/* Most rows that one step can touch in each table. */
typedef struct ls_touched_capacity {
    int64_t word, position, type;
} ls_touched_capacity;

/* All zero: touched rows are not listed, as in evaluation programs that have whole tables. */
ls_status ls_inputs_declare(ls_program *program, ls_inputs *inputs, ls_touched_capacity touched,
                            ls_error *error) LS_MUST_CHECK;

/* Declare the `rows` of all tables. */
ls_status ls_inputs_declare_rows(ls_program *program, ls_inputs *inputs,
                                 ls_error *error) LS_MUST_CHECK;

#endif

/* Who owns which elements, for all that divides work or memory among ranks.
 *
 * Each unit (ls_value.unit) is one flat run of its parameters, in the order in which they were
 * declared, cut into a slice a rank. The cuts are as even as they can be where blocks of LS_BLOCK
 * elements begin, which start afresh at each parameter: the blocks of the gradient norm, so that a
 * rank has the squares of whole blocks. Of each parameter a rank owns a range, often an empty one.
 *
 * Values of LS_LAYOUT_RUN hold owned ranges only. Those with the same `run` (a unit's parameters,
 * its first moments, ...) lie one behind the other in room for the largest slice, so that plans are
 * the same on all ranks and only places inside a run differ. */
#ifndef LS_PROGRAM_LAYOUT_H
#define LS_PROGRAM_LAYOUT_H

#include "program/program.h"

enum { LS_BLOCK = 1024 };

typedef struct ls_range {
    int64_t begin, end;
} ls_range;

/* Divide the parameters among `ranks`: after the model is built, before anything below. */
ls_status ls_layout_divide(ls_program *program, int ranks, ls_error *error) LS_MUST_CHECK;

/* The elements of `parameter` that `rank` owns; all of them where the program is not divided. */
ls_range ls_layout_owned(const ls_program *program, ls_value_id parameter, int rank);

/* The parameter that a value belongs to: itself, or that of a gradient or a moment. */
ls_value_id ls_layout_parameter(const ls_program *program, ls_value_id value);

/* Of a value of LS_LAYOUT_RUN: elements of the rank's slice that lie before its own. */
int64_t ls_layout_place(const ls_program *program, ls_value_id value, int rank);

/* Elements of the largest slice of a run (a partial sum of it, where there are several). */
int64_t ls_layout_run_elements(const ls_program *program, ls_value_id run);

/* What is offloaded lies in runs over all units (ls_value.home): on each rank what it owns of the
 * parameters, in the order in which they were declared; each unit, and what follows a table in it,
 * begins at a block. Here of `parameter`; ls_layout_positions: [values], of every parameter,
 * and how many elements of it the rank owns. */
int64_t ls_layout_position(const ls_program *program, ls_value_id parameter, int rank);
void ls_layout_positions(const ls_program *program, int rank, int64_t *positions, int64_t *counts);
/* The elements of `parameter` that lie in elements [first, first + count) of the rank's runs. */
ls_range ls_layout_part(const ls_program *program, ls_value_id parameter, int rank, int64_t first,
                        int64_t count);
/* Of a run of LS_ROLE_OFFLOAD, which stands for parameters that follow each other: the elements of
 * the rank's run of all units that it holds, whole blocks. */
ls_range ls_layout_run_part(const ls_program *program, ls_value_id run, int rank);
int64_t ls_layout_home_elements(const ls_program *program); /* of the largest: whole blocks */

/* Rows of a table of which one rank owns at least a part, at most. */
int64_t ls_layout_rows(const ls_program *program, ls_value_id table);

#endif

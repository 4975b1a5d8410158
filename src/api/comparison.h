/* What the processes of a run must have in common. */
#ifndef LS_API_COMPARISON_H
#define LS_API_COMPARISON_H

#include "api/training_run.h"

/* LS_INVALID unless all processes have the same program, settings that change numbers, rows,
 * weights and exchanges. */
ls_status ls_training_run_compare(const ls_training_run *run, ls_error *error) LS_MUST_CHECK;

#endif

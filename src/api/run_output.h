/* The output folder of a run. */
#ifndef LS_API_RUN_OUTPUT_H
#define LS_API_RUN_OUTPUT_H

#include "api/training_run.h"

/* Check the output folder and keep other runs out of it. Collective. */
ls_status ls_training_run_take_output(ls_training_run *run, ls_error *error) LS_MUST_CHECK;

#endif

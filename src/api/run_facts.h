/* What a run says in run.json. */
#ifndef LS_API_RUN_FACTS_H
#define LS_API_RUN_FACTS_H

#include "api/training_run.h"

/* Write run.json; with `finished` the results too. */
ls_status ls_training_run_record(ls_training_run *run, bool finished,
                                 ls_error *error) LS_MUST_CHECK;

#endif

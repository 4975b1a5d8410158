/* What a plan knows of a run's data. */
#ifndef LS_API_PLAN_DATA_H
#define LS_API_PLAN_DATA_H

#include "api/session.h"
#include "engine/memory.h"

/* The files' rows say how long a pass is; they are all read, as a run would. */
typedef struct ls_plan_data {
    ls_dataset *train, *validation, *test;
} ls_plan_data;

/* And the memory options of the run; without training rows as many classes as the model names. */
ls_status ls_plan_data_open(ls_plan_data *data, ls_session *session, ls_run_memory_options *memory,
                            ls_error *error) LS_MUST_CHECK;
void ls_plan_data_close(ls_plan_data *data); /* safe on an all-zero one */

#endif

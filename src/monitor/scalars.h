/* The numbers of a report under the names that other programs know: one table for all sinks. */
#ifndef LS_MONITOR_SCALARS_H
#define LS_MONITOR_SCALARS_H

#include "lockstep/reports.h"

typedef struct ls_scalar {
    const char *name; /* "learning_rate" */
    const char *csv;  /* what DeepSpeed calls it where it has the thing: "lr" */
    double csv_scale; /* its unit: 1000 for milliseconds */
    const char *help; /* one line */
} ls_scalar;

enum { LS_STEP_SCALARS = 11, LS_EVALUATION_SCALARS = 3 };
extern const ls_scalar ls_step_scalars[LS_STEP_SCALARS];
extern const ls_scalar ls_evaluation_scalars[LS_EVALUATION_SCALARS];

/* The values, in the order of the tables. */
void ls_step_values(const ls_step_report *report, double values[LS_STEP_SCALARS]);
void ls_evaluation_values(const ls_evaluation_report *report, double values[LS_EVALUATION_SCALARS]);

#endif

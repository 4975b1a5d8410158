/* What one run of `lockstep train` wrote: run.json, metrics.jsonl, a profile's summary, read back.
 */
#ifndef LS_COMPARE_FACTS_H
#define LS_COMPARE_FACTS_H

#include "base/status.h"
#include "compare/measures.h"

typedef struct ls_compare_point {
    double x, y;
} ls_compare_point;

/* A named part of a device's memory. */
typedef struct ls_compare_part {
    char name[64];
    double bytes;
} ls_compare_part;

typedef struct ls_run_facts {
    int64_t warm_up; /* steps that do not count for speeds */
    double
        values[LS_MEASURE_COUNT]; /* those with a key in run.json, and the two speeds; else NaN */
    char weights_sha256[65];
    double *step_ms; /* of the steps after the warm-up */
    size_t step_count, step_capacity;
    ls_compare_point *losses; /* (step, training loss) of all steps */
    size_t loss_count, loss_capacity;
    ls_compare_point *accuracies; /* (step, accuracy) of the evaluations on the validation file */
    size_t accuracy_count, accuracy_capacity;
    ls_compare_part *parts; /* of the device's memory, "memory" of run.json */
    size_t part_count, part_capacity;
    /* Of the last evaluation on the test file, else on the validation file; else NaN and the last
     * step's training loss. */
    const char *evaluated_on; /* "test", "validation", "training" */
    double loss, accuracy, macro_f1;
    /* Of profile/summary.json where the run left one; else "" and NaN. With it comes the value of
     * LS_MEASURE_OP_BYTES_PER_SECOND. */
    char bottleneck[300], advice[300];
    double peak_flops_per_second; /* of this machine, on the run's cores */
} ls_run_facts;

/* A number that run.json does not have stays NaN; a
 * file that is missing or damaged is an error that names it. Deinit also after a failure. */
ls_status ls_run_facts_read(ls_run_facts *facts, const char *folder, int64_t warm_up,
                            ls_error *error) LS_MUST_CHECK;
void ls_run_facts_deinit(ls_run_facts *facts);

#endif

/* After a step whose loss or norm is not finite: where that began. The same answer on every layout
 * of ranks and passes. Nothing of the run's state is changed by looking. */
#ifndef LS_ENGINE_DIAGNOSIS_H
#define LS_ENGINE_DIAGNOSIS_H

#include <stdbool.h>

#include "data/batch.h"
#include "engine/assembly.h"
#include "engine/executor.h"

enum { LS_FINDING_BYTES = 600, LS_FINDING_SAMPLES = 8 };

/* The first result, in the order of the program, that has a number which is not finite; and whose
 * rows those are. */
typedef struct ls_finding {
    int32_t op; /* index into the program; LS_FINDING_WEIGHT, LS_FINDING_NOTHING */
    char where[300];
    ls_value_id parameter; /* the first one whose gradient has such a number, LS_NO_VALUE: none */
    char gradient[200];    /* its name */
    uint32_t samples[LS_FINDING_SAMPLES]; /* ids, in the batch's order */
    int32_t sample_count;                 /* of all that have one */
} ls_finding;
enum { LS_FINDING_WEIGHT = -1, LS_FINDING_NOTHING = INT32_MAX };

/* Those of the samples that follow: the earlier op counts, of the same op all samples. */
void ls_finding_merge(ls_finding *into, const ls_finding *other);
/* "" if nothing was found. */
void ls_finding_print(const ls_finding *finding, char text[LS_FINDING_BYTES]);

/* What the step has left: parameters and the sums of gradients that the rank holds. */
ls_status ls_diagnose_state(ls_finding *finding, const ls_assembly *assembly, ls_executor *executor,
                            ls_error *error) LS_MUST_CHECK;

/* A pass that is looked at, op by op. */
typedef struct ls_pass_look {
    ls_finding *finding;
    const ls_program *program;
    ls_device *device;
    const ls_batch *batch;
    int32_t begin, end; /* its samples */
} ls_pass_look;
/* Look at the results of all ops that run on `executor` from now on, over these samples. */
void ls_pass_look_at(ls_pass_look *look, ls_executor *executor, const ls_batch *batch,
                     int32_t begin, int32_t end);

#endif

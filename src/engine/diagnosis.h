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
    char gradient[200];                   /* the first of the gradients that has one, "": none */
    uint32_t samples[LS_FINDING_SAMPLES]; /* ids, in the batch's order */
    int32_t sample_count;                 /* of all that have one */
} ls_finding;
enum { LS_FINDING_WEIGHT = -1, LS_FINDING_NOTHING = INT32_MAX };

/* Those of the samples that follow: the earlier op counts, of the same op all samples. */
void ls_finding_merge(ls_finding *into, const ls_finding *other);
/* "" if nothing was found. */
void ls_finding_print(const ls_finding *finding, char text[LS_FINDING_BYTES]);

/* What the step has left: parameters and the sums of gradients. False: the parameters have it,
 * there is nothing more to look for. */
bool ls_diagnose_state(ls_finding *finding, const ls_assembly *assembly,
                       const ls_executor *executor);
/* Run the pass whose inputs were fed, samples begin .. end - 1 of the batch, and look at each op's
 * results. */
void ls_diagnose_pass(ls_finding *finding, const ls_assembly *assembly, ls_executor *executor,
                      const ls_batch *batch, int32_t begin, int32_t end, const ls_extents *extents);

#endif

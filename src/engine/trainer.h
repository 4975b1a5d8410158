/* One training step after the other, on one rank's device. */
#ifndef LS_ENGINE_TRAINER_H
#define LS_ENGINE_TRAINER_H

#include "comm/comm.h"
#include "data/batch.h"
#include "engine/assembly.h"
#include "engine/audit.h"
#include "engine/diagnosis.h"
#include "engine/executor.h"
#include "optimizers/schedule.h"

typedef struct ls_trainer ls_trainer;

typedef struct ls_trainer_options {
    const ls_assembly *assembly; /* borrowed, like the device */
    ls_device *device;
    int rank; /* of assembly->ranks */
    int64_t leaf_size;
    uint64_t seed;
    ls_schedule schedule;
    double beta1,
        beta2;       /* of the optimizer, for its bias corrections (as floats, as it has them) */
    bool audit;      /* passes may be computed again: takes the plan's LS_PLAN_AUDIT bytes */
    int64_t skipped; /* steps before the first one here that updated nothing */
} ls_trainer_options;

ls_status ls_trainer_new(ls_trainer **out, const ls_trainer_options *options,
                         ls_error *error) LS_MUST_CHECK;
void ls_trainer_free(ls_trainer *trainer); /* NULL is allowed */
ls_executor *ls_trainer_executor(ls_trainer *trainer);
/* With an assembly of several ranks, once before the first step: join the group. A collective call.
 */
ls_status ls_trainer_connect(ls_trainer *trainer, ls_comm *comm, ls_error *error) LS_MUST_CHECK;
/* Elements that this rank has read from others so far. */
int64_t ls_trainer_elements(const ls_trainer *trainer);

typedef struct ls_step_result {
    double loss; /* mean over the batch's samples */
    double gradient_norm, learning_rate;
    /* Loss and norm are finite. If not, nothing was updated: all ranks see the same sums, so that
     * they all say the same. The step then counts, but not as one of the optimizer's. */
    bool finite;
    /* Sum modulo 2^64 of ls_sample_digest over the samples that the rank's passes ran, of
     * ls_ranks_step over all ranks: the same for the same samples, however they are spread. */
    uint64_t samples_digest;
    const char *finding; /* of ls_ranks_step: where it began, "" if that is not known */
} ls_step_result;

/* Step number `step` (from 1) on the rank's leaves of `batch`; with several ranks a collective
 * call. Allocates nothing. */
ls_status ls_trainer_step(ls_trainer *trainer, int64_t step, const ls_batch *batch,
                          ls_step_result *result, ls_error *error) LS_MUST_CHECK;

/* Of a trainer with `audit`: its side of the audits. */
ls_audit *ls_trainer_audit(ls_trainer *trainer);
/* In the next step hash the passes of `rank`, and compute them again on the rank after it. */
void ls_trainer_audit_next(ls_trainer *trainer, int rank);

/* Where the numbers of the step just done stopped being finite, on this rank's samples. Looks at
 * parameters and gradients, then computes the rank's passes again and looks at each op's results.
 */
void ls_trainer_diagnose(ls_trainer *trainer, const ls_batch *batch, ls_finding *finding);

#endif

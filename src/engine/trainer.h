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
    int rank;           /* of those that the assembly was made for */
    bool poison;        /* see ls_executor_options */
    bool audit;         /* passes may be computed again: takes the plan's LS_PLAN_AUDIT bytes */
    bool exchange_last; /* exchanges begin after the last pass; not where gradients are divided */
    int64_t skipped;    /* steps before the first one here that updated nothing */
    int64_t leaf_size;
    uint64_t seed;
    ls_schedule schedule;
    const char *offload_folder; /* of an assembly with values in a file */
    double beta1,
        beta2; /* of the optimizer, for its bias corrections (as floats, as it has them) */
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

/* Record on these tracks from now on; NULL stops it. */
typedef struct ls_trainer_tracks {
    ls_track *compute, *communication, *gathers, *copies;
} ls_trainer_tracks;
void ls_trainer_trace(ls_trainer *trainer, const ls_trainer_tracks *tracks);

/* Where the time of a step went, in seconds, cut at borders that follow one another, so that the
 * parts are the whole. */
typedef struct ls_step_times {
    double data;              /* waiting for the batch, writing inputs */
    double forward, backward; /* computing */
    double exchange;          /* waiting for other ranks and their bytes */
    double optimizer;         /* norm, clipping, update, reading the step's scalars */
} ls_step_times;

typedef struct ls_step_result {
    double loss; /* mean over the batch's samples */
    double gradient_norm, learning_rate;
    ls_step_times times; /* of this rank, from begin to end */
    double begin, end;   /* ls_seconds */
    double flops;        /* of this rank's ops */
    /* Loss and norm are finite. If not, nothing was updated: all ranks see the same sums, so that
     * they all say the same. The step then counts, but not as one of the optimizer's. */
    bool finite;
    bool stop; /* see ls_ranks_step */
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
/* In the next step hash the passes of `rank`, and compute them again on the rank after it; where
 * passes are exchanged one by one (zero2, zero3) that cannot be, and nothing is done. */
void ls_trainer_audit_next(ls_trainer *trainer, int rank);

/* Where the numbers of the step just done stopped being finite, on this rank's samples. Looks at
 * parameters and gradients, then computes the step's passes again, with the others, and looks at
 * each op's results. A collective call. */
ls_status ls_trainer_diagnose(ls_trainer *trainer, const ls_batch *batch, ls_finding *finding,
                              ls_error *error) LS_MUST_CHECK;

#endif

/* From a model's configuration to a program with a plan: the fixed order of rewrites.
 *
 * build forward > gradient > optimizer > plan. The verifier runs before the plan is made, always:
 * it costs microseconds. */
#ifndef LS_ENGINE_ASSEMBLY_H
#define LS_ENGINE_ASSEMBLY_H

#include "devices/device.h"
#include "models/model.h"
#include "optimizers/optimizer.h"
#include "program/plan.h"

typedef struct ls_assembly_options {
    const ls_model_config *config;
    int64_t classes;
    bool training;
    ls_optimizer_options optimizer; /* training */
    int64_t batch_size, leaf_size;  /* training: samples of the largest batch, over all ranks */
    int ranks;                      /* training: 0 and 1 are one rank */
    int64_t bucket_bytes;           /* with several ranks */
    int64_t samples_per_pass;       /* at most this many samples in a pass */
    int64_t longest_row;            /* tokens */
    bool audit;                     /* training: some passes are computed again */
    bool snapshot;                  /* training: checkpoints are written beside training */
} ls_assembly_options;

typedef struct ls_assembly {
    ls_program *program;
    ls_model model;
    ls_gradient_norm_results norm; /* training */
    ls_plan plan;
    ls_device_limits limits;
    int64_t samples_per_pass, token_capacity; /* of a pass */
    int64_t step_token_capacity;              /* of a step, over all ranks */
    int ranks;
    int32_t root_capacity; /* most roots that any batch has over all ranks */
} ls_assembly;

/* `device` tells how much scratch it needs; nothing is allocated on it. */
ls_status ls_assembly_make(ls_assembly *assembly, const ls_assembly_options *options,
                           const ls_device *device, ls_error *error) LS_MUST_CHECK;
void ls_assembly_deinit(ls_assembly *assembly); /* safe on an all-zero one and twice */

#endif

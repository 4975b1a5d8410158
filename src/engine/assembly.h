/* From a model's configuration to a program with a plan: the fixed order of rewrites.
 *
 * build forward > gradient > recompute > optimizer > data parallel or ZeRO > offload > plan. The
 * verifier runs before the plan is made, always: it costs microseconds. */
#ifndef LS_ENGINE_ASSEMBLY_H
#define LS_ENGINE_ASSEMBLY_H

#include "devices/device.h"
#include "engine/tree_sizes.h"
#include "models/model.h"
#include "optimizers/optimizer.h"
#include "program/plan.h"
#include "strategies/strategy.h"

typedef struct ls_assembly_options {
    const ls_model_config *config;
    int64_t classes;
    bool training;
    ls_optimizer_options optimizer; /* training */
    int64_t batch_size, leaf_size;  /* training: samples of the largest batch, over all ranks */
    const char *strategy;           /* NULL: ddp, or single with one rank */
    int ranks;                      /* 0 and 1 are one rank, whatever the strategy */
    int64_t bucket_bytes;           /* with several ranks */
    int64_t message_bytes;          /* with several hosts, see ls_collectives_message_bytes */
    ls_recompute_what recompute;    /* training */
    /* Of parameters that are divided, as ls_zero_options has them. */
    bool prefetch_limited;
    int64_t prefetch_elements, whole_below;
    ls_offload_options offload; /* of what an update changes; zero: nothing */
    int64_t samples_per_pass;   /* at most this many samples in a pass */
    int64_t longest_row;        /* tokens */
    bool audit;                 /* training: some passes are computed again */
    bool snapshot;              /* training: checkpoints are written beside training */
} ls_assembly_options;

typedef struct ls_assembly {
    ls_program *program;
    ls_model model;
    ls_gradient_norm_results norm; /* training */
    ls_plan plan;
    ls_device_limits limits;
    int64_t samples_per_pass, token_capacity; /* of a pass */
    int64_t step_token_capacity;              /* of a step or a batch, over all ranks */
    int ranks;                                /* that run the program together */
    bool collective;                          /* it has collectives, if only of one rank */
    ls_sharding shard;                        /* what is divided among them */
    int64_t step_leaves;                      /* training: of a full batch, over all ranks */
    int32_t root_capacity;  /* at least the roots that any batch has over all ranks */
    unsigned shared_arenas; /* bit a: collectives read arena a of other ranks */
} ls_assembly;

/* With gradients that are sharded, passes of all ranks are exchanged one by one and hold whole
 * leaves: LS_USAGE names the --leaf-size that would do where samples_per_pass cuts one.
 *
 * `device` tells how much scratch it needs; nothing is allocated on it. */
ls_status ls_assembly_make(ls_assembly *assembly, const ls_assembly_options *options,
                           const ls_device *device, ls_error *error) LS_MUST_CHECK;
/* Leaves of a full batch. */
int64_t ls_assembly_leaves(const ls_assembly_options *options);
/* Leaves of a pass of all ranks, where gradients are sharded. */
int64_t ls_assembly_pass_leaves(const ls_assembly *assembly, int64_t leaf_size);
void ls_assembly_deinit(ls_assembly *assembly); /* safe on an all-zero one and twice */

#endif

/* Optimizers append the update to a program; schedules give each step's learning rate. */
#ifndef LS_OPTIMIZERS_OPTIMIZER_H
#define LS_OPTIMIZERS_OPTIMIZER_H

#include "ops/ops.h"

typedef enum ls_optimizer_kind {
    LS_OPTIMIZER_ADAMW, /* decoupled weight decay: Loshchilov and Hutter 2019 */
    LS_OPTIMIZER_ADAM,  /* decay added to the gradient, after clipping: Kingma and Ba 2015 */
} ls_optimizer_kind;

typedef struct ls_optimizer_options {
    ls_optimizer_kind kind;
    float beta1, beta2, epsilon, weight_decay;
    bool decay_all; /* biases and layer norms too */
    float max_norm; /* clip the global gradient norm to it; 0: no clipping */
} ls_optimizer_options;

/* Two moments for each parameter that has a gradient ("first_moment.<name>",
 * "second_moment.<name>"), the norm, the clip factor, and an update op each. */
ls_status ls_adamw(ls_program *program, const ls_inputs *inputs,
                   const ls_optimizer_options *options, ls_gradient_norm_results *norm,
                   ls_error *error) LS_MUST_CHECK;

#endif

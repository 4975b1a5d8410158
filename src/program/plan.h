/* The memory plan: every value gets an arena and an offset before anything is allocated.
 *
 * Parameters, gradients, optimizer state, inputs and scalars live through a step and lie one after
 * the other. Activations share one arena: values whose lifetimes do not meet may share bytes, large
 * ones placed first, each at the lowest offset that is free while it lives. */
#ifndef LS_PROGRAM_PLAN_H
#define LS_PROGRAM_PLAN_H

#include "program/program.h"

typedef enum ls_plan_arena {
    LS_PLAN_PARAMETERS,
    LS_PLAN_GRADIENTS,
    LS_PLAN_OPTIMIZER_STATE,
    LS_PLAN_ACTIVATIONS,
    LS_PLAN_INPUTS,
    LS_PLAN_SCALARS,
    LS_PLAN_SCRATCH, /* the device's own: filled in by who knows the device */
    /* Filled in by who saves and checks; most runs have none of them. */
    LS_PLAN_SNAPSHOT, /* parameters and moments, copied for a checkpoint */
    LS_PLAN_AUDIT,    /* gradients and inputs of a pass that is computed again */
    LS_PLAN_ARENA_COUNT
} ls_plan_arena;

enum { LS_PLAN_ALIGNMENT = 64 };

typedef struct ls_plan {
    ls_plan_arena *arena;               /* [values] */
    int64_t *offset;                    /* [values] -1: the value needs no bytes on the device */
    int64_t bytes[LS_PLAN_ARENA_COUNT]; /* of each arena, at capacity */
    ls_extents capacity;
} ls_plan;

ls_status ls_plan_make(ls_plan *plan, const ls_program *program, const ls_extents *capacity,
                       ls_error *error) LS_MUST_CHECK;
void ls_plan_deinit(ls_plan *plan);

int64_t ls_plan_total(const ls_plan *plan);
const char *ls_plan_arena_name(ls_plan_arena arena);

#endif

/* The memory plan: every value gets an arena and an offset before anything is allocated.
 *
 * Parameters, gradients, optimizer state, inputs and scalars live through a step and lie one after
 * the other; a run of shards (layout.h) has room for the largest slice. Activations share one
 * arena, what is on its way between ranks another: values whose lifetimes do not meet may share
 * bytes, large ones placed first, each at the lowest offset that is free while it lives. A value
 * that is on its way lives until it is waited for. */
#ifndef LS_PROGRAM_PLAN_H
#define LS_PROGRAM_PLAN_H

#include "program/program.h"

typedef enum ls_plan_arena {
    LS_PLAN_PARAMETERS,
    LS_PLAN_GRADIENTS,
    LS_PLAN_OPTIMIZER_STATE,
    LS_PLAN_ACTIVATIONS,
    LS_PLAN_COMMUNICATION,
    LS_PLAN_INPUTS,
    LS_PLAN_SCALARS,
    LS_PLAN_STAGING,  /* blocks of what lies elsewhere */
    LS_PLAN_MESSAGES, /* buffers of what travels between hosts: filled in by who knows these */
    LS_PLAN_SCRATCH,  /* the device's own: filled in by who knows the device */
    /* Filled in by who saves and checks; most runs have none of them. */
    LS_PLAN_SNAPSHOT, /* parameters and moments, copied for a checkpoint */
    LS_PLAN_AUDIT,    /* gradients and inputs of a pass that is computed again */
    /* Not on the device: */
    LS_PLAN_HOST_MEMORY,
    LS_PLAN_FILE,
    LS_PLAN_ARENA_COUNT
} ls_plan_arena;

enum { LS_PLAN_ALIGNMENT = 64 };

typedef struct ls_plan {
    ls_plan_arena *arena; /* [values] */
    int64_t *offset; /* [values] -1: the value needs no bytes in an arena; a value of a run has the
                        run's, see ls_layout_place, one that is offloaded its home's, see
                        ls_layout_position */
    int32_t *first,
        *last; /* [values] op between which its bytes are its own; -1: no op uses them */
    int64_t bytes[LS_PLAN_ARENA_COUNT]; /* of each arena, at capacity */
    ls_extents capacity;
} ls_plan;

ls_status ls_plan_make(ls_plan *plan, const ls_program *program, const ls_extents *capacity,
                       ls_error *error) LS_MUST_CHECK;
void ls_plan_deinit(ls_plan *plan);

/* Values that share an arena by their lifetimes. */
static inline bool ls_plan_is_transient(ls_plan_arena arena)
{
    return arena == LS_PLAN_ACTIVATIONS || arena == LS_PLAN_COMMUNICATION ||
           arena == LS_PLAN_STAGING;
}

static inline bool ls_plan_is_on_device(ls_plan_arena arena)
{
    return arena <= LS_PLAN_AUDIT;
}

int64_t ls_plan_total(const ls_plan *plan); /* on the device */
const char *ls_plan_arena_name(ls_plan_arena arena);

#endif

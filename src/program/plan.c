#include "program/plan.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "program/layout.h"

/* A value's bytes and the ops between which they must not change. */
typedef struct lifetime {
    ls_value_id storage;
    int32_t first, last;
    int64_t bytes, offset;
} lifetime;

static int64_t aligned(int64_t bytes)
{
    return (bytes + LS_PLAN_ALIGNMENT - 1) / LS_PLAN_ALIGNMENT * LS_PLAN_ALIGNMENT;
}

static ls_plan_arena arena_of(const ls_value *value)
{
    static const ls_plan_arena arenas[LS_ROLE_COUNT] = {
        [LS_ROLE_PARAMETER] = LS_PLAN_PARAMETERS,
        [LS_ROLE_GRADIENT] = LS_PLAN_GRADIENTS,
        [LS_ROLE_OPTIMIZER_STATE] = LS_PLAN_OPTIMIZER_STATE,
        [LS_ROLE_ACTIVATION] = LS_PLAN_ACTIVATIONS,
        [LS_ROLE_COMMUNICATION] = LS_PLAN_COMMUNICATION,
        [LS_ROLE_INPUT] = LS_PLAN_INPUTS,
        [LS_ROLE_SCALAR] = LS_PLAN_SCALARS,
        [LS_ROLE_OFFLOAD] = LS_PLAN_STAGING,
    };
    if (value->space == LS_SPACE_HOST_MEMORY) return LS_PLAN_HOST_MEMORY;
    if (value->space == LS_SPACE_FILE) return LS_PLAN_FILE;
    return arenas[value->role];
}

static void extend(lifetime *lives, const ls_program *program, ls_value_id id, int32_t op)
{
    if (id == LS_NO_VALUE) return;
    lifetime *life = &lives[ls_value_of(program, id)->storage];
    if (life->first < 0) life->first = op;
    life->last = op;
}

static void extend_bucket(lifetime *lives, const ls_program *program, int32_t op)
{
    if (!ls_op_is_collective(program->ops[op].kind)) return;
    const ls_bucket *bucket = &program->buckets[program->ops[op].attributes.bucket];
    for (int32_t i = 0; i < bucket->count; i++) {
        extend(lives, program, bucket->values[i], op);
        extend(lives, program, ls_bucket_result(bucket, i), op);
    }
}

/* Bytes that a value takes where it is placed: a run takes them for all of its values. */
static int64_t placed_bytes(const ls_program *program, ls_value_id id, const ls_extents *capacity)
{
    const ls_value *value = ls_value_of(program, id);
    if (value->layout != LS_LAYOUT_RUN) return ls_value_bytes(value, capacity);
    if (value->run != id) return 0;
    int64_t slots = value->role == LS_ROLE_GRADIENT ? value->shape[0].constant : 1;
    return slots * ls_layout_run_elements(program, id) * ls_dtype_bytes(value->dtype);
}

/* Fill lives[storage] for all values, unused ones with first -1. */
static void find_lifetimes(lifetime *lives, const ls_program *program, const ls_extents *capacity)
{
    for (ls_value_id id = 0; id < program->value_count; id++) {
        int64_t bytes = aligned(placed_bytes(program, id, capacity));
        lives[id] = (lifetime){.storage = id, .first = -1, .last = -1, .offset = -1};
        lifetime *owner = &lives[ls_value_of(program, id)->storage];
        if (bytes > owner->bytes) owner->bytes = bytes;
    }
    for (int32_t i = 0; i < program->op_count; i++) {
        for (int in = 0; in < LS_MAX_INPUTS; in++)
            extend(lives, program, program->ops[i].inputs[in], i);
        for (int out = 0; out < LS_MAX_OUTPUTS; out++)
            extend(lives, program, program->ops[i].outputs[out], i);
        extend_bucket(lives, program, i);
    }
}

/* Larger first; equal sizes in the order of the program, so that plans never depend on the sort. */
static int by_size(const void *left, const void *right)
{
    const lifetime *a = *(const lifetime *const *)left, *b = *(const lifetime *const *)right;
    if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
    return a->storage < b->storage ? -1 : 1;
}

/* `placed` is in the order of offsets. Returns where in that order the new one belongs. */
static int32_t place(lifetime *life, lifetime *const *placed, int32_t count)
{
    int64_t offset = 0;
    for (int32_t i = 0; i < count; i++) {
        const lifetime *other = placed[i];
        if (other->first > life->last || other->last < life->first) continue;
        if (other->offset - offset >= life->bytes) break;
        if (other->offset + other->bytes > offset) offset = other->offset + other->bytes;
    }
    life->offset = offset;
    int32_t at = count;
    while (at > 0 && placed[at - 1]->offset > offset)
        at--;
    return at;
}

static ls_status plan_transient(ls_plan *plan, const ls_program *program, lifetime *lives,
                                ls_plan_arena arena, ls_error *error)
{
    lifetime **order = NULL, **placed = NULL;
    int32_t count = 0;
    ls_status status;
    LS_TRY_GOTO(status, LS_NEW(order, program->value_count + 1, "memory plan", error), done);
    LS_TRY_GOTO(status, LS_NEW(placed, program->value_count + 1, "memory plan", error), done);
    for (ls_value_id id = 0; id < program->value_count; id++)
        if (arena_of(ls_value_of(program, id)) == arena && lives[id].first >= 0)
            order[count++] = &lives[id];
    qsort(order, (size_t)count, sizeof *order, by_size);
    for (int32_t i = 0; i < count; i++) {
        int32_t at = place(order[i], placed, i);
        for (int32_t move = i; move > at; move--)
            placed[move] = placed[move - 1];
        placed[at] = order[i];
        int64_t end = order[i]->offset + order[i]->bytes;
        if (end > plan->bytes[arena]) plan->bytes[arena] = end;
    }
done:
    ls_free(order);
    ls_free(placed);
    return status;
}

static void plan_others(ls_plan *plan, const ls_program *program, lifetime *lives)
{
    for (ls_value_id id = 0; id < program->value_count; id++) {
        const ls_value *value = ls_value_of(program, id);
        plan->arena[id] = arena_of(value);
        bool own = value->storage == id && value->space != LS_SPACE_HOST && lives[id].first >= 0;
        if (!own || ls_plan_is_transient(plan->arena[id])) continue;
        lives[id].offset = plan->bytes[plan->arena[id]];
        plan->bytes[plan->arena[id]] += lives[id].bytes;
    }
}

/* The value that is placed where this one lies. */
static ls_value_id place_of(const ls_value *value)
{
    if (ls_value_is_offloaded(value)) return value->home;
    return value->run == LS_NO_VALUE ? value->storage : value->run;
}

ls_status ls_plan_make(ls_plan *plan, const ls_program *program, const ls_extents *capacity,
                       ls_error *error)
{
    lifetime *lives = NULL;
    ls_status status;
    *plan = (ls_plan){.capacity = *capacity};
    size_t count = (size_t)program->value_count + 1;
    LS_TRY_GOTO(status, LS_NEW(plan->arena, count, "memory plan", error), done);
    LS_TRY_GOTO(status, LS_NEW(plan->offset, count, "memory plan", error), done);
    LS_TRY_GOTO(status, LS_NEW(plan->first, count, "memory plan", error), done);
    LS_TRY_GOTO(status, LS_NEW(plan->last, count, "memory plan", error), done);
    LS_TRY_GOTO(status, LS_NEW(lives, count, "memory plan", error), done);
    find_lifetimes(lives, program, capacity);
    plan_others(plan, program, lives);
    LS_TRY_GOTO(status, plan_transient(plan, program, lives, LS_PLAN_ACTIVATIONS, error), done);
    LS_TRY_GOTO(status, plan_transient(plan, program, lives, LS_PLAN_COMMUNICATION, error), done);
    LS_TRY_GOTO(status, plan_transient(plan, program, lives, LS_PLAN_STAGING, error), done);
    for (ls_value_id id = 0; id < program->value_count; id++) {
        const ls_value *value = ls_value_of(program, id);
        const lifetime *life = &lives[place_of(value)];
        plan->offset[id] = life->offset;
        plan->first[id] = life->first;
        plan->last[id] = life->last;
    }
done:
    ls_free(lives);
    if (status != LS_OK) ls_plan_deinit(plan);
    return status;
}

void ls_plan_deinit(ls_plan *plan)
{
    ls_free(plan->arena);
    ls_free(plan->offset);
    ls_free(plan->first);
    ls_free(plan->last);
    *plan = (ls_plan){0};
}

int64_t ls_plan_total(const ls_plan *plan)
{
    int64_t total = 0;
    for (ls_plan_arena arena = 0; ls_plan_is_on_device(arena); arena++)
        total += plan->bytes[arena];
    return total;
}

const char *ls_plan_arena_name(ls_plan_arena arena)
{
    static const char *const names[LS_PLAN_ARENA_COUNT] = {
        [LS_PLAN_PARAMETERS] = "parameters",
        [LS_PLAN_GRADIENTS] = "gradients",
        [LS_PLAN_OPTIMIZER_STATE] = "optimizer state",
        [LS_PLAN_ACTIVATIONS] = "activations",
        [LS_PLAN_COMMUNICATION] = "communication buffers",
        [LS_PLAN_INPUTS] = "inputs",
        [LS_PLAN_SCALARS] = "scalars",
        [LS_PLAN_STAGING] = "staging",
        [LS_PLAN_MESSAGES] = "messages between hosts",
        [LS_PLAN_SCRATCH] = "kernel scratch",
        [LS_PLAN_SNAPSHOT] = "checkpoint snapshot",
        [LS_PLAN_AUDIT] = "second pass of audits",
        [LS_PLAN_HOST_MEMORY] = "in host memory",
        [LS_PLAN_FILE] = "in a file",
    };
    return names[arena];
}

#include <stdio.h>

#include "base/alloc.h"
#include "program/layout.h"
#include "strategies/offload.h"
#include "strategies/strategy.h"

/* Runs that an update may use, and blocks of each that are on the device at once. */
enum { PARAMETERS, FIRST_MOMENTS, SECOND_MOMENTS, RUNS, AHEAD = 2 };

/* Which blocks of the runs hold elements of an update's parameter, on one rank or another. */
typedef struct span {
    int32_t first, last;
} span;

/* What the rewrite works on: the new list of ops, the runs, and the blocks that these are cut
 * into. Blocks are taken in turn, the last one first. */
typedef struct rewrite {
    ls_program *program;
    const ls_offload_options *options;
    ls_op *ops;
    int32_t op_count;
    int32_t next;           /* first op of the old list that is not done */
    ls_value_id runs[RUNS]; /* LS_NO_VALUE: it is on the device */
    int64_t elements;       /* of a run */
    span *spans; /* [ops of the old list] of the updates that use runs; last < first: others */
    ls_value_id (*blocks)[RUNS];
    int32_t block_count, fetched;
} rewrite;

static ls_status new_value(rewrite *r, ls_value_id *out, ls_space space, int64_t elements,
                           ls_error *error, const char *name)
{
    ls_value value = {.dtype = LS_F32,
                      .role = LS_ROLE_OFFLOAD,
                      .space = space,
                      .rank = 1,
                      .shape = {ls_fixed(elements)},
                      .parameter = LS_NO_VALUE,
                      .touched = LS_NO_VALUE};
    return ls_program_value(r->program, out, value, error, "%s", name);
}

static ls_space space_of(const rewrite *r, int run)
{
    return run == PARAMETERS ? r->options->parameters : r->options->optimizer;
}

static void move(rewrite *r, ls_value_id id, int run)
{
    r->program->values[id].space = space_of(r, run);
    r->program->values[id].home = r->runs[run];
}

/* Parameters that are whole on every rank stay on the device. */
static bool is_divided(const ls_program *program, ls_value_id id)
{
    const ls_value *value = ls_value_of(program, id);
    return value->role == LS_ROLE_PARAMETER && value->layout == LS_LAYOUT_RUN;
}

/* An update has the first moment before the second. */
static void move_values(rewrite *r)
{
    const ls_program *program = r->program;
    for (ls_value_id id = 0; id < program->value_count; id++)
        if (r->runs[PARAMETERS] != LS_NO_VALUE && is_divided(program, id)) move(r, id, PARAMETERS);
    for (int32_t i = 0; r->runs[FIRST_MOMENTS] != LS_NO_VALUE && i < program->op_count; i++) {
        const ls_op *op = &program->ops[i];
        for (int in = 0, run = FIRST_MOMENTS; op->kind == LS_OP_ADAMW && in < LS_MAX_INPUTS; in++)
            if (op->inputs[in] != LS_NO_VALUE &&
                ls_value_of(program, op->inputs[in])->role == LS_ROLE_OPTIMIZER_STATE)
                move(r, op->inputs[in], run++);
    }
}

/* Every parameter may be whole. */
static bool has_values(const rewrite *r, int run)
{
    for (ls_value_id id = 0; run == PARAMETERS && id < r->program->value_count; id++)
        if (is_divided(r->program, id)) return true;
    return run != PARAMETERS;
}

static ls_status make_runs(rewrite *r, ls_error *error)
{
    static const char *const names[RUNS] = {"parameters", "first_moments", "second_moments"};
    r->elements = ls_layout_home_elements(r->program);
    for (int run = 0; run < RUNS; run++) {
        r->runs[run] = LS_NO_VALUE;
        if (space_of(r, run) == LS_SPACE_DEVICE || !has_values(r, run)) continue;
        LS_TRY(new_value(r, &r->runs[run], space_of(r, run), r->elements, error, names[run]));
    }
    move_values(r);
    return LS_OK;
}

static int64_t block_elements(const rewrite *r, int32_t block)
{
    int64_t size = r->options->block_elements, left = r->elements - block * size;
    return left < size ? left : size;
}

static ls_status make_blocks(rewrite *r, ls_error *error)
{
    int64_t size = r->options->block_elements;
    r->block_count = (int32_t)((r->elements + size - 1) / size);
    LS_TRY(LS_NEW(r->blocks, r->block_count + 1, "offload", error));
    for (int32_t k = 0; k < r->block_count; k++) {
        for (int run = 0; run < RUNS; run++) {
            char name[64];
            if (r->runs[run] == LS_NO_VALUE) continue;
            snprintf(name, sizeof name, "%s.block.%d", ls_value_of(r->program, r->runs[run])->name,
                     (int)k);
            LS_TRY(new_value(r, &r->blocks[k][run], LS_SPACE_DEVICE, block_elements(r, k), error,
                             name));
        }
    }
    return LS_OK;
}

/* The run that holds an operand, -1: none. */
static int run_of(const rewrite *r, ls_value_id id)
{
    if (id == LS_NO_VALUE || !ls_value_is_offloaded(ls_value_of(r->program, id))) return -1;
    for (int run = 0; run < RUNS; run++)
        if (ls_value_of(r->program, id)->home == r->runs[run]) return run;
    return -1;
}

static bool uses_runs(const rewrite *r, const ls_op *op)
{
    for (int in = 0; op->kind == LS_OP_ADAMW && in < LS_MAX_INPUTS; in++)
        if (run_of(r, op->inputs[in]) >= 0) return true;
    return false;
}

static void widen(rewrite *r, span *s, int64_t begin, int64_t count)
{
    int64_t size = r->options->block_elements;
    if (count == 0) return;
    int32_t first = (int32_t)(begin / size), last = (int32_t)((begin + count - 1) / size);
    if (s->last < s->first) *s = (span){first, last};
    if (first < s->first) s->first = first;
    if (last > s->last) s->last = last;
}

/* [updates that use runs], as places in the list of ops. */
static ls_status list_updates(rewrite *r, int32_t **updates, int32_t *count, ls_error *error)
{
    LS_TRY(LS_NEW(*updates, r->program->op_count + 1, "offload", error));
    for (int32_t i = 0; i < r->program->op_count; i++) {
        r->spans[i] = (span){0, -1};
        if (uses_runs(r, &r->program->ops[i])) (*updates)[(*count)++] = i;
    }
    return LS_OK;
}

static ls_status find_spans(rewrite *r, ls_error *error)
{
    int64_t *positions = NULL, *counts = NULL;
    int32_t *updates = NULL, count = 0;
    const ls_program *program = r->program;
    ls_status status;
    LS_TRY_GOTO(status, LS_NEW(r->spans, program->op_count + 1, "offload", error), done);
    LS_TRY_GOTO(status, LS_NEW(positions, program->value_count + 1, "offload", error), done);
    LS_TRY_GOTO(status, LS_NEW(counts, program->value_count + 1, "offload", error), done);
    LS_TRY_GOTO(status, list_updates(r, &updates, &count, error), done);
    for (int rank = 0; rank == 0 || rank < program->ranks; rank++) {
        ls_layout_positions(program, rank, positions, counts);
        for (int32_t i = 0; i < count; i++) {
            ls_value_id parameter = program->ops[updates[i]].inputs[0];
            widen(r, &r->spans[updates[i]], positions[parameter], counts[parameter]);
        }
    }
done:
    ls_free(positions);
    ls_free(counts);
    ls_free(updates);
    return status;
}

static ls_status append_copy(rewrite *r, ls_op_kind kind, int32_t block, ls_error *error)
{
    ls_op op = ls_op_of(kind, LS_SEGMENT_UPDATE, NULL);
    LS_TRY(ls_arena_text(&r->program->arena, &op.name, error, "block.%d", (int)block));
    if (kind != LS_OP_AWAIT) {
        op.attributes.first_element = block * r->options->block_elements;
        op.attributes.elements = block_elements(r, block);
    }
    for (int run = 0, at = 0; run < RUNS; run++) {
        if (r->runs[run] == LS_NO_VALUE) continue;
        ls_value_id made = r->blocks[block][run];
        op.inputs[at] = kind == LS_OP_FETCH ? r->runs[run] : made;
        if (kind == LS_OP_FETCH) op.outputs[at] = made;
        if (kind == LS_OP_STORE) op.outputs[at] = op.inputs[LS_MAX_OUTPUTS + at] = r->runs[run];
        at++;
    }
    r->ops[r->op_count++] = op;
    return LS_OK;
}

static ls_status fetch_next(rewrite *r, ls_error *error)
{
    if (r->fetched == r->block_count) return LS_OK;
    return append_copy(r, LS_OP_FETCH, r->block_count - 1 - r->fetched++, error);
}

/* The part of an update whose elements are in the block, whichever these are on a rank. */
static void append_part(rewrite *r, const ls_op *whole, int32_t block)
{
    ls_op part = *whole;
    for (int in = 0; in < LS_MAX_INPUTS; in++)
        if (run_of(r, whole->inputs[in]) >= 0)
            part.inputs[in] = r->blocks[block][run_of(r, whole->inputs[in])];
    for (int out = 0; out < LS_MAX_OUTPUTS; out++)
        if (run_of(r, whole->outputs[out]) >= 0)
            part.outputs[out] = r->blocks[block][run_of(r, whole->outputs[out])];
    part.attributes.first_element = block * r->options->block_elements;
    part.attributes.elements = block_elements(r, block);
    r->ops[r->op_count++] = part;
}

/* The ops that follow, up to an update that blocks below `block` have a part in. */
static void append_others(rewrite *r, int32_t block)
{
    for (; r->next < r->program->op_count; r->next++) {
        const span *s = &r->spans[r->next];
        bool updated = s->first <= s->last;
        if (updated && s->first < block) return;
        if (!updated) r->ops[r->op_count++] = r->program->ops[r->next];
    }
}

static ls_status update_block(rewrite *r, int32_t block, ls_error *error)
{
    LS_TRY(append_copy(r, LS_OP_AWAIT, block, error));
    for (int32_t i = r->next; i < r->program->op_count; i++)
        if (r->spans[i].first <= block && block <= r->spans[i].last)
            append_part(r, &r->program->ops[i], block);
    LS_TRY(append_copy(r, LS_OP_STORE, block, error));
    return fetch_next(r, error);
}

static ls_status rewrite_ops(rewrite *r, ls_error *error)
{
    for (; r->program->ops[r->next].segment != LS_SEGMENT_UPDATE; r->next++)
        r->ops[r->op_count++] = r->program->ops[r->next];
    for (int i = 0; i < AHEAD; i++) /* beside the gradient's norm */
        LS_TRY(fetch_next(r, error));
    append_others(r, r->block_count);
    for (int32_t block = r->block_count - 1; block >= 0; block--) {
        LS_TRY(update_block(r, block, error));
        append_others(r, block);
    }
    return LS_OK;
}

/* Each part of an update and each copy is an op more. */
static ls_status new_ops(rewrite *r, size_t *capacity, ls_error *error)
{
    *capacity = (size_t)r->program->op_count + 3 * (size_t)r->block_count;
    for (int32_t i = 0; i < r->program->op_count; i++)
        *capacity += (size_t)(r->spans[i].last - r->spans[i].first + 1);
    return LS_NEW(r->ops, *capacity, "program ops", error);
}

static ls_status rewrite_update(rewrite *r, ls_error *error)
{
    size_t capacity;
    LS_TRY(make_blocks(r, error));
    LS_TRY(find_spans(r, error));
    LS_TRY(new_ops(r, &capacity, error));
    LS_TRY(rewrite_ops(r, error));
    ls_program_swap_ops(r->program, &r->ops, r->op_count, capacity);
    return LS_OK;
}

ls_status ls_offload_state(ls_program *program, const ls_offload_options *options, ls_error *error)
{
    rewrite r = {.program = program, .options = options};
    ls_status status;
    LS_TRY_GOTO(status, make_runs(&r, error), done);
    if (r.runs[PARAMETERS] != LS_NO_VALUE)
        LS_TRY_GOTO(status, ls_offload_gathers(program, r.runs[PARAMETERS], error), done);
    bool any = r.runs[PARAMETERS] != LS_NO_VALUE || r.runs[FIRST_MOMENTS] != LS_NO_VALUE;
    if (program->training && any) status = rewrite_update(&r, error);
done:
    ls_free(r.blocks);
    ls_free(r.spans);
    ls_free(r.ops);
    return status;
}

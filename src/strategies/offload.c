#include <stdio.h>

#include "base/alloc.h"
#include "strategies/strategy.h"

/* Moments begin at multiples of ALIGNMENT elements, blocks and runs at multiples of a page's. */
enum { MOMENTS = 2, BUFFERS = 2, ALIGNMENT = 16, PAGE_ELEMENTS = 1024 };

/* What the rewrite works on: the new list of ops, the two runs that the moments become parts of,
 * and the blocks that these are cut into. */
typedef struct rewrite {
    ls_program *program;
    const ls_offload_options *options;
    ls_op *ops;
    int32_t op_count;
    ls_value_id runs[MOMENTS];
    int64_t elements; /* of a run */
    int64_t position; /* in the runs: where the next parameter's moments begin */
    ls_value_id (*blocks)[MOMENTS];
    int32_t block_count, fetched, open; /* open: the block that is worked on, -1: none yet */
} rewrite;

static int64_t rounded(int64_t elements, int64_t unit)
{
    return (elements + unit - 1) / unit * unit;
}

static int64_t elements_of(const ls_program *program, ls_value_id id)
{
    static const ls_extents fixed = {{1}};
    return ls_value_elements(ls_value_of(program, id), &fixed);
}

/* Places among an op's inputs of the optimizer's state; how many there are. */
static int find_moments(const ls_program *program, const ls_op *op, int places[MOMENTS])
{
    int count = 0;
    for (int in = 0; in < LS_MAX_INPUTS && count < MOMENTS; in++)
        if (op->inputs[in] != LS_NO_VALUE &&
            ls_value_of(program, op->inputs[in])->role == LS_ROLE_OPTIMIZER_STATE)
            places[count++] = in;
    return op->kind == LS_OP_ADAMW ? count : 0;
}

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

/* The moments in the order of their updates: the first ones in one run, the second in another. */
static ls_status make_runs(rewrite *r, ls_error *error)
{
    static const char *const names[MOMENTS] = {"first_moments", "second_moments"};
    ls_program *program = r->program;
    int places[MOMENTS];
    for (int32_t i = 0; i < program->op_count; i++)
        if (find_moments(program, &program->ops[i], places))
            r->elements = rounded(r->elements, ALIGNMENT) +
                          elements_of(program, program->ops[i].inputs[places[0]]);
    r->elements = rounded(r->elements, PAGE_ELEMENTS);
    for (int m = 0; m < MOMENTS; m++)
        LS_TRY(new_value(r, &r->runs[m], r->options->space, r->elements, error, names[m]));
    for (int32_t i = 0; i < program->op_count; i++) {
        const ls_op *op = &program->ops[i];
        int count = find_moments(program, op, places);
        if (count) r->position = rounded(r->position, ALIGNMENT);
        for (int m = 0; m < count; m++) {
            ls_value *moment = &program->values[op->inputs[places[m]]];
            moment->space = r->options->space;
            moment->run = r->runs[m];
            moment->run_offset = r->position * (int64_t)sizeof(float);
        }
        if (count) r->position += elements_of(program, op->inputs[places[0]]);
    }
    r->position = 0;
    return LS_OK;
}

/* Each block on the device: two at a time, the later ones in the bytes of the earlier ones. */
static ls_status make_blocks(rewrite *r, ls_error *error)
{
    int64_t size = r->options->block_elements;
    r->block_count = (int32_t)((r->elements + size - 1) / size);
    LS_TRY(LS_NEW(r->blocks, r->block_count + 1, "offload", error));
    for (int32_t k = 0; k < r->block_count; k++) {
        int64_t left = r->elements - k * size;
        for (int m = 0; m < MOMENTS; m++) {
            char name[64];
            snprintf(name, sizeof name, "%s.block.%d", m ? "second_moments" : "first_moments",
                     (int)k);
            LS_TRY(new_value(r, &r->blocks[k][m], LS_SPACE_DEVICE, left < size ? left : size, error,
                             name));
            if (k >= BUFFERS)
                r->program->values[r->blocks[k][m]].storage = r->blocks[k % BUFFERS][m];
        }
    }
    return LS_OK;
}

static ls_status append_copy(rewrite *r, ls_op_kind kind, int32_t block, ls_error *error)
{
    ls_op op = ls_op_of(kind, LS_SEGMENT_UPDATE, NULL);
    LS_TRY(ls_arena_text(&r->program->arena, &op.name, error, "block.%d", (int)block));
    op.unit = LS_NO_UNIT;
    if (kind != LS_OP_AWAIT) {
        op.attributes.first_element = block * r->options->block_elements;
        op.attributes.elements = elements_of(r->program, r->blocks[block][0]);
    }
    for (int m = 0; m < MOMENTS; m++) {
        op.inputs[m] = kind == LS_OP_FETCH ? r->runs[m] : r->blocks[block][m];
        if (kind == LS_OP_FETCH) op.outputs[m] = r->blocks[block][m];
        if (kind == LS_OP_STORE) op.outputs[m] = op.inputs[LS_MAX_OUTPUTS + m] = r->runs[m];
    }
    r->ops[r->op_count++] = op;
    return LS_OK;
}

static ls_status fetch_next(rewrite *r, ls_error *error)
{
    if (r->fetched == r->block_count) return LS_OK;
    return append_copy(r, LS_OP_FETCH, r->fetched++, error);
}

/* Go on with `block`: the former one goes back, and another comes in its place. */
static ls_status open_block(rewrite *r, int32_t block, ls_error *error)
{
    if (block == r->open) return LS_OK;
    if (r->open >= 0) {
        LS_TRY(append_copy(r, LS_OP_STORE, r->open, error));
        LS_TRY(fetch_next(r, error));
    }
    r->open = block;
    return block < r->block_count ? append_copy(r, LS_OP_AWAIT, block, error) : LS_OK;
}

/* An update in as many parts as blocks hold its moments. */
static ls_status split_update(rewrite *r, const ls_op *whole, ls_error *error)
{
    int places[MOMENTS];
    int count = find_moments(r->program, whole, places);
    int64_t size = r->options->block_elements;
    int64_t elements = elements_of(r->program, whole->inputs[places[0]]);
    r->position = rounded(r->position, ALIGNMENT);
    for (int64_t done = 0; done < elements;) {
        ls_op part = *whole;
        int32_t block = (int32_t)(r->position / size);
        int64_t within = r->position % size, left = elements - done;
        LS_TRY(open_block(r, block, error));
        for (int m = 0; m < count; m++) {
            for (int out = 0; out < LS_MAX_OUTPUTS; out++)
                if (part.outputs[out] == whole->inputs[places[m]])
                    part.outputs[out] = r->blocks[block][m];
            part.inputs[places[m]] = r->blocks[block][m];
        }
        part.attributes.first_element += done;
        part.attributes.moment_element = within;
        part.attributes.elements = left < size - within ? left : size - within;
        r->ops[r->op_count++] = part;
        done += part.attributes.elements;
        r->position += part.attributes.elements;
    }
    return LS_OK;
}

static ls_status rewrite_ops(rewrite *r, ls_error *error)
{
    int places[MOMENTS];
    for (int32_t i = 0; i < r->program->op_count; i++) {
        const ls_op *op = &r->program->ops[i];
        /* Beside the gradient's norm. */
        if (op->segment == LS_SEGMENT_UPDATE && r->fetched == 0)
            for (int buffer = 0; buffer < BUFFERS; buffer++)
                LS_TRY(fetch_next(r, error));
        if (find_moments(r->program, op, places))
            LS_TRY(split_update(r, op, error));
        else
            r->ops[r->op_count++] = *op;
    }
    return open_block(r, r->block_count, error);
}

ls_status ls_offload_optimizer(ls_program *program, const ls_offload_options *options,
                               ls_error *error)
{
    rewrite r = {.program = program, .options = options, .open = -1};
    ls_status status;
    LS_TRY_GOTO(status, make_runs(&r, error), done);
    LS_TRY_GOTO(status, make_blocks(&r, error), done);
    /* A part more for each border of blocks, and three copies a block. */
    size_t capacity = (size_t)program->op_count + 4 * (size_t)r.block_count + 1;
    LS_TRY_GOTO(status, LS_NEW(r.ops, capacity, "program ops", error), done);
    LS_TRY_GOTO(status, rewrite_ops(&r, error), done);
    ls_op *former = program->ops;
    program->ops = r.ops;
    program->op_count = r.op_count;
    program->op_capacity = capacity;
    r.ops = former;
done:
    ls_free(r.blocks);
    ls_free(r.ops);
    return status;
}

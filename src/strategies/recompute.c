#include <stdio.h>

#include "base/alloc.h"
#include "strategies/strategy.h"

/* What the rewrite works on: the new list of ops, and which forward ops run a second time. */
typedef struct rewrite {
    ls_program *program;
    const ls_recompute_options *options;
    ls_op *ops;
    int32_t op_count;
    int32_t *writer;    /* [values] forward op that writes it, -1: none */
    bool *again;        /* [forward ops] runs again in the backward pass */
    ls_value_id *clone; /* [values] what the backward pass reads in its place, once it is made */
    int32_t value_count;
} rewrite;

static bool is_activation(const rewrite *r, ls_value_id id)
{
    return id != LS_NO_VALUE && ls_value_of(r->program, id)->role == LS_ROLE_ACTIVATION;
}

static void find_writers(rewrite *r)
{
    for (ls_value_id id = 0; id < r->value_count; id++) {
        r->writer[id] = -1;
        r->clone[id] = LS_NO_VALUE;
    }
    for (int32_t i = 0; i < r->program->forward_count; i++)
        for (int out = 0; out < LS_MAX_OUTPUTS; out++)
            if (is_activation(r, r->program->ops[i].outputs[out]))
                r->writer[r->program->ops[i].outputs[out]] = i;
}

/* All layers but the last one: its backward pass follows at once, so that it would save nothing. */
static bool is_rewritten(const rewrite *r, int unit)
{
    return unit >= r->options->unit_begin && unit < r->options->unit_end - 1;
}

/* The forward op of a layer that writes `id`, -1: none. */
static int32_t writer_of(const rewrite *r, ls_value_id id)
{
    if (id == LS_NO_VALUE || id >= r->value_count || r->writer[id] < 0) return -1;
    return is_rewritten(r, r->program->ops[r->writer[id]].unit) ? r->writer[id] : -1;
}

/* An attention op, and the products that make its operands. */
static void choose_attention(rewrite *r, int32_t index)
{
    const ls_op *op = &r->program->ops[index];
    if (op->kind != LS_OP_ATTENTION) return;
    r->again[index] = true;
    for (int in = 0; in < LS_MAX_INPUTS; in++)
        if (writer_of(r, op->inputs[in]) >= 0) r->again[writer_of(r, op->inputs[in])] = true;
}

/* An op does not run again if another unit reads what it wrote: that is kept anyway. */
static void keep_borders(rewrite *r)
{
    for (int32_t i = 0; i < r->program->op_count; i++) {
        const ls_op *op = &r->program->ops[i];
        for (int in = 0; in < LS_MAX_INPUTS; in++) {
            int32_t writer = writer_of(r, op->inputs[in]);
            if (writer >= 0 && r->program->ops[writer].unit != op->unit) r->again[writer] = false;
        }
    }
}

static void choose_ops(rewrite *r)
{
    for (int32_t i = 0; i < r->program->forward_count; i++) {
        if (!is_rewritten(r, r->program->ops[i].unit)) continue;
        if (r->options->what == LS_RECOMPUTE_LAYER)
            r->again[i] = true;
        else
            choose_attention(r, i);
    }
    keep_borders(r);
}

/* Let `*id`, which an op of the backward pass reads, be a value that is there: append the ops that
 * make it again, each behind those that make what it reads. As deep as a layer has ops. */
static ls_status make_again(rewrite *r, ls_value_id *id, ls_error *error)
{
    int32_t writer = writer_of(r, *id);
    if (writer < 0 || !r->again[writer]) return LS_OK;
    if (r->clone[*id] == LS_NO_VALUE) {
        ls_op op = r->program->ops[writer];
        for (int in = 0; in < LS_MAX_INPUTS; in++)
            LS_TRY(make_again(r, &op.inputs[in], error));
        for (int out = 0; out < LS_MAX_OUTPUTS; out++) {
            ls_value_id former = op.outputs[out];
            if (former == LS_NO_VALUE) continue;
            ls_value template = *ls_value_of(r->program, former);
            const char *name = template.name;
            LS_TRY(ls_program_value(r->program, &op.outputs[out], template, error, "recompute.%s",
                                    name));
            r->clone[former] = op.outputs[out];
        }
        LS_TRY(ls_arena_text(&r->program->arena, &op.name, error, "recompute.%s", op.name));
        r->ops[r->op_count++] = op;
    }
    *id = r->clone[*id];
    return LS_OK;
}

static ls_status rewrite_ops(rewrite *r, ls_error *error)
{
    for (int32_t i = 0; i < r->program->op_count; i++) {
        ls_op op = r->program->ops[i];
        for (int in = 0; i >= r->program->forward_count && in < LS_MAX_INPUTS; in++)
            LS_TRY(make_again(r, &op.inputs[in], error));
        r->ops[r->op_count++] = op;
    }
    return LS_OK;
}

ls_status ls_recompute(ls_program *program, const ls_recompute_options *options, ls_error *error)
{
    rewrite r = {.program = program, .options = options, .value_count = program->value_count};
    ls_status status;
    size_t capacity = (size_t)program->op_count + (size_t)program->forward_count;
    LS_TRY_GOTO(status, LS_NEW(r.writer, r.value_count + 1, "recompute", error), done);
    LS_TRY_GOTO(status, LS_NEW(r.clone, r.value_count + 1, "recompute", error), done);
    LS_TRY_GOTO(status, LS_NEW(r.again, program->forward_count + 1, "recompute", error), done);
    LS_TRY_GOTO(status, LS_NEW(r.ops, capacity, "program ops", error), done);
    find_writers(&r);
    choose_ops(&r);
    LS_TRY_GOTO(status, rewrite_ops(&r, error), done);
    ls_program_swap_ops(program, &r.ops, r.op_count, capacity);
done:
    if (status != LS_OK) program->value_count = r.value_count;
    ls_free(r.writer);
    ls_free(r.clone);
    ls_free(r.again);
    ls_free(r.ops);
    return status;
}

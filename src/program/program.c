#include "program/program.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

const ls_extents ls_fixed_extents = {{1}};

ls_status ls_program_new(ls_program **out, const ls_op_definition *const *definitions,
                         ls_error *error)
{
    LS_TRY(LS_NEW(*out, 1, "program", error));
    (*out)->definitions = definitions;
    (*out)->gradient_slots = 1;
    return LS_OK;
}

void ls_program_free(ls_program *program)
{
    if (!program) return;
    ls_arena_deinit(&program->arena);
    ls_free(program->values);
    ls_free(program->ops);
    ls_free(program);
}

ls_status ls_program_value(ls_program *program, ls_value_id *out, ls_value template,
                           ls_error *error, const char *name, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, name);
    vsnprintf(text, sizeof text, name, arguments);
    va_end(arguments);
    LS_TRY(ls_arena_text(&program->arena, &template.name, error, "%s", text));
    LS_TRY(LS_GROW(program->values, program->value_capacity, program->value_count + 1,
                   "program values", error));
    *out = program->value_count++;
    template.storage = *out;
    template.layout = LS_LAYOUT_WHOLE;
    template.run = LS_NO_VALUE;
    program->values[*out] = template;
    return LS_OK;
}

void ls_program_swap_ops(ls_program *program, ls_op **ops, int32_t count, size_t capacity)
{
    ls_op *former = program->ops;
    program->ops = *ops;
    program->op_count = count;
    program->op_capacity = capacity;
    *ops = former;
}

ls_op ls_op_of(ls_op_kind kind, ls_segment segment, const char *name)
{
    ls_op op = {.kind = kind, .segment = segment, .unit = LS_NO_UNIT, .name = name};
    for (int i = 0; i < LS_MAX_INPUTS; i++)
        op.inputs[i] = LS_NO_VALUE;
    for (int i = 0; i < LS_MAX_OUTPUTS; i++)
        op.outputs[i] = LS_NO_VALUE;
    return op;
}

ls_status ls_program_op(ls_program *program, const ls_op *op, ls_error *error)
{
    ls_op copy = *op;
    copy.unit = program->unit;
    LS_TRY(ls_arena_text(&program->arena, &copy.name, error, "%s", op->name));
    LS_TRY(
        LS_GROW(program->ops, program->op_capacity, program->op_count + 1, "program ops", error));
    program->ops[program->op_count++] = copy;
    return LS_OK;
}

int64_t ls_value_elements(const ls_value *value, const ls_extents *extents)
{
    int64_t elements = 1;
    for (int i = 0; i < value->rank; i++)
        elements *= ls_dimension_size(value->shape[i], extents);
    return elements;
}

int64_t ls_value_bytes(const ls_value *value, const ls_extents *extents)
{
    return ls_value_elements(value, extents) * ls_dtype_bytes(value->dtype);
}

ls_value_id ls_program_find(const ls_program *program, const char *name)
{
    for (ls_value_id id = 0; id < program->value_count; id++)
        if (strcmp(program->values[id].name, name) == 0) return id;
    return LS_NO_VALUE;
}

static const struct {
    const char *name;
    int bytes;
} dtypes[LS_DTYPE_COUNT] = {
    [LS_F32] = {"f32", 4}, [LS_F64] = {"f64", 8}, [LS_I32] = {"i32", 4}, [LS_U8] = {"u8", 1}};

int ls_dtype_bytes(ls_dtype dtype)
{
    return dtypes[dtype].bytes;
}

const char *ls_dtype_name(ls_dtype dtype)
{
    return dtypes[dtype].name;
}

const char *ls_role_name(ls_role role)
{
    static const char *const names[LS_ROLE_COUNT] = {
        [LS_ROLE_PARAMETER] = "parameter",
        [LS_ROLE_GRADIENT] = "gradient",
        [LS_ROLE_OPTIMIZER_STATE] = "optimizer_state",
        [LS_ROLE_ACTIVATION] = "activation",
        [LS_ROLE_COMMUNICATION] = "communication",
        [LS_ROLE_INPUT] = "input",
        [LS_ROLE_SCALAR] = "scalar",
        [LS_ROLE_OFFLOAD] = "offload",
    };
    return names[role];
}

const char *ls_op_name(ls_op_kind kind)
{
    static const char *const names[LS_OP_COUNT] = {
#define LS_OP_TEXT(name, text) [LS_OP_##name] = text,
        LS_OP_LIST(LS_OP_TEXT)
#undef LS_OP_TEXT
    };
    return names[kind];
}

const char *ls_layout_name(ls_layout layout)
{
    static const char *const names[LS_LAYOUT_COUNT] = {
        [LS_LAYOUT_WHOLE] = "whole",
        [LS_LAYOUT_RUN] = "sharded",
        [LS_LAYOUT_ROWS] = "sharded rows",
    };
    return names[layout];
}

bool ls_op_is_collective(ls_op_kind kind)
{
    static const bool collective[LS_OP_COUNT] = {
#define LS_OP_COLLECTIVE(name, text) [LS_OP_##name] = true,
        LS_COLLECTIVE_OP_LIST(LS_OP_COLLECTIVE)
#undef LS_OP_COLLECTIVE
    };
    return collective[kind];
}

bool ls_op_is_copy(ls_op_kind kind)
{
    static const bool copy[LS_OP_COUNT] = {
#define LS_OP_COPY(name, text) [LS_OP_##name] = true,
        LS_COPY_OP_LIST(LS_OP_COPY)
#undef LS_OP_COPY
    };
    return copy[kind];
}

/* The program as text: `lockstep plan --print`, and what strategy tests compare. */
#include "program/program.h"

static ls_status print_dimension(ls_text *text, ls_dimension dimension, ls_error *error)
{
    static const char letters[LS_SYMBOL_COUNT] = {
        [LS_SYMBOL_TOKENS] = 'T', [LS_SYMBOL_SEQUENCES] = 'S'};
    if (dimension.symbol == LS_SYMBOL_NONE || dimension.factor == 0)
        return ls_text_print(text, error, "%lld", (long long)dimension.constant);
    if (dimension.factor != 1)
        LS_TRY(ls_text_print(text, error, "%lld", (long long)dimension.factor));
    LS_TRY(ls_text_print(text, error, "%c", letters[dimension.symbol]));
    if (dimension.constant == 0) return LS_OK;
    return ls_text_print(text, error, "+%lld", (long long)dimension.constant);
}

static ls_status print_value(const ls_program *program, ls_text *text, const ls_value *value,
                             ls_error *error)
{
    static const char *const spaces[LS_SPACE_COUNT] = {
        [LS_SPACE_DEVICE] = "",
        [LS_SPACE_HOST] = " host",
        [LS_SPACE_HOST_MEMORY] = " host_memory",
        [LS_SPACE_FILE] = " file",
    };
    LS_TRY(ls_text_print(text, error, "value %s %s[", value->name, ls_dtype_name(value->dtype)));
    for (int i = 0; i < value->rank; i++) {
        if (i) LS_TRY(ls_text_print(text, error, ", "));
        LS_TRY(print_dimension(text, value->shape[i], error));
    }
    LS_TRY(ls_text_print(text, error, "] %s", ls_role_name(value->role)));
    LS_TRY(ls_text_print(text, error, "%s", spaces[value->space]));
    if (value->role == LS_ROLE_PARAMETER)
        LS_TRY(ls_text_print(text, error, " unit=%d%s%s", value->unit, value->decay ? " decay" : "",
                             value->row_sparse ? " sparse" : ""));
    if (value->layout != LS_LAYOUT_WHOLE)
        LS_TRY(ls_text_print(text, error, " %s", ls_layout_name(value->layout)));
    const ls_value *storage = ls_value_of(program, value->storage);
    if (storage != value) LS_TRY(ls_text_print(text, error, " in %s", storage->name));
    if (ls_value_is_offloaded(value))
        LS_TRY(ls_text_print(text, error, " in %s", ls_value_of(program, value->home)->name));
    return ls_text_print(text, error, "\n");
}

static ls_status print_operands(const ls_program *program, ls_text *text, const ls_value_id *ids,
                                int count, ls_error *error)
{
    bool first = true;
    for (int i = 0; i < count; i++) {
        if (ids[i] == LS_NO_VALUE) continue;
        LS_TRY(ls_text_print(text, error, "%s%s", first ? "" : ", ",
                             ls_value_of(program, ids[i])->name));
        first = false;
    }
    return LS_OK;
}

static ls_status print_bucket(const ls_program *program, ls_text *text, const ls_op *op,
                              ls_error *error)
{
    const ls_bucket *bucket = &program->buckets[op->attributes.bucket];
    LS_TRY(ls_text_print(text, error, " bucket=%d", op->attributes.bucket));
    if (op->kind == LS_OP_WAIT) return LS_OK;
    LS_TRY(ls_text_print(text, error, " bytes=%lld [", (long long)bucket->bytes));
    LS_TRY(print_operands(program, text, bucket->values, bucket->count, error));
    if (bucket->results) {
        LS_TRY(ls_text_print(text, error, "] to ["));
        LS_TRY(print_operands(program, text, bucket->results, bucket->count, error));
    }
    return ls_text_print(text, error, "]");
}

static ls_status print_attributes(const ls_program *program, ls_text *text, const ls_op *op,
                                  ls_error *error)
{
    const ls_attributes *a = &op->attributes;
    if (a->activation != LS_ACTIVATION_NONE)
        LS_TRY(ls_text_print(text, error, " activation=%s", ls_activation_name(a->activation)));
    if (a->accumulate) LS_TRY(ls_text_print(text, error, " accumulate"));
    if (a->dropout > 0)
        LS_TRY(ls_text_print(text, error, " dropout=%g site=%u", (double)a->dropout, a->site));
    if (a->heads)
        LS_TRY(ls_text_print(text, error, " heads=%lld head_size=%lld", (long long)a->heads,
                             (long long)a->head_size));
    if (a->owned) LS_TRY(ls_text_print(text, error, " owned"));
    if (ls_op_is_collective(op->kind)) LS_TRY(print_bucket(program, text, op, error));
    if (ls_op_is_copy(op->kind) && a->elements)
        LS_TRY(ls_text_print(text, error, " elements=%lld..%lld", (long long)a->first_element,
                             (long long)(a->first_element + a->elements)));
    if (op->kind == LS_OP_ADAMW && a->elements)
        LS_TRY(ls_text_print(text, error, " block=%lld..%lld", (long long)a->first_element,
                             (long long)(a->first_element + a->elements)));
    if (a->weight_decay > 0)
        LS_TRY(ls_text_print(text, error, " weight_decay=%g%s", (double)a->weight_decay,
                             a->l2 ? " l2" : ""));
    if (a->max_norm > 0) LS_TRY(ls_text_print(text, error, " max_norm=%g", (double)a->max_norm));
    return LS_OK;
}

ls_status ls_program_print(const ls_program *program, ls_text *text, ls_error *error)
{
    static const char *const segments[LS_SEGMENT_COUNT] = {
        [LS_SEGMENT_PASS] = "pass",
        [LS_SEGMENT_EXCHANGE] = "exchange",
        [LS_SEGMENT_UPDATE] = "update",
    };
    for (ls_value_id id = 0; id < program->value_count; id++)
        LS_TRY(print_value(program, text, ls_value_of(program, id), error));
    for (int32_t i = 0; i < program->op_count; i++) {
        const ls_op *op = &program->ops[i];
        LS_TRY(ls_text_print(text, error, "%s ", segments[op->segment]));
        LS_TRY(print_operands(program, text, op->outputs, LS_MAX_OUTPUTS, error));
        const char *assigned = op->outputs[0] == LS_NO_VALUE ? "" : " = ";
        LS_TRY(ls_text_print(text, error, "%s%s(", assigned, ls_op_name(op->kind)));
        LS_TRY(print_operands(program, text, op->inputs, LS_MAX_INPUTS, error));
        LS_TRY(ls_text_print(text, error, ")"));
        LS_TRY(print_attributes(program, text, op, error));
        LS_TRY(ls_text_print(text, error, "  # %s\n", op->name));
    }
    return LS_OK;
}

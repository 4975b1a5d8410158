/* Token, position and type embeddings, summed.
 *
 * Inputs: tables word, position, type; ids, positions, types; and, for the gradients, one host
 * schedule a table. */
#include "ops/check.h"
#include "ops/definitions.h"
#include "ops/ops.h"

enum { WORD, POSITION, TYPE, IDS, POSITIONS, TYPES, SCHEDULE, SCHEDULE_END = SCHEDULE + 3 };

ls_status ls_embedding(ls_program *program, const char *name, const ls_inputs *inputs,
                       ls_embedding_tables tables, ls_value_id *sum, ls_error *error)
{
    ls_op op = ls_op_of(LS_OP_EMBEDDING, LS_SEGMENT_PASS, name);
    op.inputs[WORD] = tables.word;
    op.inputs[POSITION] = tables.position;
    op.inputs[TYPE] = tables.type;
    op.inputs[IDS] = inputs->ids;
    op.inputs[POSITIONS] = inputs->positions;
    if (tables.type != LS_NO_VALUE) op.inputs[TYPES] = inputs->types;
    op.inputs[SCHEDULE + WORD] = inputs->word.schedule;
    op.inputs[SCHEDULE + POSITION] = inputs->position.schedule;
    if (tables.type != LS_NO_VALUE) op.inputs[SCHEDULE + TYPE] = inputs->type.schedule;
    ls_dimension shape[] = {ls_per(LS_SYMBOL_TOKENS), ls_columns_of(program, tables.word)};
    LS_TRY(ls_new_activation(program, sum, name, ".sum", 2, shape, error));
    op.outputs[0] = *sum;
    return ls_program_op(program, &op, error);
}

static ls_status embedding_check(const ls_program *program, const ls_op *op, ls_error *error)
{
    ls_dimension hidden = ls_columns_of(program, op->inputs[WORD]);
    ls_dimension tokens = ls_per(LS_SYMBOL_TOKENS);
    for (int i = WORD; i <= TYPE; i++)
        if (op->inputs[i] != LS_NO_VALUE)
            LS_TRY(ls_check_matrix(program, op, op->inputs[i], ls_rows_of(program, op->inputs[i]),
                                   hidden, error));
    for (int i = IDS; i <= TYPES; i++)
        LS_TRY(ls_check_shape(program, op, op->inputs[i], LS_I32, 1, &tokens, error));
    for (int i = SCHEDULE; i < SCHEDULE_END; i++)
        LS_TRY(ls_check_host(program, op, op->inputs[i], error));
    return ls_check_matrix(program, op, op->outputs[0], tokens, hidden, error);
}

static ls_status embedding_gradient_rule(ls_gradient_pass *pass, const ls_op *op, ls_error *error)
{
    ls_value_id sum_gradient = ls_gradient_of(pass, op->outputs[0]);
    if (sum_gradient == LS_NO_VALUE) return LS_OK;
    for (int table = WORD; table <= TYPE; table++) {
        if (op->inputs[table] == LS_NO_VALUE) continue;
        ls_op backward = ls_op_of(LS_OP_EMBEDDING_GRADIENT, LS_SEGMENT_PASS,
                                  ls_value_of(pass->program, op->inputs[table])->name);
        backward.inputs[0] = sum_gradient;
        backward.inputs[1] = op->inputs[SCHEDULE + table];
        LS_TRY(ls_gradient_parameter(pass, op->inputs[table], &backward.outputs[0], error));
        LS_TRY(ls_program_op(pass->program, &backward, error));
    }
    return LS_OK;
}

static ls_cost embedding_cost(const ls_program *program, const ls_op *op, const ls_extents *extents)
{
    /* Rows of the tables are read, not whole tables. */
    double elements = ls_elements_of(program, op->outputs[0], extents);
    return (ls_cost){2 * elements, 16 * elements};
}

const ls_op_definition ls_op_definition_EMBEDDING = {
    .kind = LS_OP_EMBEDDING,
    .inputs = SCHEDULE_END,
    .outputs = 1,
    .optional_inputs = 1u << TYPE | 1u << TYPES | 7u << SCHEDULE,
    .check = embedding_check,
    .gradient = embedding_gradient_rule,
    .cost = embedding_cost,
};

static ls_status embedding_gradient_check(const ls_program *program, const ls_op *op,
                                          ls_error *error)
{
    LS_TRY(ls_check_host(program, op, op->inputs[1], error));
    ls_dimension hidden = ls_columns_of(program, op->inputs[0]);
    const ls_value *gradient = ls_value_of(program, op->outputs[0]);
    ls_dimension shape[] = {ls_fixed(program->gradient_slots), gradient->shape[1], hidden};
    return ls_check_shape(program, op, op->outputs[0], LS_F32, 3, shape, error);
}

static ls_cost embedding_gradient_cost(const ls_program *program, const ls_op *op,
                                       const ls_extents *extents)
{
    double elements = ls_elements_of(program, op->inputs[0], extents);
    return (ls_cost){elements, 8 * elements};
}

const ls_op_definition ls_op_definition_EMBEDDING_GRADIENT = {
    .kind = LS_OP_EMBEDDING_GRADIENT,
    .inputs = 2,
    .outputs = 1,
    .check = embedding_gradient_check,
    .cost = embedding_gradient_cost,
};

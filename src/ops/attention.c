/* Attention inside each sequence, without padding or mask (Vaswani et al. 2017). */
#include "ops/check.h"
#include "ops/definitions.h"
#include "ops/ops.h"

enum { QUERY, KEY, VALUE, OFFSETS, SAMPLES, POSITIONS, RANDOM_KEY, INPUTS };
enum { CONTEXT, SOFTMAX, OUTPUTS };
/* Backward: the same inputs, then these. Outputs: gradients of query, key, value. */
enum { SAVED_SOFTMAX = INPUTS, CONTEXT_GRADIENT, BACKWARD_INPUTS };

ls_status ls_attention(ls_program *program, const char *name, const ls_inputs *inputs,
                       ls_attention_operands operands, ls_value_id *context, ls_error *error)
{
    ls_op op = ls_op_of(LS_OP_ATTENTION, LS_SEGMENT_PASS, name);
    ls_dimension rows = ls_rows_of(program, operands.query);
    ls_dimension hidden = ls_columns_of(program, operands.query);
    op.inputs[QUERY] = operands.query;
    op.inputs[KEY] = operands.key;
    op.inputs[VALUE] = operands.value;
    op.inputs[OFFSETS] = inputs->offsets;
    op.attributes.heads = operands.heads;
    op.attributes.head_size = hidden.constant / operands.heads;
    op.attributes.max_positions = operands.max_positions;
    if (operands.dropout > 0) {
        bool tokens = rows.symbol == LS_SYMBOL_TOKENS;
        op.inputs[SAMPLES] = tokens ? inputs->token_samples : inputs->samples;
        if (tokens) op.inputs[POSITIONS] = inputs->positions;
        op.inputs[RANDOM_KEY] = inputs->random_key;
        op.attributes.dropout = operands.dropout;
        op.attributes.site = operands.site;
    }
    LS_TRY(ls_new_activation(program, context, name, "", 2, (ls_dimension[]){rows, hidden}, error));
    op.outputs[CONTEXT] = *context;
    ls_dimension saved[] = {rows, ls_fixed(operands.heads), ls_fixed(2)};
    LS_TRY(ls_new_activation(program, &op.outputs[SOFTMAX], name, ".softmax", 3, saved, error));
    return ls_program_op(program, &op, error);
}

static ls_status check_inputs(const ls_program *program, const ls_op *op, ls_error *error)
{
    ls_dimension rows = ls_rows_of(program, op->inputs[QUERY]);
    ls_dimension hidden = ls_fixed(op->attributes.heads * op->attributes.head_size);
    ls_dimension borders = {LS_SYMBOL_SEQUENCES, 1, 1};
    LS_TRY(ls_check_matrix(program, op, op->inputs[QUERY], rows, hidden, error));
    LS_TRY(ls_check_matrix(program, op, op->inputs[KEY], ls_per(LS_SYMBOL_TOKENS), hidden, error));
    LS_TRY(ls_check_like(program, op, op->inputs[VALUE], op->inputs[KEY], error));
    LS_TRY(ls_check_shape(program, op, op->inputs[OFFSETS], LS_I32, 1, &borders, error));
    LS_TRY(ls_check_shape(program, op, op->inputs[SAMPLES], LS_I32, 1, &rows, error));
    return ls_check_shape(program, op, op->inputs[POSITIONS], LS_I32, 1, &rows, error);
}

static ls_status check_softmax(const ls_program *program, const ls_op *op, ls_value_id softmax,
                               ls_error *error)
{
    ls_dimension saved[] = {ls_rows_of(program, op->inputs[QUERY]), ls_fixed(op->attributes.heads),
                            ls_fixed(2)};
    return ls_check_shape(program, op, softmax, LS_F32, 3, saved, error);
}

static ls_status attention_check(const ls_program *program, const ls_op *op, ls_error *error)
{
    LS_TRY(check_inputs(program, op, error));
    LS_TRY(ls_check_like(program, op, op->outputs[CONTEXT], op->inputs[QUERY], error));
    return check_softmax(program, op, op->outputs[SOFTMAX], error);
}

static ls_status attention_gradient_rule(ls_gradient_pass *pass, const ls_op *op, ls_error *error)
{
    ls_value_id gradient = ls_gradient_of(pass, op->outputs[CONTEXT]);
    if (gradient == LS_NO_VALUE) return LS_OK;
    ls_op backward = *op;
    backward.kind = LS_OP_ATTENTION_BACKWARD;
    backward.inputs[SAVED_SOFTMAX] = op->outputs[SOFTMAX];
    backward.inputs[CONTEXT_GRADIENT] = gradient;
    for (int i = QUERY; i <= VALUE; i++) {
        LS_TRY(ls_gradient_like(pass, op->inputs[i], "", &backward.outputs[i], error));
        LS_TRY(ls_gradient_set(pass, op->inputs[i], backward.outputs[i], error));
    }
    return ls_program_op(pass->program, &backward, error);
}

/* Exact only for equal lengths: the sum over sequences of rows x keys is estimated from the mean
 * length, T / S. Two products forward, five backward (one of them draws the scores again). */
static ls_cost cost_of_products(const ls_program *program, const ls_op *op,
                                const ls_extents *extents, double products)
{
    double tokens = (double)extents->size[LS_SYMBOL_TOKENS];
    double sequences = (double)extents->size[LS_SYMBOL_SEQUENCES];
    double length = sequences > 0 ? tokens / sequences : 0;
    double queries = ls_elements_of(program, op->inputs[QUERY], extents);
    return ls_cost_of(program, op, extents, products * 2 * queries * length);
}

static ls_cost attention_cost(const ls_program *program, const ls_op *op, const ls_extents *extents)
{
    return cost_of_products(program, op, extents, 2);
}

const ls_op_definition ls_op_definition_ATTENTION = {
    .kind = LS_OP_ATTENTION,
    .inputs = INPUTS,
    .outputs = OUTPUTS,
    .optional_inputs = 1u << SAMPLES | 1u << POSITIONS | 1u << RANDOM_KEY,
    .check = attention_check,
    .gradient = attention_gradient_rule,
    .cost = attention_cost,
};

static ls_status attention_backward_check(const ls_program *program, const ls_op *op,
                                          ls_error *error)
{
    LS_TRY(check_inputs(program, op, error));
    LS_TRY(check_softmax(program, op, op->inputs[SAVED_SOFTMAX], error));
    LS_TRY(ls_check_like(program, op, op->inputs[CONTEXT_GRADIENT], op->inputs[QUERY], error));
    for (int i = QUERY; i <= VALUE; i++)
        LS_TRY(ls_check_like(program, op, op->outputs[i], op->inputs[i], error));
    return LS_OK;
}

static ls_cost attention_backward_cost(const ls_program *program, const ls_op *op,
                                       const ls_extents *extents)
{
    return cost_of_products(program, op, extents, 5);
}

const ls_op_definition ls_op_definition_ATTENTION_BACKWARD = {
    .kind = LS_OP_ATTENTION_BACKWARD,
    .inputs = BACKWARD_INPUTS,
    .outputs = 3,
    .optional_inputs = 1u << SAMPLES | 1u << POSITIONS | 1u << RANDOM_KEY,
    .check = attention_backward_check,
    .cost = attention_backward_cost,
};

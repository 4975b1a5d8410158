/* Softmax cross-entropy, one row a sample; its gradient comes out of the forward op. */
#include "ops/check.h"
#include "ops/definitions.h"
#include "ops/ops.h"

enum { LOGITS, LABELS, SCALE, INPUTS };
enum { LOSS, PROBABILITIES, LOGITS_GRADIENT, OUTPUTS };

static ls_status append_loss_sum(ls_program *program, const ls_inputs *inputs,
                                 ls_classifier_loss_results *results, ls_error *error)
{
    ls_value loss = {.dtype = LS_F32,
                     .role = LS_ROLE_SCALAR,
                     .rank = 2,
                     .parameter = LS_NO_VALUE,
                     .touched = LS_NO_VALUE};
    loss.shape[0] = ls_fixed(program->gradient_slots);
    loss.shape[1] = ls_fixed(1);
    LS_TRY(ls_program_value(program, &results->loss, loss, error, "loss"));
    return ls_column_sums_op(program, "loss", results->sample_loss, results->loss,
                             inputs->schedules, error);
}

ls_status ls_classifier_loss_op(ls_program *program, const ls_inputs *inputs, ls_value_id logits,
                                ls_classifier_loss_results *results, ls_error *error)
{
    ls_op op = ls_op_of(LS_OP_CLASSIFIER_LOSS, LS_SEGMENT_PASS, "loss");
    ls_dimension samples = ls_rows_of(program, logits), classes = ls_columns_of(program, logits);
    op.inputs[LOGITS] = logits;
    op.inputs[LABELS] = inputs->labels;
    op.inputs[SCALE] = inputs->loss_scale;
    *results = (ls_classifier_loss_results){LS_NO_VALUE, LS_NO_VALUE, LS_NO_VALUE};
    LS_TRY(ls_new_activation(program, &results->sample_loss, "sample_loss", "", 2,
                             (ls_dimension[]){samples, ls_fixed(1)}, error));
    op.outputs[LOSS] = results->sample_loss;
    ls_dimension shape[] = {samples, classes};
    if (program->training) {
        LS_TRY(ls_new_activation(program, &op.outputs[LOGITS_GRADIENT], "gradient.logits", "", 2,
                                 shape, error));
    } else {
        LS_TRY(ls_new_activation(program, &results->probabilities, "probabilities", "", 2, shape,
                                 error));
        op.outputs[PROBABILITIES] = results->probabilities;
    }
    LS_TRY(ls_program_op(program, &op, error));
    return program->training ? append_loss_sum(program, inputs, results, error) : LS_OK;
}

static ls_status classifier_loss_check(const ls_program *program, const ls_op *op, ls_error *error)
{
    ls_dimension samples = ls_per(LS_SYMBOL_SEQUENCES);
    ls_dimension classes = ls_columns_of(program, op->inputs[LOGITS]);
    LS_TRY(ls_check_matrix(program, op, op->inputs[LOGITS], samples, classes, error));
    LS_TRY(ls_check_shape(program, op, op->inputs[LABELS], LS_I32, 1, &samples, error));
    LS_TRY(ls_check_matrix(program, op, op->outputs[LOSS], samples, ls_fixed(1), error));
    LS_TRY(ls_check_like(program, op, op->outputs[PROBABILITIES], op->inputs[LOGITS], error));
    return ls_check_like(program, op, op->outputs[LOGITS_GRADIENT], op->inputs[LOGITS], error);
}

static ls_status classifier_loss_gradient_rule(ls_gradient_pass *pass, const ls_op *op,
                                               ls_error *error)
{
    return ls_gradient_set(pass, op->inputs[LOGITS], op->outputs[LOGITS_GRADIENT], error);
}

static ls_cost classifier_loss_cost(const ls_program *program, const ls_op *op,
                                    const ls_extents *extents)
{
    return ls_cost_of(program, op, extents,
                      20 * ls_elements_of(program, op->inputs[LOGITS], extents));
}

const ls_op_definition ls_op_definition_CLASSIFIER_LOSS = {
    .kind = LS_OP_CLASSIFIER_LOSS,
    .inputs = INPUTS,
    .outputs = OUTPUTS,
    .optional_inputs = 1u << SCALE,
    .check = classifier_loss_check,
    .gradient = classifier_loss_gradient_rule,
    .cost = classifier_loss_cost,
};

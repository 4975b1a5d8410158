/* Builders: each appends one op (or none, where it would do nothing) and returns its result.
 *
 * R rows are T tokens or S samples; H hidden size, N and K features, C classes. The gradient rules
 * live beside the builders, one file an op. */
#ifndef LS_OPS_OPS_H
#define LS_OPS_OPS_H

#include "ops/inputs.h"
#include "program/program.h"

/* Three tables to be added: [V][H], [positions][H] and [types][H] (LS_NO_VALUE: no token types). */
typedef struct ls_embedding_tables {
    ls_value_id word, position, type;
} ls_embedding_tables;

/* sum[T][H] = word[ids] + position[positions] + type[types] */
ls_status ls_embedding(ls_program *program, const char *name, const ls_inputs *inputs,
                       ls_embedding_tables tables, ls_value_id *sum, ls_error *error) LS_MUST_CHECK;

/* y[R][H] = layer_norm(residual + dropout(branch)); residual LS_NO_VALUE: layer_norm(branch),
 * without dropout. */
typedef struct ls_layer_norm_operands {
    ls_value_id branch, residual, gamma, beta;
    float epsilon, dropout;
    uint32_t site; /* of the dropout */
} ls_layer_norm_operands;
ls_status ls_layer_norm(ls_program *program, const char *name, const ls_inputs *inputs,
                        ls_layer_norm_operands operands, ls_value_id *y,
                        ls_error *error) LS_MUST_CHECK;

/* y[R][N] = activation(x[R][K] weight[N][K]^T + bias[N]) */
ls_status ls_linear(ls_program *program, const char *name, ls_value_id x, ls_value_id weight,
                    ls_value_id bias, ls_activation activation, ls_value_id *y,
                    ls_error *error) LS_MUST_CHECK;

/* context[R][H] of softmax(scale q k^T) v inside each sequence; q is [T][H], or [S][H] for the
 * first tokens alone. Dropout on the probabilities. */
typedef struct ls_attention_operands {
    ls_value_id query, key, value;
    int64_t heads, max_positions;
    float dropout;
    uint32_t site;
} ls_attention_operands;
ls_status ls_attention(ls_program *program, const char *name, const ls_inputs *inputs,
                       ls_attention_operands operands, ls_value_id *context,
                       ls_error *error) LS_MUST_CHECK;

/* y = dropout(x), x itself where probability is 0. x is [T][H] or [S][H]. */
ls_status ls_dropout_op(ls_program *program, const char *name, const ls_inputs *inputs,
                        ls_value_id x, float probability, uint32_t site, ls_value_id *y,
                        ls_error *error) LS_MUST_CHECK;

/* y[S][H] = the rows of x[T][H] that hold each sequence's first token. */
ls_status ls_select_first(ls_program *program, const char *name, const ls_inputs *inputs,
                          ls_value_id x, ls_value_id *y, ls_error *error) LS_MUST_CHECK;

/* Softmax cross-entropy of logits[S][C] against the labels. Training programs also get the batch's
 * loss as slots of partial sums, "loss" [slots][1]. */
typedef struct ls_classifier_loss_results {
    ls_value_id sample_loss;   /* [S] */
    ls_value_id probabilities; /* [S][C], evaluation programs only */
    ls_value_id loss;          /* [slots][1], training programs only */
} ls_classifier_loss_results;
ls_status ls_classifier_loss_op(ls_program *program, const ls_inputs *inputs, ls_value_id logits,
                                ls_classifier_loss_results *results, ls_error *error) LS_MUST_CHECK;

/* slots[slots][N] = sums of values[R][N] over the samples' tree. */
ls_status ls_column_sums_op(ls_program *program, const char *name, ls_value_id values,
                            ls_value_id slots, ls_schedules schedules,
                            ls_error *error) LS_MUST_CHECK;

/* --- the update ------------------------------------------------------------------------------ */

/* Global norm over all gradients, clip factor min(1, max_norm / (norm + 1e-6)) (1 where max_norm is
 * 0), and whether the norm is finite (1 or 0): updates happen only then. */
typedef struct ls_gradient_norm_results {
    ls_value_id norm, clip_factor, proceed; /* [] f32 */
} ls_gradient_norm_results;
ls_status ls_gradient_norm(ls_program *program, float max_norm, ls_gradient_norm_results *results,
                           ls_error *error) LS_MUST_CHECK;
/* Proceed only if the loss (slot 0) is finite too. */
void ls_gradient_norm_watch_loss(ls_program *program, ls_value_id loss);

/* parameter, first_moment and second_moment are updated in place. */
typedef struct ls_adamw_operands {
    ls_value_id parameter, gradient, first_moment, second_moment;
    float beta1, beta2, epsilon, weight_decay;
    bool l2; /* Adam: the decay is part of the gradient */
} ls_adamw_operands;
ls_status ls_adamw_op(ls_program *program, const ls_inputs *inputs, ls_adamw_operands operands,
                      const ls_gradient_norm_results *norm, ls_error *error) LS_MUST_CHECK;

#endif

/* Models: each builds its forward program and names its parameters; it knows no strategy. */
#ifndef LS_MODELS_MODEL_H
#define LS_MODELS_MODEL_H

#include "formats/model_config.h"
#include "ops/ops.h"

/* How a parameter starts when the file has none. */
typedef enum ls_initial {
    LS_INITIAL_REQUIRED, /* it must be in the file */
    LS_INITIAL_NORMAL,   /* normal(0, initializer_range): a new head's weight */
    LS_INITIAL_ZERO      /* a new head's bias */
} ls_initial;

/* A parameter of a program and where it comes from. The name in the program is the one in the
 * trained model's file ("bert.encoder.layer.0...."). */
typedef struct ls_parameter {
    ls_value_id value;
    ls_initial initial;
} ls_parameter;

typedef struct ls_model {
    const ls_model_config *config; /* borrowed */
    int64_t classes;
    ls_inputs inputs;
    ls_parameter *parameters; /* in the order of the program's values; free with deinit */
    size_t parameter_count, parameter_capacity;
    ls_value_id logits;
    ls_classifier_loss_results results;
} ls_model;

typedef struct ls_model_options {
    int64_t classes;
    ls_touched_capacity touched; /* training programs: see ops/inputs.h */
} ls_model_options;

/* Append the forward program of the configured model with a classification head on `program`.
 * With program->training the dropouts of the configuration are in it. */
ls_status ls_model_build(ls_program *program, ls_model *model, const ls_model_config *config,
                         const ls_model_options *options, ls_error *error) LS_MUST_CHECK;
void ls_model_deinit(ls_model *model);

/* --- for the models' files ------------------------------------------------------------------- */

typedef struct ls_model_builder {
    ls_program *program;
    ls_model *model;
    const ls_model_config *config;
    ls_error *error;
} ls_model_builder;

/* One row a family: how it builds its body and head from the shared inputs. */
typedef struct ls_model_definition {
    ls_model_family family;
    const char *prefix; /* of the body's parameters in a classifier's file: "bert." */
    ls_status (*build)(ls_model_builder *builder);
} ls_model_definition;
extern const ls_model_definition ls_model_bert, ls_model_distilbert;
const ls_model_definition *ls_model_definition_of(ls_model_family family);

/* Random sites: dropout masks are named by (layer, site); every model keeps to these numbers. */
enum {
    LS_SITE_EMBEDDING = 0,
    LS_SITE_ATTENTION = 1,
    LS_SITE_ATTENTION_OUTPUT = 2,
    LS_SITE_FEED_FORWARD = 3,
    LS_SITE_CLASSIFIER = 4,
    LS_SITE_POOLER = 5,
    LS_SITES = 16
};
static inline uint32_t ls_site(int64_t layer, int site)
{
    return (uint32_t)(layer * LS_SITES + site);
}

/* weight [features][depth] and bias [features]; "PREFIX.weight" and "PREFIX.bias". */
typedef struct ls_affine {
    ls_value_id weight, bias;
} ls_affine;
ls_status ls_model_table(ls_model_builder *builder, const char *name, int64_t rows, int64_t columns,
                         ls_value_id touched, ls_value_id *out) LS_MUST_CHECK;
ls_status ls_model_linear(ls_model_builder *builder, const char *prefix, int64_t features,
                          int64_t depth, ls_initial weight_initial, ls_affine *out) LS_MUST_CHECK;
ls_status ls_model_norm(ls_model_builder *builder, const char *prefix, int64_t size,
                        ls_affine *out) LS_MUST_CHECK;
/* As ls_model_linear, and the op on x. */
ls_status ls_model_apply_linear(ls_model_builder *builder, const char *prefix, ls_value_id x,
                                int64_t features, ls_initial weight_initial,
                                ls_activation activation, ls_value_id *y) LS_MUST_CHECK;

/* One encoder layer, post-norm, as BERT and its children have it; names differ, sums do not. With
 * `first_only` only the rows of first tokens go through query, output and feed-forward: the last
 * layer of a classifier (same numbers, fewer operations). */
typedef struct ls_encoder_names {
    const char *query, *key, *value, *output, *output_norm; /* attention */
    const char *up, *down, *down_norm;                      /* feed-forward */
} ls_encoder_names;
typedef struct ls_encoder_layer {
    const char *prefix; /* "bert.encoder.layer.3" */
    const ls_encoder_names *names;
    int64_t layer;
    float attention_output_dropout;
    bool first_only;
} ls_encoder_layer;
ls_status ls_model_encoder_layer(ls_model_builder *builder, const ls_encoder_layer *layer,
                                 ls_value_id *x) LS_MUST_CHECK;

#endif

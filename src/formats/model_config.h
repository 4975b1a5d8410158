/* A Hugging Face config.json of a BERT or DistilBERT, and the one of a trained classifier. */
#ifndef LS_FORMATS_MODEL_CONFIG_H
#define LS_FORMATS_MODEL_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/activation.h"
#include "base/status.h"

typedef enum ls_model_family { LS_MODEL_BERT, LS_MODEL_DISTILBERT } ls_model_family;

/* Sizes are checked: all positive, heads divide hidden_size, probabilities in [0, 1). */
typedef struct ls_model_config {
    ls_model_family family;
    const char *family_name;  /* "bert", "distilbert" */
    const char *architecture; /* first of "architectures", "" if not given; lives in `source` */

    int64_t vocab_size, hidden_size, layers, heads, intermediate_size, max_positions;
    int64_t type_vocab_size; /* 0 for DistilBERT, which has no token types */
    ls_activation activation;
    double layer_norm_epsilon; /* always 1e-12 for DistilBERT */
    double hidden_dropout, attention_dropout, classifier_dropout;
    double initializer_range;
    int64_t pad_token_id; /* -1 if the file says null */

    /* Dense 0 .. label_count-1, all different. One label is accepted here; as a head it would be a
     * regression in Transformers. Without labels in the file: labels_given false and the two labels
     * LABEL_0 and LABEL_1 that Transformers assumes. "num_labels": n alone gives LABEL_0 and so
     * on with labels_given false: a count is no set of names. */
    bool labels_given;
    size_t label_count;
    char **labels;

    char *path;     /* of the config.json, for error texts */
    json_t *source; /* the file as it was read */
} ls_model_config;

/* `path` is a config.json or the folder that has one. A key that gives a size must be there
 * (LS_INVALID names key and file); other keys have the defaults of the model's class in
 * Transformers. Another model_type, a decoder, positions that are not absolute, a regression or
 * multi-label head and an unknown activation are LS_UNSUPPORTED, by name. */
ls_status ls_model_config_load(ls_model_config *config, const char *path,
                               ls_error *error) LS_MUST_CHECK;
/* The same from bytes; `name` stands for the file in error texts. */
ls_status ls_model_config_parse(ls_model_config *config, const char *bytes, size_t count,
                                const char *name, ls_error *error) LS_MUST_CHECK;
void ls_model_config_deinit(ls_model_config *config); /* safe on an all-zero one and twice */

/* The config.json of the classifier trained from `config` with these labels (UTF-8): the keys of
 * the source file are kept, save those that say where it came from; architectures, id2label,
 * label2id, problem_type and the dtype are set. Written atomically. */
ls_status ls_model_config_write(const ls_model_config *config, const char *const *labels,
                                size_t label_count, const char *path,
                                ls_error *error) LS_MUST_CHECK;

/* "BertForSequenceClassification" or "DistilBertForSequenceClassification". */
const char *ls_model_config_classifier(const ls_model_config *config);

#endif

/* The labels of a config.json: id2label, label2id, num_labels. Part of model_config.h's reader. */
#ifndef LS_FORMATS_MODEL_LABELS_H
#define LS_FORMATS_MODEL_LABELS_H

#include "formats/json.h"
#include "formats/model_config.h"

/* Fills label_count, labels and labels_given. */
ls_status ls_model_labels_parse(ls_model_config *config, const ls_json_view *view,
                                ls_error *error) LS_MUST_CHECK;

#endif

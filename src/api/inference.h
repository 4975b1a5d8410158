/* A model with its head, loaded for forward passes: what evaluate and predict share. */
#ifndef LS_API_INFERENCE_H
#define LS_API_INFERENCE_H

#include "api/session.h"
#include "engine/evaluator.h"

typedef struct ls_inference {
    ls_assembly assembly;
    ls_evaluator *evaluator;
    const char **label_names;
    int32_t classes;
} ls_inference;

/* For passes of up to `samples` rows of up to `longest_row` tokens. Refused, with the numbers,
 * where the device's budget does not allow it. */
ls_status ls_inference_open(ls_inference *inference, ls_session *session, int64_t samples,
                            int64_t longest_row, ls_error *error) LS_MUST_CHECK;
void ls_inference_close(ls_inference *inference); /* safe on an all-zero one */

#endif

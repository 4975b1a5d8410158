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

/* For passes of as many rows as options->samples_per_pass says, `usual_samples` where it says none,
 * at most `most_samples`; rows of up to `longest_row` tokens. With auto, passes are halved until
 * they fit the device's budget; what does not fit is refused with the numbers. */
ls_status ls_inference_open(ls_inference *inference, ls_session *session, int64_t usual_samples,
                            int64_t most_samples, int64_t longest_row,
                            ls_error *error) LS_MUST_CHECK;
void ls_inference_close(ls_inference *inference); /* safe on an all-zero one */

#endif

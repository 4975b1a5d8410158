/* Parameters in and out: from a model's files onto the device, and back into one file. */
#ifndef LS_ENGINE_PARAMETERS_H
#define LS_ENGINE_PARAMETERS_H

#include <stdbool.h>

#include "base/text.h"
#include "engine/assembly.h"
#include "engine/executor.h"
#include "formats/weights.h"

/* Rows of the classifier's weight in the files, 0 if they have no classification head. LS_INVALID
 * if they have one whose size is not the number of labels that config.json gives. */
ls_status ls_parameters_head_classes(const ls_weights *weights, const ls_model_config *config,
                                     int64_t *classes, ls_error *error) LS_MUST_CHECK;

typedef struct ls_parameters_notes {
    ls_text initialised; /* names of parameters that were not in the files, ", " between them */
    ls_text unused;      /* names of tensors that the model has no use for */
} ls_parameters_notes;
void ls_parameters_notes_deinit(ls_parameters_notes *notes);

/* That every parameter is there with the right shape: from headers alone, before memory is taken
 * for what a damaged config.json asks for. */
ls_status ls_parameters_check(const ls_assembly *assembly, const ls_weights *weights,
                              ls_error *error) LS_MUST_CHECK;

/* Elements [first, first + count) of a value, wherever they are. */
typedef struct ls_tensor_reader {
    ls_status (*read)(void *context, ls_value_id value, int64_t first, int64_t count, float *to,
                      ls_error *error);
    void *context;
} ls_tensor_reader;

/* Read every parameter under any of the names it has had (with or without the body's prefix, old
 * gamma and beta), as fp32. A missing body tensor and a wrong shape are
 * LS_INVALID, a value that is not finite LS_NOT_FINITE, a dtype that is no float LS_UNSUPPORTED;
 * all name the tensor. What a new head needs is drawn from `seed`. Of parameters that are divided
 * among ranks, each one reads what it owns. */
ls_status ls_parameters_load(ls_executor *executor, const ls_assembly *assembly,
                             const ls_weights *weights, uint64_t seed, ls_parameters_notes *notes,
                             ls_error *error) LS_MUST_CHECK;

/* Write all parameters to one safetensors file under the program's names, whole or not at all. */
ls_status ls_parameters_save(const ls_tensor_reader *reader, const ls_assembly *assembly,
                             const char *path, ls_error *error) LS_MUST_CHECK;

#endif

/* The weights of a model: one safetensors file or several under an index, as one list of tensors.
 */
#ifndef LS_FORMATS_WEIGHTS_H
#define LS_FORMATS_WEIGHTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "formats/safetensors.h"

typedef struct ls_weights ls_weights;

/* `path` is a folder with model.safetensors, or with model.safetensors.index.json ("weight_map":
 * tensor -> file in the same folder; names with '/' or "..", or absolute, are refused), or a
 * safetensors file itself. A folder that has neither is LS_INVALID; one with pytorch_model.bin only
 * is told to convert. Every tensor of the index must be in its shard, and none may be in two. */
ls_status ls_weights_open(ls_weights **out, const char *path, ls_error *error) LS_MUST_CHECK;
void ls_weights_free(ls_weights *weights); /* NULL is allowed */

size_t ls_weights_count(const ls_weights *weights);
/* In the order of their names. Tensors live as long as `weights`. */
const ls_safetensors_tensor *ls_weights_at(const ls_weights *weights, size_t index);
/* NULL when there is none. */
const ls_safetensors_tensor *ls_weights_find(const ls_weights *weights, const char *name);

/* The path of the file that a tensor is in, for error texts. */
const char *ls_weights_file(const ls_weights *weights, const ls_safetensors_tensor *tensor);
/* What was opened: the index's or the file's path. */
const char *ls_weights_path(const ls_weights *weights);

/* As ls_safetensors_read_float and ls_safetensors_read_raw; threads may read at the same time. */
ls_status ls_weights_read_float(const ls_weights *weights, const ls_safetensors_tensor *tensor,
                                int64_t first, int64_t count, float *into,
                                ls_error *error) LS_MUST_CHECK;
ls_status ls_weights_read_raw(const ls_weights *weights, const ls_safetensors_tensor *tensor,
                              int64_t first, int64_t count, void *into,
                              ls_error *error) LS_MUST_CHECK;

#endif

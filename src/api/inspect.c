/* ls_inspect: the tensors of a model, from the headers of its files alone. */
#include <string.h>

#include "formats/weights.h"
#include "lockstep.h"

_Static_assert(sizeof((ls_tensor_report *)0)->shape == sizeof((ls_safetensors_tensor *)0)->shape,
               "a report holds every shape that a file may have");

ls_status ls_inspect(const char *path, void (*tensor)(void *, const ls_tensor_report *),
                     void *context, ls_error *error)
{
    ls_weights *weights = NULL;
    if (!path) return ls_fail(error, LS_USAGE, "inspect needs a model folder or safetensors file");
    LS_TRY(ls_weights_open(&weights, path, error));
    for (size_t i = 0; i < ls_weights_count(weights); i++) {
        const ls_safetensors_tensor *here = ls_weights_at(weights, i);
        ls_tensor_report report = {.name = here->name,
                                   .dtype = ls_safetensors_dtype_name(here->dtype),
                                   .rank = here->rank,
                                   .elements = here->elements,
                                   .bytes = here->bytes,
                                   .file = ls_weights_file(weights, here)};
        memcpy(report.shape, here->shape, sizeof report.shape);
        tensor(context, &report);
    }
    ls_weights_free(weights);
    return LS_OK;
}

/* Any bytes as a safetensors file: what opens must be readable to the last byte. */
#include "formats/weights.h"
#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_tensor(const ls_weights *weights, const ls_safetensors_tensor *tensor)
{
    ls_error error;
    if (ls_weights_find(weights, tensor->name) != tensor) abort();
    unsigned char *bytes = malloc(tensor->bytes + 1);
    float *floats = malloc(((size_t)tensor->elements + 1) * sizeof *floats);
    if (!bytes || !floats) abort();
    if (ls_weights_read_raw(weights, tensor, 0, tensor->elements, bytes, &error) != LS_OK) abort();
    ls_status status = ls_weights_read_float(weights, tensor, 0, tensor->elements, floats, &error);
    if (status != LS_OK && status != LS_UNSUPPORTED) abort();
    free(bytes);
    free(floats);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ls_error error;
    ls_weights *weights = NULL;
    if (ls_weights_open(&weights, memory_file(data, size), &error) != LS_OK) return 0;
    for (size_t i = 0; i < ls_weights_count(weights); i++)
        read_tensor(weights, ls_weights_at(weights, i));
    ls_weights_free(weights);
    return 0;
}

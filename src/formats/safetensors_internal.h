/* Shared by the parts of the safetensors reader. */
#ifndef LS_FORMATS_SAFETENSORS_INTERNAL_H
#define LS_FORMATS_SAFETENSORS_INTERNAL_H

#include "base/arena.h"
#include "base/files.h"
#include "formats/safetensors.h"

typedef struct metadata_pair {
    const char *key, *value;
} metadata_pair;

struct ls_safetensors {
    ls_file file;
    uint64_t data_start; /* first byte after the header */
    ls_arena arena;      /* names, metadata */
    ls_safetensors_tensor *tensors;
    size_t count;
    metadata_pair *metadata;
    size_t metadata_count;
};

/* Elements and bytes of a shape; false on overflow of int64. */
bool ls_safetensors_size(ls_safetensors_tensor *tensor);

#endif

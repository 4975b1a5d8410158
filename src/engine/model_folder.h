/* A Hugging Face model folder, opened: configuration, weights, tokenizer; and the folder of a
 * trained model, written. */
#ifndef LS_ENGINE_MODEL_FOLDER_H
#define LS_ENGINE_MODEL_FOLDER_H

#include <stddef.h>

#include "data/labels.h"
#include "engine/parameters.h"
#include "formats/model_config.h"
#include "formats/weights.h"
#include "tokenizer/tokenizer.h"

typedef struct ls_model_folder {
    char *path;
    ls_model_config config;
    ls_weights *weights;
    ls_tokenizer *tokenizer;
    int64_t head_classes; /* 0: no classification head in the files */
    int64_t max_length;   /* what the tokenizer's configuration says, at most max_positions */
} ls_model_folder;

/* LS_INVALID names what is missing or does not fit together: a vocabulary larger than the embedding
 * table, a head of other size than the label set. Reads headers only, no weights. */
ls_status ls_model_folder_open(ls_model_folder *folder, const char *path,
                               ls_error *error) LS_MUST_CHECK;
void ls_model_folder_close(ls_model_folder *folder); /* safe on an all-zero one and twice */

/* The label set of a folder with a head, into an empty set. */
ls_status ls_model_folder_labels(const ls_model_folder *folder, ls_labels *labels,
                                 ls_error *error) LS_MUST_CHECK;

/* Token limit of a run: `asked`, which must not be over max_positions, or else `fallback` cut to
 * it. */
ls_status ls_model_folder_length(const ls_model_folder *folder, int64_t asked, int64_t fallback,
                                 int64_t *length, ls_error *error) LS_MUST_CHECK;

/* Files and folders that the user has named and this run writes: they are no strangers where they
 * lie in the output folder, at any depth. */
typedef struct ls_output_guests {
    const char *const *paths; /* [count] */
    int count;
} ls_output_guests;

/* Refuse an output folder that is not new, empty or a former run's (it has a run.json), that is the
 * folder of the model itself, or that cannot be written. It is made if it is not there, with those
 * above it: *made is set, on failure too, to the length of the end of `path` that names what was
 * made. Nothing else is changed. */
ls_status ls_output_check(const char *path, const char *model, const ls_output_guests *guests,
                          size_t *made, ls_error *error) LS_MUST_CHECK;
/* Remove what ls_output_check made, as far as it is empty. */
void ls_output_unmake(const char *path, size_t made);
/* Remove what a run has written, but for the file named `kept` (NULL: all of it). */
ls_status ls_output_clear(const char *path, const char *kept, ls_error *error);

/* config.json and the tokenizer's files. */
ls_status ls_output_write_files(const char *path, const ls_model_folder *from,
                                const ls_labels *labels, int64_t max_length,
                                ls_error *error) LS_MUST_CHECK;
/* config.json, the tokenizer's files and, last, model.safetensors: what Transformers loads; none of
 * them if one fails. */
ls_status ls_output_write_model(const char *path, const ls_model_folder *from,
                                const ls_labels *labels, int64_t max_length,
                                const ls_tensor_reader *reader, const ls_assembly *assembly,
                                ls_error *error) LS_MUST_CHECK;

#endif

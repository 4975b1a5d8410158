#include "engine/model_folder.h"

#include "base/alloc.h"
#include "base/files.h"
#include "formats/json.h"

enum { CONFIG_CAP = 1 << 24 };

/* Transformers writes 1e30 for "no limit". */
static ls_status read_max_length(ls_model_folder *folder, ls_error *error)
{
    folder->max_length = folder->config.max_positions;
    char *path = NULL;
    json_t *document = NULL;
    LS_TRY(ls_path_join(&path, folder->path, "tokenizer_config.json", error));
    ls_status status = LS_OK;
    if (ls_path_exists(path)) {
        ls_json_view view;
        double length = (double)folder->max_length;
        status = ls_json_load(&document, path, CONFIG_CAP, error);
        if (status == LS_OK) status = ls_json_view_init(&view, document, path, error);
        if (status == LS_OK)
            status = ls_json_get_number(&view, "model_max_length", LS_JSON_OPTIONAL, 1, 1e300,
                                        &length, error);
        if (status == LS_OK && length < (double)folder->max_length)
            folder->max_length = (int64_t)length;
    }
    ls_json_free(document);
    ls_free(path);
    return status;
}

static ls_status check_vocabulary(const ls_model_folder *folder, ls_error *error)
{
    int64_t size = ls_tokenizer_vocabulary_size(folder->tokenizer);
    if (size <= folder->config.vocab_size) return LS_OK;
    return ls_fail(error, LS_INVALID,
                   "%s: the tokenizer has %lld tokens, but config.json's vocab_size is %lld: "
                   "tokenizer and model do not belong together",
                   folder->path, (long long)size, (long long)folder->config.vocab_size);
}

ls_status ls_model_folder_open(ls_model_folder *folder, const char *path, ls_error *error)
{
    ls_status status;
    *folder = (ls_model_folder){0};
    if (!ls_path_is_folder(path))
        return ls_fail(error, LS_INVALID,
                       "%s: there is no such folder: --model takes a Hugging Face model folder, "
                       "with config.json, model.safetensors and the tokenizer's files",
                       path);
    LS_TRY_GOTO(status, ls_copy_string(&folder->path, path, error), fail);
    LS_TRY_GOTO(status, ls_model_config_load(&folder->config, path, error), fail);
    LS_TRY_GOTO(status, ls_weights_open(&folder->weights, path, error), fail);
    LS_TRY_GOTO(
        status,
        ls_parameters_head_classes(folder->weights, &folder->config, &folder->head_classes, error),
        fail);
    LS_TRY_GOTO(status, ls_tokenizer_open(&folder->tokenizer, path, error), fail);
    LS_TRY_GOTO(status, check_vocabulary(folder, error), fail);
    LS_TRY_GOTO(status, read_max_length(folder, error), fail);
    return LS_OK;
fail:
    ls_model_folder_close(folder);
    return status;
}

void ls_model_folder_close(ls_model_folder *folder)
{
    ls_tokenizer_free(folder->tokenizer);
    ls_weights_free(folder->weights);
    ls_model_config_deinit(&folder->config);
    ls_free(folder->path);
    *folder = (ls_model_folder){0};
}

ls_status ls_model_folder_labels(const ls_model_folder *folder, ls_labels *labels, ls_error *error)
{
    return ls_labels_set(labels, (const char *const *)folder->config.labels,
                         (int)folder->config.label_count, error);
}

ls_status ls_model_folder_length(const ls_model_folder *folder, int64_t asked, int64_t fallback,
                                 int64_t *length, ls_error *error)
{
    int64_t most = folder->config.max_positions;
    if (asked > most)
        return ls_fail(error, LS_USAGE,
                       "--max-length %lld is more than the model's %lld positions "
                       "(max_position_embeddings in %s)",
                       (long long)asked, (long long)most, folder->config.path);
    *length = asked > 0 ? asked : fallback;
    if (*length > most) *length = most;
    return LS_OK;
}

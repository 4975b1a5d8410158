#include "formats/weights.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/files.h"
#include "formats/json.h"

typedef struct weight {
    const ls_safetensors_tensor *tensor;
    const ls_safetensors *file;
} weight;

struct ls_weights {
    char *path;
    ls_safetensors **files;
    size_t file_count, file_capacity;
    weight *weights; /* in the order of their names */
    size_t count;
};

static int compare_weights(const void *left, const void *right)
{
    const weight *a = left, *b = right;
    return strcmp(a->tensor->name, b->tensor->name);
}

static ls_status add_file(ls_weights *weights, const char *path, ls_error *error)
{
    LS_TRY(LS_GROW(weights->files, weights->file_capacity, weights->file_count + 1,
                   "list of weight files", error));
    LS_TRY(ls_safetensors_open(&weights->files[weights->file_count], path, error));
    weights->file_count++;
    return LS_OK;
}

/* --- the index of a sharded model ------------------------------------------------------------ */

static ls_status check_shard_name(const ls_json_view *map, const char *key, const char *name,
                                  ls_error *error)
{
    if (*name && !strchr(name, '/') && !strchr(name, '\\') && !strstr(name, "..")) return LS_OK;
    return ls_json_fail(map, key, error, LS_INVALID,
                        "'%.200s' is no plain file name; shards must lie beside the index", name);
}

/* The open file with this name in `folder`; opens it if it is the first time. */
static ls_status find_shard(ls_weights *weights, const char *folder, const char *name,
                            const ls_safetensors **shard, ls_error *error)
{
    char *path = NULL;
    LS_TRY(ls_path_join(&path, folder, name, error));
    ls_status status = LS_OK;
    size_t i = 0;
    while (i < weights->file_count && strcmp(ls_safetensors_path(weights->files[i]), path) != 0)
        i++;
    if (i == weights->file_count) {
        status = add_file(weights, path, error);
        if (status != LS_OK) ls_fail_context(error, status, "%s", weights->path);
    }
    if (status == LS_OK) *shard = weights->files[i];
    ls_free(path);
    return status;
}

static ls_status open_shards(ls_weights *weights, const char *folder, const json_t *root,
                             ls_error *error)
{
    ls_json_view view, map;
    const char *key;
    json_t *value;
    LS_TRY(ls_json_view_init(&view, root, weights->path, error));
    LS_TRY(ls_json_get_object(&view, "weight_map", LS_JSON_REQUIRED, &map, error));
    json_object_foreach((json_t *)map.object, key, value)
    {
        const char *name = NULL;
        const ls_safetensors *shard = NULL;
        LS_TRY(ls_json_get_string(&map, key, LS_JSON_REQUIRED, &name, error));
        LS_TRY(check_shard_name(&map, key, name, error));
        LS_TRY(find_shard(weights, folder, name, &shard, error));
        if (!ls_safetensors_find(shard, key))
            return ls_json_fail(&map, key, error, LS_INVALID, "'%.200s' has no such tensor", name);
    }
    if (weights->file_count == 0)
        return ls_fail(error, LS_INVALID, "%s: key 'weight_map' names no tensor", weights->path);
    return LS_OK;
}

static ls_status open_index(ls_weights *weights, const char *folder, ls_error *error)
{
    json_t *root = NULL;
    LS_TRY(ls_json_load(&root, weights->path, LS_SAFETENSORS_MAX_HEADER, error));
    ls_status status = open_shards(weights, folder, root, error);
    ls_json_free(root);
    return status;
}

/* --- what a folder has ----------------------------------------------------------------------- */

/* *path is NULL with LS_OK if the folder has no such file. */
static ls_status path_if_there(char **path, const char *folder, const char *name, ls_error *error)
{
    *path = NULL;
    LS_TRY(ls_path_join(path, folder, name, error));
    if (!ls_path_exists(*path)) {
        ls_free(*path);
        *path = NULL;
    }
    return LS_OK;
}

static ls_status fail_no_weights(const char *folder, ls_error *error)
{
    static const char *const old_names[] = {"pytorch_model.bin", "pytorch_model.bin.index.json"};
    for (size_t i = 0; i < sizeof old_names / sizeof *old_names; i++) {
        char *path = NULL;
        LS_TRY(path_if_there(&path, folder, old_names[i], error));
        bool found = path != NULL;
        ls_free(path);
        if (found)
            return ls_fail(error, LS_INVALID,
                           "%s: has %s only, which is not read; convert the model to "
                           "model.safetensors (load it in Transformers and save it again)",
                           folder, old_names[i]);
    }
    return ls_fail(error, LS_INVALID,
                   "%s: has neither model.safetensors nor model.safetensors.index.json; give the "
                   "folder of a Hugging Face model",
                   folder);
}

static ls_status open_path(ls_weights *weights, const char *path, ls_error *error)
{
    if (!ls_path_is_folder(path)) {
        LS_TRY(ls_copy_string(&weights->path, path, error));
        return add_file(weights, path, error);
    }
    LS_TRY(path_if_there(&weights->path, path, "model.safetensors", error));
    if (weights->path) return add_file(weights, weights->path, error);
    LS_TRY(path_if_there(&weights->path, path, "model.safetensors.index.json", error));
    if (weights->path) return open_index(weights, path, error);
    return fail_no_weights(path, error);
}

static ls_status list_weights(ls_weights *weights, ls_error *error)
{
    size_t total = 0;
    for (size_t i = 0; i < weights->file_count; i++)
        total += ls_safetensors_count(weights->files[i]);
    LS_TRY(LS_NEW(weights->weights, total, "list of weights", error));
    for (size_t i = 0; i < weights->file_count; i++) {
        const ls_safetensors *file = weights->files[i];
        for (size_t j = 0; j < ls_safetensors_count(file); j++)
            weights->weights[weights->count++] =
                (weight){.tensor = ls_safetensors_at(file, j), .file = file};
    }
    qsort(weights->weights, total, sizeof *weights->weights, compare_weights);
    for (size_t i = 1; i < total; i++) {
        const weight *one = &weights->weights[i - 1], *two = &weights->weights[i];
        if (compare_weights(one, two) == 0)
            return ls_fail(error, LS_INVALID, "%s: tensor '%.200s' is in %.200s and in %.200s",
                           weights->path, one->tensor->name, ls_safetensors_path(one->file),
                           ls_safetensors_path(two->file));
    }
    return LS_OK;
}

ls_status ls_weights_open(ls_weights **out, const char *path, ls_error *error)
{
    ls_weights *weights = NULL;
    *out = NULL;
    LS_TRY(LS_NEW(weights, 1, "list of weights", error));
    ls_status status = open_path(weights, path, error);
    if (status == LS_OK) status = list_weights(weights, error);
    if (status == LS_OK)
        *out = weights;
    else
        ls_weights_free(weights);
    return status;
}

void ls_weights_free(ls_weights *weights)
{
    if (!weights) return;
    for (size_t i = 0; i < weights->file_count; i++)
        ls_safetensors_free(weights->files[i]);
    ls_free(weights->files);
    ls_free(weights->weights);
    ls_free(weights->path);
    ls_free(weights);
}

size_t ls_weights_count(const ls_weights *weights)
{
    return weights->count;
}

const ls_safetensors_tensor *ls_weights_at(const ls_weights *weights, size_t index)
{
    return weights->weights[index].tensor;
}

static const weight *find(const ls_weights *weights, const char *name)
{
    ls_safetensors_tensor tensor = {.name = name};
    weight key = {.tensor = &tensor};
    if (weights->count == 0) return NULL;
    return bsearch(&key, weights->weights, weights->count, sizeof key, compare_weights);
}

const ls_safetensors_tensor *ls_weights_find(const ls_weights *weights, const char *name)
{
    const weight *found = find(weights, name);
    return found ? found->tensor : NULL;
}

const char *ls_weights_file(const ls_weights *weights, const ls_safetensors_tensor *tensor)
{
    const weight *found = find(weights, tensor->name);
    return found ? ls_safetensors_path(found->file) : weights->path;
}

const char *ls_weights_path(const ls_weights *weights)
{
    return weights->path;
}

static ls_status find_file(const ls_weights *weights, const ls_safetensors_tensor *tensor,
                           const ls_safetensors **file, ls_error *error)
{
    const weight *found = find(weights, tensor->name);
    if (!found || found->tensor != tensor)
        return ls_fail(error, LS_INTERNAL, "%s: tensor '%.200s' is not of these weights",
                       weights->path, tensor->name);
    *file = found->file;
    return LS_OK;
}

ls_status ls_weights_read_float(const ls_weights *weights, const ls_safetensors_tensor *tensor,
                                int64_t first, int64_t count, float *into, ls_error *error)
{
    const ls_safetensors *file = NULL;
    LS_TRY(find_file(weights, tensor, &file, error));
    return ls_safetensors_read_float(file, tensor, first, count, into, error);
}

ls_status ls_weights_read_raw(const ls_weights *weights, const ls_safetensors_tensor *tensor,
                              int64_t first, int64_t count, void *into, ls_error *error)
{
    const ls_safetensors *file = NULL;
    LS_TRY(find_file(weights, tensor, &file, error));
    return ls_safetensors_read_raw(file, tensor, first, count, into, error);
}

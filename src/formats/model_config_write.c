/* The config.json of a trained classifier. */
#include <stdio.h>
#include <string.h>

#include "formats/json.h"
#include "formats/model_config.h"

/* Where the source came from, and what is set anew (num_labels follows from id2label). */
static const char *const dropped_keys[] = {"_name_or_path", "name_or_path", "_commit_hash", "dtype",
                                           "num_labels"};

/* Takes `value` over, also when it fails; NULL is a failed allocation. */
static ls_status set_new(json_t *object, const char *key, json_t *value, ls_error *error)
{
    if (value && json_object_set_new(object, key, value) == 0) return LS_OK;
    return ls_fail(error, LS_NO_MEMORY, "out of memory for config.json");
}

static ls_status copy_keys(json_t *to, const json_t *from, ls_error *error)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)from, key, value)
    {
        bool dropped = false;
        for (size_t i = 0; i < sizeof dropped_keys / sizeof *dropped_keys; i++)
            dropped = dropped || strcmp(key, dropped_keys[i]) == 0;
        if (!dropped) LS_TRY(set_new(to, key, json_incref(value), error));
    }
    return LS_OK;
}

static ls_status set_architecture(json_t *root, const char *name, ls_error *error)
{
    json_t *array = json_array();
    if (array && json_array_append_new(array, json_string(name)) != 0) {
        json_decref(array);
        array = NULL;
    }
    return set_new(root, "architectures", array, error);
}

static ls_status set_labels(json_t *root, const char *const *labels, size_t count, ls_error *error)
{
    json_t *id2label = json_object(), *label2id = json_object();
    ls_status status = id2label && label2id
                           ? LS_OK
                           : ls_fail(error, LS_NO_MEMORY, "out of memory for config.json");
    for (size_t id = 0; id < count && status == LS_OK; id++) {
        char key[24];
        snprintf(key, sizeof key, "%zu", id);
        status = set_new(id2label, key, json_string(labels[id]), error);
        if (status == LS_OK && json_object_get(label2id, labels[id]))
            status =
                ls_fail(error, LS_INVALID, "label '%.200s' stands for two classes", labels[id]);
        if (status == LS_OK)
            status = set_new(label2id, labels[id], json_integer((json_int_t)id), error);
    }
    if (status == LS_OK) status = set_new(root, "id2label", json_incref(id2label), error);
    if (status == LS_OK) status = set_new(root, "label2id", json_incref(label2id), error);
    json_decref(id2label);
    json_decref(label2id);
    return status;
}

ls_status ls_model_config_write(const ls_model_config *config, const char *const *labels,
                                size_t label_count, const char *path, ls_error *error)
{
    json_t *root = NULL;
    ls_status status;
    LS_TRY(ls_json_new_object(&root, error));
    LS_TRY_GOTO(status, copy_keys(root, config->source, error), done);
    LS_TRY_GOTO(status, set_architecture(root, ls_model_config_classifier(config), error), done);
    LS_TRY_GOTO(status, set_labels(root, labels, label_count, error), done);
    LS_TRY_GOTO(status,
                set_new(root, "problem_type", json_string("single_label_classification"), error),
                done);
    /* Transformers 5 reads "torch_dtype" as it reads "dtype"; 4 knows only the former. */
    LS_TRY_GOTO(status, set_new(root, "torch_dtype", json_string("float32"), error), done);
    status = ls_json_write(root, path, error);
done:
    ls_json_free(root);
    return status;
}

#include "formats/model_labels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { MAX_LABELS = 1000000, DEFAULT_LABELS = 2 };

/* A whole number in plain digits, or -1. */
static int64_t parse_id(const char *text)
{
    size_t length = strlen(text);
    if (length == 0 || length > 9 || strspn(text, "0123456789") != length) return -1;
    if (length > 1 && text[0] == '0') return -1;
    return strtol(text, NULL, 10);
}

/* Put a copy of `label` at `id`; an id outside the dense range or taken twice is an error. */
static ls_status place(ls_model_config *config, const ls_json_view *view, const char *key,
                       int64_t id, const char *label, ls_error *error)
{
    if (id < 0 || (uint64_t)id >= config->label_count)
        return ls_json_fail(view, key, error, LS_INVALID,
                            "the ids of %zu labels must be 0 to %zu, each once",
                            config->label_count, config->label_count - 1);
    if (config->labels[id])
        return ls_json_fail(view, key, error, LS_INVALID, "id %lld stands twice", (long long)id);
    if (*label == '\0') return ls_json_fail(view, key, error, LS_INVALID, "a label is empty");
    return ls_copy_string(&config->labels[id], label, error);
}

static ls_status allocate(ls_model_config *config, const ls_json_view *view, const char *key,
                          size_t count, ls_error *error)
{
    if (count == 0 || count > MAX_LABELS)
        return ls_json_fail(view, key, error, LS_INVALID, "has %zu labels, 1 to %d go", count,
                            MAX_LABELS);
    LS_TRY(LS_NEW(config->labels, count, "labels", error));
    config->label_count = count;
    return LS_OK;
}

static ls_status parse_id2label(ls_model_config *config, const ls_json_view *view,
                                const ls_json_view *map, ls_error *error)
{
    const char *key;
    json_t *value;
    LS_TRY(allocate(config, view, "id2label", json_object_size(map->object), error));
    json_object_foreach((json_t *)map->object, key, value)
    {
        const char *label = NULL;
        LS_TRY(ls_json_get_string(map, key, LS_JSON_REQUIRED, &label, error));
        LS_TRY(place(config, map, key, parse_id(key), label, error));
    }
    return LS_OK;
}

static ls_status parse_label2id(ls_model_config *config, const ls_json_view *view,
                                const ls_json_view *map, ls_error *error)
{
    const char *label;
    json_t *value;
    LS_TRY(allocate(config, view, "label2id", json_object_size(map->object), error));
    json_object_foreach((json_t *)map->object, label, value)
    {
        int64_t id = -1;
        LS_TRY(ls_json_get_integer(map, label, LS_JSON_REQUIRED, 0, MAX_LABELS, &id, error));
        LS_TRY(place(config, map, label, id, label, error));
    }
    return LS_OK;
}

/* Names of label2id that id2label does not know are left alone: some files keep the default LABEL_0
 * beside real names. The same name with another id is a contradiction. */
static ls_status check_inverse(const ls_model_config *config, const ls_json_view *map,
                               ls_error *error)
{
    for (size_t id = 0; id < config->label_count; id++) {
        const json_t *value = ls_json_find(map, config->labels[id]);
        if (json_is_integer(value) && json_integer_value(value) != (json_int_t)id)
            return ls_json_fail(map, config->labels[id], error, LS_INVALID,
                                "is %lld, but id2label gives it %zu",
                                (long long)json_integer_value(value), id);
    }
    return LS_OK;
}

static int compare_labels(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static ls_status check_distinct(const ls_model_config *config, const ls_json_view *view,
                                ls_error *error)
{
    char **sorted = NULL;
    LS_TRY(LS_NEW(sorted, config->label_count, "labels", error));
    memcpy(sorted, config->labels, config->label_count * sizeof *sorted);
    qsort(sorted, config->label_count, sizeof *sorted, compare_labels);
    ls_status status = LS_OK;
    for (size_t i = 1; i < config->label_count && status == LS_OK; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            status = ls_json_fail(view, "id2label", error, LS_INVALID,
                                  "label '%.100s' stands for two ids", sorted[i]);
    ls_free(sorted);
    return status;
}

static ls_status number_labels(ls_model_config *config, const ls_json_view *view, size_t count,
                               ls_error *error)
{
    LS_TRY(allocate(config, view, "num_labels", count, error));
    for (size_t id = 0; id < count; id++) {
        char label[32];
        snprintf(label, sizeof label, "LABEL_%zu", id);
        LS_TRY(ls_copy_string(&config->labels[id], label, error));
    }
    return LS_OK;
}

ls_status ls_model_labels_parse(ls_model_config *config, const ls_json_view *view, ls_error *error)
{
    ls_json_view id2label, label2id;
    int64_t count = 0;
    LS_TRY(ls_json_get_object(view, "id2label", LS_JSON_OPTIONAL, &id2label, error));
    LS_TRY(ls_json_get_object(view, "label2id", LS_JSON_OPTIONAL, &label2id, error));
    LS_TRY(ls_json_get_integer(view, "num_labels", LS_JSON_OPTIONAL, 1, MAX_LABELS, &count, error));
    config->labels_given = id2label.object || label2id.object;
    if (id2label.object)
        LS_TRY(parse_id2label(config, view, &id2label, error));
    else if (label2id.object)
        LS_TRY(parse_label2id(config, view, &label2id, error));
    else
        LS_TRY(number_labels(config, view, count ? (size_t)count : DEFAULT_LABELS, error));
    if (count && (size_t)count != config->label_count)
        return ls_json_fail(view, "num_labels", error, LS_INVALID,
                            "is %lld, but %zu labels are named", (long long)count,
                            config->label_count);
    if (id2label.object) LS_TRY(check_inverse(config, &label2id, error));
    return check_distinct(config, view, error);
}

/* Keys of a DeepSpeed configuration that must fit together. */
#include <string.h>
#include <strings.h>

#include "formats/deepspeed_config.h"

/* --- values ---------------------------------------------------------------------------------- */

const ls_deepspeed_entry *ls_deepspeed_config_find(const ls_deepspeed_config *config,
                                                   const char *path)
{
    for (size_t i = 0; i < config->entry_count; i++)
        if (strcmp(config->entries[i].key->path, path) == 0) return &config->entries[i];
    return NULL;
}

bool ls_deepspeed_config_has(const ls_deepspeed_config *config, const char *section)
{
    return json_is_object(json_object_get(config->root, section));
}

bool ls_deepspeed_is_auto(const ls_deepspeed_entry *entry)
{
    return entry && json_is_string(entry->value) &&
           strcmp(json_string_value(entry->value), "auto") == 0;
}

double ls_deepspeed_number(const ls_deepspeed_entry *entry, double fallback)
{
    if (!entry || ls_deepspeed_is_auto(entry)) return fallback;
    return json_is_boolean(entry->value) ? json_is_true(entry->value)
                                         : json_number_value(entry->value);
}

int64_t ls_deepspeed_integer(const ls_deepspeed_entry *entry, int64_t fallback)
{
    if (entry && json_is_integer(entry->value)) return json_integer_value(entry->value);
    if (!entry || ls_deepspeed_is_auto(entry)) return fallback;
    return (int64_t)ls_deepspeed_number(entry, 0);
}

bool ls_deepspeed_flag(const ls_deepspeed_entry *entry, bool fallback)
{
    if (!entry || ls_deepspeed_is_auto(entry)) return fallback;
    return json_is_true(entry->value);
}

const char *ls_deepspeed_text(const ls_deepspeed_entry *entry, const char *fallback)
{
    if (!entry || ls_deepspeed_is_auto(entry)) return fallback;
    return entry->value ? json_string_value(entry->value) : "cpu";
}

/* --- types ----------------------------------------------------------------------------------- */

/* One of `known`, whatever its case, as there. */
static ls_status check_type_of(const ls_deepspeed_config *config, const char *section,
                               const char *const *known, const char *list, ls_error *error)
{
    char path[32], shown[LS_DEEPSPEED_VALUE_BYTES];
    const json_t *object = json_object_get(config->root, section);
    const json_t *type = json_object_get(object, "type");
    if (!json_is_object(object)) return LS_OK; /* the walk says what is wrong */
    memcpy(path, section, strlen(section));
    memcpy(path + strlen(section), ".type", sizeof ".type");
    if (!type)
        return ls_deepspeed_fail(config, path, error, LS_INVALID, "is missing: one of %s is needed",
                                 list);
    if (!json_is_string(type)) return LS_OK;
    for (; *known; known++)
        if (strcasecmp(json_string_value(type), *known) == 0) return LS_OK;
    return ls_deepspeed_fail(config, path, error, LS_USAGE, "'%s' is not built: known are %s",
                             ls_deepspeed_print(shown, type), list);
}

ls_status ls_deepspeed_check_types(const ls_deepspeed_config *config, ls_error *error)
{
    static const char *const optimizers[] = {"Adam", "AdamW", NULL};
    static const char *const schedulers[] = {"WarmupLR", "WarmupDecayLR", "WarmupCosineLR", NULL};
    LS_TRY(check_type_of(config, "optimizer", optimizers, "Adam and AdamW", error));
    return check_type_of(config, "scheduler", schedulers,
                         "WarmupLR, WarmupDecayLR and WarmupCosineLR", error);
}

/* --- schedulers ------------------------------------------------------------------------------ */

static ls_status refuse_foreign(const ls_deepspeed_config *config, const char *type,
                                const char *path, ls_error *error)
{
    const ls_deepspeed_entry *entry = ls_deepspeed_config_find(config, path);
    if (!entry) return LS_OK;
    return ls_deepspeed_fail(config, entry->written, error, LS_INVALID, "%s has no such parameter",
                             type);
}

static ls_status check_scheduler(const ls_deepspeed_config *config, ls_error *error)
{
    const ls_deepspeed_entry *entry = ls_deepspeed_config_find(config, "scheduler.type");
    const char *type = ls_deepspeed_text(entry, "");
    bool cosine = strcasecmp(type, "WarmupCosineLR") == 0;
    const ls_deepspeed_entry *rise =
        ls_deepspeed_config_find(config, "scheduler.params.warmup_type");
    const char *how = ls_deepspeed_text(rise, "log");
    if (strcmp(how, "log") != 0 && strcmp(how, "linear") != 0)
        return ls_deepspeed_fail(config, rise->written, error, LS_INVALID,
                                 "is '%s', wanted is log or linear", how);
    if (strcasecmp(type, "WarmupLR") == 0)
        LS_TRY(refuse_foreign(config, type, "scheduler.params.total_num_steps", error));
    if (cosine) {
        LS_TRY(refuse_foreign(config, type, "scheduler.params.warmup_min_lr", error));
        return refuse_foreign(config, type, "scheduler.params.warmup_max_lr", error);
    }
    LS_TRY(refuse_foreign(config, type, "scheduler.params.warmup_min_ratio", error));
    return refuse_foreign(config, type, "scheduler.params.cos_min_ratio", error);
}

/* --- stages and offloads --------------------------------------------------------------------- */

static ls_status check_offload(const ls_deepspeed_config *config, const char *path,
                               const char *folder_path, int64_t least_stage, ls_error *error)
{
    const ls_deepspeed_entry *device = ls_deepspeed_config_find(config, path);
    const char *name = ls_deepspeed_text(device, "none");
    int64_t stage =
        ls_deepspeed_integer(ls_deepspeed_config_find(config, "zero_optimization.stage"), 0);
    if (!device || strcmp(name, "none") == 0) return LS_OK;
    bool disk = strcmp(name, "nvme") == 0;
    if (!disk && strcmp(name, "cpu") != 0)
        return ls_deepspeed_fail(config, device->written, error, LS_INVALID,
                                 "is '%s', wanted is none, cpu or nvme", name);
    if (stage < least_stage)
        return ls_deepspeed_fail(
            config, device->written, error, LS_USAGE,
            "is '%s' while 'zero_optimization.stage' is %d: it needs stage %d%s", name, (int)stage,
            (int)least_stage, least_stage < 3 ? " or more" : "");
    if (disk && !ls_deepspeed_config_find(config, folder_path))
        return ls_deepspeed_fail(config, device->written, error, LS_USAGE,
                                 "is 'nvme' without '%s': name a folder there", folder_path);
    return LS_OK;
}

static ls_status check_disks(const ls_deepspeed_config *config, ls_error *error)
{
    const ls_deepspeed_entry *optimizer =
        ls_deepspeed_config_find(config, "zero_optimization.offload_optimizer.nvme_path");
    const ls_deepspeed_entry *parameters =
        ls_deepspeed_config_find(config, "zero_optimization.offload_param.nvme_path");
    if (!optimizer || !parameters ||
        strcmp(ls_deepspeed_text(optimizer, ""), ls_deepspeed_text(parameters, "")) == 0)
        return LS_OK;
    return ls_deepspeed_fail(config, parameters->written, error, LS_USAGE,
                             "is '%s' while '%s' is '%s': one folder for both is built",
                             ls_deepspeed_text(parameters, ""), optimizer->written,
                             ls_deepspeed_text(optimizer, ""));
}

/* --- together -------------------------------------------------------------------------------- */

/* Numbers that are legal and can hardly be meant. */
static ls_status check_scale(ls_deepspeed_config *config, ls_error *error)
{
    const ls_deepspeed_entry *power = ls_deepspeed_config_find(config, "fp16.initial_scale_power");
    int64_t value = ls_deepspeed_integer(power, 0);
    if (value <= 24) return LS_OK;
    return ls_deepspeed_warn(config, error,
                             "%s: '%s' is %lld: with fp16 a loss scale of 2^%lld would make every "
                             "first step overflow",
                             config->name, power->written, (long long)value, (long long)value);
}

ls_status ls_deepspeed_check(ls_deepspeed_config *config, ls_error *error)
{
    if (ls_deepspeed_config_has(config, "scheduler")) LS_TRY(check_scheduler(config, error));
    LS_TRY(check_offload(config, "zero_optimization.offload_optimizer.device",
                         "zero_optimization.offload_optimizer.nvme_path", 1, error));
    LS_TRY(check_offload(config, "zero_optimization.offload_param.device",
                         "zero_optimization.offload_param.nvme_path", 3, error));
    LS_TRY(check_disks(config, error));
    return check_scale(config, error);
}

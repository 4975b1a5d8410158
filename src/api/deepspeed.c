/* A DeepSpeed configuration file as settings. */
#include "api/deepspeed.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/files.h"
#include "base/numbers.h"
#include "comm/processes.h"
#include "formats/model_config.h"

/* --- the object ------------------------------------------------------------------------------ */

ls_status ls_deepspeed_open(ls_deepspeed **out, const char *path, ls_error *error)
{
    ls_deepspeed *file = NULL;
    *out = NULL;
    LS_TRY(LS_NEW(file, 1, "DeepSpeed configuration", error));
    ls_status status = ls_deepspeed_config_load(&file->config, path, error);
    if (status == LS_OK)
        *out = file;
    else
        ls_deepspeed_free(file);
    return status;
}

void ls_deepspeed_free(ls_deepspeed *file)
{
    if (!file) return;
    ls_deepspeed_config_deinit(&file->config);
    ls_arena_deinit(&file->texts);
    ls_free(file->notes);
    ls_free(file);
}

const char *ls_deepspeed_note(const ls_deepspeed *file, size_t index)
{
    size_t warnings = file->config.warning_count;
    if (index < warnings) return file->config.warnings[index];
    return index - warnings < file->note_count ? file->notes[index - warnings] : NULL;
}

ls_status ls_deepspeed_note_add(ls_deepspeed *file, ls_error *error, const char *format, ...)
{
    ls_text line = {0};
    char what[900];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    LS_TRY(LS_GROW(file->notes, file->note_capacity, file->note_count + 1, "notes", error));
    ls_status status = ls_text_print(&line, error, "%s: %s", file->config.name, what);
    if (status == LS_OK)
        status =
            ls_arena_text(&file->texts, &file->notes[file->note_count], error, "%s", line.data);
    file->note_count += status == LS_OK;
    ls_text_deinit(&line);
    return status;
}

/* --- one setting ----------------------------------------------------------------------------- */

const ls_deepspeed_entry *ls_deepspeed_entry_of(const ls_deepspeed_merge *merge, const char *path)
{
    return ls_deepspeed_config_find(&merge->file->config, path);
}

bool ls_deepspeed_is_given(const ls_deepspeed_merge *merge, const char *setting)
{
    if (ls_setting_find(setting) < 0) return false;
    return strcmp(ls_sources_get(merge->sources, merge->options, setting), "default") != 0;
}

ls_status ls_deepspeed_contradict(ls_deepspeed_merge *merge, const char *setting, const char *what,
                                  ls_error *error)
{
    char buffer[64];
    const char *value = ls_options_get(merge->options, setting, buffer);
    return ls_text_print(&merge->contradictions, error, "%s--%s %s (%s) and %s",
                         merge->contradictions.length ? "; " : "", setting, value ? value : "",
                         ls_sources_get(merge->sources, merge->options, setting), what);
}

static ls_status set_source(ls_deepspeed_merge *merge, const char *setting, const char *source,
                            ls_error *error)
{
    return merge->sources ? ls_sources_set(merge->sources, setting, source, error) : LS_OK;
}

static ls_status source_of(ls_deepspeed_merge *merge, const ls_deepspeed_entry *entry,
                           const char *setting, const char *behind, ls_error *error)
{
    const char *source;
    LS_TRY(ls_arena_text(&merge->file->texts, &source, error, "%s: %s%s", merge->file->config.name,
                         entry->written, behind));
    return set_source(merge, setting, source, error);
}

/* The setting's own complaint behind the key's name. */
static ls_status set_by_key(ls_deepspeed_merge *merge, ls_options *options,
                            const ls_deepspeed_entry *entry, const char *setting, const char *value,
                            ls_error *error)
{
    ls_error inner;
    ls_status status = ls_options_set(options, setting, value, &inner);
    if (status == LS_OK) return LS_OK;
    return ls_deepspeed_fail(&merge->file->config, entry->written, error, status, "%s", inner.text);
}

ls_status ls_deepspeed_propose(ls_deepspeed_merge *merge, const ls_deepspeed_entry *entry,
                               const char *setting, const char *value, ls_error *error)
{
    char now[64], then[64], what[200];
    if (ls_setting_find(setting) < 0)
        return ls_deepspeed_fail(&merge->file->config, entry->written, error, LS_USAGE,
                                 "asks for --%s, which is not built yet: %s", setting,
                                 entry->key->help);
    ls_options other = *merge->options;
    LS_TRY(set_by_key(merge, &other, entry, setting, value, error));
    if (!ls_deepspeed_is_given(merge, setting)) {
        *merge->options = other;
        return source_of(merge, entry, setting, "", error);
    }
    const char *given = ls_options_get(merge->options, setting, now);
    const char *wanted = ls_options_get(&other, setting, then);
    if (given && strcmp(given, wanted) == 0) return LS_OK;
    snprintf(what, sizeof what, "'%.100s' %.64s", entry->written, wanted);
    return ls_deepspeed_contradict(merge, setting, what, error);
}

ls_status ls_deepspeed_derive(ls_deepspeed_merge *merge, const char *setting, const char *value,
                              ls_error *error, const char *source, ...)
{
    char what[200];
    const char *text;
    if (ls_deepspeed_is_given(merge, setting)) return LS_OK;
    va_list arguments;
    va_start(arguments, source);
    vsnprintf(what, sizeof what, source, arguments);
    va_end(arguments);
    LS_TRY(ls_options_set(merge->options, setting, value, error));
    LS_TRY(
        ls_arena_text(&merge->file->texts, &text, error, "%s: %s", merge->file->config.name, what));
    return set_source(merge, setting, text, error);
}

ls_status ls_deepspeed_leave(ls_deepspeed_merge *merge, const ls_deepspeed_entry *entry,
                             const char *setting, ls_error *error)
{
    if (ls_deepspeed_is_given(merge, setting)) return LS_OK;
    return source_of(merge, entry, setting, " is auto: default", error);
}

ls_status ls_deepspeed_merge_number(ls_deepspeed_merge *merge, const char *path,
                                    const char *setting, ls_error *error)
{
    char digits[LS_NUMBER_BYTES];
    const ls_deepspeed_entry *entry = ls_deepspeed_entry_of(merge, path);
    if (!entry) return LS_OK;
    if (ls_deepspeed_is_auto(entry)) return ls_deepspeed_leave(merge, entry, setting, error);
    if (entry->key->kind == LS_DEEPSPEED_INTEGER)
        snprintf(digits, sizeof digits, "%" PRId64, ls_deepspeed_integer(entry, 0));
    else
        ls_number_print(digits, ls_deepspeed_number(entry, 0));
    return ls_deepspeed_propose(merge, entry, setting, digits, error);
}

/* --- devices --------------------------------------------------------------------------------- */

/* A strategy's name up to what is added to it by '+'. */
static bool is_strategy(const char *given, const char *name)
{
    size_t length = strcspn(given, "+");
    return strlen(name) == length && memcmp(given, name, length) == 0;
}

static ls_status merge_stage(ls_deepspeed_merge *merge, ls_error *error)
{
    static const char *const strategies[] = {"ddp", "zero1", "zero2", "zero3"};
    const ls_deepspeed_entry *entry = ls_deepspeed_entry_of(merge, "zero_optimization.stage");
    int64_t stage = ls_deepspeed_integer(entry, 0);
    const char *given = merge->options->strategy;
    if (!entry && merge->devices == 1) return LS_OK;
    if (!entry)
        return ls_deepspeed_derive(merge, "strategy", "ddp", error, "no zero_optimization.stage");
    if (ls_deepspeed_is_given(merge, "strategy") && given) {
        bool one = stage == 0 && merge->devices == 1 && is_strategy(given, "single");
        if (one || is_strategy(given, strategies[stage])) return LS_OK;
    }
    return ls_deepspeed_propose(merge, entry, "strategy", strategies[stage], error);
}

/* Elements of `scale` units each; "auto" by the model's hidden size, as Transformers has it. */
static ls_status merge_elements(ls_deepspeed_merge *merge, const ls_deepspeed_entry *entry,
                                const char *setting, int64_t scale, int64_t automatic,
                                ls_error *error)
{
    char digits[LS_NUMBER_BYTES];
    bool is_auto = ls_deepspeed_is_auto(entry);
    if (!entry) return LS_OK;
    if (is_auto && merge->hidden_size == 0) return ls_deepspeed_leave(merge, entry, setting, error);
    snprintf(digits, sizeof digits, "%" PRId64,
             scale * (is_auto ? automatic : ls_deepspeed_integer(entry, 0)));
    if (!is_auto) return ls_deepspeed_propose(merge, entry, setting, digits, error);
    return ls_deepspeed_derive(merge, setting, digits, error,
                               "%s is auto: from the model's hidden size %" PRId64, entry->written,
                               merge->hidden_size);
}

/* What counts in stage 3 only: there the default is DeepSpeed's, not the setting's own. */
static ls_status merge_stage3(ls_deepspeed_merge *merge, const char *path, const char *setting,
                              int64_t fallback, int64_t automatic, ls_error *error)
{
    char digits[LS_NUMBER_BYTES];
    const ls_deepspeed_entry *entry = ls_deepspeed_entry_of(merge, path);
    if (entry) return merge_elements(merge, entry, setting, 1, automatic, error);
    snprintf(digits, sizeof digits, "%" PRId64, fallback);
    return ls_deepspeed_derive(merge, setting, digits, error, "no %s: DeepSpeed's default", path);
}

static ls_status merge_offload(ls_deepspeed_merge *merge, const char *section, const char *setting,
                               ls_error *error)
{
    char path[80];
    snprintf(path, sizeof path, "zero_optimization.%s.device", section);
    const ls_deepspeed_entry *device = ls_deepspeed_entry_of(merge, path);
    const char *name = ls_deepspeed_text(device, "none");
    if (strcmp(name, "none") == 0) return LS_OK;
    bool disk = strcmp(name, "nvme") == 0;
    LS_TRY(ls_deepspeed_propose(merge, device, setting, disk ? "disk" : "host", error));
    if (!disk || ls_deepspeed_is_given(merge, "offload-path")) return LS_OK;
    snprintf(path, sizeof path, "zero_optimization.%s.nvme_path", section);
    const ls_deepspeed_entry *folder = ls_deepspeed_entry_of(merge, path);
    return ls_deepspeed_propose(merge, folder, "offload-path", ls_deepspeed_text(folder, ""),
                                error);
}

static ls_status merge_zero(ls_deepspeed_merge *merge, ls_error *error)
{
    int64_t hidden = merge->hidden_size;
    LS_TRY(merge_stage(merge, error));
    LS_TRY(merge_elements(merge,
                          ls_deepspeed_entry_of(merge, "zero_optimization.reduce_bucket_size"),
                          "bucket-size", 4, hidden * hidden, error));
    LS_TRY(merge_offload(merge, "offload_optimizer", "offload-optimizer", error));
    LS_TRY(merge_offload(merge, "offload_param", "offload-parameters", error));
    if (ls_deepspeed_integer(ls_deepspeed_entry_of(merge, "zero_optimization.stage"), 0) < 3)
        return LS_OK;
    LS_TRY(merge_stage3(merge, "zero_optimization.stage3_prefetch_bucket_size",
                        "prefetch-bucket-size", 50000000, hidden * hidden * 9 / 10, error));
    return merge_stage3(merge, "zero_optimization.stage3_param_persistence_threshold",
                        "persistence-threshold", 100000, 10 * hidden, error);
}

/* --- reports --------------------------------------------------------------------------------- */

static const char *text_of(const ls_deepspeed_merge *merge, const char *path, const char *fallback)
{
    const char *text = ls_deepspeed_text(ls_deepspeed_entry_of(merge, path), "");
    return *text ? text : fallback;
}

static ls_status merge_csv(ls_deepspeed_merge *merge, ls_error *error)
{
    const ls_deepspeed_entry *enabled = ls_deepspeed_entry_of(merge, "csv_monitor.enabled");
    const ls_deepspeed_entry *job = ls_deepspeed_entry_of(merge, "csv_monitor.job_name");
    if (!ls_deepspeed_flag(enabled, false)) return LS_OK;
    LS_TRY(ls_deepspeed_propose(merge, enabled, "csv",
                                text_of(merge, "csv_monitor.output_path", "csv_monitor"), error));
    return ls_deepspeed_propose(merge, job ? job : enabled, "job-name",
                                text_of(merge, "csv_monitor.job_name", "DeepSpeedJobName"), error);
}

static ls_status merge_tensorboard(ls_deepspeed_merge *merge, ls_error *error)
{
    const ls_deepspeed_entry *enabled = ls_deepspeed_entry_of(merge, "tensorboard.enabled");
    const char *folder = text_of(merge, "tensorboard.output_path", "tensorboard"), *whole;
    if (!ls_deepspeed_flag(enabled, false)) return LS_OK;
    LS_TRY(ls_arena_text(&merge->file->texts, &whole, error, "%s%s%s", folder,
                         folder[strlen(folder) - 1] == '/' ? "" : "/",
                         text_of(merge, "tensorboard.job_name", "DeepSpeedJobName")));
    return ls_deepspeed_propose(merge, enabled, "tensorboard", whole, error);
}

/* DeepSpeed's own default has changed (0 until June 2026), so that the value is worth a line. */
static ls_status merge_clipping(ls_deepspeed_merge *merge, ls_error *error)
{
    char digits[LS_NUMBER_BYTES];
    LS_TRY(ls_deepspeed_merge_number(merge, "gradient_clipping", "max-grad-norm", error));
    double norm = merge->options->max_grad_norm;
    if (norm == 0) return ls_deepspeed_note_add(merge->file, error, "gradients are not clipped");
    return ls_deepspeed_note_add(merge->file, error, "gradients are clipped to norm %s",
                                 ls_number_print(digits, norm));
}

static ls_status merge_reports(ls_deepspeed_merge *merge, ls_error *error)
{
    const ls_deepspeed_entry *clock = ls_deepspeed_entry_of(merge, "wall_clock_breakdown");
    LS_TRY(ls_deepspeed_merge_number(merge, "steps_per_print", "log-every", error));
    if (ls_deepspeed_flag(clock, false))
        LS_TRY(ls_deepspeed_propose(merge, clock, "wall-clock-breakdown", "true", error));
    LS_TRY(merge_csv(merge, error));
    return merge_tensorboard(merge, error);
}

/* Keys without effect, in one line. */
static ls_status note_idle(ls_deepspeed *file, ls_error *error)
{
    ls_text list = {0};
    ls_status status = LS_OK;
    for (size_t i = 0; i < file->config.entry_count && status == LS_OK; i++) {
        const ls_deepspeed_entry *entry = &file->config.entries[i];
        if (entry->key->effect == LS_DEEPSPEED_IDLE)
            status = ls_text_print(&list, error, "%s%s", list.length ? ", " : "", entry->written);
    }
    if (status == LS_OK && list.length)
        status = ls_deepspeed_note_add(file, error, "keys without effect here: %s", list.data);
    ls_text_deinit(&list);
    return status;
}

bool ls_is_first_process(void)
{
    return ls_processes_as_started().index == 0;
}

/* --- all of it ------------------------------------------------------------------------------- */

/* Hidden size of options->model, when that can be read: the run itself says what is wrong with it.
 */
static ls_status read_hidden_size(ls_deepspeed_merge *merge, ls_error *error)
{
    char *path = NULL;
    ls_model_config model;
    if (!merge->options->model) return LS_OK;
    LS_TRY(ls_path_join(&path, merge->options->model, "config.json", error));
    ls_status status = ls_model_config_load(&model, path, error);
    ls_free(path);
    if (status == LS_OK) {
        merge->hidden_size = model.hidden_size;
        ls_model_config_deinit(&model);
    }
    return status == LS_NO_MEMORY ? status : LS_OK;
}

static ls_status merge_all(ls_deepspeed_merge *merge, ls_error *error)
{
    LS_TRY(read_hidden_size(merge, error));
    LS_TRY(ls_deepspeed_merge_batch(merge, error));
    LS_TRY(ls_deepspeed_merge_optimizer(merge, error));
    LS_TRY(merge_clipping(merge, error));
    LS_TRY(merge_zero(merge, error));
    LS_TRY(merge_reports(merge, error));
    if (merge->contradictions.length)
        return ls_fail(error, LS_USAGE,
                       "%s: the file and the settings given do not agree: %s; drop one of each, or "
                       "write \"auto\" in the file",
                       merge->file->config.name, merge->contradictions.data);
    return note_idle(merge->file, error);
}

ls_status ls_deepspeed_apply(ls_deepspeed *file, ls_options *options, ls_sources *sources,
                             ls_error *error)
{
    ls_options merged = *options;
    int64_t processes = ls_processes_as_started().count;
    ls_deepspeed_merge merge = {.file = file,
                                .options = &merged,
                                .sources = sources,
                                .devices = processes * options->devices,
                                .processes = processes};
    file->note_count = 0;
    if (merge.devices < 1)
        return ls_fail(error, LS_USAGE, "--devices: %" PRId64 " devices", options->devices);
    ls_status status = merge_all(&merge, error);
    if (status == LS_OK) *options = merged;
    ls_text_deinit(&merge.contradictions);
    return status;
}

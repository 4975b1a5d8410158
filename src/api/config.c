/* ls_config_text: what a run would use and where each value came from. */
#include <string.h>

#include "api/deepspeed.h"
#include "api/run_record.h"
#include "formats/utf8.h"

typedef struct listing {
    ls_text text;
    const ls_options *options;
    const ls_sources *sources;
    const ls_deepspeed *file;
} listing;

static bool of_train(const ls_setting *setting)
{
    return (setting->commands & LS_COMMAND_TRAIN) != 0;
}

/* What the key's row says: "sets --batch-size: ...". */
static ls_status print_effect(ls_text *text, const ls_deepspeed_key *key, ls_error *error)
{
    if (key->effect == LS_DEEPSPEED_SETS && ls_setting_find(key->target) >= 0)
        return ls_text_print(text, error, "sets --%s: %s", key->target, key->help);
    /* Other values than neutral ones of what is not built were refused. */
    const char *what = key->effect == LS_DEEPSPEED_IDLE ? "no effect here" : "as it is here";
    return ls_text_print(text, error, "%s: %s", what, key->help);
}

/* --- a table --------------------------------------------------------------------------------- */

static ls_status print_settings(listing *list, ls_error *error)
{
    LS_TRY(ls_text_print(&list->text, error, "%-22s  %-24s  %s\n", "setting", "value", "from"));
    for (const ls_setting *setting = ls_settings(); setting->name; setting++) {
        char buffer[64];
        if (!of_train(setting)) continue;
        const char *value = ls_options_get(list->options, setting->name, buffer);
        LS_TRY(ls_text_print(&list->text, error, "%-22s  %-24s  %s\n", setting->name,
                             value ? value : "-",
                             ls_sources_get(list->sources, list->options, setting->name)));
    }
    return LS_OK;
}

static ls_status print_keys(listing *list, ls_error *error)
{
    const ls_deepspeed_config *config = &list->file->config;
    size_t width = 3;
    for (size_t i = 0; i < config->entry_count; i++)
        if (strlen(config->entries[i].written) > width) width = strlen(config->entries[i].written);
    LS_TRY(ls_text_print(&list->text, error, "\n%-*s  %-14s  %s\n", (int)width, "key", "value",
                         "here"));
    for (size_t i = 0; i < config->entry_count; i++) {
        char value[LS_DEEPSPEED_VALUE_BYTES];
        const ls_deepspeed_entry *entry = &config->entries[i];
        LS_TRY(ls_text_print(&list->text, error, "%-*s  %-14s  ", (int)width, entry->written,
                             ls_deepspeed_print(value, entry->value)));
        LS_TRY(print_effect(&list->text, entry->key, error));
        LS_TRY(ls_text_print(&list->text, error, "\n"));
    }
    for (size_t i = 0; ls_deepspeed_note(list->file, i); i++)
        LS_TRY(ls_text_print(&list->text, error, "%s%s\n", i ? "" : "\n",
                             ls_deepspeed_note(list->file, i)));
    return LS_OK;
}

static ls_status print_table(listing *list, ls_error *error)
{
    LS_TRY(print_settings(list, error));
    return list->file ? print_keys(list, error) : LS_OK;
}

/* --- JSON ------------------------------------------------------------------------------------ */

static ls_status json_settings(listing *list, ls_error *error)
{
    const char *separator = "\n";
    LS_TRY(ls_text_print(&list->text, error, "{\n  \"settings\": {"));
    for (const ls_setting *setting = ls_settings(); setting->name; setting++) {
        char key[64];
        if (!of_train(setting)) continue;
        size_t length = strlen(setting->name);
        for (size_t i = 0; i <= length && i < sizeof key; i++)
            key[i] = setting->name[i] == '-' ? '_' : setting->name[i];
        LS_TRY(ls_text_print(&list->text, error, "%s    \"%s\": {\"value\": ", separator, key));
        LS_TRY(ls_setting_json(&list->text, setting, list->options, error));
        LS_TRY(ls_text_print(&list->text, error, ", \"from\": "));
        LS_TRY(ls_utf8_json(&list->text,
                            ls_sources_get(list->sources, list->options, setting->name), error));
        LS_TRY(ls_text_print(&list->text, error, "}"));
        separator = ",\n";
    }
    return ls_text_print(&list->text, error, "\n  },\n  \"keys\": [");
}

static ls_status json_key(listing *list, const ls_deepspeed_entry *entry, ls_error *error)
{
    char value[LS_DEEPSPEED_VALUE_BYTES];
    const ls_deepspeed_key *key = entry->key;
    LS_TRY(ls_text_print(&list->text, error, "    {\"key\": "));
    LS_TRY(ls_utf8_json(&list->text, entry->written, error));
    LS_TRY(ls_text_print(&list->text, error, ", \"value\": "));
    LS_TRY(ls_utf8_json(&list->text, ls_deepspeed_print(value, entry->value), error));
    LS_TRY(ls_text_print(&list->text, error, ", \"sets\": "));
    LS_TRY(ls_utf8_json(&list->text, key->effect == LS_DEEPSPEED_SETS ? key->target : NULL, error));
    LS_TRY(ls_text_print(&list->text, error, ", \"here\": "));
    LS_TRY(ls_utf8_json(&list->text, key->help, error));
    return ls_text_print(&list->text, error, "}");
}

static ls_status print_json(listing *list, ls_error *error)
{
    LS_TRY(json_settings(list, error));
    for (size_t i = 0; list->file && i < list->file->config.entry_count; i++) {
        LS_TRY(ls_text_print(&list->text, error, "%s", i ? ",\n" : "\n"));
        LS_TRY(json_key(list, &list->file->config.entries[i], error));
    }
    LS_TRY(ls_text_print(&list->text, error, "\n  ],\n  \"notes\": ["));
    for (size_t i = 0; list->file && ls_deepspeed_note(list->file, i); i++) {
        LS_TRY(ls_text_print(&list->text, error, "%s    ", i ? ",\n" : "\n"));
        LS_TRY(ls_utf8_json(&list->text, ls_deepspeed_note(list->file, i), error));
    }
    return ls_text_print(&list->text, error, "\n  ]\n}\n");
}

ls_status ls_config_text(const ls_options *options, const ls_sources *sources,
                         const ls_deepspeed *file, bool json, char **text, ls_error *error)
{
    listing list = {.options = options, .sources = sources, .file = file};
    ls_status status = json ? print_json(&list, error) : print_table(&list, error);
    if (status != LS_OK) ls_text_deinit(&list.text);
    *text = list.text.data;
    return status;
}

#include "api/run_record.h"

#include <inttypes.h>
#include <string.h>

#include "api/settings.h"
#include "base/alloc.h"
#include "base/files.h"
#include "base/numbers.h"
#include "base/text.h"
#include "formats/utf8.h"

typedef struct document {
    ls_text json;
} document;

static ls_status put_text(document *record, const char *value, ls_error *error)
{
    return ls_utf8_json(&record->json, value, error);
}

ls_status ls_setting_json(ls_text *json, const ls_setting *setting, const ls_options *options,
                          ls_error *error)
{
    char buffer[64];
    const char *value = ls_options_get(options, setting->name, buffer);
    bool quoted = setting->kind == LS_SETTING_TEXT;
    bool words = setting->kind == LS_SETTING_SAMPLES || setting->kind == LS_SETTING_BYTES;
    if (words) quoted = value[0] == 'a'; /* all, auto */
    if (setting->kind == LS_SETTING_NUMBER) quoted = value[0] == 'n' || value[0] == 'i';
    if (quoted || !value) return ls_utf8_json(json, value, error);
    return ls_text_print(json, error, "%s", value);
}

static ls_status put_setting(document *record, const ls_setting *setting, const ls_options *given,
                             const ls_options *used, const ls_sources *sources, ls_error *error)
{
    char before[64], after[64], key[64];
    const char *was = ls_options_get(given, setting->name, before);
    const char *is = ls_options_get(used, setting->name, after);
    size_t length = strlen(setting->name);
    for (size_t i = 0; i <= length && i < sizeof key; i++)
        key[i] = setting->name[i] == '-' ? '_' : setting->name[i];
    LS_TRY(ls_text_print(&record->json, error, "    \"%s\": {\"value\": ", key));
    LS_TRY(ls_setting_json(&record->json, setting, used, error));
    if ((was && is) ? strcmp(was, is) != 0 : was != is) {
        LS_TRY(ls_text_print(&record->json, error, ", \"given\": "));
        LS_TRY(ls_setting_json(&record->json, setting, given, error));
    }
    LS_TRY(ls_text_print(&record->json, error, ", \"source\": "));
    LS_TRY(put_text(record, ls_sources_get(sources, given, setting->name), error));
    return ls_text_append(&record->json, "}", 1, error);
}

static ls_status put_facts(document *record, const ls_run_fact *facts, size_t count, int depth,
                           ls_error *error);

static ls_status put_texts(document *record, const ls_run_fact *fact, ls_error *error)
{
    LS_TRY(ls_text_append(&record->json, "[", 1, error));
    for (size_t i = 0; i < fact->count; i++) {
        if (i) LS_TRY(ls_text_append(&record->json, ", ", 2, error));
        LS_TRY(put_text(record, fact->texts[i], error));
    }
    return ls_text_append(&record->json, "]", 1, error);
}

static ls_status put_fact(document *record, const ls_run_fact *fact, int depth, ls_error *error)
{
    char digits[LS_NUMBER_BYTES];
    LS_TRY(put_text(record, fact->key, error));
    LS_TRY(ls_text_append(&record->json, ": ", 2, error));
    switch (fact->kind) {
    case LS_RUN_TEXT:
        return put_text(record, fact->text, error);
    case LS_RUN_INTEGER:
        return ls_text_print(&record->json, error, "%" PRId64, fact->integer);
    case LS_RUN_NUMBER:
        if (fact->number - fact->number != 0) return put_text(record, NULL, error);
        return ls_text_print(&record->json, error, "%s", ls_number_print(digits, fact->number));
    case LS_RUN_TEXTS:
        return put_texts(record, fact, error);
    case LS_RUN_OBJECT:
        break;
    }
    LS_TRY(ls_text_append(&record->json, "{", 1, error));
    LS_TRY(put_facts(record, fact->facts, fact->count, depth + 1, error));
    return ls_text_print(&record->json, error, "\n%*s}", 2 * depth, "");
}

/* Each on a line of its own, a comma between them. */
static ls_status put_facts(document *record, const ls_run_fact *facts, size_t count, int depth,
                           ls_error *error)
{
    for (size_t i = 0; i < count; i++) {
        LS_TRY(ls_text_print(&record->json, error, "%s\n%*s", i ? "," : "", 2 * depth, ""));
        LS_TRY(put_fact(record, &facts[i], depth, error));
    }
    return LS_OK;
}

static ls_status put_all(document *record, const ls_options *given, const ls_options *used,
                         const ls_sources *sources, const ls_run_fact *facts, size_t count,
                         ls_error *error)
{
    const char *separator = "";
    LS_TRY(ls_text_print(&record->json, error, "{\n  \"settings\": {\n"));
    for (const ls_setting *setting = ls_settings(); setting->name; setting++) {
        if (!(setting->commands & LS_COMMAND_TRAIN)) continue;
        LS_TRY(ls_text_print(&record->json, error, "%s", separator));
        LS_TRY(put_setting(record, setting, given, used, sources, error));
        separator = ",\n";
    }
    LS_TRY(ls_text_print(&record->json, error, "\n  }%s", count ? "," : ""));
    LS_TRY(put_facts(record, facts, count, 1, error));
    return ls_text_print(&record->json, error, "\n}\n");
}

ls_status ls_run_record_write(const char *folder, const ls_options *given, const ls_options *used,
                              const ls_sources *sources, const ls_run_fact *facts, size_t count,
                              ls_error *error)
{
    document record = {0};
    char *path = NULL;
    ls_status status = ls_path_join(&path, folder, "run.json", error);
    if (status == LS_OK) status = put_all(&record, given, used, sources, facts, count, error);
    if (status == LS_OK) status = ls_file_write(path, record.json.data, record.json.length, error);
    ls_free(path);
    ls_text_deinit(&record.json);
    return status;
}

#include "compare/report.h"

#include <string.h>

#include "base/alloc.h"
#include "compare/report_assets.h"
#include "compare/timeline.h"

ls_status ls_compare_report_json(ls_text *text, const char *json, ls_error *error)
{
    while (*json) {
        size_t plain = strcspn(json, "<");
        LS_TRY(ls_text_append(text, json, plain, error));
        json += plain;
        if (*json == '<') {
            LS_TRY(ls_text_append(text, "\\u003c", 6, error));
            json++;
        }
    }
    return LS_OK;
}

/* Of the first row that left a profile, several devices before one; null if there is none. */
static ls_status put_timeline(ls_text *text, const ls_compare_folder *folder,
                              const ls_comparison *comparison, ls_error *error)
{
    for (int several = 1; several >= 0; several--) {
        for (size_t i = 0; i < comparison->strategy_rows; i++) {
            const ls_compare_row *row = &comparison->rows[i];
            char name[LS_COMPARE_FOLDER_BYTES], *path = NULL;
            if (row->state != LS_COMPARE_DONE || (row->devices > 1) != several) continue;
            ls_compare_folder_name(name, row->name, row->batch_size, row->seeds[0].seed);
            LS_TRY(ls_compare_folder_run(folder, name, &path, error));
            size_t before = text->length;
            ls_error problem;
            ls_status status = ls_compare_timeline(text, path, row->name, &problem);
            ls_free(path);
            if (status == LS_OK && text->length > before) return LS_OK;
            if (status == LS_OK) continue;
            if (status == LS_NO_MEMORY) return ls_fail(error, status, "%s", problem.text);
            /* The page is worth more than its timeline. */
            if (comparison->options->message)
                comparison->options->message(comparison->options->context, problem.text);
            return ls_text_append(text, "null", 4, error);
        }
    }
    return ls_text_append(text, "null", 4, error);
}

static ls_status put_data(ls_text *text, const char *json, const ls_compare_folder *folder,
                          const ls_comparison *comparison, ls_error *error)
{
    ls_text timeline = {0};
    ls_status status = put_timeline(&timeline, folder, comparison, error);
    if (status == LS_OK) status = ls_text_print(text, error, "{\"comparison\": ");
    if (status == LS_OK) status = ls_compare_report_json(text, json, error);
    if (status == LS_OK) status = ls_text_print(text, error, ", \"timeline\": ");
    if (status == LS_OK) status = ls_compare_report_json(text, timeline.data, error);
    if (status == LS_OK) status = ls_text_append(text, "}", 1, error);
    ls_text_deinit(&timeline);
    return status;
}

ls_status ls_compare_report(const char *json, const ls_compare_folder *folder,
                            const ls_comparison *comparison, ls_text *text, ls_error *error)
{
    static const struct place {
        const char *mark, *asset; /* NULL: the data */
    } places[] = {
        {"{{style}}", ls_report_style},
        {"{{data}}", NULL},
        {"{{chart}}", ls_report_chart},
        {"{{script}}", ls_report_script},
    };
    const char *at = ls_report_template;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *mark = strstr(at, places[i].mark);
        if (!mark)
            return ls_fail(error, LS_INTERNAL, "the report's template has no %s where it belongs",
                           places[i].mark);
        LS_TRY(ls_text_append(text, at, (size_t)(mark - at), error));
        if (places[i].asset)
            LS_TRY(ls_text_append(text, places[i].asset, strlen(places[i].asset), error));
        else
            LS_TRY(put_data(text, json, folder, comparison, error));
        at = mark + strlen(places[i].mark);
    }
    return ls_text_append(text, at, strlen(at), error);
}

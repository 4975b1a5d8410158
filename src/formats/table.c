#include "formats/table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/text.h"
#include "formats/json.h"
#include "formats/table_internal.h"
#include "formats/utf8.h"

static const struct {
    const char *extension;
    ls_table_format format;
} extensions[] = {
    {".tsv", LS_TABLE_TSV},      {".csv", LS_TABLE_CSV},          {".jsonl", LS_TABLE_JSONL},
    {".ndjson", LS_TABLE_JSONL}, {".json-lines", LS_TABLE_JSONL},
};

/* What is taken for the text, and for its pair, when nothing was asked for. */
static const struct {
    const char *text, *pair;
} guesses[] = {
    {"text", NULL},
    {"sentence1", "sentence2"},
    {"premise", "hypothesis"},
    {"question1", "question2"},
    {"question", "sentence"},
    {"sentence", NULL},
};

/* --- errors ---------------------------------------------------------------------------------- */

ls_status ls_table_fail(const ls_table *table, const table_record *record, ls_error *error,
                        const char *format, ...)
{
    char what[600];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof what) what[ls_utf8_valid_prefix(what, sizeof what - 1)] = '\0';
    return ls_fail(error, LS_INVALID, "%s:%" PRIu64 ": %s", table->window.file.path, record->line,
                   what);
}

ls_status ls_table_check_record(ls_table *table, const table_record *record, ls_error *error)
{
    if (record->open_quote) {
        table->stopped = true;
        return ls_table_fail(table, record, error,
                             "a quote opened in this row is never closed, up to the end of the "
                             "file; close it, or double it if it is part of the text");
    }
    if (record->too_long)
        return ls_table_fail(table, record, error, "the row is longer than the limit of %d MiB; %s",
                             LS_TABLE_MAX_ROW_BYTES >> 20,
                             table->format == LS_TABLE_CSV ? "is a quote not closed?"
                                                           : "are line ends missing?");
    const char *nul = memchr(record->bytes, '\0', record->length);
    if (nul)
        return ls_table_fail(table, record, error,
                             "a NUL byte at byte %zu of the row; remove it, or save the file as "
                             "UTF-8",
                             (size_t)(nul - record->bytes) + 1);
    size_t valid = ls_utf8_valid_prefix(record->bytes, record->length);
    if (valid < record->length)
        return ls_table_fail(table, record, error,
                             "bad UTF-8 (0x%02x) at byte %zu of the row; save the file as UTF-8",
                             (unsigned char)record->bytes[valid], valid + 1);
    return LS_OK;
}

bool ls_table_is_white(const table_record *record)
{
    if (record->too_long || record->open_quote) return false;
    for (size_t i = 0; i < record->length; i++)
        if (record->bytes[i] != ' ' && record->bytes[i] != '\t' && record->bytes[i] != '\r')
            return false;
    return true;
}

/* --- columns --------------------------------------------------------------------------------- */

ls_status ls_table_names_add(table_names *names, const char *bytes, size_t length, ls_error *error)
{
    char *name = NULL;
    LS_TRY(LS_GROW(names->names, names->capacity, names->count + 1, "names of columns", error));
    LS_TRY(LS_NEW(name, length + 1, "name of a column", error));
    memcpy(name, bytes, length);
    names->names[names->count++] = name;
    return LS_OK;
}

static void free_names(table_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        ls_free(names->names[i]);
    ls_free(names->names);
}

static bool has_name(const table_names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->names[i], name) == 0) return true;
    return false;
}

static ls_status fail_column(const ls_table *table, const table_names *names, const char *missing,
                             ls_error *error)
{
    ls_text list = {0};
    ls_status status = LS_OK;
    for (size_t i = 0; i < names->count && list.length < 500 && status == LS_OK; i++)
        status = ls_text_print(&list, error, "%s'%.60s'", i ? ", " : "", names->names[i]);
    if (status == LS_OK && list.length >= 500) status = ls_text_print(&list, error, ", ...");
    if (status == LS_OK)
        status = ls_fail(error, LS_INVALID, "%.200s: no column %s; the columns are: %s",
                         table->window.file.path, missing, list.data ? list.data : "(none)");
    ls_text_deinit(&list);
    return status;
}

static ls_status set_column(ls_table *table, const table_names *names, table_role role,
                            const char *name, ls_error *error)
{
    table_column *column = &table->columns[role];
    size_t found = 0;
    for (size_t i = 0; i < names->count; i++) {
        if (strcmp(names->names[i], name) != 0) continue;
        column->index = i;
        found++;
    }
    if (found == 0) {
        char quoted[120];
        snprintf(quoted, sizeof quoted, "'%.100s'", name);
        return fail_column(table, names, quoted, error);
    }
    if (found > 1)
        return ls_fail(error, LS_INVALID, "%s: column '%.100s' is there %zu times",
                       table->window.file.path, name, found);
    return ls_copy_string(&column->name, name, error);
}

static ls_status guess_text(ls_table *table, const table_names *names, bool want_pair,
                            ls_error *error)
{
    for (size_t i = 0; i < sizeof guesses / sizeof *guesses; i++) {
        const char *text = guesses[i].text, *pair = guesses[i].pair;
        if (!has_name(names, text) || (pair && !has_name(names, pair))) continue;
        LS_TRY(set_column(table, names, ROLE_TEXT, text, error));
        if (!pair || !want_pair) return LS_OK;
        return set_column(table, names, ROLE_PAIR, pair, error);
    }
    return fail_column(table, names, "'text' or 'sentence' (name the text column)", error);
}

static ls_status set_columns(ls_table *table, const table_names *names,
                             const ls_table_options *options, ls_error *error)
{
    const char *pair = options->text_pair_column, *label = options->label_column;
    if (options->text_column)
        LS_TRY(set_column(table, names, ROLE_TEXT, options->text_column, error));
    else
        LS_TRY(guess_text(table, names, !pair, error));
    if (pair) LS_TRY(set_column(table, names, ROLE_PAIR, pair, error));
    if (!label && has_name(names, "label")) label = "label";
    if (!label && has_name(names, "labels")) label = "labels";
    if (label) return set_column(table, names, ROLE_LABEL, label, error);
    if (options->need_label)
        return fail_column(table, names, "'label' (name the label column)", error);
    return LS_OK;
}

/* --- open ------------------------------------------------------------------------------------ */

static ls_status choose_format(const char *path, ls_table_format asked, ls_table_format *format,
                               ls_error *error)
{
    *format = asked;
    if (asked != LS_TABLE_BY_EXTENSION) return LS_OK;
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    for (size_t i = 0; dot && i < sizeof extensions / sizeof *extensions; i++) {
        if (strcasecmp(dot, extensions[i].extension) != 0) continue;
        *format = extensions[i].format;
        return LS_OK;
    }
    return ls_fail(error, LS_UNSUPPORTED,
                   "%s: data files end in .tsv, .csv, .jsonl, .ndjson or .json-lines; convert or "
                   "rename it",
                   path);
}

/* Names of the columns; after it the window stands at the first row. */
static ls_status read_names(ls_table *table, table_names *names, ls_error *error)
{
    table_window *window = &table->window;
    table->rows_line = 1;
    if (table->format == LS_TABLE_JSONL) {
        LS_TRY(ls_table_jsonl_names(table, names, error));
    } else {
        table_record record;
        bool more = false;
        LS_TRY(ls_table_delimited_names(table, names, error));
        table->rows_offset = window->offset;
        table->rows_line = window->line;
        LS_TRY(ls_table_window_next(window, table->format == LS_TABLE_CSV, &record, &more, error));
        if (!more)
            return ls_fail(error, LS_INVALID, "%s: has a line of column names, but no rows",
                           window->file.path);
    }
    ls_table_window_seek(window, table->rows_offset, table->rows_line);
    return LS_OK;
}

ls_status ls_table_open(ls_table **out, const char *path, const ls_table_options *options,
                        ls_error *error)
{
    ls_table *table = NULL;
    table_names names = {0};
    ls_status status;
    *out = NULL;
    LS_TRY(LS_NEW(table, 1, "table", error));
    table->window.file.descriptor = -1;
    table->need_label = options->need_label;
    LS_TRY_GOTO(status, choose_format(path, options->format, &table->format, error), done);
    LS_TRY_GOTO(status, ls_table_window_open(&table->window, path, error), done);
    LS_TRY_GOTO(status, read_names(table, &names, error), done);
    status = set_columns(table, &names, options, error);
done:
    free_names(&names);
    if (status == LS_OK)
        *out = table;
    else
        ls_table_free(table);
    return status;
}

void ls_table_free(ls_table *table)
{
    if (!table) return;
    ls_table_window_close(&table->window);
    for (int role = 0; role < ROLE_COUNT; role++)
        ls_free(table->columns[role].name);
    ls_json_free(table->object);
    ls_free(table->where);
    ls_free(table);
}

/* --- rows ------------------------------------------------------------------------------------ */

static bool is_empty_text(const table_field *field)
{
    for (size_t i = 0; i < field->length; i++)
        if (!strchr(" \t\r\n", field->bytes[i])) return false;
    return true;
}

static ls_status fill_row(const ls_table *table, const table_record *record,
                          const table_field fields[ROLE_COUNT], ls_row *row, ls_error *error)
{
    const table_field *text = &fields[ROLE_TEXT], *pair = &fields[ROLE_PAIR],
                      *label = &fields[ROLE_LABEL];
    for (int role = ROLE_TEXT; role <= ROLE_PAIR; role++)
        if (table->columns[role].name && is_empty_text(&fields[role]))
            return ls_table_fail(table, record, error,
                                 "'%.100s' is empty; give it a text or remove the row",
                                 table->columns[role].name);
    if (table->need_label && label->length == 0)
        return ls_table_fail(table, record, error, "'%.100s' is empty; each row needs a label",
                             table->columns[ROLE_LABEL].name);
    *row = (ls_row){.text = text->bytes,
                    .text_length = text->length,
                    .pair = pair->bytes,
                    .pair_length = pair->length,
                    .line = record->line,
                    .offset = record->offset,
                    .bytes = record->file_bytes};
    if (label->length == 0) return LS_OK;
    label->bytes[label->length] = '\0';
    row->label = label->bytes;
    row->label_length = label->length;
    row->has_label = true;
    return LS_OK;
}

static ls_status read_row(ls_table *table, table_record *record, ls_row *row, ls_error *error)
{
    table_field fields[ROLE_COUNT] = {0};
    LS_TRY(ls_table_check_record(table, record, error));
    if (table->format == LS_TABLE_JSONL)
        LS_TRY(ls_table_jsonl_fields(table, record, fields, error));
    else
        LS_TRY(ls_table_delimited_fields(table, record, fields, error));
    return fill_row(table, record, fields, row, error);
}

ls_status ls_table_next(ls_table *table, ls_row *row, bool *more, ls_error *error)
{
    table_record record;
    *more = false;
    table->can_skip = false;
    if (table->stopped)
        return ls_fail(error, LS_INVALID, "%s: reading stopped at an earlier error",
                       table->window.file.path);
    ls_status status;
    do {
        status = ls_table_window_next(&table->window, table->format == LS_TABLE_CSV, &record, more,
                                      error);
    } while (status == LS_OK && *more && table->format == LS_TABLE_JSONL &&
             ls_table_is_white(&record));
    if (status == LS_OK && !*more) return LS_OK;
    bool have_record = status == LS_OK;
    if (have_record) status = read_row(table, &record, row, error);
    table->can_skip = have_record && status == LS_INVALID && !table->stopped;
    table->stopped = status != LS_OK && !table->can_skip;
    *more = status == LS_OK;
    return status;
}

bool ls_table_can_skip(const ls_table *table)
{
    return table->can_skip;
}

void ls_table_rewind(ls_table *table)
{
    table->stopped = table->can_skip = false;
    ls_table_window_seek(&table->window, table->rows_offset, table->rows_line);
}

const char *ls_table_text_column(const ls_table *table)
{
    return table->columns[ROLE_TEXT].name;
}

const char *ls_table_text_pair_column(const ls_table *table)
{
    return table->columns[ROLE_PAIR].name;
}

const char *ls_table_label_column(const ls_table *table)
{
    return table->columns[ROLE_LABEL].name;
}

uint64_t ls_table_bytes(const ls_table *table)
{
    return table->window.file.bytes;
}

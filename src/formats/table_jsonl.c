/* JSONL records: one object a line. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/json.h"
#include "formats/table_internal.h"

static ls_status set_where(ls_table *table, const table_record *record, ls_error *error)
{
    const char *path = table->window.file.path;
    LS_TRY(LS_GROW(table->where, table->where_capacity, strlen(path) + 32, "path", error));
    snprintf(table->where, table->where_capacity, "%s:%" PRIu64, path, record->line);
    return LS_OK;
}

/* The record's object into table->object. */
static ls_status parse_object(ls_table *table, const table_record *record, ls_error *error)
{
    ls_json_free(table->object);
    table->object = NULL;
    LS_TRY(set_where(table, record, error));
    LS_TRY(ls_json_parse(&table->object, record->bytes, record->length, table->where, error));
    if (json_is_object(table->object)) return LS_OK;
    return ls_table_fail(table, record, error, "holds %s; one object {...} a line is needed",
                         ls_json_type_name(table->object));
}

ls_status ls_table_jsonl_names(ls_table *table, table_names *names, ls_error *error)
{
    ls_error first = {.code = LS_OK}, problem;
    bool found = false;
    while (!found) {
        table_record record;
        bool more = false;
        LS_TRY(ls_table_window_next(&table->window, false, &record, &more, error));
        if (!more) break;
        if (ls_table_is_white(&record)) continue;
        ls_status status = ls_table_check_record(table, &record, &problem);
        if (status == LS_OK) status = parse_object(table, &record, &problem);
        if (status == LS_OK) found = true;
        if (status != LS_OK && first.code == LS_OK) first = problem;
        if (status != LS_OK && status != LS_INVALID) break;
    }
    if (!found && first.code != LS_OK) return ls_fail(error, first.code, "%s", first.text);
    if (!found)
        return ls_fail(error, LS_INVALID, "%s: is empty; one JSON object a line is needed",
                       table->window.file.path);
    const char *key;
    json_t *value;
    json_object_foreach(table->object, key, value)
    {
        LS_TRY(ls_table_names_add(names, key, strlen(key), error));
    }
    return LS_OK;
}

static ls_status get_text(ls_table *table, const table_record *record, const char *key,
                          table_field *field, ls_error *error)
{
    json_t *value = json_object_get(table->object, key);
    if (!value) return ls_table_fail(table, record, error, "key '%.100s' is missing", key);
    if (!json_is_string(value))
        return ls_table_fail(table, record, error, "key '%.100s' is %s, text is needed", key,
                             ls_json_type_name(value));
    field->bytes = (char *)json_string_value(value);
    field->length = json_string_length(value);
    return LS_OK;
}

/* Text, an integer or a truth value; left empty where there is none and none is needed. */
static ls_status get_label(ls_table *table, const table_record *record, const char *key,
                           table_field *field, ls_error *error)
{
    json_t *value = json_object_get(table->object, key);
    if (!value || json_is_null(value)) {
        if (!table->need_label) return LS_OK;
        return ls_table_fail(table, record, error, "key '%.100s' is %s; each row needs a label",
                             key, value ? "null" : "missing");
    }
    if (json_is_string(value)) return get_text(table, record, key, field, error);
    if (json_is_integer(value))
        snprintf(table->number, sizeof table->number, "%lld", (long long)json_integer_value(value));
    else if (json_is_boolean(value))
        snprintf(table->number, sizeof table->number, "%s", json_is_true(value) ? "true" : "false");
    else
        return ls_table_fail(table, record, error,
                             "key '%.100s' is %s; a label is text, an integer, true or false", key,
                             ls_json_type_name(value));
    field->bytes = table->number;
    field->length = strlen(table->number);
    return LS_OK;
}

ls_status ls_table_jsonl_fields(ls_table *table, const table_record *record,
                                table_field fields[ROLE_COUNT], ls_error *error)
{
    const table_column *columns = table->columns;
    LS_TRY(parse_object(table, record, error));
    LS_TRY(get_text(table, record, columns[ROLE_TEXT].name, &fields[ROLE_TEXT], error));
    if (columns[ROLE_PAIR].name)
        LS_TRY(get_text(table, record, columns[ROLE_PAIR].name, &fields[ROLE_PAIR], error));
    if (columns[ROLE_LABEL].name)
        LS_TRY(get_label(table, record, columns[ROLE_LABEL].name, &fields[ROLE_LABEL], error));
    return LS_OK;
}

/* CSV (RFC 4180, https://www.rfc-editor.org/rfc/rfc4180) and TSV records. */
#include <string.h>

#include "formats/table_internal.h"

enum { MAX_COLUMNS = 100000 };

typedef struct field_cursor {
    char *at, *end;
    bool more; /* a field stands at `at` (it may be empty) */
} field_cursor;

/* The field at the cursor; quoted ones are decoded in place. False: text after a closing quote. */
static bool next_field(field_cursor *cursor, ls_table_format format, table_field *field)
{
    char separator = format == LS_TABLE_CSV ? ',' : '\t';
    char *from = cursor->at, *end = cursor->end;
    if (format == LS_TABLE_CSV && from < end && *from == '"') {
        char *to = from++;
        field->bytes = to;
        while (from < end && (*from != '"' || (from + 1 < end && from[1] == '"'))) {
            if (*from == '"') from++;
            *to++ = *from++;
        }
        field->length = (size_t)(to - field->bytes);
        from += from < end; /* the closing quote */
        if (from < end && *from != separator) return false;
    } else {
        char *found = memchr(from, separator, (size_t)(end - from));
        field->bytes = from;
        from = found ? found : end;
        field->length = (size_t)(from - field->bytes);
    }
    cursor->more = from < end;
    cursor->at = from + cursor->more;
    return true;
}

static ls_status fail_quote(const ls_table *table, const table_record *record, size_t field,
                            ls_error *error)
{
    return ls_table_fail(
        table, record, error,
        "field %zu goes on after its closing quote; inside quotes write \"\" for a "
        "quote",
        field + 1);
}

ls_status ls_table_delimited_names(ls_table *table, table_names *names, ls_error *error)
{
    table_record record;
    bool more = false;
    LS_TRY(
        ls_table_window_next(&table->window, table->format == LS_TABLE_CSV, &record, &more, error));
    if (!more)
        return ls_fail(error, LS_INVALID,
                       "%s: is empty; a first line with the names of the columns is needed",
                       table->window.file.path);
    LS_TRY(ls_table_check_record(table, &record, error));
    field_cursor cursor = {record.bytes, record.bytes + record.length, true};
    while (cursor.more) {
        table_field field;
        if (!next_field(&cursor, table->format, &field))
            return fail_quote(table, &record, names->count, error);
        if (names->count == MAX_COLUMNS)
            return ls_table_fail(table, &record, error,
                                 "more than %d columns; is this the right file?", MAX_COLUMNS);
        LS_TRY(ls_table_names_add(names, field.bytes, field.length, error));
    }
    table->field_count = names->count;
    return LS_OK;
}

ls_status ls_table_delimited_fields(ls_table *table, table_record *record,
                                    table_field fields[ROLE_COUNT], ls_error *error)
{
    field_cursor cursor = {record->bytes, record->bytes + record->length, true};
    size_t count = 0;
    for (; cursor.more; count++) {
        table_field field;
        if (!next_field(&cursor, table->format, &field))
            return fail_quote(table, record, count, error);
        for (int role = 0; role < ROLE_COUNT; role++)
            if (table->columns[role].name && table->columns[role].index == count)
                fields[role] = field;
    }
    if (count != table->field_count)
        return ls_table_fail(table, record, error, "%zu field%s, the header has %zu; %s", count,
                             count == 1 ? "" : "s", table->field_count,
                             table->format == LS_TABLE_CSV
                                 ? "a text with a comma must stand in quotes"
                                 : "a text must not hold a tab");
    return LS_OK;
}

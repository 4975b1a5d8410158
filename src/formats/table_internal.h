/* Shared by the parts of the table reader: window (bytes to records), delimited and jsonl (record
 * to row), table (columns, checks). */
#ifndef LS_FORMATS_TABLE_INTERNAL_H
#define LS_FORMATS_TABLE_INTERNAL_H

#include <jansson.h>

#include "base/files.h"
#include "formats/table.h"

/* --- window ---------------------------------------------------------------------------------- */

/* The part of the file from the record being read on: bytes [start, end) of the buffer, of which
 * [start, scanned) are known not to end the record. */
typedef struct table_window {
    ls_file file;
    char *buffer;
    size_t capacity, start, scanned, end;
    uint64_t offset; /* in the file, of buffer[start] */
    uint64_t line;   /* of buffer[start], from 1 */
    bool first;      /* a byte order mark may stand at `start` */
} table_window;

/* One record, without its line end; valid until the next read. bytes[length] may be overwritten. */
typedef struct table_record {
    char *bytes;
    size_t length;
    uint64_t line, offset, file_bytes;
    bool too_long;   /* over LS_TABLE_MAX_ROW_BYTES: passed over, bytes are not there */
    bool open_quote; /* CSV: the file ended inside a quoted field */
} table_record;

ls_status ls_table_window_open(table_window *window, const char *path,
                               ls_error *error) LS_MUST_CHECK;
void ls_table_window_close(table_window *window);
/* Go on at `offset`, where line `line` starts. */
void ls_table_window_seek(table_window *window, uint64_t offset, uint64_t line);
/* The next record that is not an empty line; `quotes` as in CSV. *more false: the end. */
ls_status ls_table_window_next(table_window *window, bool quotes, table_record *record, bool *more,
                               ls_error *error) LS_MUST_CHECK;

/* --- table ----------------------------------------------------------------------------------- */

typedef enum table_role { ROLE_TEXT, ROLE_PAIR, ROLE_LABEL, ROLE_COUNT } table_role;

typedef struct table_column {
    char *name;   /* NULL: not in use */
    size_t index; /* CSV and TSV */
} table_column;

/* The bytes of one field; bytes NULL: not there. bytes[length] may be overwritten. */
typedef struct table_field {
    char *bytes;
    size_t length;
} table_field;

struct ls_table {
    table_window window;
    ls_table_format format;
    table_column columns[ROLE_COUNT];
    bool need_label;
    size_t field_count;              /* CSV and TSV: of the header */
    uint64_t rows_offset, rows_line; /* of the first row */
    bool can_skip;
    bool stopped;    /* by an error that no row can be read after */
    json_t *object;  /* JSONL: what the last row's texts lie in */
    char number[32]; /* JSONL: the last row's label if it was a number */
    char *where;     /* JSONL: "FILE:LINE" of the record at work */
    size_t where_capacity;
};

/* Names of the columns that a file has. */
typedef struct table_names {
    char **names;
    size_t count, capacity;
} table_names;
ls_status ls_table_names_add(table_names *names, const char *bytes, size_t length,
                             ls_error *error) LS_MUST_CHECK;

/* LS_INVALID "FILE:LINE: ..." for a record. */
ls_status ls_table_fail(const ls_table *table, const table_record *record, ls_error *error,
                        const char *format, ...) LS_PRINTF(4, 5);

/* Bad UTF-8, NUL bytes, too long, an open quote. */
ls_status ls_table_check_record(ls_table *table, const table_record *record,
                                ls_error *error) LS_MUST_CHECK;

/* Nothing but blanks: no row. */
bool ls_table_is_white(const table_record *record);

/* Read the header record, or the keys of the first row that is an object. */
ls_status ls_table_delimited_names(ls_table *table, table_names *names,
                                   ls_error *error) LS_MUST_CHECK;
ls_status ls_table_jsonl_names(ls_table *table, table_names *names, ls_error *error) LS_MUST_CHECK;

/* The fields of a checked record that are in use. Changes the record's bytes. */
ls_status ls_table_delimited_fields(ls_table *table, table_record *record,
                                    table_field fields[ROLE_COUNT], ls_error *error) LS_MUST_CHECK;
ls_status ls_table_jsonl_fields(ls_table *table, const table_record *record,
                                table_field fields[ROLE_COUNT], ls_error *error) LS_MUST_CHECK;

#endif

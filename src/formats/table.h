/* Rows of labelled text from a TSV, CSV or JSONL file, one after the other.
 *
 * The file is read through one window; memory is bounded by the longest row, never by the file.
 * TSV: one row a line, fields parted by tabs, no quoting. CSV: RFC 4180; quoted fields may hold
 * commas, doubled quotes and line ends. Both open with a row of column names. JSONL: one object a
 * line. All: UTF-8 with or without byte order mark, LF or CRLF, empty lines passed over. */
#ifndef LS_FORMATS_TABLE_H
#define LS_FORMATS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* A longer row is refused by its line number (and can be skipped). */
enum { LS_TABLE_MAX_ROW_BYTES = 64 << 20 };

typedef enum ls_table_format {
    LS_TABLE_BY_EXTENSION, /* .tsv .csv .jsonl .ndjson .json-lines; others are LS_UNSUPPORTED */
    LS_TABLE_TSV,
    LS_TABLE_CSV,
    LS_TABLE_JSONL
} ls_table_format;

/* All zero: format by extension, columns guessed, no label needed. */
typedef struct ls_table_options {
    ls_table_format format;
    /* NULL guesses. Text: "text", else a pair that the GLUE tasks use, if both are there, else
     * "sentence". The pairs, tried in this order: sentence1/sentence2, premise/hypothesis,
     * question1/question2, question/sentence. A pair is guessed only together with its text. Label:
     * "label", else "labels". */
    const char *text_column, *text_pair_column, *label_column;
    bool need_label; /* false: rows without label are fine; the label is still read where it is */
} ls_table_options;

typedef struct ls_table ls_table;

/* Reads the header (JSONL: the keys of the first row that is an object). A missing column is
 * LS_INVALID and lists those present; so are an empty file and one without rows. Strings in
 * `options` are copied. */
ls_status ls_table_open(ls_table **out, const char *path, const ls_table_options *options,
                        ls_error *error) LS_MUST_CHECK;
void ls_table_free(ls_table *table); /* NULL is allowed */

/* Names of the columns in use; NULL where there is none. Live as long as the table. */
const char *ls_table_text_column(const ls_table *table);
const char *ls_table_text_pair_column(const ls_table *table);
const char *ls_table_label_column(const ls_table *table);
uint64_t ls_table_bytes(const ls_table *table); /* of the file, for progress */

/* Texts are valid UTF-8 without NUL bytes, not NUL-terminated but for `label`; borrowed until the
 * next call. */
typedef struct ls_row {
    const char *text, *pair, *label; /* pair and label NULL where there is none */
    size_t text_length, pair_length, label_length;
    bool has_label;
    uint64_t line;   /* of the row's first byte, counted from 1 */
    uint64_t offset; /* of the row's first byte in the file */
    uint64_t bytes;  /* of the row in the file, line end included */
} ls_row;

/* *more false: the end, *row untouched. JSON integers and true/false are labels as written.
 *
 * A bad row is LS_INVALID, "FILE:LINE: what is wrong; what to do": bad UTF-8, a NUL byte, too few
 * or too many fields, a quote that is never closed, invalid JSON, an unpaired surrogate escape,
 * a missing key, a value of another type, empty text (or empty pair), an empty label where labels
 * are needed, a row over LS_TABLE_MAX_ROW_BYTES. If ls_table_can_skip is then true, the next call
 * goes on with the row after it. */
ls_status ls_table_next(ls_table *table, ls_row *row, bool *more, ls_error *error) LS_MUST_CHECK;
bool ls_table_can_skip(const ls_table *table);

/* Back to the first row. */
void ls_table_rewind(ls_table *table);

#endif

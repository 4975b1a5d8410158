/* From bytes to records: lines, or for CSV what lies between line ends outside quotes. Each byte is
 * looked at once; the buffer grows only for a record that does not fit. */
#include <string.h>

#include "base/alloc.h"
#include "formats/table_internal.h"

enum { WINDOW_BYTES = 1 << 20 };

ls_status ls_table_window_open(table_window *window, const char *path, ls_error *error)
{
    *window = (table_window){.file.descriptor = -1};
    LS_TRY(ls_file_open(&window->file, path, error));
    /* One byte more than is ever filled: a record's end may be overwritten. */
    size_t bytes =
        window->file.bytes < WINDOW_BYTES ? (size_t)window->file.bytes + 1 : WINDOW_BYTES;
    ls_status status = LS_GROW(window->buffer, window->capacity, bytes, "window on a table", error);
    if (status != LS_OK) ls_table_window_close(window);
    ls_table_window_seek(window, 0, 1);
    return status;
}

void ls_table_window_close(table_window *window)
{
    ls_file_close(&window->file);
    ls_free(window->buffer);
    window->buffer = NULL;
    window->capacity = 0;
}

void ls_table_window_seek(table_window *window, uint64_t offset, uint64_t line)
{
    window->start = window->scanned = window->end = 0;
    window->offset = offset;
    window->line = line;
    window->first = offset == 0;
}

static uint64_t unread(const table_window *window)
{
    return window->file.bytes - window->offset - (window->end - window->start);
}

/* More bytes after `end`: moves the record to the buffer's start, grows the buffer if it is full.
 */
static ls_status fill(table_window *window, ls_error *error)
{
    if (window->start > 0) {
        memmove(window->buffer, window->buffer + window->start, window->end - window->start);
        window->scanned -= window->start;
        window->end -= window->start;
        window->start = 0;
    }
    if (window->end + 1 == window->capacity)
        LS_TRY(LS_GROW(window->buffer, window->capacity, window->capacity + 1,
                       "a long row of a table", error));
    size_t room = window->capacity - 1 - window->end;
    if (room > unread(window)) room = (size_t)unread(window);
    LS_TRY(ls_file_read_at(&window->file, window->buffer + window->end, room,
                           window->offset + window->end, error));
    window->end += room;
    return LS_OK;
}

/* Forget the bytes before `at`. */
static void advance(table_window *window, size_t at)
{
    window->offset += at - window->start;
    window->start = window->scanned = at;
}

typedef struct record_scan {
    bool quotes; /* quoted fields exist */
    enum { FIELD_START, PLAIN, QUOTED, QUOTE_SEEN } state;
    uint64_t line_ends; /* inside the record */
} record_scan;

/* Go on from `scanned`; true: buffer[scanned] is the line end that ends the record. */
static bool scan_quotes(table_window *window, record_scan *scan)
{
    const char *at = window->buffer + window->scanned, *end = window->buffer + window->end;
    bool found = false;
    for (; at < end && !found; at++) {
        char byte = *at;
        if (scan->state == QUOTED) {
            if (byte == '"') scan->state = QUOTE_SEEN;
            if (byte == '\n') scan->line_ends++;
        } else if (byte == '\n') {
            found = true;
        } else if (byte == ',') {
            scan->state = FIELD_START;
        } else if (byte == '"' && scan->state != PLAIN) {
            scan->state = QUOTED; /* opens, or is the second of a doubled one */
        } else {
            scan->state = PLAIN;
        }
    }
    window->scanned = (size_t)(at - found - window->buffer);
    return found;
}

static bool scan_line(table_window *window)
{
    const char *found =
        memchr(window->buffer + window->scanned, '\n', window->end - window->scanned);
    window->scanned = found ? (size_t)(found - window->buffer) : window->end;
    return found != NULL;
}

/* Read on to the record's end, into the buffer as long as it is not too long. */
static ls_status find_end(table_window *window, record_scan *scan, table_record *record,
                          bool *line_end, ls_error *error)
{
    while (!(*line_end = scan->quotes ? scan_quotes(window, scan) : scan_line(window))) {
        if (window->scanned - window->start > LS_TABLE_MAX_ROW_BYTES) record->too_long = true;
        if (record->too_long) advance(window, window->scanned);
        if (unread(window) == 0) break;
        LS_TRY(fill(window, error));
    }
    if (window->scanned - window->start > LS_TABLE_MAX_ROW_BYTES) record->too_long = true;
    return LS_OK;
}

static ls_status skip_byte_order_mark(table_window *window, ls_error *error)
{
    window->first = false;
    if (window->end == window->start && unread(window) > 0) LS_TRY(fill(window, error));
    if (window->end - window->start >= 3 &&
        memcmp(window->buffer + window->start, "\xef\xbb\xbf", 3) == 0)
        advance(window, window->start + 3);
    return LS_OK;
}

static bool is_blank(const table_record *record)
{
    return record->length == 0 && !record->too_long && !record->open_quote;
}

ls_status ls_table_window_next(table_window *window, bool quotes, table_record *record, bool *more,
                               ls_error *error)
{
    if (window->first) LS_TRY(skip_byte_order_mark(window, error));
    for (;;) {
        record_scan scan = {.quotes = quotes};
        bool line_end = false;
        *record = (table_record){.line = window->line, .offset = window->offset};
        LS_TRY(find_end(window, &scan, record, &line_end, error));
        size_t end = window->scanned, length = end - window->start;
        record->bytes = window->buffer + window->start;
        record->length = length && record->bytes[length - 1] == '\r' ? length - 1 : length;
        record->open_quote = scan.state == QUOTED;
        advance(window, end + line_end);
        record->file_bytes = window->offset - record->offset;
        window->line += scan.line_ends + line_end;
        *more = record->file_bytes > 0;
        if (!*more || !is_blank(record)) return LS_OK;
    }
}

/* What the targets of the three data formats share: read every row that can be read. */
#ifndef LS_TESTS_FUZZ_TABLE_H
#define LS_TESTS_FUZZ_TABLE_H

#include <string.h>

#include "formats/table.h"
#include "formats/utf8.h"
#include "memory_file.h"

static void check_text(const char *bytes, size_t length)
{
    if (ls_utf8_valid_prefix(bytes, length) != length || memchr(bytes, 0, length)) abort();
}

static void read_rows(ls_table *table)
{
    ls_error error;
    ls_row row;
    bool more = true;
    uint64_t end = 0;
    do {
        ls_status status = ls_table_next(table, &row, &more, &error);
        if (status != LS_OK) continue;
        if (!more) break;
        check_text(row.text, row.text_length);
        if (row.pair) check_text(row.pair, row.pair_length);
        if (row.has_label && strlen(row.label) != row.label_length) abort();
        if (row.offset < end || row.offset + row.bytes > ls_table_bytes(table)) abort();
        end = row.offset + row.bytes;
    } while (more || ls_table_can_skip(table));
}

static int fuzz_table(ls_table_format format, const uint8_t *data, size_t size)
{
    const char *path = memory_file(data, size);
    for (int round = 0; round < 2; round++) {
        ls_error error;
        ls_table *table = NULL;
        ls_table_options options = {.format = format, .need_label = round == 1};
        if (ls_table_open(&table, path, &options, &error) != LS_OK) continue;
        read_rows(table);
        ls_table_rewind(table);
        read_rows(table);
        ls_table_free(table);
    }
    return 0;
}

#endif

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/numbers.h"
#include "compare/documents.h"
#include "compare/rows.h"

/* In quotes where it holds what parts fields or lines. */
static ls_status put_field(ls_text *text, const char *value, ls_error *error)
{
    if (!strpbrk(value, ",\"\r\n")) return ls_text_append(text, value, strlen(value), error);
    LS_TRY(ls_text_append(text, "\"", 1, error));
    for (const char *at = value; *at; at++)
        LS_TRY(ls_text_append(text, *at == '"' ? "\"\"" : at, *at == '"' ? 2 : 1, error));
    return ls_text_append(text, "\"", 1, error);
}

static ls_status put_row(ls_text *text, const ls_compare_row *row, ls_error *error)
{
    char digits[LS_NUMBER_BYTES];
    int same = row->same_bits;
    LS_TRY(put_field(text, row->name, error));
    LS_TRY(ls_text_print(text, error, ",%s,", ls_compare_state_name(row->state)));
    LS_TRY(put_field(text, row->reason, error));
    LS_TRY(ls_text_print(text, error, ",%" PRId64 ",%" PRId64 ",%" PRId64, row->devices,
                         row->threads, row->batch_size));
    for (int i = 0; i < LS_MEASURE_COUNT; i++)
        LS_TRY(
            ls_text_print(text, error, ",%s",
                          isfinite(row->values[i]) ? ls_number_print(digits, row->values[i]) : ""));
    return ls_text_print(text, error, ",%s,%s\n",
                         row->seed_count ? row->seeds[0].weights_sha256 : "",
                         same < 0 ? ""
                         : same   ? "yes"
                                  : "no");
}

ls_status ls_compare_csv(const ls_comparison *comparison, ls_text *text, ls_error *error)
{
    LS_TRY(ls_text_print(text, error, "name,state,reason,devices,threads,batch_size"));
    for (int i = 0; i < LS_MEASURE_COUNT; i++)
        LS_TRY(ls_text_print(text, error, ",%s", ls_measure_table[i].key));
    LS_TRY(ls_text_print(text, error, ",weights_sha256,same_bits_as_single\n"));
    for (size_t i = 0; i < comparison->row_count; i++)
        LS_TRY(put_row(text, &comparison->rows[i], error));
    return LS_OK;
}

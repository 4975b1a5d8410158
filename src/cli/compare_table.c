#include "cli/compare_table.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/columns.h"
#include "cli/format.h"

enum { CELL_BYTES = 96, MOST_COLUMNS = 8, GAP = 2, STACKED_HEADING = 12 };

typedef enum cell_kind {
    CELL_FIGURES, /* three figures */
    CELL_COUNT,
    CELL_MEBIBYTES,
    CELL_PERCENT,
    CELL_GIGA,
    CELL_MEAN, /* with its deviation, which is the next measure */
    CELL_BITS,
    CELL_HASH,
} cell_kind;

typedef struct measure_column {
    const char *heading;
    ls_measure measure;
    cell_kind kind;
} measure_column;

typedef struct measure_table {
    const char *title;
    measure_column columns[MOST_COLUMNS]; /* ended by one without heading */
} measure_table;

static const measure_table tables[] = {
    {"Speed",
     {{"samples/s", LS_MEASURE_SAMPLES_PER_SECOND, CELL_FIGURES},
      {"tokens/s", LS_MEASURE_REAL_TOKENS_PER_SECOND, CELL_COUNT},
      {"ms/step", LS_MEASURE_STEP_MS_MEDIAN, CELL_FIGURES},
      {"p95", LS_MEASURE_STEP_MS_P95, CELL_FIGURES},
      {"speed-up", LS_MEASURE_SPEED_UP, CELL_FIGURES},
      {"efficiency", LS_MEASURE_EFFICIENCY, CELL_PERCENT}}},
    {"Memory of a device, and what is sent in a step (MiB)",
     {{"planned", LS_MEASURE_PLANNED_DEVICE_BYTES, CELL_MEBIBYTES},
      {"measured", LS_MEASURE_PEAK_DEVICE_BYTES, CELL_MEBIBYTES},
      {"process", LS_MEASURE_HOST_PEAK_BYTES, CELL_MEBIBYTES},
      {"sent", LS_MEASURE_BYTES_SENT_PER_STEP, CELL_MEBIBYTES},
      {"waited ms", LS_MEASURE_EXPOSED_COMMUNICATION_MS, CELL_FIGURES}}},
    {"Where a step goes",
     {{"forward", LS_MEASURE_SHARE_FORWARD, CELL_PERCENT},
      {"backward", LS_MEASURE_SHARE_BACKWARD, CELL_PERCENT},
      {"exchange", LS_MEASURE_SHARE_EXCHANGE, CELL_PERCENT},
      {"optimizer", LS_MEASURE_SHARE_OPTIMIZER, CELL_PERCENT},
      {"data", LS_MEASURE_SHARE_DATA, CELL_PERCENT}}},
    {"Operations a step on all devices, and their rate as a share of the best",
     {{"GFLOP", LS_MEASURE_FLOPS_PER_STEP, CELL_GIGA},
      {"GFLOP/s", LS_MEASURE_FLOPS_PER_SECOND, CELL_GIGA},
      {"peak", LS_MEASURE_SHARE_OF_PEAK, CELL_PERCENT}}},
    {"Result",
     {{"loss", LS_MEASURE_FINAL_LOSS, CELL_MEAN},
      {"accuracy", LS_MEASURE_ACCURACY, CELL_MEAN},
      {"macro-F1", LS_MEASURE_MACRO_F1, CELL_MEAN},
      {"target s", LS_MEASURE_SECONDS_TO_TARGET_ACCURACY, CELL_FIGURES}}},
    {"Bits of the weights (first seed's hash)",
     {{"same bits", LS_MEASURE_COUNT, CELL_BITS}, {"sha256", LS_MEASURE_COUNT, CELL_HASH}}},
};
static const measure_table study = {"Batch sizes",
                                    {{"samples/s", LS_MEASURE_SAMPLES_PER_SECOND, CELL_FIGURES},
                                     {"ms/step", LS_MEASURE_STEP_MS_MEDIAN, CELL_FIGURES},
                                     {"MiB", LS_MEASURE_PEAK_DEVICE_BYTES, CELL_MEBIBYTES},
                                     {"accuracy", LS_MEASURE_ACCURACY, CELL_MEAN},
                                     {"same bits", LS_MEASURE_COUNT, CELL_BITS}}};

/* --- cells ---------------------------------------------------------------------------------------
 */

static void print_figures(char into[CELL_BYTES], double value)
{
    double size = fabs(value);
    int decimals = size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
    snprintf(into, CELL_BYTES, "%.*f", decimals, value);
}

static void print_mean(char into[CELL_BYTES], double mean, double deviation)
{
    int used = snprintf(into, CELL_BYTES, "%.4f", mean);
    if (isfinite(deviation)) snprintf(into + used, CELL_BYTES - (size_t)used, "±%.4f", deviation);
}

static void print_number(char into[CELL_BYTES], const ls_compare_row *row,
                         const measure_column *column)
{
    double value = row->values[column->measure];
    char count[LS_FORMAT_BYTES];
    if (!isfinite(value)) {
        snprintf(into, CELL_BYTES, "-");
        return;
    }
    switch (column->kind) {
    case CELL_COUNT:
        snprintf(into, CELL_BYTES, "%s", ls_format_count(count, (int64_t)(value + 0.5)));
        return;
    case CELL_MEBIBYTES:
        snprintf(into, CELL_BYTES, "%.1f", value / (1 << 20));
        return;
    case CELL_PERCENT:
        snprintf(into, CELL_BYTES, "%.1f%%", 100 * value);
        return;
    case CELL_GIGA:
        print_figures(into, 1e-9 * value);
        return;
    case CELL_MEAN:
        print_mean(into, value, row->values[column->measure + 1]);
        return;
    case CELL_FIGURES:
    case CELL_BITS:
    case CELL_HASH:
        print_figures(into, value);
    }
}

static void print_cell(char into[CELL_BYTES], const ls_compare_row *row,
                       const measure_column *column)
{
    int same = row->same_bits;
    if (column->kind == CELL_BITS)
        snprintf(into, CELL_BYTES, "%s", same < 0 ? "-" : same ? "yes" : "no");
    else if (column->kind == CELL_HASH)
        snprintf(into, CELL_BYTES, "%.24s", row->seed_count ? row->seeds[0].weights_sha256 : "-");
    else
        print_number(into, row, column);
}

/* The study's rows bear their batch size in their name. */
static void print_name(char into[CELL_BYTES], const ls_compare_row *row, bool with_batch)
{
    if (with_batch)
        snprintf(into, CELL_BYTES, "%.60s, %" PRId64, row->name, row->batch_size);
    else
        snprintf(into, CELL_BYTES, "%s", row->name);
}

/* --- a table
 * --------------------------------------------------------------------------------------- */

typedef struct row_range {
    const ls_compare_row *rows;
    size_t count;
    bool with_batch, with_reasons;
} row_range;

static int column_count(const measure_table *table)
{
    int count = 0;
    while (count < MOST_COLUMNS && table->columns[count].heading)
        count++;
    return count;
}

static int widen(int width, const char *text)
{
    int columns = ls_columns_of(text);
    return columns > width ? columns : width;
}

static int measure(const measure_table *table, const row_range *range, int widths[MOST_COLUMNS],
                   int *name_width)
{
    char cell[CELL_BYTES];
    *name_width = widen(0, "strategy");
    for (size_t i = 0; i < range->count; i++) {
        print_name(cell, &range->rows[i], range->with_batch);
        *name_width = widen(*name_width, cell);
    }
    int total = *name_width;
    for (int c = 0; c < column_count(table); c++) {
        widths[c] = widen(0, table->columns[c].heading);
        for (size_t i = 0; i < range->count; i++) {
            if (range->rows[i].state != LS_COMPARE_DONE) continue;
            print_cell(cell, &range->rows[i], &table->columns[c]);
            widths[c] = widen(widths[c], cell);
        }
        total += GAP + widths[c];
    }
    return total;
}

static void print_right(FILE *stream, const char *text, int width)
{
    fprintf(stream, "%*s%s", width - ls_columns_of(text), "", text);
}

static void print_reason(FILE *stream, int columns, const ls_compare_row *row, int used)
{
    char text[LS_COMPARE_REASON_BYTES + 16], fitted[LS_COMPARE_REASON_BYTES + 16];
    snprintf(text, sizeof text, "%s: %s", ls_compare_state_name(row->state), row->reason);
    ls_columns_fit(fitted, sizeof fitted, text, columns > used + 8 ? columns - used : 8);
    fprintf(stream, "%s\n", fitted);
}

static void print_flat(FILE *stream, int columns, const measure_table *table,
                       const row_range *range, const int *widths, int name_width)
{
    char cell[CELL_BYTES];
    fprintf(stream, "%-*s", name_width, "strategy");
    for (int c = 0; c < column_count(table); c++) {
        fprintf(stream, "%*s", GAP, "");
        print_right(stream, table->columns[c].heading, widths[c]);
    }
    fputc('\n', stream);
    for (size_t i = 0; i < range->count; i++) {
        const ls_compare_row *row = &range->rows[i];
        bool done = row->state == LS_COMPARE_DONE;
        if (!done && !range->with_reasons) continue;
        print_name(cell, row, range->with_batch);
        fprintf(stream, "%s%*s", cell, name_width - ls_columns_of(cell), "");
        if (!done) fprintf(stream, "%*s", GAP, "");
        if (!done) print_reason(stream, columns, row, name_width + GAP);
        for (int c = 0; done && c < column_count(table); c++) {
            print_cell(cell, row, &table->columns[c]);
            fprintf(stream, "%*s", GAP, "");
            print_right(stream, cell, widths[c]);
        }
        if (done) fputc('\n', stream);
    }
}

/* A row's name, then a line a number. */
static void print_stacked(FILE *stream, int columns, const measure_table *table,
                          const row_range *range)
{
    char cell[CELL_BYTES], fitted[CELL_BYTES];
    for (size_t i = 0; i < range->count; i++) {
        const ls_compare_row *row = &range->rows[i];
        bool done = row->state == LS_COMPARE_DONE;
        if (!done && !range->with_reasons) continue;
        print_name(cell, row, range->with_batch);
        ls_columns_fit(fitted, sizeof fitted, cell, columns);
        fprintf(stream, "%s\n", fitted);
        if (!done) fputs("  ", stream);
        if (!done) print_reason(stream, columns, row, 2);
        for (int c = 0; done && c < column_count(table); c++) {
            print_cell(cell, row, &table->columns[c]);
            fprintf(stream, "  %-*s%s\n", STACKED_HEADING, table->columns[c].heading, cell);
        }
    }
}

static void print_table(FILE *stream, int columns, const measure_table *table,
                        const row_range *range)
{
    int widths[MOST_COLUMNS], name_width;
    char title[CELL_BYTES];
    int total = measure(table, range, widths, &name_width);
    ls_columns_fit(title, sizeof title, table->title, columns);
    fprintf(stream, "%s\n", title);
    if (total <= columns)
        print_flat(stream, columns, table, range, widths, name_width);
    else
        print_stacked(stream, columns, table, range);
    fputc('\n', stream);
}

void ls_compare_table_print(FILE *stream, int columns, const ls_comparison *comparison)
{
    row_range range = {
        .rows = comparison->rows, .count = comparison->strategy_rows, .with_reasons = true};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        print_table(stream, columns, &tables[i], &range);
        range.with_reasons = false;
    }
    row_range sizes = {.rows = comparison->rows + comparison->strategy_rows,
                       .count = comparison->row_count - comparison->strategy_rows,
                       .with_batch = true,
                       .with_reasons = true};
    if (sizes.count) print_table(stream, columns, &study, &sizes);
}

/* --- verdicts
 * ---------------------------------------------------------------------------------------- */

void ls_compare_verdicts_print(FILE *stream, int columns, const ls_comparison *comparison)
{
    for (size_t i = 0; i < comparison->verdict_count; i++) {
        char word[LS_COMPARE_VERDICT_BYTES];
        const char *at = comparison->verdicts[i].text;
        int used = 0;
        while (*at) {
            char raw[LS_COMPARE_VERDICT_BYTES];
            size_t length = strcspn(at, " ");
            snprintf(raw, sizeof raw, "%.*s", (int)length, at);
            int width = ls_columns_fit(word, sizeof word, raw, LS_NO_LIMIT);
            bool fits = used == 0 || used + 1 + width <= columns;
            if (used) fputc(fits ? ' ' : '\n', stream);
            fputs(word, stream);
            used = fits ? used + (used > 0) + width : width;
            at += length;
            at += strspn(at, " ");
        }
        fputc('\n', stream);
    }
}

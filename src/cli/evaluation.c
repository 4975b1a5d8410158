#include "cli/evaluation.h"

#include <inttypes.h>
#include <string.h>

#include "cli/columns.h"
#include "cli/format.h"

enum {
    MOST_TABLE_CLASSES = 12,
    MOST_CLASS_LINES = 100,
    LABEL_BYTES = 256,
    WIDEST_LABEL = 24,
    CLASS_NUMBERS = 37 /* columns of a class's line after its label */
};

static int64_t at(const ls_evaluation_report *report, int32_t truth, int32_t predicted)
{
    return report->confusion[(int64_t)truth * report->classes + predicted];
}

/* `text` in exactly `columns` columns, at the left or the right. */
static void print_cell(FILE *stream, const char *text, int columns, bool right)
{
    char fitted[LABEL_BYTES];
    int used = ls_columns_fit(fitted, sizeof fitted, text, columns);
    fprintf(stream, "%*s%s%*s", right ? columns - used : 0, "", fitted, right ? 0 : columns - used,
            "");
}

static int widest_label(const ls_evaluation_report *report, int most)
{
    int widest = 0;
    for (int32_t id = 0; id < report->classes; id++) {
        int columns = ls_columns_of(report->labels[id]);
        if (columns > widest) widest = columns;
    }
    return widest < most ? widest : most;
}

static int widest_count(const ls_evaluation_report *report)
{
    int widest = 1;
    int64_t cells = (int64_t)report->classes * report->classes;
    for (int64_t cell = 0; cell < cells; cell++) {
        char number[LS_FORMAT_BYTES];
        int digits = (int)strlen(ls_format_count(number, report->confusion[cell]));
        if (digits > widest) widest = digits;
    }
    return widest;
}

/* False, nothing printed: too many classes for the width. */
static bool print_table(FILE *stream, const ls_evaluation_report *report, int columns)
{
    static const char corner[] = "true \\ predicted";
    int classes = report->classes, digits = widest_count(report);
    int label = widest_label(report, WIDEST_LABEL), cell = widest_label(report, WIDEST_LABEL);
    if (classes > MOST_TABLE_CLASSES) return false;
    if (label < (int)sizeof corner - 1) label = (int)sizeof corner - 1;
    if (cell < digits) cell = digits;
    int room = (columns - 2 - label) / classes - 2;
    if (cell > room) cell = room;
    /* A column head that is cut to less says nothing. */
    if (cell < digits || (cell < 3 && cell < widest_label(report, 3))) return false;
    fputs("\n  ", stream);
    print_cell(stream, corner, label, false);
    for (int32_t id = 0; id < classes; id++) {
        fputs("  ", stream);
        print_cell(stream, report->labels[id], cell, true);
    }
    for (int32_t truth = 0; truth < classes; truth++) {
        fputs("\n  ", stream);
        print_cell(stream, report->labels[truth], label, false);
        for (int32_t predicted = 0; predicted < classes; predicted++) {
            char number[LS_FORMAT_BYTES];
            ls_format_count(number, at(report, truth, predicted));
            fprintf(stream, "  %*s", cell, number);
        }
    }
    fputc('\n', stream);
    return true;
}

/* "-" where nothing was there to be found. */
static void print_ratio(FILE *stream, int64_t part, int64_t whole, int columns)
{
    if (whole)
        fprintf(stream, "%*.4f", columns, (double)part / (double)whole);
    else
        fprintf(stream, "%*s", columns, "-");
}

static void print_classes(FILE *stream, const ls_evaluation_report *report, int columns)
{
    int most = columns - CLASS_NUMBERS - 2;
    int label = widest_label(report, most > 8 ? most : 8);
    if (label < 5) label = 5;
    fputs("\n  ", stream);
    print_cell(stream, "class", label, false);
    fputs(" precision   recall       F1     rows\n", stream);
    for (int32_t id = 0; id < report->classes; id++) {
        int64_t rows = 0, predicted = 0, right = at(report, id, id);
        if (id == MOST_CLASS_LINES) {
            fprintf(stream, "  and %d classes more\n", (int)(report->classes - id));
            break;
        }
        for (int32_t other = 0; other < report->classes; other++) {
            rows += at(report, id, other);
            predicted += at(report, other, id);
        }
        fputs("  ", stream);
        print_cell(stream, report->labels[id], label, false);
        print_ratio(stream, right, predicted, 10);
        print_ratio(stream, right, rows, 9);
        print_ratio(stream, 2 * right, rows + predicted, 9);
        fprintf(stream, "%9" PRId64 "\n", rows);
    }
}

void ls_evaluation_print_fitted(FILE *stream, const ls_evaluation_report *report, int columns)
{
    char name[LABEL_BYTES], rows[LS_FORMAT_BYTES], correct[LS_FORMAT_BYTES];
    int64_t right = 0;
    for (int32_t id = 0; id < report->classes; id++)
        right += at(report, id, id);
    ls_columns_fit(name, sizeof name, report->name, columns > 40 ? columns - 30 : 10);
    fputs(name, stream);
    if (report->epoch >= 0)
        fprintf(stream, ", epoch %.4g, step %" PRId64, report->epoch, report->step);
    fprintf(stream, "\n  accuracy  %.4f  (%s of %s rows)\n", report->accuracy,
            ls_format_count(correct, right), ls_format_count(rows, report->samples));
    fprintf(stream, "  macro-F1  %.4f\n  loss      %.4f\n", report->macro_f1, report->loss);
    fprintf(stream, "  seconds   %.1f\n", report->seconds);
    if (report->classes > 0 && !print_table(stream, report, columns))
        print_classes(stream, report, columns);
    fputc('\n', stream);
}

void ls_evaluation_print(FILE *stream, const ls_evaluation_report *report)
{
    ls_evaluation_print_fitted(stream, report, ls_terminal_columns(fileno(stream)));
}

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/numbers.h"
#include "compare/documents.h"
#include "compare/rows.h"
#include "formats/utf8.h"

enum { MOST_POINTS = 400 };

static ls_status put_text(ls_text *text, const char *before, const char *value, ls_error *error)
{
    LS_TRY(ls_text_print(text, error, "%s", before));
    return ls_utf8_json(text, value, error);
}

static ls_status put_number(ls_text *text, const char *before, double value, ls_error *error)
{
    char digits[LS_NUMBER_BYTES];
    return ls_text_print(text, error, "%s%s", before,
                         isfinite(value) ? ls_number_print(digits, value) : "null");
}

static ls_status put_same(ls_text *text, const char *before, int same, ls_error *error)
{
    return ls_text_print(text, error, "%s%s", before, same < 0 ? "null" : same ? "true" : "false");
}

/* [[x, y], ...], no more than MOST_POINTS of them: every nth, and the last. */
static ls_status put_points(ls_text *text, const char *before, const ls_compare_point *points,
                            size_t count, ls_error *error)
{
    size_t stride = (count + MOST_POINTS - 1) / MOST_POINTS;
    LS_TRY(ls_text_print(text, error, "%s[", before));
    for (size_t i = 0; i < count; i++) {
        if (i % stride != 0 && i + 1 < count) continue;
        LS_TRY(put_number(text, i ? ", [" : "[", points[i].x, error));
        LS_TRY(put_number(text, ", ", points[i].y, error));
        LS_TRY(ls_text_append(text, "]", 1, error));
    }
    return ls_text_append(text, "]", 1, error);
}

static ls_status put_parts(ls_text *text, const ls_run_facts *facts, ls_error *error)
{
    if (facts->part_count == 0) return ls_text_print(text, error, ",\n      \"memory\": null");
    LS_TRY(ls_text_print(text, error, ",\n      \"memory\": {"));
    for (size_t i = 0; i < facts->part_count; i++) {
        LS_TRY(put_text(text, i ? ", " : "", facts->parts[i].name, error));
        LS_TRY(put_number(text, ": ", facts->parts[i].bytes, error));
    }
    return ls_text_append(text, "}", 1, error);
}

static ls_status put_seeds(ls_text *text, const ls_compare_row *row, ls_error *error)
{
    LS_TRY(ls_text_print(text, error, ",\n      \"seeds\": ["));
    for (size_t i = 0; i < row->seed_count; i++) {
        const ls_compare_seed *seed = &row->seeds[i];
        LS_TRY(ls_text_print(text, error, "%s{\"seed\": %" PRId64, i ? ", " : "", seed->seed));
        LS_TRY(put_number(text, ", \"final_loss\": ", seed->final_loss, error));
        LS_TRY(put_number(text, ", \"accuracy\": ", seed->accuracy, error));
        LS_TRY(put_number(text, ", \"macro_f1\": ", seed->macro_f1, error));
        LS_TRY(put_text(text, ", \"weights_sha256\": ", seed->weights_sha256, error));
        LS_TRY(put_same(text, ", \"same_bits_as_single\": ", seed->same_bits, error));
        LS_TRY(ls_text_append(text, "}", 1, error));
    }
    return ls_text_append(text, "]", 1, error);
}

static ls_status put_rounds(ls_text *text, const ls_compare_row *row, ls_error *error)
{
    LS_TRY(ls_text_print(text, error, ",\n      \"rounds_samples_per_second\": ["));
    for (size_t i = 0; i < row->round_count; i++)
        LS_TRY(put_number(text, i ? ", " : "", row->rounds[i].values[LS_MEASURE_SAMPLES_PER_SECOND],
                          error));
    return ls_text_append(text, "]", 1, error);
}

static ls_status put_row(ls_text *text, const ls_compare_row *row, ls_error *error)
{
    LS_TRY(put_text(text, "    {\"name\": ", row->name, error));
    LS_TRY(put_text(text, ", \"state\": ", ls_compare_state_name(row->state), error));
    LS_TRY(put_text(text, ", \"reason\": ", *row->reason ? row->reason : NULL, error));
    LS_TRY(ls_text_print(text, error,
                         ",\n      \"devices\": %" PRId64 ", \"threads\": %" PRId64
                         ", \"batch_size\": %" PRId64,
                         row->devices, row->threads, row->batch_size));
    for (int i = 0; i < LS_MEASURE_COUNT; i++) {
        LS_TRY(ls_text_print(text, error, ",\n      \"%s\": ", ls_measure_table[i].key));
        LS_TRY(put_number(text, "", row->values[i], error));
    }
    LS_TRY(put_text(text, ",\n      \"evaluated_on\": ", row->full.evaluated_on, error));
    LS_TRY(put_text(text, ",\n      \"weights_sha256\": ",
                    row->seed_count ? row->seeds[0].weights_sha256 : NULL, error));
    LS_TRY(put_same(text, ",\n      \"same_bits_as_single\": ", row->same_bits, error));
    LS_TRY(put_text(text, ",\n      \"bottleneck\": ",
                    *row->full.bottleneck ? row->full.bottleneck : NULL, error));
    LS_TRY(put_text(text, ",\n      \"advice\": ", *row->full.advice ? row->full.advice : NULL,
                    error));
    LS_TRY(put_parts(text, &row->full, error));
    LS_TRY(put_seeds(text, row, error));
    LS_TRY(put_rounds(text, row, error));
    LS_TRY(put_points(text, ",\n      \"training_loss\": ", row->full.losses, row->full.loss_count,
                      error));
    LS_TRY(put_points(text, ",\n      \"validation_accuracy\": ", row->full.accuracies,
                      row->full.accuracy_count, error));
    return ls_text_append(text, "}", 1, error);
}

static ls_status put_rows(ls_text *text, const ls_comparison *comparison, const char *key,
                          size_t first, size_t last, ls_error *error)
{
    LS_TRY(ls_text_print(text, error, ",\n  \"%s\": [", key));
    for (size_t i = first; i < last; i++) {
        LS_TRY(ls_text_print(text, error, i > first ? ",\n" : "\n"));
        LS_TRY(put_row(text, &comparison->rows[i], error));
    }
    return ls_text_append(text, "]", 1, error);
}

static ls_status put_machine(ls_text *text, const ls_compare_machine *machine,
                             const ls_compare_options *options, ls_error *error)
{
    LS_TRY(put_text(text, ",\n  \"machine\": {\"processor\": ", machine->processor, error));
    LS_TRY(ls_text_print(text, error, ", \"cores\": %" PRId64 ", \"memory_bytes\": %" PRId64,
                         machine->cores, machine->memory_bytes));
    LS_TRY(put_text(text, ", \"system\": ", machine->system, error));
    LS_TRY(put_text(text, ", \"instruction_set\": ", options->instruction_set, error));
    LS_TRY(put_number(text, ", \"memory_bytes_per_second\": ", machine->bytes_per_second, error));
    return ls_text_print(text, error, ", \"memory_threads\": %" PRId64 "}",
                         machine->bandwidth_threads);
}

static ls_status put_settings(ls_text *text, const ls_compare_options *options, ls_error *error)
{
    LS_TRY(put_text(text, ",\n  \"settings\": {\"model\": ", options->model, error));
    LS_TRY(put_text(text, ", \"train\": ", options->train, error));
    LS_TRY(put_text(text, ", \"validation\": ", options->validation, error));
    LS_TRY(put_text(text, ", \"test\": ", options->test, error));
    LS_TRY(ls_text_print(text, error,
                         ", \"devices\": %" PRId64 ", \"threads\": %" PRId64
                         ", \"batch_size\": %" PRId64,
                         options->devices, options->threads, options->batch_size));
    LS_TRY(put_number(text, ", \"max_steps\": ",
                      options->max_steps < 0 ? NAN : (double)options->max_steps, error));
    LS_TRY(put_number(text, ", \"epochs\": ", options->epochs, error));
    LS_TRY(put_number(text, ", \"target_accuracy\": ",
                      options->target_accuracy > 0 ? options->target_accuracy : NAN, error));
    LS_TRY(ls_text_print(text, error,
                         ", \"timing_rounds\": %" PRId64 ", \"timing_steps\": %" PRId64
                         ", \"flags\": [",
                         options->rounds, options->round_steps));
    for (size_t i = 0; i < options->flag_count; i++)
        LS_TRY(put_text(text, i ? ", " : "", options->flags[i], error));
    return ls_text_append(text, "]}", 2, error);
}

static ls_status put_verdicts(ls_text *text, const ls_comparison *comparison, ls_error *error)
{
    LS_TRY(ls_text_print(text, error, ",\n  \"verdicts\": ["));
    for (size_t i = 0; i < comparison->verdict_count; i++) {
        LS_TRY(put_text(text, i ? ",\n    {\"kind\": " : "\n    {\"kind\": ",
                        comparison->verdicts[i].kind, error));
        LS_TRY(put_text(text, ", \"text\": ", comparison->verdicts[i].text, error));
        LS_TRY(ls_text_append(text, "}", 1, error));
    }
    return ls_text_append(text, "]", 1, error);
}

ls_status ls_compare_json(const ls_comparison *comparison, ls_text *text, ls_error *error)
{
    const ls_compare_options *options = comparison->options;
    LS_TRY(put_text(text, "{\n  \"version\": ", options->version, error));
    LS_TRY(put_text(text, ",\n  \"date\": ", comparison->machine.date, error));
    LS_TRY(put_text(text, ",\n  \"command\": ", options->command, error));
    LS_TRY(put_machine(text, &comparison->machine, options, error));
    LS_TRY(put_settings(text, options, error));
    LS_TRY(put_verdicts(text, comparison, error));
    LS_TRY(put_rows(text, comparison, "rows", 0, comparison->strategy_rows, error));
    LS_TRY(put_rows(text, comparison, "batch_size_rows", comparison->strategy_rows,
                    comparison->row_count, error));
    return ls_text_append(text, "\n}\n", 3, error);
}

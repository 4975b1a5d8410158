#include "monitor/metrics.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/files.h"
#include "base/numbers.h"
#include "base/text.h"
#include "monitor/record_file.h"

/* More than a step's line can need: twenty keys and numbers. */
enum { STEP_LINE_BYTES = 2048 };

typedef struct metrics {
    ls_sink sink;
    ls_record_file file;
    ls_text line;
} metrics;

static ls_status write_line(metrics *m, ls_error *error)
{
    LS_TRY(ls_text_append(&m->line, "}\n", 2, error));
    return ls_record_file_write(&m->file, m->line.data, m->line.length, error);
}

/* Called with what stands before the number: a key, or nothing. */
static ls_status put_number(ls_text *line, const char *before, double value, ls_error *error)
{
    char digits[LS_NUMBER_BYTES];
    if (value != value) return ls_text_print(line, error, "%s\"NaN\"", before);
    if (value - value != 0)
        return ls_text_print(line, error, "%s\"%sInfinity\"", before, value < 0 ? "-" : "");
    return ls_text_print(line, error, "%s%s", before, ls_number_print(digits, value));
}

/* Six decimals say all there is to say of a clock. */
static double microseconds(double seconds)
{
    if (!(seconds >= 0 && seconds < 1e9)) return seconds;
    return (double)(int64_t)(seconds * 1e6 + 0.5) / 1e6;
}

/* Where the time went, and what the process took of the machine. */
static ls_status put_usage(ls_text *line, const ls_step_report *report, ls_error *error)
{
    const struct part {
        const char *before;
        double seconds;
    } parts[] = {
        {", \"step_seconds\": ", report->step_seconds},
        {", \"tokens_per_second\": ", report->tokens_per_second},
        {", \"data_seconds\": ", report->data_seconds},
        {", \"forward_seconds\": ", report->forward_seconds},
        {", \"backward_seconds\": ", report->backward_seconds},
        {", \"exchange_seconds\": ", report->exchange_seconds},
        {", \"optimizer_seconds\": ", report->optimizer_seconds},
        {", \"cores_busy\": ", report->cores_busy},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        LS_TRY(put_number(line, parts[i].before, microseconds(parts[i].seconds), error));
    return ls_text_print(line, error, ", \"host_bytes\": %" PRId64 ", \"device_bytes\": %" PRId64,
                         report->host_bytes, report->device_bytes);
}

static ls_status write_step(ls_sink *sink, const ls_step_report *report, ls_error *error)
{
    metrics *m = (metrics *)sink;
    ls_text *line = &m->line;
    ls_text_clear(line);
    LS_TRY(ls_text_print(line, error, "{\"step\": %" PRId64, report->step));
    LS_TRY(put_number(line, ", \"epoch\": ", report->epoch, error));
    LS_TRY(put_number(line, ", \"loss\": ", report->loss, error));
    LS_TRY(put_number(line, ", \"learning_rate\": ", report->learning_rate, error));
    LS_TRY(put_number(line, ", \"gradient_norm\": ", report->gradient_norm, error));
    LS_TRY(ls_text_print(line, error,
                         ", \"samples\": %" PRId64 ", \"tokens\": %" PRId64
                         ", \"skipped_steps\": %" PRId64,
                         report->samples, report->tokens, report->skipped_steps));
    LS_TRY(ls_text_print(line, error, ", \"samples_digest\": \"%016" PRIx64 "\"%s",
                         report->samples_digest, report->skipped ? ", \"skipped\": true" : ""));
    LS_TRY(put_usage(line, report, error));
    return write_line(m, error);
}

static ls_status put_confusion(ls_text *line, const ls_evaluation_report *report, ls_error *error)
{
    int64_t classes = report->classes;
    LS_TRY(ls_text_print(line, error, ", \"confusion\": ["));
    for (int64_t truth = 0; truth < classes; truth++) {
        LS_TRY(ls_text_print(line, error, "%s[", truth ? ", " : ""));
        for (int64_t predicted = 0; predicted < classes; predicted++)
            LS_TRY(ls_text_print(line, error, "%s%" PRId64, predicted ? ", " : "",
                                 report->confusion[truth * classes + predicted]));
        LS_TRY(ls_text_append(line, "]", 1, error));
    }
    return ls_text_append(line, "]", 1, error);
}

static ls_status write_evaluation(ls_sink *sink, const ls_evaluation_report *report,
                                  ls_error *error)
{
    metrics *m = (metrics *)sink;
    ls_text *line = &m->line;
    ls_text_clear(line);
    LS_TRY(ls_text_print(line, error, "{\"step\": %" PRId64, report->step));
    LS_TRY(put_number(line, ", \"epoch\": ", report->epoch, error));
    LS_TRY(ls_text_print(line, error, ", \"evaluation\": "));
    LS_TRY(ls_text_json_string(line, report->name, error));
    LS_TRY(put_number(line, ", \"loss\": ", report->loss, error));
    LS_TRY(put_number(line, ", \"accuracy\": ", report->accuracy, error));
    LS_TRY(put_number(line, ", \"macro_f1\": ", report->macro_f1, error));
    LS_TRY(ls_text_print(line, error, ", \"samples\": %" PRId64, report->samples));
    LS_TRY(put_number(line, ", \"seconds\": ", microseconds(report->seconds), error));
    LS_TRY(put_confusion(line, report, error));
    return write_line(m, error);
}

static ls_status finish(ls_sink *sink, ls_error *error)
{
    return ls_record_file_finish(&((metrics *)sink)->file, error);
}

static void free_metrics(ls_sink *sink)
{
    metrics *m = (metrics *)sink;
    ls_record_file_deinit(&m->file);
    ls_text_deinit(&m->line);
    ls_free(m);
}

static const ls_sink_operations operations = {
    .name = "metrics.jsonl",
    .step = write_step,
    .evaluation = write_evaluation,
    .finish = finish,
    .free = free_metrics,
};

ls_status ls_metrics_open(ls_sink **out, const char *folder, bool keep, ls_error *error)
{
    metrics *m = NULL;
    char *path = NULL;
    ls_status status;
    LS_TRY(LS_NEW(m, 1, "metrics", error));
    m->sink.operations = &operations;
    LS_TRY_GOTO(status, LS_GROW(m->line.data, m->line.capacity, STEP_LINE_BYTES, "metrics", error),
                fail);
    LS_TRY_GOTO(status, ls_path_join(&path, folder, "metrics.jsonl", error), fail);
    LS_TRY_GOTO(status, ls_record_file_open(&m->file, path, keep, error), fail);
    *out = &m->sink;
    return LS_OK;
fail:
    free_metrics(&m->sink);
    return status;
}

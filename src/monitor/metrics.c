#include "monitor/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/files.h"
#include "base/numbers.h"
#include "base/text.h"

/* More than a step's line can need: nine keys and numbers. */
enum { STEP_LINE_BYTES = 1024 };

struct ls_metrics {
    int descriptor;
    off_t bytes; /* whole lines in the file */
    char *path;
    ls_text line;
};

static ls_status fail_errno(const ls_metrics *metrics, const char *action, int code,
                            ls_error *error)
{
    return ls_fail(error, LS_IO, "%s: cannot %s: %s (errno %d)", metrics->path, action,
                   strerror(code), code);
}

ls_status ls_metrics_open(ls_metrics **out, const char *folder, bool keep, ls_error *error)
{
    ls_metrics *metrics = NULL;
    ls_status status;
    LS_TRY(LS_NEW(metrics, 1, "metrics", error));
    metrics->descriptor = -1;
    LS_TRY_GOTO(status, ls_path_join(&metrics->path, folder, "metrics.jsonl", error), fail);
    LS_TRY_GOTO(
        status,
        LS_GROW(metrics->line.data, metrics->line.capacity, STEP_LINE_BYTES, "metrics", error),
        fail);
    int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (keep ? 0 : O_TRUNC);
    metrics->descriptor = open(metrics->path, flags, 0666);
    if (metrics->descriptor < 0) {
        status = fail_errno(metrics, "open", errno, error);
        goto fail;
    }
    metrics->bytes = lseek(metrics->descriptor, 0, SEEK_END);
    if (metrics->bytes < 0) {
        status = fail_errno(metrics, "find the end", errno, error);
        goto fail;
    }
    *out = metrics;
    return LS_OK;
fail:
    ls_metrics_free(metrics);
    return status;
}

static ls_status write_line(ls_metrics *metrics, ls_error *error)
{
    LS_TRY(ls_text_append(&metrics->line, "}\n", 2, error));
    size_t done = 0;
    while (done < metrics->line.length) {
        ssize_t wrote =
            write(metrics->descriptor, metrics->line.data + done, metrics->line.length - done);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) {
            int code = errno;
            if (done && ftruncate(metrics->descriptor, metrics->bytes) != 0)
                return fail_errno(metrics, "take back half a line", errno, error);
            return fail_errno(metrics, "write", code, error);
        }
        done += (size_t)wrote;
    }
    metrics->bytes += (off_t)done;
    return LS_OK;
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

ls_status ls_metrics_step(ls_metrics *metrics, const ls_step_report *report, ls_error *error)
{
    ls_text *line = &metrics->line;
    ls_text_clear(line);
    LS_TRY(ls_text_print(line, error, "{\"step\": %" PRId64, report->step));
    LS_TRY(put_number(line, ", \"epoch\": ", report->epoch, error));
    LS_TRY(put_number(line, ", \"loss\": ", report->loss, error));
    LS_TRY(put_number(line, ", \"learning_rate\": ", report->learning_rate, error));
    LS_TRY(put_number(line, ", \"gradient_norm\": ", report->gradient_norm, error));
    LS_TRY(ls_text_print(line, error, ", \"samples\": %" PRId64 ", \"tokens\": %" PRId64,
                         report->samples, report->tokens));
    LS_TRY(ls_text_print(line, error, ", \"samples_digest\": \"%016" PRIx64 "\"%s",
                         report->samples_digest, report->skipped ? ", \"skipped\": true" : ""));
    LS_TRY(put_number(line, ", \"step_seconds\": ", microseconds(report->step_seconds), error));
    LS_TRY(put_number(line, ", \"tokens_per_second\": ", microseconds(report->tokens_per_second),
                      error));
    return write_line(metrics, error);
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

ls_status ls_metrics_evaluation(ls_metrics *metrics, const ls_evaluation_report *report,
                                ls_error *error)
{
    ls_text *line = &metrics->line;
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
    return write_line(metrics, error);
}

int64_t ls_metrics_bytes(const ls_metrics *metrics)
{
    return metrics->bytes;
}

const char *ls_metrics_path(const ls_metrics *metrics)
{
    return metrics->path;
}

ls_status ls_metrics_close(ls_metrics *metrics, ls_error *error)
{
    ls_status status = LS_OK;
    int descriptor = metrics->descriptor;
    metrics->descriptor = -1;
    if (close(descriptor) != 0) status = fail_errno(metrics, "close", errno, error);
    ls_metrics_free(metrics);
    return status;
}

void ls_metrics_free(ls_metrics *metrics)
{
    if (!metrics) return;
    if (metrics->descriptor >= 0) close(metrics->descriptor);
    ls_text_deinit(&metrics->line);
    ls_free(metrics->path);
    ls_free(metrics);
}

/* Label and probability of each text: rows of a table, or lines as they come. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/columns.h"
#include "cli/command.h"
#include "cli/exit_status.h"
#include "cli/lines.h"
#include "cli/progress.h"

/* "label<TAB>probability"; what would break that line is escaped as in TSV. */
static void print_prediction(const char *label, float probability)
{
    for (const char *at = label; *at; at++) {
        const char *found = strchr("\t\n\r\\", *at);
        if (found) fputc('\\', stdout);
        fputc(found ? "tnr\\"[found - "\t\n\r\\"] : *at, stdout);
    }
    printf("\t%.6f\n", (double)probability);
}

/* --- a table --------------------------------------------------------------------------------- */

static void show_row(void *context, const ls_prediction *prediction)
{
    ls_progress_clear(context);
    print_prediction(prediction->labels[prediction->prediction],
                     prediction->probabilities[prediction->prediction]);
}

static int predict_table(const ls_invocation *invocation)
{
    ls_progress progress;
    ls_error error;
    ls_progress_init(&progress, invocation->quiet);
    ls_callbacks callbacks = ls_progress_callbacks(&progress);
    callbacks.prediction = show_row;
    ls_status status = ls_predict(&invocation->options, &callbacks, &error);
    ls_progress_clear(&progress);
    return ls_exit_report(status, &error);
}

/* --- lines ----------------------------------------------------------------------------------- */

typedef struct line_work {
    const ls_options *options;
    ls_classifier *classifier;
    ls_lines lines;
    size_t most; /* lines at once */
    ls_line *batch;
    const char **texts;
    float *probabilities; /* [most][classes] */
    int64_t skipped;
} line_work;

static const char *fault_of(const ls_line *line)
{
    if (line->length == 0) return "empty line";
    if (memchr(line->text, '\0', line->length)) return "a NUL byte";
    if (!ls_utf8_is_valid(line->text, line->length)) return "not UTF-8";
    return NULL;
}

static ls_status predict_batch(line_work *work, size_t count, ls_error *error)
{
    int32_t classes = ls_classifier_classes(work->classifier);
    size_t good = 0;
    ls_status status = LS_OK, bad = LS_OK;
    for (size_t i = 0; i < count && bad == LS_OK; i++) {
        const char *fault = fault_of(&work->batch[i]);
        if (!fault)
            work->texts[good++] = work->batch[i].text;
        else if (work->options->skip_bad_rows)
            work->skipped++;
        else
            bad = ls_complain(error, LS_INVALID,
                              "%s:%" PRId64 ": %s; --skip-bad-rows leaves such lines out",
                              work->lines.name, work->batch[i].number, fault);
    }
    /* The lines before a bad one still get their answer. */
    if (good)
        status = ls_classifier_predict(work->classifier, work->texts, (int64_t)good,
                                       work->probabilities, bad == LS_OK ? error : NULL);
    if (status != LS_OK) return bad == LS_OK ? status : bad;
    for (size_t i = 0; i < good; i++) {
        const float *row = work->probabilities + i * (size_t)classes;
        int32_t best = 0;
        for (int32_t id = 1; id < classes; id++)
            if (row[id] > row[best]) best = id;
        print_prediction(ls_classifier_label(work->classifier, best), row[best]);
    }
    fflush(stdout);
    return bad;
}

static ls_status predict_all(line_work *work, ls_error *error)
{
    ls_status status = ls_lines_open(&work->lines, work->options->data, error);
    if (status == LS_OK) status = ls_classifier_open(&work->classifier, work->options, error);
    if (status != LS_OK) return status;
    work->most = (size_t)work->options->batch_size;
    work->batch = calloc(work->most, sizeof *work->batch);
    work->texts = calloc(work->most, sizeof *work->texts);
    work->probabilities =
        calloc(work->most * (size_t)ls_classifier_classes(work->classifier), sizeof(float));
    if (!work->batch || !work->texts || !work->probabilities)
        return ls_complain(error, LS_NO_MEMORY, "out of memory for %zu lines", work->most);
    for (size_t count = 1; count && status == LS_OK;) {
        status = ls_lines_next(&work->lines, work->batch, work->most, &count, error);
        if (status == LS_OK && count) status = predict_batch(work, count, error);
    }
    return status;
}

static int predict_lines(const ls_invocation *invocation)
{
    line_work work = {.options = &invocation->options, .lines.descriptor = -1};
    ls_error error;
    ls_status status = predict_all(&work, &error);
    if (work.skipped) fprintf(stderr, "lockstep: %" PRId64 " bad lines left out\n", work.skipped);
    ls_classifier_free(work.classifier);
    ls_lines_close(&work.lines);
    free(work.batch);
    free(work.texts);
    free(work.probabilities);
    return ls_exit_report(status, &error);
}

/* Text files, standard input, and what has no extension, such as /dev/fd/63. Any other name goes to
 * the library, which knows the formats of tables. */
static bool holds_lines(const char *path)
{
    if (!path || strcmp(path, "-") == 0) return true;
    const char *name = strrchr(path, '/');
    const char *extension = strrchr(name ? name : path, '.');
    return !extension || strcmp(extension, ".txt") == 0;
}

static int predict(const ls_invocation *invocation)
{
    if (holds_lines(invocation->options.data)) return predict_lines(invocation);
    return predict_table(invocation);
}

const ls_command ls_command_predict = {
    .name = "predict",
    .bit = LS_COMMAND_PREDICT,
    .summary = "label and probability of each text",
    .usage = "--model FOLDER [--data FILE] [flags]",
    .example = "echo 'a warm and funny film' | lockstep predict --model trained",
    .details =
        "Prints a line a text: label, tab, probability. Reads the lines of standard input, or "
        "of --data where that is a text file (.txt); the rows of --data where it is a table "
        "(.tsv, .csv, .jsonl), which need no label.",
    .needed = {"model"},
    .can_be_quiet = true,
    .run = predict,
};

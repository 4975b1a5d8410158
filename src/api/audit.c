/* ls_audit_record: that a run used each sample of each epoch once, from its record alone.
 *
 * Every step's line in metrics.jsonl has the digest of the samples that its ranks ran. The order of
 * an epoch is a function of (seed, epoch, rows), so that what each step should have run, and its
 * digest, can be computed again; that the order itself has each sample once is checked too. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/files.h"
#include "data/sampler.h"
#include "formats/json.h"
#include "lockstep.h"

enum { RECORD_CAP = 1 << 28, WINDOW = 1 << 20 };

typedef struct record {
    char *path;
    int64_t rows, batch_size, seed, steps_per_epoch;
    uint32_t *order; /* [rows] of the epoch that it is at */
    uint8_t *seen;   /* [rows] */
    int64_t epoch;   /* whose order it holds, -1: none */
    int64_t line;
    ls_run_audit report;
} record;

/* --- run.json -------------------------------------------------------------------------------- */

static ls_status setting(const ls_json_view *settings, const char *name, int64_t *out,
                         ls_error *error)
{
    ls_json_view entry;
    LS_TRY(ls_json_get_object(settings, name, LS_JSON_REQUIRED, &entry, error));
    return ls_json_get_integer(&entry, "value", LS_JSON_REQUIRED, 0, INT64_MAX, out, error);
}

static ls_status read_settings(record *r, const char *folder, ls_error *error)
{
    char *path = NULL;
    json_t *document = NULL;
    ls_json_view root, settings;
    ls_status status;
    LS_TRY(ls_path_join(&path, folder, "run.json", error));
    LS_TRY_GOTO(status, ls_json_load(&document, path, RECORD_CAP, error), done);
    LS_TRY_GOTO(status, ls_json_view_init(&root, document, path, error), done);
    LS_TRY_GOTO(status, ls_json_get_object(&root, "settings", LS_JSON_REQUIRED, &settings, error),
                done);
    LS_TRY_GOTO(status, setting(&settings, "seed", &r->seed, error), done);
    LS_TRY_GOTO(status, setting(&settings, "batch_size", &r->batch_size, error), done);
    LS_TRY_GOTO(
        status,
        ls_json_get_integer(&root, "train_rows", LS_JSON_REQUIRED, 1, UINT32_MAX, &r->rows, error),
        done);
    if (r->batch_size < 1)
        status = ls_json_fail(&settings, "batch_size", error, LS_INVALID, "is below 1");
    else
        r->steps_per_epoch = (r->rows - 1) / r->batch_size + 1;
done:
    ls_json_free(document);
    ls_free(path);
    return status;
}

/* --- the steps ------------------------------------------------------------------------------- */

/* The order of an epoch, and that it has every row once. */
static ls_status take_order(record *r, int64_t epoch, ls_error *error)
{
    if (r->epoch == epoch) return LS_OK;
    ls_sampler_order((uint64_t)r->seed, epoch, (uint32_t)r->rows, r->order);
    memset(r->seen, 0, (size_t)r->rows);
    for (int64_t i = 0; i < r->rows; i++)
        if (r->seen[r->order[i]]++)
            return ls_fail(error, LS_INTERNAL, "epoch %" PRId64 " has sample %" PRIu32 " twice",
                           epoch + 1, r->order[i]);
    r->epoch = epoch;
    return LS_OK;
}

static ls_status check_step(record *r, const ls_json_view *line, ls_error *error)
{
    int64_t step, samples;
    const char *digest;
    bool skipped = false;
    char wanted[17];
    LS_TRY(ls_json_get_integer(line, "step", LS_JSON_REQUIRED, 1, INT64_MAX, &step, error));
    LS_TRY(ls_json_get_integer(line, "samples", LS_JSON_REQUIRED, 1, INT64_MAX, &samples, error));
    LS_TRY(ls_json_get_string(line, "samples_digest", LS_JSON_REQUIRED, &digest, error));
    LS_TRY(ls_json_get_bool(line, "skipped", LS_JSON_OPTIONAL, &skipped, error));
    if (step != r->report.steps + 1)
        return ls_fail(error, LS_DIFFERENT,
                       "%s:%" PRId64 ": step %" PRId64 " stands where step %" PRId64 " belongs",
                       r->path, r->line, step, r->report.steps + 1);
    int64_t epoch = (step - 1) / r->steps_per_epoch;
    int64_t first = (step - 1) % r->steps_per_epoch * r->batch_size;
    int64_t count = r->rows - first < r->batch_size ? r->rows - first : r->batch_size;
    LS_TRY(take_order(r, epoch, error));
    uint64_t sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += ls_sample_digest(r->order[first + i]);
    snprintf(wanted, sizeof wanted, "%016" PRIx64, sum);
    if (samples != count || strcmp(digest, wanted) != 0)
        return ls_fail(error, LS_DIFFERENT,
                       "%s:%" PRId64 ": step %" PRId64 " ran %" PRId64
                       " samples with digest %s, batch %" PRId64 " of epoch %" PRId64
                       " has %" PRId64 " with digest %s",
                       r->path, r->line, step, samples, digest, first / r->batch_size + 1,
                       epoch + 1, count, wanted);
    r->report.steps = step;
    r->report.skipped_steps += skipped;
    r->report.epochs = step / r->steps_per_epoch;
    r->report.rest = step % r->steps_per_epoch ? first + count : 0;
    return LS_OK;
}

static ls_status check_line(record *r, const char *bytes, size_t count, ls_error *error)
{
    char name[600];
    json_t *document = NULL;
    ls_json_view view;
    r->line++;
    snprintf(name, sizeof name, "%.500s:%" PRId64, r->path, r->line);
    LS_TRY(ls_json_parse(&document, bytes, count, name, error));
    ls_status status = ls_json_view_init(&view, document, name, error);
    if (status == LS_OK && !ls_json_find(&view, "evaluation")) status = check_step(r, &view, error);
    ls_json_free(document);
    return status;
}

/* Line by line through a window: a long run's file need not fit in memory. */
static ls_status check_lines(record *r, const ls_file *file, char *window, ls_error *error)
{
    size_t held = 0;
    for (uint64_t offset = 0; offset < file->bytes || held;) {
        uint64_t left = file->bytes - offset;
        size_t bytes = left < WINDOW - held ? (size_t)left : WINDOW - held;
        LS_TRY(ls_file_read_at(file, window + held, bytes, offset, error));
        offset += bytes;
        held += bytes;
        size_t start = 0;
        for (char *end; (end = memchr(window + start, '\n', held - start));) {
            LS_TRY(check_line(r, window + start, (size_t)(end - window) - start, error));
            start = (size_t)(end - window) + 1;
        }
        if (start == 0)
            return ls_fail(error, LS_INVALID, "%s:%" PRId64 ": a line without end", r->path,
                           r->line + 1);
        held -= start;
        memmove(window, window + start, held);
    }
    return LS_OK;
}

static ls_status audit(record *r, const char *folder, char **window, ls_error *error)
{
    ls_file file;
    LS_TRY(read_settings(r, folder, error));
    LS_TRY(LS_NEW(r->order, r->rows, "order of an epoch", error));
    LS_TRY(LS_NEW(r->seen, r->rows, "order of an epoch", error));
    LS_TRY(LS_NEW(*window, WINDOW, "lines of metrics.jsonl", error));
    LS_TRY(ls_path_join(&r->path, folder, "metrics.jsonl", error));
    LS_TRY(ls_file_open(&file, r->path, error));
    ls_status status = check_lines(r, &file, *window, error);
    ls_file_close(&file);
    r->report.rows = r->rows;
    if (status == LS_OK && r->report.steps == 0)
        status = ls_fail(error, LS_INVALID, "%s: has no step", r->path);
    return status;
}

ls_status ls_audit_record(const char *folder, ls_run_audit *report, ls_error *error)
{
    record r = {.epoch = -1};
    char *window = NULL;
    if (!folder) return ls_fail(error, LS_USAGE, "audit needs the output folder of a run");
    ls_status status = audit(&r, folder, &window, error);
    if (report) *report = r.report;
    ls_free(window);
    ls_free(r.order);
    ls_free(r.seen);
    ls_free(r.path);
    return status;
}

#include "monitor/csv.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/files.h"
#include "base/numbers.h"
#include "monitor/record_file.h"
#include "monitor/scalars.h"

enum { NAME_BYTES = 128, LINE_BYTES = 96, MOST_EVALUATIONS = 2 };

/* Opened on the first line. */
typedef struct evaluation {
    char name[32]; /* "" for none */
    ls_record_file files[LS_EVALUATION_SCALARS];
} evaluation;

typedef struct csv {
    ls_sink sink;
    char *folder;
    bool keep;
    int64_t samples; /* up to the last step */
    ls_record_file files[LS_STEP_SCALARS];
    evaluation evaluations[MOST_EVALUATIONS];
} csv;

static ls_status open_file(const csv *c, ls_record_file *file, const char *group, const char *name,
                           ls_error *error)
{
    char file_name[NAME_BYTES], header[LINE_BYTES];
    char *path = NULL;
    snprintf(file_name, sizeof file_name, "%c%s_Samples_%s.csv", toupper((unsigned char)group[0]),
             group + 1, name);
    LS_TRY(ls_path_join(&path, c->folder, file_name, error));
    LS_TRY(ls_record_file_open(file, path, c->keep, error));
    if (file->bytes > 0) return LS_OK;
    int length = snprintf(header, sizeof header, "step,%s\n", name);
    return ls_record_file_write(file, header, (size_t)length, error);
}

static ls_status open_files(const csv *c, ls_record_file *files, const char *group,
                            const ls_scalar *scalars, int count, ls_error *error)
{
    for (int i = 0; i < count; i++)
        LS_TRY(open_file(c, &files[i], group, scalars[i].csv, error));
    return LS_OK;
}

/* As Python writes them, which is what such files are read with: nan, inf, -inf. */
static ls_status write_values(const csv *c, ls_record_file *files, const ls_scalar *scalars,
                              const double *values, int count, ls_error *error)
{
    char line[LINE_BYTES], number[LS_NUMBER_BYTES];
    for (int i = 0; i < count; i++) {
        int length = snprintf(line, sizeof line, "%" PRId64 ",%s\n", c->samples,
                              ls_number_print(number, values[i] * scalars[i].csv_scale));
        LS_TRY(ls_record_file_write(&files[i], line, (size_t)length, error));
    }
    return LS_OK;
}

static ls_status write_step(ls_sink *sink, const ls_step_report *report, ls_error *error)
{
    csv *c = (csv *)sink;
    double values[LS_STEP_SCALARS];
    c->samples = report->samples_done;
    ls_step_values(report, values);
    return write_values(c, c->files, ls_step_scalars, values, LS_STEP_SCALARS, error);
}

static ls_status write_evaluation(ls_sink *sink, const ls_evaluation_report *report,
                                  ls_error *error)
{
    csv *c = (csv *)sink;
    evaluation *found = c->evaluations;
    double values[LS_EVALUATION_SCALARS];
    char name[sizeof found->name];
    snprintf(name, sizeof name, "%s", report->name);
    while (found < c->evaluations + MOST_EVALUATIONS && *found->name &&
           strcmp(found->name, name) != 0)
        found++;
    if (found == c->evaluations + MOST_EVALUATIONS)
        return ls_fail(error, LS_INTERNAL, "%s: more than %d evaluated files", c->folder,
                       MOST_EVALUATIONS);
    if (!*found->name) {
        LS_TRY(
            open_files(c, found->files, name, ls_evaluation_scalars, LS_EVALUATION_SCALARS, error));
        snprintf(found->name, sizeof found->name, "%s", name);
    }
    ls_evaluation_values(report, values);
    return write_values(c, found->files, ls_evaluation_scalars, values, LS_EVALUATION_SCALARS,
                        error);
}

static ls_status finish(ls_sink *sink, ls_error *error)
{
    csv *c = (csv *)sink;
    for (int i = 0; i < LS_STEP_SCALARS; i++)
        LS_TRY(ls_record_file_finish(&c->files[i], error));
    for (int e = 0; e < MOST_EVALUATIONS; e++)
        for (int i = 0; i < LS_EVALUATION_SCALARS; i++)
            LS_TRY(ls_record_file_finish(&c->evaluations[e].files[i], error));
    return LS_OK;
}

static void free_csv(ls_sink *sink)
{
    csv *c = (csv *)sink;
    for (int i = 0; i < LS_STEP_SCALARS; i++)
        ls_record_file_deinit(&c->files[i]);
    for (int e = 0; e < MOST_EVALUATIONS; e++)
        for (int i = 0; i < LS_EVALUATION_SCALARS; i++)
            ls_record_file_deinit(&c->evaluations[e].files[i]);
    ls_free(c->folder);
    ls_free(c);
}

static const ls_sink_operations operations = {
    .name = "CSV",
    .step = write_step,
    .evaluation = write_evaluation,
    .finish = finish,
    .free = free_csv,
};

ls_status ls_csv_open(ls_sink **out, const char *folder, const char *job_name, bool keep,
                      ls_error *error)
{
    csv *c = NULL;
    ls_status status;
    LS_TRY(LS_NEW(c, 1, "CSV", error));
    c->sink.operations = &operations;
    c->keep = keep;
    LS_TRY_GOTO(status, ls_path_join(&c->folder, folder, job_name, error), fail);
    LS_TRY_GOTO(status, ls_folder_make(c->folder, error), fail);
    LS_TRY_GOTO(status, open_files(c, c->files, "train", ls_step_scalars, LS_STEP_SCALARS, error),
                fail);
    *out = &c->sink;
    return LS_OK;
fail:
    free_csv(&c->sink);
    return status;
}

#include "monitor/prometheus.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/numbers.h"
#include "base/text.h"
#include "monitor/scalars.h"

enum { MOST_EVALUATIONS = 2, TEXT_BYTES = 1 << 14 };
static const double shortest_pause = 1;

typedef struct evaluation {
    char name[32]; /* "" for none */
    double values[LS_EVALUATION_SCALARS];
} evaluation;

typedef struct prometheus {
    ls_sink sink;
    char *path, *temporary;
    char *label;    /* escaped */
    double written; /* ls_seconds of the last file */
    bool stale;     /* it does not hold the last report */
    ls_step_report last;
    evaluation evaluations[MOST_EVALUATIONS];
    ls_text text;
} prometheus;

static const char *print_number(char into[LS_NUMBER_BYTES], double value)
{
    if (value != value) return "NaN";
    if (value - value != 0) return value < 0 ? "-Inf" : "+Inf";
    return ls_number_print(into, value);
}

static ls_status put_head(prometheus *p, const char *name, const char *kind, const char *help,
                          ls_error *error)
{
    return ls_text_print(&p->text, error, "# HELP lockstep_%s %s\n# TYPE lockstep_%s %s\n", name,
                         help, name, kind);
}

static ls_status put_one(prometheus *p, const char *name, const char *kind, const char *help,
                         double value, ls_error *error)
{
    char number[LS_NUMBER_BYTES];
    LS_TRY(put_head(p, name, kind, help, error));
    return ls_text_print(&p->text, error, "lockstep_%s{run=\"%s\"} %s\n", name, p->label,
                         print_number(number, value));
}

static ls_status put_step(prometheus *p, ls_error *error)
{
    const ls_step_report *last = &p->last;
    double values[LS_STEP_SCALARS];
    char name[64];
    const struct counter {
        const char *name, *help;
        double value;
    } counters[] = {
        {"steps_total", "Steps done.", (double)last->step},
        {"samples_total", "Samples trained on.", (double)last->samples_done},
        {"tokens_total", "Tokens trained on.", (double)last->tokens_done},
        {"skipped_steps_total", "Steps that updated nothing.", (double)last->skipped_steps},
    };
    const struct counter gauges[] = {
        {"planned_steps", "Steps that the run will do.", (double)last->total_steps},
        {"epoch", "Epochs done, a fraction.", last->epoch},
        {"cores_busy", "Cores that the process kept busy.", last->cores_busy},
        {"host_memory_bytes", "Resident memory of the process.", (double)last->host_bytes},
        {"device_memory_bytes", "Memory of the device that holds most.",
         (double)last->device_bytes},
    };
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
        LS_TRY(put_one(p, counters[i].name, "counter", counters[i].help, counters[i].value, error));
    for (size_t i = 0; i < sizeof gauges / sizeof *gauges; i++)
        LS_TRY(put_one(p, gauges[i].name, "gauge", gauges[i].help, gauges[i].value, error));
    if (last->step == 0) return LS_OK;
    ls_step_values(last, values);
    for (int i = 0; i + 1 < LS_STEP_SCALARS;
         i++) { /* the last, skipped_steps, is a counter above */
        snprintf(name, sizeof name, "train_%s", ls_step_scalars[i].name);
        LS_TRY(put_one(p, name, "gauge", ls_step_scalars[i].help, values[i], error));
    }
    return LS_OK;
}

static ls_status put_evaluations(prometheus *p, ls_error *error)
{
    char name[64], number[LS_NUMBER_BYTES];
    if (!*p->evaluations[0].name) return LS_OK;
    for (int i = 0; i < LS_EVALUATION_SCALARS; i++) {
        snprintf(name, sizeof name, "evaluation_%s", ls_evaluation_scalars[i].name);
        LS_TRY(put_head(p, name, "gauge", ls_evaluation_scalars[i].help, error));
        for (int e = 0; e < MOST_EVALUATIONS && *p->evaluations[e].name; e++)
            LS_TRY(ls_text_print(&p->text, error, "lockstep_%s{run=\"%s\",file=\"%s\"} %s\n", name,
                                 p->label, p->evaluations[e].name,
                                 print_number(number, p->evaluations[e].values[i])));
    }
    return LS_OK;
}

static ls_status fail_errno(const char *path, const char *action, ls_error *error)
{
    return ls_fail(error, LS_IO, "%s: cannot %s: %s (errno %d)", path, action, strerror(errno),
                   errno);
}

/* Not synced: after a crash of the machine the numbers are of no use. */
static ls_status replace_file(const prometheus *p, ls_error *error)
{
    int descriptor = open(p->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor < 0) return fail_errno(p->temporary, "open", error);
    ls_status status = LS_OK;
    for (size_t done = 0; status == LS_OK && done < p->text.length;) {
        ssize_t wrote = write(descriptor, p->text.data + done, p->text.length - done);
        if (wrote >= 0)
            done += (size_t)wrote;
        else if (errno != EINTR)
            status = fail_errno(p->temporary, "write", error);
    }
    if (close(descriptor) != 0 && status == LS_OK)
        status = fail_errno(p->temporary, "close", error);
    if (status == LS_OK && rename(p->temporary, p->path) != 0)
        status = fail_errno(p->path, "replace the file", error);
    if (status != LS_OK) unlink(p->temporary);
    return status;
}

static ls_status write_all(prometheus *p, ls_error *error)
{
    ls_text_clear(&p->text);
    LS_TRY(put_step(p, error));
    LS_TRY(put_evaluations(p, error));
    LS_TRY(put_one(p, "updated_timestamp_seconds", "gauge", "When these numbers were written.",
                   ls_wall_seconds(), error));
    p->written = ls_seconds();
    p->stale = false;
    return replace_file(p, error);
}

static ls_status write_if_due(prometheus *p, ls_error *error)
{
    p->stale = true;
    return ls_seconds() - p->written < shortest_pause ? LS_OK : write_all(p, error);
}

static ls_status take_step(ls_sink *sink, const ls_step_report *report, ls_error *error)
{
    prometheus *p = (prometheus *)sink;
    p->last = *report;
    return write_if_due(p, error);
}

static ls_status take_evaluation(ls_sink *sink, const ls_evaluation_report *report, ls_error *error)
{
    prometheus *p = (prometheus *)sink;
    for (int e = 0; e < MOST_EVALUATIONS; e++) {
        evaluation *one = &p->evaluations[e];
        if (*one->name && strcmp(one->name, report->name) != 0) continue;
        snprintf(one->name, sizeof one->name, "%s", report->name);
        ls_evaluation_values(report, one->values);
        return write_if_due(p, error);
    }
    return ls_fail(error, LS_INTERNAL, "%s: more than %d evaluated files", p->path,
                   MOST_EVALUATIONS);
}

static ls_status finish(ls_sink *sink, ls_error *error)
{
    prometheus *p = (prometheus *)sink;
    return p->stale ? write_all(p, error) : LS_OK;
}

static void free_prometheus(ls_sink *sink)
{
    prometheus *p = (prometheus *)sink;
    ls_text_deinit(&p->text);
    ls_free(p->path);
    ls_free(p->temporary);
    ls_free(p->label);
    ls_free(p);
}

static const ls_sink_operations operations = {
    .name = "Prometheus",
    .step = take_step,
    .evaluation = take_evaluation,
    .finish = finish,
    .free = free_prometheus,
};

/* A label's value: backslash, quote and line end are escaped. */
static ls_status escape(char **out, const char *value, ls_error *error)
{
    LS_TRY(ls_new((void **)out, 2 * strlen(value) + 1, 1, "label", error));
    char *to = *out;
    for (; *value; value++) {
        if (*value == '\\' || *value == '"' || *value == '\n') *to++ = '\\';
        *to++ = *value == '\n' ? 'n' : *value;
    }
    return LS_OK;
}

ls_status ls_prometheus_open(ls_sink **out, const char *path, const char *run, ls_error *error)
{
    prometheus *p = NULL;
    ls_status status;
    size_t bytes = strlen(path) + 32;
    LS_TRY(LS_NEW(p, 1, "Prometheus", error));
    p->sink.operations = &operations;
    LS_TRY_GOTO(status, ls_copy_string(&p->path, path, error), fail);
    LS_TRY_GOTO(status, LS_NEW(p->temporary, bytes, "path", error), fail);
    /* A name that the collector, which reads *.prom, leaves alone. */
    snprintf(p->temporary, bytes, "%s.tmp-%ld", path, (long)getpid());
    LS_TRY_GOTO(status, escape(&p->label, run, error), fail);
    LS_TRY_GOTO(status, LS_GROW(p->text.data, p->text.capacity, TEXT_BYTES, "Prometheus", error),
                fail);
    LS_TRY_GOTO(status, write_all(p, error), fail);
    *out = &p->sink;
    return LS_OK;
fail:
    free_prometheus(&p->sink);
    return status;
}

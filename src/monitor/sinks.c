#include "monitor/csv.h"
#include "monitor/metrics.h"
#include "monitor/prometheus.h"
#include "monitor/sink.h"
#include "monitor/tensorboard.h"

static ls_status open_all(ls_sinks *sinks, const ls_sinks_options *options, ls_error *error)
{
    if (options->tensorboard) {
        LS_TRY(ls_tensorboard_open(&sinks->each[sinks->count], options->tensorboard, error));
        sinks->count++;
    }
    if (options->csv) {
        LS_TRY(ls_csv_open(&sinks->each[sinks->count], options->csv, options->job_name,
                           options->keep, error));
        sinks->count++;
    }
    if (options->prometheus) {
        LS_TRY(ls_prometheus_open(&sinks->each[sinks->count], options->prometheus, options->folder,
                                  error));
        sinks->count++;
    }
    return LS_OK;
}

ls_status ls_sinks_open(ls_sinks *sinks, const ls_sinks_options *options, ls_error *error)
{
    *sinks = (ls_sinks){0};
    ls_status status = open_all(sinks, options, error);
    if (status != LS_OK) ls_sinks_free(sinks);
    return status;
}

ls_status ls_sinks_open_metrics(ls_sinks *sinks, const ls_sinks_options *options, ls_error *error)
{
    LS_TRY(ls_metrics_open(&sinks->each[sinks->count], options->folder, options->keep, error));
    sinks->count++;
    return LS_OK;
}

ls_status ls_sinks_step(ls_sinks *sinks, const ls_step_report *report, ls_error *error)
{
    for (int i = 0; i < sinks->count; i++)
        LS_TRY(sinks->each[i]->operations->step(sinks->each[i], report, error));
    return LS_OK;
}

ls_status ls_sinks_evaluation(ls_sinks *sinks, const ls_evaluation_report *report, ls_error *error)
{
    for (int i = 0; i < sinks->count; i++)
        LS_TRY(sinks->each[i]->operations->evaluation(sinks->each[i], report, error));
    return LS_OK;
}

ls_status ls_sinks_close(ls_sinks *sinks, ls_error *error)
{
    ls_status status = LS_OK;
    for (int i = 0; i < sinks->count && status == LS_OK; i++)
        status = sinks->each[i]->operations->finish(sinks->each[i], error);
    ls_sinks_free(sinks);
    return status;
}

void ls_sinks_free(ls_sinks *sinks)
{
    for (int i = 0; i < sinks->count; i++)
        sinks->each[i]->operations->free(sinks->each[i]);
    *sinks = (ls_sinks){0};
}

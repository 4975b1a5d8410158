/* --log-ranks all: what each rank of this process does, in a file of its own. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/rank_logs.h"
#include "base/alloc.h"
#include "comm/tree.h"

static ls_status write_header(const ls_training_run *run, int device, ls_error *error)
{
    const ls_session *session = &run->session;
    const ls_processes_place *here = ls_session_place(session);
    return ls_rank_log_line(
        run->rank_logs[device], error,
        "rank %d of %d: device %d of process %d of %d (process number %lld) on %s, %d threads, "
        "%lld bytes of device memory, up to %lld samples a pass",
        run->report.rank + device, run->report.ranks, device, here->index, here->count,
        (long long)getpid(), ls_processes_host_name(session->processes, here->index),
        ls_cpu_device_threads(session->devices[device]),
        (long long)session->devices[device]->allocated_bytes,
        (long long)run->used.samples_per_pass);
}

ls_status ls_rank_logs_open(ls_training_run *run, ls_error *error)
{
    const ls_options *options = run->session.options;
    if (strcmp(options->log_ranks, "all") != 0) return LS_OK;
    LS_TRY(LS_NEW(run->rank_logs, run->session.device_count, "logs of ranks", error));
    for (int i = 0; i < run->session.device_count; i++) {
        LS_TRY(ls_rank_log_open(&run->rank_logs[i], options->output, run->report.rank + i, error));
        LS_TRY(write_header(run, i, error));
    }
    return LS_OK;
}

ls_status ls_rank_logs_step(ls_training_run *run, const ls_batch *batch, int64_t step,
                            const ls_step_result *result, ls_error *error)
{
    int64_t leaf = run->used.leaf_size, leaves = (batch->samples + leaf - 1) / leaf;
    for (int i = 0; run->rank_logs && i < run->session.device_count; i++) {
        ls_tree_range all = {0, run->programs.training.step_leaves, leaves};
        ls_tree_range range = ls_tree_share(all, run->report.ranks, run->report.rank + i);
        int64_t begin = range.begin * leaf, end = range.end * leaf;
        if (begin > batch->samples) begin = batch->samples;
        if (end > batch->samples) end = batch->samples;
        LS_TRY(ls_rank_log_line(run->rank_logs[i], error,
                                "step %lld: loss %.6g, gradient norm %.6g, learning rate %.6g, "
                                "%.6f s; own: %lld samples, %lld tokens",
                                (long long)step, result->loss, result->gradient_norm,
                                result->learning_rate, result->end - result->begin,
                                (long long)(end - begin),
                                (long long)(batch->offsets[end] - batch->offsets[begin])));
    }
    return LS_OK;
}

ls_status ls_rank_logs_line(ls_training_run *run, const char *line, ls_error *error)
{
    for (int i = 0; run->rank_logs && i < run->session.device_count; i++)
        LS_TRY(ls_rank_log_line(run->rank_logs[i], error, "%s", line));
    return LS_OK;
}

void ls_rank_logs_close(ls_training_run *run)
{
    for (int i = 0; run->rank_logs && i < run->session.device_count; i++)
        ls_rank_log_free(run->rank_logs[i]);
    ls_free(run->rank_logs);
    run->rank_logs = NULL;
}

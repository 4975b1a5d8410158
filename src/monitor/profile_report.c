/* summary.txt and summary.json. */
#include <math.h>
#include <stdio.h>

#include "base/numbers.h"
#include "monitor/profile_internal.h"

/* A rank's time a step, in milliseconds, of what all ranks took in all steps. */
static double milliseconds(const ls_profile *profile, int64_t nanoseconds)
{
    return 1e-6 * (double)nanoseconds / (double)profile->written_steps / profile->ranks;
}

static double whole_seconds(const ls_profile_summary *summary, const ls_profile *profile)
{
    return 1e-9 * (double)summary->nanoseconds * profile->ranks;
}

/* Where nothing took any time there is no rate. */
static double rate(double amount, int64_t nanoseconds)
{
    return nanoseconds > 0 ? 1e9 * amount / (double)nanoseconds : 0;
}

/* Of one rank's part of the machine's best, which is that of all its cores. */
static double share_of_peak(const ls_profile *profile, double reached, double peak)
{
    return reached / (peak / profile->ranks);
}

/* --- to read -----------------------------------------------------------------------------------
 */

static ls_status text_head(ls_text *text, const char *title, ls_error *error)
{
    return ls_text_print(text, error, "\n%-36s %7s %10s %7s %9s %8s %8s %8s\n", title, "calls",
                         "ms/step", "% time", "GFLOP/s", "GB/s", "% FLOP/s", "% GB/s");
}

static ls_status text_row(ls_text *text, const ls_profile_row *row,
                          const ls_profile_summary *summary, const ls_profile *profile,
                          ls_error *error)
{
    char name[40];
    int length = row->name_length < 0 ? 36 : row->name_length;
    double flops = rate(row->flops, row->nanoseconds), bytes = rate(row->bytes, row->nanoseconds);
    double computed = share_of_peak(profile, flops, summary->peak.flops_per_second);
    double moved = share_of_peak(profile, bytes, summary->peak.bytes_per_second);
    snprintf(name, sizeof name, "%.*s", length > 36 ? 36 : length, row->name);
    LS_TRY(ls_text_print(text, error, "%-36s %7lld %10.3f %7.1f %9.1f %8.1f %8.1f ", name,
                         (long long)row->calls, milliseconds(profile, row->nanoseconds),
                         1e-7 * (double)row->nanoseconds / whole_seconds(summary, profile),
                         1e-9 * flops, 1e-9 * bytes, 100 * computed));
    if (moved > 1) return ls_text_print(text, error, "%8s\n", "cached");
    return ls_text_print(text, error, "%8.1f\n", 100 * moved);
}

static ls_status text_rows(ls_text *text, const char *title, const ls_profile_row *rows,
                           int32_t count, const ls_profile_summary *summary,
                           const ls_profile *profile, ls_error *error)
{
    if (count == 0) return LS_OK;
    LS_TRY(text_head(text, title, error));
    for (int32_t i = 0; i < count; i++)
        LS_TRY(text_row(text, &rows[i], summary, profile, error));
    return LS_OK;
}

static ls_status text_waits(ls_text *text, const ls_profile_summary *summary, ls_error *error)
{
    if (summary->wait_count == 0) return LS_OK;
    LS_TRY(ls_text_print(text, error, "\n%-36s %7s %10s %10s\n", "longest waits", "rank", "step",
                         "ms"));
    for (int32_t i = 0; i < summary->wait_count; i++) {
        const ls_profile_wait *wait = &summary->waits[i];
        char name[40];
        snprintf(name, sizeof name, "%s%s%s", wait->name, wait->at ? ", " : "",
                 wait->at ? wait->at : "");
        LS_TRY(ls_text_print(text, error, "%-36s %7d %10lld %10.3f\n", name, wait->rank,
                             (long long)wait->step, 1e-6 * (double)wait->nanoseconds));
    }
    return LS_OK;
}

static ls_status text_ranks(ls_text *text, const ls_profile_summary *summary,
                            const ls_profile *profile, ls_error *error)
{
    int ranks = profile->ranks;
    double steps = (double)profile->written_steps;
    if (ranks == 1) return LS_OK;
    LS_TRY(ls_text_print(text, error, "\n%-36s %18s %18s\n", "rank", "computing ms/step",
                         "waiting ms/step"));
    for (int rank = 0; rank < ranks; rank++) {
        const char *host = ls_profile_host(profile, rank);
        char name[40];
        snprintf(name, sizeof name, "%d%s%.20s", rank, host ? " on " : "", host ? host : "");
        LS_TRY(ls_text_print(text, error, "%-36s %18.3f %18.3f%s\n", name,
                             1e-6 * (double)summary->ranks[rank].compute / steps,
                             1e-6 * (double)summary->ranks[rank].wait / steps,
                             rank == summary->straggler ? "  the others wait for it" : ""));
    }
    if (!ls_profile_host(profile, 0)) return LS_OK;
    return ls_text_print(text, error,
                         "\nTimes of different hosts compare within %.0f microseconds.\n",
                         1e6 * profile->clocks_within);
}

ls_status ls_profile_summary_text(const ls_profile_summary *summary, const ls_profile *profile,
                                  ls_text *text, ls_error *error)
{
    char what[300], option[300];
    const ls_profile_options *options = &profile->options;
    const ls_step_times *share = &summary->share;
    double seconds = 1e-9 * (double)summary->nanoseconds;
    ls_bottleneck_lines(summary, profile, what, option);
    LS_TRY(ls_text_print(
        text, error,
        "Steps %lld to %lld on %d device%s of %d thread%s: %.3f ms a step, %.0f tokens/s, "
        "%.1f GFLOP/s.\nThis machine's best: a product at %.1f GFLOP/s, a copy at %.1f GB/s.\n\n"
        "bottleneck: %s\ntry:        %s\n",
        (long long)profile->steps[0].step,
        (long long)profile->steps[profile->written_steps - 1].step, profile->ranks,
        profile->ranks == 1 ? "" : "s", options->threads, options->threads == 1 ? "" : "s",
        1e3 * seconds / (double)profile->written_steps, (double)summary->tokens / seconds,
        1e-9 * summary->flops / seconds, 1e-9 * summary->peak.flops_per_second,
        1e-9 * summary->peak.bytes_per_second, what, option));
    if (profile->left_out)
        LS_TRY(ls_text_print(text, error,
                             "The step has %lld spans more than trace.json has room for; they are "
                             "left out here too.\n",
                             (long long)profile->left_out));
    LS_TRY(ls_text_print(text, error,
                         "\nof the step: forward %.1f %%, backward %.1f %%, exchange %.1f %%, "
                         "optimizer %.1f %%, data %.1f %%\n",
                         100 * share->forward, 100 * share->backward, 100 * share->exchange,
                         100 * share->optimizer, 100 * share->data));
    LS_TRY(text_rows(text, "kind of op", summary->ops, summary->op_count, summary, profile, error));
    LS_TRY(
        text_rows(text, "layer", summary->layers, summary->layer_count, summary, profile, error));
    LS_TRY(text_rows(text, "beside the ops", summary->spans, summary->span_count, summary, profile,
                     error));
    LS_TRY(text_waits(text, summary, error));
    return text_ranks(text, summary, profile, error);
}

/* --- to compute with ---------------------------------------------------------------------------
 */

static ls_status put_number(ls_text *text, const char *key, double value, ls_error *error)
{
    char digits[LS_NUMBER_BYTES];
    bool finite = value - value == 0;
    return ls_text_print(text, error, ", \"%s\": %s", key,
                         finite ? ls_number_print(digits, value) : "null");
}

static ls_status put_string(ls_text *text, const char *key, const char *value, ls_error *error)
{
    LS_TRY(ls_text_print(text, error, ", \"%s\": ", key));
    return ls_text_json_string(text, value, error);
}

static ls_status json_row(ls_text *text, const char *key, const ls_profile_row *row,
                          const ls_profile_summary *summary, const ls_profile *profile,
                          ls_error *error)
{
    double flops = rate(row->flops, row->nanoseconds), bytes = rate(row->bytes, row->nanoseconds);
    double moved = share_of_peak(profile, bytes, summary->peak.bytes_per_second);
    int length = row->name_length < 0 ? 200 : row->name_length;
    LS_TRY(ls_text_print(text, error, "\n    {\"%s\": \"%.*s\", \"calls\": %lld", key, length,
                         row->name, (long long)row->calls));
    LS_TRY(put_number(text, "seconds", (double)row->nanoseconds / 1e9, error));
    LS_TRY(put_number(text, "share",
                      (double)row->nanoseconds / 1e9 / whole_seconds(summary, profile), error));
    LS_TRY(put_number(text, "flops", row->flops, error));
    LS_TRY(put_number(text, "bytes", row->bytes, error));
    LS_TRY(put_number(text, "flops_per_second", flops, error));
    LS_TRY(put_number(text, "bytes_per_second", bytes, error));
    LS_TRY(put_number(text, "share_of_peak_flops",
                      share_of_peak(profile, flops, summary->peak.flops_per_second), error));
    /* More than memory gives comes from a cache. */
    LS_TRY(put_number(text, "share_of_peak_bytes", moved > 1 ? NAN : moved, error));
    return ls_text_append(text, "}", 1, error);
}

static ls_status json_rows(ls_text *text, const char *title, const char *key,
                           const ls_profile_row *rows, int32_t count,
                           const ls_profile_summary *summary, const ls_profile *profile,
                           ls_error *error)
{
    LS_TRY(ls_text_print(text, error, ",\n  \"%s\": [", title));
    for (int32_t i = 0; i < count; i++) {
        if (i) LS_TRY(ls_text_append(text, ",", 1, error));
        LS_TRY(json_row(text, key, &rows[i], summary, profile, error));
    }
    return ls_text_print(text, error, "]");
}

static ls_status json_waits(ls_text *text, const ls_profile_summary *summary, ls_error *error)
{
    LS_TRY(ls_text_print(text, error, ",\n  \"waits\": ["));
    for (int32_t i = 0; i < summary->wait_count; i++) {
        const ls_profile_wait *wait = &summary->waits[i];
        LS_TRY(ls_text_print(text, error, "%s\n    {\"rank\": %d, \"step\": %lld", i ? "," : "",
                             wait->rank, (long long)wait->step));
        LS_TRY(put_string(text, "what", wait->name, error));
        if (wait->at) LS_TRY(put_string(text, "op", wait->at, error));
        LS_TRY(put_number(text, "seconds", (double)wait->nanoseconds / 1e9, error));
        LS_TRY(ls_text_append(text, "}", 1, error));
    }
    return ls_text_print(text, error, "]");
}

/* A rank's score is the fastest rank's computing time over its own: 1 for the fastest. */
static ls_status json_ranks(ls_text *text, const ls_profile_summary *summary,
                            const ls_profile *profile, ls_error *error)
{
    int64_t fastest = summary->ranks[0].compute;
    for (int rank = 1; rank < profile->ranks; rank++)
        if (summary->ranks[rank].compute < fastest) fastest = summary->ranks[rank].compute;
    LS_TRY(ls_text_print(text, error, ",\n  \"ranks\": ["));
    for (int rank = 0; rank < profile->ranks; rank++) {
        const ls_profile_rank *one = &summary->ranks[rank];
        LS_TRY(ls_text_print(text, error, "%s\n    {\"rank\": %d", rank ? "," : "", rank));
        if (ls_profile_host(profile, rank))
            LS_TRY(put_string(text, "host", ls_profile_host(profile, rank), error));
        LS_TRY(put_number(text, "compute_seconds", (double)one->compute / 1e9, error));
        LS_TRY(put_number(text, "wait_seconds", (double)one->wait / 1e9, error));
        LS_TRY(put_number(text, "score", one->compute ? (double)fastest / (double)one->compute : 1,
                          error));
        LS_TRY(ls_text_append(text, "}", 1, error));
    }
    if (summary->straggler < 0) return ls_text_print(text, error, "],\n  \"straggler\": null");
    return ls_text_print(text, error, "],\n  \"straggler\": %d", summary->straggler);
}

static ls_status json_shares(ls_text *text, const ls_profile_summary *summary, ls_error *error)
{
    const ls_step_times *share = &summary->share;
    char digits[LS_NUMBER_BYTES];
    LS_TRY(ls_text_print(text, error, ",\n  \"share\": {\"forward\": %s",
                         ls_number_print(digits, share->forward)));
    LS_TRY(put_number(text, "backward", share->backward, error));
    LS_TRY(put_number(text, "exchange", share->exchange, error));
    LS_TRY(put_number(text, "optimizer", share->optimizer, error));
    LS_TRY(put_number(text, "data", share->data, error));
    return ls_text_append(text, "}", 1, error);
}

static ls_status json_bottleneck(ls_text *text, const ls_profile_summary *summary,
                                 const ls_profile *profile, ls_error *error)
{
    char what[300], option[300];
    ls_bottleneck_lines(summary, profile, what, option);
    LS_TRY(ls_text_print(text, error, ",\n  \"bottleneck\": {\"name\": \"%s\"",
                         ls_bottleneck_name(summary->bottleneck)));
    LS_TRY(put_string(text, "text", what, error));
    LS_TRY(put_string(text, "try", option, error));
    for (ls_bottleneck i = 0; i < LS_BOTTLENECK_COUNT; i++)
        LS_TRY(put_number(text, ls_bottleneck_name(i), summary->bottlenecks[i], error));
    return ls_text_append(text, "}", 1, error);
}

ls_status ls_profile_summary_json(const ls_profile_summary *summary, const ls_profile *profile,
                                  ls_text *text, ls_error *error)
{
    const ls_profile_options *options = &profile->options;
    double seconds = (double)summary->nanoseconds / 1e9;
    LS_TRY(ls_text_print(text, error,
                         "{\n  \"first_step\": %lld, \"last_step\": %lld, \"ranks_count\": %d, "
                         "\"threads_a_rank\": %d, \"tokens\": %lld, \"spans_left_out\": %lld",
                         (long long)profile->steps[0].step,
                         (long long)profile->steps[profile->written_steps - 1].step, profile->ranks,
                         options->threads, (long long)summary->tokens,
                         (long long)profile->left_out));
    LS_TRY(put_number(text, "seconds", seconds, error));
    LS_TRY(put_number(text, "tokens_per_second", (double)summary->tokens / seconds, error));
    LS_TRY(put_number(text, "flops_per_second", summary->flops / seconds, error));
    LS_TRY(put_number(text, "peak_flops_per_second", summary->peak.flops_per_second, error));
    LS_TRY(put_number(text, "peak_bytes_per_second", summary->peak.bytes_per_second, error));
    LS_TRY(json_bottleneck(text, summary, profile, error));
    LS_TRY(json_shares(text, summary, error));
    LS_TRY(json_rows(text, "ops", "op", summary->ops, summary->op_count, summary, profile, error));
    LS_TRY(json_rows(text, "layers", "layer", summary->layers, summary->layer_count, summary,
                     profile, error));
    LS_TRY(json_rows(text, "spans", "what", summary->spans, summary->span_count, summary, profile,
                     error));
    LS_TRY(json_waits(text, summary, error));
    LS_TRY(json_ranks(text, summary, profile, error));
    return ls_text_print(text, error, "\n}\n");
}

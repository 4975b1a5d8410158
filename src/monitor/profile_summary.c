#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "monitor/profile_internal.h"

/* The slowest rank is a straggler where it computes this much longer than the others on average. */
static const double straggling = 1.1;

enum { SPAN_ROWS = sizeof((ls_profile_summary *)NULL)->spans / sizeof(ls_profile_row) };

/* "bert.encoder.layer.3" of "bert.encoder.layer.3.attention.self.query"; elsewhere the first two
 * names: "bert.embeddings", "bert.pooler", "classifier". */
static int32_t layer_length(const char *name)
{
    const char *layer = strstr(name, ".layer.");
    if (layer) {
        layer += strlen(".layer.");
        return (int32_t)(layer - name) + (int32_t)strspn(layer, "0123456789");
    }
    size_t first = strcspn(name, ".");
    bool parameter = strcmp(name + first, ".weight") == 0 || strcmp(name + first, ".bias") == 0;
    if (!name[first] || parameter) return (int32_t)first;
    return (int32_t)(first + 1 + strcspn(name + first + 1, "."));
}

static bool same_name(const ls_profile_row *row, const char *name, int32_t length)
{
    if (row->name_length != length) return false;
    return length < 0 ? strcmp(row->name, name) == 0
                      : strncmp(row->name, name, (size_t)length) == 0;
}

/* The row of that name, a new one at the end if there is none; the last one takes what finds no
 * room. */
static ls_profile_row *find_row(ls_profile_row *rows, int32_t *count, int32_t capacity,
                                const char *name, int32_t length)
{
    for (int32_t i = 0; i < *count; i++)
        if (same_name(&rows[i], name, length)) return &rows[i];
    if (*count == capacity) return &rows[capacity - 1];
    rows[*count] = (ls_profile_row){.name = name, .name_length = length};
    return &rows[(*count)++];
}

static void add_to(ls_profile_row *row, int64_t nanoseconds, ls_cost cost)
{
    row->calls++;
    row->nanoseconds += nanoseconds;
    row->flops += cost.flops;
    row->bytes += cost.bytes;
}

/* --- waits -------------------------------------------------------------------------------------
 */

static int64_t step_index(const ls_profile *profile, int rank, const ls_span *span)
{
    int64_t i = 0;
    while (i + 1 < profile->written_steps && span->begin >= ls_profile_step(profile, rank, i)->end)
        i++;
    return i;
}

static void note_wait(ls_profile_summary *summary, const ls_profile *profile, int rank,
                      const ls_span *span, int64_t nanoseconds)
{
    int32_t at = summary->wait_count;
    while (at > 0 && summary->waits[at - 1].nanoseconds < nanoseconds)
        at--;
    if (at == LS_PROFILE_WAITS) return;
    if (summary->wait_count < LS_PROFILE_WAITS) summary->wait_count++;
    memmove(&summary->waits[at + 1], &summary->waits[at],
            (size_t)(summary->wait_count - at - 1) * sizeof *summary->waits);
    const ls_op *op = ls_span_op(profile, span);
    summary->waits[at] =
        (ls_profile_wait){.name = span->name,
                          .at = op ? op->name : NULL,
                          .rank = rank,
                          .step = profile->steps[step_index(profile, rank, span)].step,
                          .nanoseconds = nanoseconds};
}

/* --- bottlenecks -------------------------------------------------------------------------------
 */

/* What bounds an op: the longer of the times that its FLOPs and its bytes take at this machine's
 * best. */
static ls_bottleneck bound_of(const ls_profile *profile, ls_cost cost)
{
    const ls_machine_peak *peak = &profile->options.peak;
    double computing = cost.flops / peak->flops_per_second;
    double moving = cost.bytes / peak->bytes_per_second;
    return moving > computing ? LS_BOTTLENECK_MEMORY_BANDWIDTH : LS_BOTTLENECK_COMPUTE;
}

/* The engine runs it, not the device: its time is waiting and moving, not computing. */
static bool is_moved(const ls_op *op)
{
    return ls_op_is_collective(op->kind) || ls_op_is_copy(op->kind);
}

static void add_op(ls_profile_summary *summary, const ls_profile *profile, int rank,
                   const ls_span *span, int64_t nanoseconds)
{
    const ls_op *op = ls_span_op(profile, span);
    ls_cost cost = ls_span_cost(profile, span);
    int32_t length = layer_length(op->name);
    add_to(find_row(summary->ops, &summary->op_count, LS_OP_COUNT, ls_op_name(op->kind), -1),
           nanoseconds, cost);
    add_to(find_row(summary->layers, &summary->layer_count,
                    profile->options.assembly->program->op_count, op->name, length),
           nanoseconds, cost);
    if (is_moved(op)) return;
    summary->flops += cost.flops;
    summary->bottlenecks[bound_of(profile, cost)] += (double)nanoseconds;
    if (op->segment != LS_SEGMENT_PASS) return;
    summary->ranks[rank].compute += nanoseconds;
    summary->computing[step_index(profile, rank, span) * profile->ranks + rank] += nanoseconds;
}

static void add_span(ls_profile_summary *summary, const ls_profile *profile, int rank,
                     ls_trace_thread thread, const ls_span *span)
{
    int64_t nanoseconds = ls_span_nanoseconds(profile, span);
    if (!span->name) {
        add_op(summary, profile, rank, span, nanoseconds);
        return;
    }
    add_to(find_row(summary->spans, &summary->span_count, SPAN_ROWS, span->name, -1), nanoseconds,
           (ls_cost){.bytes = (double)span->bytes});
    if (strncmp(span->name, "wait", 4) != 0) return;
    note_wait(summary, profile, rank, span, nanoseconds);
    if (thread == LS_TRACE_COMPUTE && strcmp(span->name, "wait for data") != 0)
        summary->ranks[rank].wait += nanoseconds;
}

static void add_times(ls_step_times *sum, const ls_step_times *times)
{
    sum->data += times->data;
    sum->forward += times->forward;
    sum->backward += times->backward;
    sum->exchange += times->exchange;
    sum->optimizer += times->optimizer;
}

/* On average over the processes, whose steps take the same time but for a moment. */
static void find_shares(ls_profile_summary *summary, const ls_profile *profile)
{
    ls_step_times sum = {0};
    double whole = 0;
    for (int64_t i = 0; i < profile->written_steps; i++) {
        for (int process = 0; process < profile->process_count; process++) {
            const ls_profiled_step *step = &profile->processes[process].steps[i];
            add_times(&sum, &step->times);
            whole += step->end - step->begin;
        }
        summary->nanoseconds += ls_profile_nanoseconds(profile, profile->steps[i].end) -
                                ls_profile_nanoseconds(profile, profile->steps[i].begin);
        summary->tokens += profile->steps[i].tokens;
    }
    summary->share = (ls_step_times){sum.data / whole, sum.forward / whole, sum.backward / whole,
                                     sum.exchange / whole, sum.optimizer / whole};
}

/* The slowest rank over all steps, if it is one that the others wait for. */
static int find_straggler(const ls_profile_summary *summary, int ranks)
{
    int slowest = 0;
    double sum = 0;
    for (int rank = 0; rank < ranks; rank++) {
        sum += (double)summary->ranks[rank].compute;
        if (summary->ranks[rank].compute > summary->ranks[slowest].compute) slowest = rank;
    }
    double most = (double)summary->ranks[slowest].compute;
    return ranks > 1 && most > straggling * (sum - most) / (ranks - 1) ? slowest : -1;
}

/* How much longer each step's slowest rank computes than its ranks do on average: the others wait
 * for it, whichever it is. */
static double find_imbalance(const ls_profile_summary *summary, const ls_profile *profile)
{
    int ranks = profile->ranks;
    double imbalance = 0;
    for (int64_t step = 0; step < profile->written_steps; step++) {
        const int64_t *computing = &summary->computing[step * ranks];
        double sum = 0, most = 0;
        for (int rank = 0; rank < ranks; rank++) {
            sum += (double)computing[rank];
            if ((double)computing[rank] > most) most = (double)computing[rank];
        }
        imbalance += most - sum / ranks;
    }
    return imbalance / (double)summary->nanoseconds;
}

/* Waiting that imbalance does not explain is communication. */
static void find_bottleneck(ls_profile_summary *summary, const ls_profile *profile)
{
    int ranks = profile->ranks;
    double *shares = summary->bottlenecks, whole = (double)summary->nanoseconds;
    double imbalance = find_imbalance(summary, profile), exchange = summary->share.exchange;
    summary->straggler = find_straggler(summary, ranks);
    shares[LS_BOTTLENECK_COMPUTE] /= whole * ranks;
    shares[LS_BOTTLENECK_MEMORY_BANDWIDTH] /= whole * ranks;
    shares[LS_BOTTLENECK_DATA] = summary->share.data;
    shares[LS_BOTTLENECK_IMBALANCE] = imbalance < exchange ? imbalance : exchange;
    shares[LS_BOTTLENECK_COMMUNICATION] = exchange - shares[LS_BOTTLENECK_IMBALANCE];
    summary->bottleneck = LS_BOTTLENECK_COMPUTE;
    for (ls_bottleneck i = 0; i < LS_BOTTLENECK_COUNT; i++)
        if (shares[i] > shares[summary->bottleneck]) summary->bottleneck = i;
}

static void raise_peak(ls_profile_summary *summary, const ls_profile_row *rows, int32_t count,
                       int ranks)
{
    for (int32_t i = 0; i < count; i++) {
        double seconds = 1e-9 * (double)rows[i].nanoseconds;
        double all = seconds > 0 ? ranks * rows[i].flops / seconds : 0;
        if (all > summary->peak.flops_per_second) summary->peak.flops_per_second = all;
    }
}

static int by_time(const void *left, const void *right)
{
    int64_t a = ((const ls_profile_row *)left)->nanoseconds;
    int64_t b = ((const ls_profile_row *)right)->nanoseconds;
    return a > b ? -1 : a < b;
}

ls_status ls_profile_summary_make(ls_profile_summary *summary, const ls_profile *profile,
                                  ls_error *error)
{
    int ranks = profile->ranks;
    *summary = (ls_profile_summary){0};
    LS_TRY(LS_NEW(summary->ranks, ranks, "profile", error));
    LS_TRY(LS_NEW(summary->computing, profile->written_steps * ranks, "profile", error));
    LS_TRY(LS_NEW(summary->layers, profile->options.assembly->program->op_count + 1, "profile",
                  error));
    for (int i = 0; i < ranks * LS_TRACE_THREAD_COUNT; i++) {
        const ls_profiled_track *one = &profile->tracks[i];
        for (int32_t s = 0; s < one->written; s++)
            add_span(summary, profile, i / LS_TRACE_THREAD_COUNT,
                     (ls_trace_thread)(i % LS_TRACE_THREAD_COUNT), &one->track->spans[s]);
    }
    summary->peak = profile->options.peak;
    raise_peak(summary, summary->ops, summary->op_count, ranks);
    raise_peak(summary, summary->layers, summary->layer_count, ranks);
    find_shares(summary, profile);
    find_bottleneck(summary, profile);
    qsort(summary->ops, (size_t)summary->op_count, sizeof *summary->ops, by_time);
    qsort(summary->spans, (size_t)summary->span_count, sizeof *summary->spans, by_time);
    return LS_OK;
}

void ls_profile_summary_deinit(ls_profile_summary *summary)
{
    ls_free(summary->layers);
    ls_free(summary->ranks);
    ls_free(summary->computing);
    *summary = (ls_profile_summary){0};
}

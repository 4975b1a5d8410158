/* trace.json: Google's Trace Event Format, "JSON object" form (Duca and Sinclair, "Trace Event
 * Format"): complete events "X", counters "C", names "M"; times in microseconds. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/numbers.h"
#include "monitor/profile_internal.h"

/* Room for the last event and the closing brackets. */
enum { ROOM_AT_END = 1 << 14 };

/* Perfetto takes thread 0 of any process for the idle thread, one for all: threads count from 1. */
enum { FIRST_THREAD = 1 };

/* Bytes of activations that live while an op runs: they grow with the tokens and the samples. */
typedef struct live_bytes {
    int64_t constant, a_token, a_sample;
} live_bytes;

typedef struct writer {
    ls_profile *profile;
    const ls_program *program;
    ls_text *text;
    live_bytes *live; /* [ops] */
    bool first_step;
} writer;

static ls_status put_microseconds(ls_text *text, const char *before, int64_t nanoseconds,
                                  ls_error *error)
{
    uint64_t size = nanoseconds < 0 ? -(uint64_t)nanoseconds : (uint64_t)nanoseconds;
    return ls_text_print(text, error, "%s%s%" PRIu64 ".%03d", before, nanoseconds < 0 ? "-" : "",
                         size / 1000, (int)(size % 1000));
}

/* --- memory ------------------------------------------------------------------------------------
 */

static void add_life(const writer *w, ls_value_id id, int32_t first, int32_t last)
{
    static const ls_extents none = {{1, 0, 0}}, token = {{1, 1, 0}}, sample = {{1, 0, 1}};
    const ls_value *value = ls_value_of(w->program, id);
    int64_t constant = ls_value_bytes(value, &none);
    for (int32_t i = first; i <= last; i++) {
        w->live[i].constant += constant;
        w->live[i].a_token += ls_value_bytes(value, &token) - constant;
        w->live[i].a_sample += ls_value_bytes(value, &sample) - constant;
    }
}

static void note_use(const writer *w, const ls_value_id *ids, int count, int32_t op, int32_t *first,
                     int32_t *last)
{
    for (int i = 0; i < count; i++) {
        if (ids[i] == LS_NO_VALUE) continue;
        ls_value_id held = ls_value_of(w->program, ids[i])->storage;
        if (last[held] < 0) first[held] = op;
        last[held] = op;
    }
}

/* From the op that writes a value's bytes to the last that uses them. */
static ls_status find_live(writer *w, ls_error *error)
{
    int32_t values = w->program->value_count, *first = NULL, *last = NULL;
    ls_status status;
    LS_TRY_GOTO(status, LS_NEW(first, values + 1, "trace", error), done);
    LS_TRY_GOTO(status, LS_NEW(last, values + 1, "trace", error), done);
    for (ls_value_id id = 0; id < values; id++)
        last[id] = -1;
    for (int32_t i = 0; i < w->program->op_count; i++) {
        const ls_op *op = &w->program->ops[i];
        note_use(w, op->inputs, LS_MAX_INPUTS, i, first, last);
        note_use(w, op->outputs, LS_MAX_OUTPUTS, i, first, last);
    }
    for (ls_value_id id = 0; id < values; id++)
        if (last[id] >= 0 && ls_value_of(w->program, id)->role == LS_ROLE_ACTIVATION)
            add_life(w, id, first[id], last[id]);
    status = LS_OK;
done:
    ls_free(first);
    ls_free(last);
    return status;
}

static ls_status put_memory(const writer *w, int rank, const ls_span *span, ls_error *error)
{
    const live_bytes *live = &w->live[span->op];
    const int64_t *planned = w->profile->options.assembly->plan.bytes;
    LS_TRY(ls_text_print(w->text, error, ",\n{\"ph\":\"C\",\"name\":\"device memory\",\"pid\":%d",
                         rank));
    LS_TRY(put_microseconds(w->text, ",\"ts\":", ls_profile_nanoseconds(w->profile, span->begin),
                            error));
    return ls_text_print(
        w->text, error,
        ",\"args\":{\"parameters\":%lld,\"gradients\":%lld,\"optimizer state\":%lld,"
        "\"activations\":%lld}}",
        (long long)planned[LS_PLAN_PARAMETERS], (long long)planned[LS_PLAN_GRADIENTS],
        (long long)planned[LS_PLAN_OPTIMIZER_STATE],
        (long long)(live->constant + live->a_token * span->tokens +
                    live->a_sample * span->samples));
}

/* --- spans -------------------------------------------------------------------------------------
 */

static ls_status put_shapes(const writer *w, const ls_value_id *ids, int count,
                            const ls_extents *extents, ls_error *error)
{
    bool first = true;
    for (int i = 0; i < count; i++) {
        if (ids[i] == LS_NO_VALUE) continue;
        const ls_value *value = ls_value_of(w->program, ids[i]);
        if (value->space != LS_SPACE_DEVICE || value->rank == 0) continue;
        LS_TRY(ls_text_print(w->text, error, "%s[", first ? "" : " "));
        for (int d = 0; d < value->rank; d++)
            LS_TRY(ls_text_print(w->text, error, "%s%lld", d ? "," : "",
                                 (long long)ls_dimension_size(value->shape[d], extents)));
        LS_TRY(ls_text_append(w->text, "]", 1, error));
        first = false;
    }
    return LS_OK;
}

static const char *category(const ls_op *op)
{
    if (op->segment == LS_SEGMENT_UPDATE) return "optimizer";
    if (op->segment == LS_SEGMENT_EXCHANGE) return "exchange";
    return op->backward ? "backward" : "forward";
}

static ls_status put_op(const writer *w, const ls_span *span, const ls_op *op, ls_error *error)
{
    ls_cost cost = ls_span_cost(w->profile, span);
    ls_extents extents = ls_span_extents(span);
    LS_TRY(ls_text_print(w->text, error, ",\"args\":{\"layer\":"));
    LS_TRY(ls_text_json_string(w->text, op->name, error));
    LS_TRY(ls_text_print(w->text, error, ",\"shapes\":\""));
    LS_TRY(put_shapes(w, op->inputs, LS_MAX_INPUTS, &extents, error));
    LS_TRY(ls_text_print(w->text, error, " -> "));
    LS_TRY(put_shapes(w, op->outputs, LS_MAX_OUTPUTS, &extents, error));
    return ls_text_print(w->text, error, "\",\"flops\":%.0f,\"bytes\":%.0f}", cost.flops,
                         cost.bytes);
}

static ls_status put_arguments(const writer *w, const ls_span *span, ls_error *error)
{
    const ls_op *op = ls_span_op(w->profile, span);
    if (op && !span->name) return put_op(w, span, op, error);
    LS_TRY(ls_text_print(w->text, error, ",\"args\":{\"bytes\":%lld", (long long)span->bytes));
    if (op) {
        LS_TRY(ls_text_print(w->text, error, ",\"op\":"));
        LS_TRY(ls_text_json_string(w->text, op->name, error));
    }
    if (span->samples) LS_TRY(ls_text_print(w->text, error, ",\"samples\":%d", span->samples));
    return ls_text_append(w->text, "}", 1, error);
}

static ls_status put_span(const writer *w, int rank, int thread, const ls_span *span,
                          ls_error *error)
{
    static const char *const others[LS_TRACE_THREAD_COUNT] = {"wait", "communication", "copy",
                                                              "data", "communication"};
    const ls_op *op = ls_span_op(w->profile, span);
    LS_TRY(ls_text_print(w->text, error, ",\n{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"%s\"",
                         span->name ? span->name : ls_op_name(op->kind),
                         span->name ? others[thread] : category(op)));
    LS_TRY(ls_text_print(w->text, error, ",\"pid\":%d,\"tid\":%d", rank, FIRST_THREAD + thread));
    LS_TRY(put_microseconds(w->text, ",\"ts\":", ls_profile_nanoseconds(w->profile, span->begin),
                            error));
    LS_TRY(put_microseconds(w->text, ",\"dur\":", ls_span_nanoseconds(w->profile, span), error));
    LS_TRY(put_arguments(w, span, error));
    LS_TRY(ls_text_append(w->text, "}", 1, error));
    bool of_pass = !span->name && op->segment == LS_SEGMENT_PASS;
    return of_pass ? put_memory(w, rank, span, error) : LS_OK;
}

static bool is_full(const writer *w)
{
    return (int64_t)w->text->length > w->profile->options.limit_bytes - ROOM_AT_END;
}

/* A track's spans up to the step's end. */
static ls_status put_track(const writer *w, int index, double end, ls_error *error)
{
    ls_profiled_track *one = &w->profile->tracks[index];
    int rank = index / LS_TRACE_THREAD_COUNT, thread = index % LS_TRACE_THREAD_COUNT;
    while (one->written < one->track->count && one->track->spans[one->written].begin < end) {
        if (is_full(w)) break;
        LS_TRY(put_span(w, rank, thread, &one->track->spans[one->written], error));
        one->written++;
    }
    if (!w->first_step) return LS_OK;
    for (int32_t i = one->written; i < one->track->count && one->track->spans[i].begin < end; i++)
        w->profile->left_out++;
    return LS_OK;
}

/* --- steps -------------------------------------------------------------------------------------
 */

static ls_status put_step_names(const writer *w, int64_t index, ls_error *error)
{
    for (int rank = 0; rank < w->profile->ranks; rank++) {
        const ls_profiled_step *step = ls_profile_step(w->profile, rank, index);
        int64_t begin = ls_profile_nanoseconds(w->profile, step->begin);
        int64_t end = ls_profile_nanoseconds(w->profile, step->end);
        LS_TRY(ls_text_print(w->text, error,
                             ",\n{\"ph\":\"X\",\"name\":\"step %lld\",\"cat\":\"step\",\"pid\":%d,"
                             "\"tid\":%d",
                             (long long)step->step, rank, FIRST_THREAD + LS_TRACE_COMPUTE));
        LS_TRY(put_microseconds(w->text, ",\"ts\":", begin, error));
        LS_TRY(put_microseconds(w->text, ",\"dur\":", end - begin, error));
        LS_TRY(
            ls_text_print(w->text, error, ",\"args\":{\"tokens\":%lld}}", (long long)step->tokens));
    }
    return LS_OK;
}

/* What a rank's process took of the machine during the step. */
static ls_status put_usage(const writer *w, int rank, int64_t index, ls_error *error)
{
    const ls_profiled_step *step = ls_profile_step(w->profile, rank, index);
    LS_TRY(ls_text_print(w->text, error, ",\n{\"ph\":\"C\",\"name\":\"host memory\",\"pid\":%d",
                         rank));
    LS_TRY(put_microseconds(w->text, ",\"ts\":", ls_profile_nanoseconds(w->profile, step->end),
                            error));
    LS_TRY(ls_text_print(w->text, error, ",\"args\":{\"resident\":%lld}}",
                         (long long)step->usage.resident_bytes));
    if (index == 0) return LS_OK;
    const ls_profiled_step *former = step - 1;
    double passed = step->end - former->end;
    double cores = (step->usage.cpu_seconds - former->usage.cpu_seconds) / passed;
    char digits[LS_NUMBER_BYTES];
    LS_TRY(
        ls_text_print(w->text, error, ",\n{\"ph\":\"C\",\"name\":\"cores busy\",\"pid\":%d", rank));
    LS_TRY(put_microseconds(w->text, ",\"ts\":", ls_profile_nanoseconds(w->profile, former->end),
                            error));
    return ls_text_print(w->text, error, ",\"args\":{\"cores\":%s}}",
                         ls_number_print(digits, (double)(int64_t)(cores * 1000 + 0.5) / 1000));
}

/* False, and nothing of it in the text, if a step but the first does not fit. */
static ls_status put_step(writer *w, int64_t index, bool *fits, ls_error *error)
{
    ls_profile *profile = w->profile;
    int tracks = profile->ranks * LS_TRACE_THREAD_COUNT;
    size_t length = w->text->length;
    w->first_step = index == 0;
    for (int i = 0; i < tracks; i++)
        profile->tracks[i].written_before = profile->tracks[i].written;
    LS_TRY(put_step_names(w, index, error));
    for (int rank = 0; rank < profile->ranks; rank += profile->options.devices)
        LS_TRY(put_usage(w, rank, index, error));
    for (int i = 0; i < tracks; i++) {
        const ls_profiled_step *step = ls_profile_step(profile, i / LS_TRACE_THREAD_COUNT, index);
        LS_TRY(put_track(w, i, step->end, error));
    }
    *fits = !is_full(w) || index == 0;
    if (*fits) {
        profile->written_steps++;
        return LS_OK;
    }
    w->text->length = length;
    for (int i = 0; i < tracks; i++)
        profile->tracks[i].written = profile->tracks[i].written_before;
    return LS_OK;
}

static bool has_spans(const ls_profile *profile, int rank, int thread)
{
    return profile->tracks[rank * LS_TRACE_THREAD_COUNT + thread].track->count > 0;
}

static ls_status put_names(const writer *w, ls_error *error)
{
    static const char *const threads[LS_TRACE_THREAD_COUNT] = {
        "compute", "communication", "copies", "data reading", "gathers between hosts"};
    const ls_profile_options *options = &w->profile->options;
    for (int rank = 0; rank < w->profile->ranks; rank++) {
        const char *host = ls_profile_host(w->profile, rank);
        LS_TRY(
            ls_text_print(w->text, error,
                          "%s\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"args\":{"
                          "\"name\":\"rank %d%s%s (cpu, %d thread%s)\"}},\n{\"ph\":\"M\",\"name\":"
                          "\"process_sort_index\",\"pid\":%d,\"args\":{\"sort_index\":%d}}",
                          rank ? "," : "", rank, rank, host ? " on " : "", host ? host : "",
                          options->threads, options->threads == 1 ? "" : "s", rank, rank));
        for (int thread = 0; thread < LS_TRACE_THREAD_COUNT; thread++) {
            if (thread == LS_TRACE_DATA && rank % options->devices > 0) continue;
            if (thread == LS_TRACE_GATHERS && !has_spans(w->profile, rank, thread)) continue;
            LS_TRY(ls_text_print(w->text, error,
                                 ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%d,"
                                 "\"args\":{\"name\":\"%s\"}}",
                                 rank, FIRST_THREAD + thread, threads[thread]));
        }
    }
    return LS_OK;
}

static ls_status put_all(writer *w, ls_error *error)
{
    ls_profile *profile = w->profile;
    bool fits = true;
    LS_TRY(ls_text_print(w->text, error, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":["));
    LS_TRY(put_names(w, error));
    for (int64_t i = 0; i < profile->step_count && fits; i++)
        LS_TRY(put_step(w, i, &fits, error));
    return ls_text_print(w->text, error,
                         "\n],\"otherData\":{\"first_step\":\"%lld\",\"last_step\":\"%lld\","
                         "\"spans_left_out\":\"%lld\",\"clocks_within_microseconds\":\"%.1f\"}}\n",
                         (long long)profile->steps[0].step,
                         (long long)profile->steps[profile->written_steps - 1].step,
                         (long long)profile->left_out, 1e6 * profile->clocks_within);
}

/* Reading starts before the steps do. */
static double find_origin(const ls_profile *profile)
{
    double origin = profile->steps[0].begin;
    for (int rank = 0; rank < profile->ranks; rank++) {
        int index = rank * LS_TRACE_THREAD_COUNT + LS_TRACE_DATA;
        const ls_track *data = profile->tracks[index].track;
        origin = fmin(origin, ls_profile_step(profile, rank, 0)->begin);
        if (data->count) origin = fmin(origin, data->spans[0].begin);
    }
    return origin;
}

ls_status ls_trace_file_text(ls_profile *profile, ls_text *text, ls_error *error)
{
    writer w = {.profile = profile, .program = profile->options.assembly->program, .text = text};
    for (int i = 0; i < profile->ranks * LS_TRACE_THREAD_COUNT; i++)
        profile->tracks[i].written = 0;
    profile->written_steps = profile->left_out = 0;
    profile->origin = find_origin(profile);
    ls_status status = LS_NEW(w.live, w.program->op_count + 1, "trace", error);
    if (status == LS_OK) status = find_live(&w, error);
    if (status == LS_OK) status = put_all(&w, error);
    ls_free(w.live);
    return status;
}

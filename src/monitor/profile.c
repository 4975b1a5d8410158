#include "monitor/profile_internal.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/files.h"

/* No trace of 20 MB holds more spans, or more steps; a rank gets its part. */
enum { MOST_SPANS = 100000, MOST_STEPS = 10000, MOST_PASSES = 4096 };

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Room on one track: what the program does in all steps, but no more than its part of a file. One
 * step always has room, up to the limit on passes. */
static int64_t find_capacity(const ls_profile *profile)
{
    const ls_assembly *assembly = profile->options.assembly;
    int64_t passes = 1 + assembly->step_token_capacity / assembly->token_capacity;
    int64_t step = least(passes, MOST_PASSES) * assembly->program->op_count + 16;
    int64_t part = MOST_SPANS / profile->ranks;
    int64_t wanted = least(step, MOST_SPANS) * profile->step_capacity;
    return least(wanted, part > step ? part : least(step, MOST_SPANS));
}

ls_status ls_profile_new(ls_profile **out, const ls_profile_options *options, ls_error *error)
{
    ls_profile *profile = NULL;
    ls_status status;
    LS_TRY(LS_NEW(profile, 1, "profile", error));
    profile->options = *options;
    if (options->limit_bytes == 0) profile->options.limit_bytes = LS_TRACE_FILE_BYTES;
    profile->process_count = options->processes ? ls_processes_here(options->processes)->count : 1;
    profile->ranks = profile->process_count * options->devices;
    profile->step_capacity = least(options->last_step - options->first_step + 1, MOST_STEPS);
    LS_TRY_GOTO(status, LS_NEW(profile->steps, profile->step_capacity, "profile", error), fail);
    LS_TRY_GOTO(status,
                LS_NEW(profile->tracks, profile->ranks * LS_TRACE_THREAD_COUNT, "profile", error),
                fail);
    LS_TRY_GOTO(status, LS_NEW(profile->processes, profile->process_count, "profile", error), fail);
    LS_TRY_GOTO(status,
                ls_trace_new(&profile->trace, options->devices, find_capacity(profile), error),
                fail);
    profile->processes[0].steps = profile->steps;
    for (int i = 0; i < options->devices * LS_TRACE_THREAD_COUNT; i++)
        profile->tracks[i].track = ls_trace_track(profile->trace, i / LS_TRACE_THREAD_COUNT,
                                                  (ls_trace_thread)(i % LS_TRACE_THREAD_COUNT));
    *out = profile;
    return LS_OK;
fail:
    ls_profile_free(profile);
    return status;
}

void ls_profile_free(ls_profile *profile)
{
    if (!profile) return;
    ls_trace_free(profile->trace);
    ls_free(profile->steps);
    ls_free(profile->processes);
    ls_free(profile->tracks);
    ls_free(profile->gathered);
    ls_free(profile->messages);
    ls_free(profile);
}

ls_trace *ls_profile_trace(ls_profile *profile)
{
    return profile ? profile->trace : NULL;
}

void ls_profile_step_begin(ls_profile *profile, int64_t step)
{
    if (!profile) return;
    const ls_profile_options *options = &profile->options;
    profile->step = step;
    profile->recording = step >= options->first_step && step <= options->last_step &&
                         profile->step_count < profile->step_capacity;
    if (profile->recording) ls_trace_step_begin(profile->trace);
}

void ls_profile_waited(ls_profile *profile, double begin, double end)
{
    if (!profile || !profile->recording) return;
    ls_span span = {.name = "wait for data", .begin = begin, .end = end, .op = LS_TRACE_NO_OP};
    ls_track_add(ls_trace_track(profile->trace, 0, LS_TRACE_COMPUTE), &span);
}

void ls_profile_step_end(ls_profile *profile, const ls_step_result *result,
                         const ls_step_times *times, double begin, int64_t tokens)
{
    if (!profile || !profile->recording) return;
    bool whole = ls_trace_step_end(profile->trace);
    if (!whole && profile->step_count > 0) return;
    profile->steps[profile->step_count++] = (ls_profiled_step){
        .step = profile->step,
        .tokens = tokens,
        .begin = begin,
        .end = result->end,
        .times = *times,
        .usage = ls_usage_now(),
    };
}

bool ls_profile_is_due(ls_profile *profile)
{
    if (!profile || profile->done || profile->step < profile->options.last_step) return false;
    profile->done = true;
    ls_trace_close(profile->trace);
    return profile->step_count > 0;
}

const char *ls_profile_host(const ls_profile *profile, int rank)
{
    const ls_processes *processes = profile->options.processes;
    if (!processes || ls_processes_here(processes)->hosts == 1) return NULL;
    return ls_processes_host_name(processes, ls_profile_process(profile, rank));
}

const ls_op *ls_span_op(const ls_profile *profile, const ls_span *span)
{
    return span->op == LS_TRACE_NO_OP ? NULL : &profile->options.assembly->program->ops[span->op];
}

ls_extents ls_span_extents(const ls_span *span)
{
    return (ls_extents){{1, span->tokens, span->samples}};
}

ls_cost ls_span_cost(const ls_profile *profile, const ls_span *span)
{
    const ls_program *program = profile->options.assembly->program;
    const ls_op *op = ls_span_op(profile, span);
    ls_extents extents = ls_span_extents(span);
    return op ? program->definitions[op->kind]->cost(program, op, &extents) : (ls_cost){0};
}

static ls_status write_file(const char *folder, const char *name, const ls_text *text,
                            ls_error *error)
{
    char *path = NULL;
    LS_TRY(ls_path_join(&path, folder, name, error));
    ls_status status = ls_file_write(path, text->data, text->length, error);
    ls_free(path);
    return status;
}

static ls_status write_trace(ls_profile *profile, ls_error *error)
{
    ls_text text = {0};
    ls_status status = ls_trace_file_text(profile, &text, error);
    if (status == LS_OK) status = write_file(profile->options.folder, "trace.json", &text, error);
    ls_text_deinit(&text);
    return status;
}

static ls_status write_summary(const ls_profile *profile, ls_error *error)
{
    const char *folder = profile->options.folder;
    ls_profile_summary summary = {0};
    ls_text text = {0};
    ls_status status;
    LS_TRY_GOTO(status, ls_profile_summary_make(&summary, profile, error), done);
    LS_TRY_GOTO(status, ls_profile_summary_json(&summary, profile, &text, error), done);
    LS_TRY_GOTO(status, write_file(folder, "summary.json", &text, error), done);
    ls_text_clear(&text);
    LS_TRY_GOTO(status, ls_profile_summary_text(&summary, profile, &text, error), done);
    status = write_file(folder, "summary.txt", &text, error);
done:
    ls_text_deinit(&text);
    ls_profile_summary_deinit(&summary);
    return status;
}

ls_status ls_profile_write(ls_profile *profile, char notes[400], ls_error *error)
{
    const ls_profile_options *options = &profile->options;
    LS_TRY(ls_folder_make(options->folder, error));
    LS_TRY(write_trace(profile, error));
    LS_TRY(write_summary(profile, error));
    int64_t wanted = options->last_step - options->first_step + 1;
    *notes = '\0';
    if (profile->left_out)
        snprintf(
            notes, 400,
            "profile: step %lld has more than fits into %s/trace.json: %lld spans are left out",
            (long long)profile->steps[0].step, options->folder, (long long)profile->left_out);
    else if (profile->written_steps < wanted)
        snprintf(notes, 400, "profile: steps %lld to %lld are in %s/trace.json, more do not fit",
                 (long long)profile->steps[0].step,
                 (long long)profile->steps[profile->written_steps - 1].step, options->folder);
    return LS_OK;
}

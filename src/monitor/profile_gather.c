/* What every process has recorded, brought to the first one, on its clock. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "monitor/profile_internal.h"

enum { MOST_NAMES = 32, NAME_BYTES = 32, CLOCK_ROUNDS = 16 };

static const char task[] = "the profile";

/* A process's message: this, [devices][LS_TRACE_THREAD_COUNT] counts of spans, its steps, and the
 * spans of its tracks one after the other. Their names are addresses in its memory: they travel as
 * places in `names`. All processes are the same program on the same kind of machine. */
typedef struct message_head {
    int64_t step_count;
    int64_t cores;
    int32_t shares_cores, name_count;
    ls_machine_peak peak;
    char names[MOST_NAMES][NAME_BYTES];
} message_head;

static int64_t tracks_of(const ls_profile *profile)
{
    return (int64_t)profile->options.devices * LS_TRACE_THREAD_COUNT;
}

static int64_t message_bytes(const ls_profile *profile)
{
    int64_t spans = 0;
    for (int64_t i = 0; i < tracks_of(profile); i++)
        spans += profile->tracks[i].track->count;
    return (int64_t)sizeof(message_head) + tracks_of(profile) * (int64_t)sizeof(int64_t) +
           profile->step_count * (int64_t)sizeof(ls_profiled_step) +
           spans * (int64_t)sizeof(ls_span);
}

/* Where it stands among the names, 1 for the first; 0 for an op, whose name is its kind's. */
static uintptr_t name_number(message_head *head, const char *name)
{
    if (!name) return 0;
    int32_t i = 0;
    while (i < head->name_count && strncmp(head->names[i], name, NAME_BYTES - 1) != 0)
        i++;
    if (i == MOST_NAMES) return MOST_NAMES;
    if (i == head->name_count) {
        snprintf(head->names[i], NAME_BYTES, "%s", name);
        head->name_count++;
    }
    return (uintptr_t)i + 1;
}

static void pack(const ls_profile *profile, char *message)
{
    message_head *head = (message_head *)message;
    int64_t *counts = (int64_t *)(head + 1);
    ls_profiled_step *steps = (ls_profiled_step *)(counts + tracks_of(profile));
    ls_span *spans = (ls_span *)(steps + profile->step_count);
    *head = (message_head){
        .step_count = profile->step_count,
        .cores = profile->options.cores,
        .shares_cores = ls_processes_here(profile->options.processes)->shares_cores,
        .peak = profile->options.peak,
    };
    memcpy(steps, profile->processes[0].steps,
           (size_t)profile->step_count * sizeof(ls_profiled_step));
    for (int64_t i = 0; i < tracks_of(profile); i++) {
        const ls_track *track = profile->tracks[i].track;
        counts[i] = track->count;
        for (int64_t s = 0; s < counts[i]; s++, spans++) {
            *spans = track->spans[s];
            spans->name = (const char *)name_number(head, spans->name);
        }
    }
}

/* Of each process, [processes]. */
typedef struct gathering {
    ls_processes *processes;
    int64_t *sizes;  /* of its message */
    double *reading; /* of its clock */
    double *ahead;   /* what its clock is to be moved by, to show this process's time */
    double *within;  /* that is right to this, in seconds */
    int64_t bytes;   /* room for any message */
    char *own;       /* this process's */
} gathering;

/* A process reads its clock between the end of one round, which needs what this one sent before it,
 * and the end of the next, which this one sees later: each round bounds the difference from both
 * sides. */
static ls_status compare_clocks(gathering *g, int count, ls_error *error)
{
    double *least = g->ahead, *most = g->within, sent = -INFINITY;
    for (int i = 0; i < count; i++)
        least[i] = -INFINITY, most[i] = INFINITY;
    for (int round = 0; round < CLOCK_ROUNDS; round++) {
        double now = ls_seconds();
        LS_TRY(ls_processes_gather(g->processes, &now, sizeof now, g->reading, task, error));
        double after = ls_seconds();
        for (int i = 0; i < count; i++) {
            least[i] = fmax(least[i], sent - g->reading[i]);
            most[i] = fmin(most[i], after - g->reading[i]);
        }
        sent = now;
    }
    for (int i = 0; i < count; i++) {
        double from = least[i], to = most[i];
        g->ahead[i] = (from + to) / 2;
        g->within[i] = (to - from) / 2;
    }
    return LS_OK;
}

/* Take a process's message in, which stays where it is. */
static void unpack(ls_profile *profile, int process, char *message, double ahead)
{
    message_head *head = (message_head *)message;
    int64_t *counts = (int64_t *)(head + 1);
    ls_profiled_step *steps = (ls_profiled_step *)(counts + tracks_of(profile));
    ls_span *spans = (ls_span *)(steps + head->step_count);
    for (int64_t i = 0; i < head->step_count; i++) {
        steps[i].begin += ahead;
        steps[i].end += ahead;
    }
    profile->processes[process].steps = steps;
    for (int64_t i = 0; i < tracks_of(profile); i++) {
        int64_t index = process * tracks_of(profile) + i;
        ls_track *track = &profile->gathered[index];
        *track = (ls_track){.spans = spans, .count = (int)counts[i]};
        profile->tracks[index].track = track;
        for (int64_t s = 0; s < counts[i]; s++, spans++) {
            uintptr_t number = (uintptr_t)spans->name;
            spans->name = number ? head->names[number - 1] : NULL;
            spans->begin += ahead;
            spans->end += ahead;
        }
    }
}

/* Cores that processes share count once a host. */
static void add_up_machines(ls_profile *profile, int64_t bytes)
{
    const int *first = ls_processes_host_first(profile->options.processes);
    int hosts = ls_processes_here(profile->options.processes)->hosts;
    ls_profile_options *options = &profile->options;
    options->peak = (ls_machine_peak){0};
    options->cores = 0;
    for (int host = 0; host < hosts; host++)
        for (int i = first[host]; i < first[host + 1]; i++) {
            const message_head *head = (const message_head *)(profile->messages + i * bytes);
            options->peak.flops_per_second += head->peak.flops_per_second;
            options->peak.bytes_per_second += head->peak.bytes_per_second;
            if (i == first[host] || !head->shares_cores) options->cores += (int)head->cores;
        }
}

static ls_status take_all(ls_profile *profile, const gathering *g, ls_error *error)
{
    int on_this_host = ls_processes_host_first(g->processes)[1];
    LS_TRY(LS_NEW(profile->gathered, profile->ranks * LS_TRACE_THREAD_COUNT, "profile", error));
    for (int i = 0; i < profile->process_count; i++) {
        char *message = profile->messages + i * g->bytes;
        bool far = i >= on_this_host; /* a host has one clock */
        unpack(profile, i, message, far ? g->ahead[i] : 0);
        if (far) profile->clocks_within = fmax(profile->clocks_within, g->within[i]);
        /* One that ran out of room ended the recording for all. */
        int64_t count = ((const message_head *)message)->step_count;
        if (count < profile->step_count) profile->step_count = count;
    }
    add_up_machines(profile, g->bytes);
    return LS_OK;
}

static ls_status make_room(ls_profile *profile, gathering *g, ls_error *error)
{
    int count = profile->process_count;
    int64_t mine = message_bytes(profile);
    LS_TRY(ls_processes_gather(g->processes, &mine, sizeof mine, g->sizes, task, error));
    for (int i = 0; i < count; i++)
        if (g->sizes[i] > g->bytes) g->bytes = g->sizes[i];
    ls_status status = LS_NEW(g->own, g->bytes, "profile", error);
    if (status == LS_OK) status = LS_NEW(profile->messages, g->bytes * count, "profile", error);
    return ls_processes_agree(g->processes, status, task, error);
}

static ls_status gather(ls_profile *profile, gathering *g, ls_error *error)
{
    LS_TRY(make_room(profile, g, error));
    pack(profile, g->own);
    LS_TRY(ls_processes_gather(g->processes, g->own, g->bytes, profile->messages, task, error));
    LS_TRY(compare_clocks(g, profile->process_count, error));
    return ls_processes_here(g->processes)->index == 0 ? take_all(profile, g, error) : LS_OK;
}

ls_status ls_profile_gather(ls_profile *profile, ls_error *error)
{
    int count = profile->process_count;
    gathering g = {.processes = profile->options.processes};
    double *numbers = NULL; /* [3][processes] */
    if (count == 1) return LS_OK;
    ls_status status = LS_NEW(g.sizes, count, "profile", error);
    if (status == LS_OK) status = LS_NEW(numbers, 3 * count, "profile", error);
    g.reading = numbers;
    g.ahead = numbers + count;
    g.within = numbers + 2 * count;
    status = ls_processes_agree(g.processes, status, task, error);
    if (status == LS_OK) status = gather(profile, &g, error);
    ls_free(g.sizes);
    ls_free(numbers);
    ls_free(g.own);
    return status;
}

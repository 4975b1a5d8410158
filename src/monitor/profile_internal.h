/* What the files of a profile share. */
#ifndef LS_MONITOR_PROFILE_INTERNAL_H
#define LS_MONITOR_PROFILE_INTERNAL_H

#include "base/text.h"
#include "monitor/profile.h"

typedef struct ls_profiled_step {
    int64_t step, tokens;
    double begin, end; /* ls_seconds */
    ls_step_times times;
    ls_usage usage; /* at the end */
} ls_profiled_step;

/* A track's spans that are in the file, and how far the writer is with it. */
typedef struct ls_profiled_track {
    const ls_track *track;
    int32_t written, written_before; /* written_before: without the step that is being written */
} ls_profiled_track;

/* Each process ends a step by its own clock. */
typedef struct ls_profiled_process {
    const ls_profiled_step *steps; /* [step_count] */
} ls_profiled_process;

struct ls_profile {
    ls_profile_options options;
    int ranks, process_count; /* ranks: of all processes */
    ls_trace *trace;          /* of this process's ranks */
    ls_profiled_step *steps;  /* [step_capacity] this process's */
    int64_t step_count, step_capacity;
    int64_t step;                   /* that goes on */
    bool recording;                 /* it is recorded */
    bool done;                      /* ls_profile_is_due has said so */
    ls_profiled_process *processes; /* [process_count] */
    ls_profiled_track *tracks;      /* [ranks][LS_TRACE_THREAD_COUNT] */
    /* On the first of several processes, after gathering: */
    ls_track *gathered;   /* [ranks][LS_TRACE_THREAD_COUNT] */
    char *messages;       /* what steps and spans of all processes lie in */
    double clocks_within; /* seconds that clocks of hosts may still differ by */
    /* Filled in by ls_trace_file_text: */
    int64_t written_steps;
    int64_t left_out; /* spans of the first step, when it alone is too large */
    double origin;    /* ls_seconds at 0 in the file */
};

/* trace.json, and which spans are in it. */
ls_status ls_trace_file_text(ls_profile *profile, ls_text *text, ls_error *error) LS_MUST_CHECK;

static inline int ls_profile_process(const ls_profile *profile, int rank)
{
    return rank / profile->options.devices;
}
/* A step as the rank's process went through it. */
static inline const ls_profiled_step *ls_profile_step(const ls_profile *profile, int rank,
                                                      int64_t index)
{
    return &profile->processes[ls_profile_process(profile, rank)].steps[index];
}

/* Of the rank's host, where there are several; NULL on the only one. */
const char *ls_profile_host(const ls_profile *profile, int rank);

/* A time of the file, in nanoseconds; what is summed up is sums of these. */
static inline int64_t ls_profile_nanoseconds(const ls_profile *profile, double seconds)
{
    double since = (seconds - profile->origin) * 1e9;
    return (int64_t)(since < 0 ? since - 0.5 : since + 0.5);
}
static inline int64_t ls_span_nanoseconds(const ls_profile *profile, const ls_span *span)
{
    return ls_profile_nanoseconds(profile, span->end) -
           ls_profile_nanoseconds(profile, span->begin);
}

/* Of an op in the pass that the span was in. */
ls_cost ls_span_cost(const ls_profile *profile, const ls_span *span);
const ls_op *ls_span_op(const ls_profile *profile, const ls_span *span); /* NULL: none */
ls_extents ls_span_extents(const ls_span *span);

/* --- the summary -------------------------------------------------------------------------------
 */

/* Spans of one kind, over all ranks and steps. */
typedef struct ls_profile_row {
    const char *name;
    int32_t name_length; /* -1: all of it */
    int64_t calls, nanoseconds;
    double flops, bytes;
} ls_profile_row;

enum { LS_PROFILE_WAITS = 10 };
typedef struct ls_profile_wait {
    const char *name, *at; /* at: the op, or NULL */
    int rank;
    int64_t step, nanoseconds;
} ls_profile_wait;

typedef struct ls_profile_rank {
    int64_t compute, wait; /* nanoseconds in ops of the passes, and waiting for exchanges */
} ls_profile_rank;

typedef enum ls_bottleneck {
    LS_BOTTLENECK_COMPUTE,
    LS_BOTTLENECK_MEMORY_BANDWIDTH,
    LS_BOTTLENECK_COMMUNICATION,
    LS_BOTTLENECK_DATA,
    LS_BOTTLENECK_IMBALANCE,
    LS_BOTTLENECK_COUNT
} ls_bottleneck;

typedef struct ls_profile_summary {
    ls_profile_row ops[LS_OP_COUNT]; /* in the order of their time; op_count are used */
    int32_t op_count;
    ls_profile_row *layers; /* the same, in the program's order */
    int32_t layer_count;
    ls_profile_row spans[16]; /* what is no op: waits, copies, buckets */
    int32_t span_count;
    ls_profile_wait waits[LS_PROFILE_WAITS]; /* longest first */
    int32_t wait_count;
    ls_profile_rank *ranks; /* [ranks] */
    int64_t *computing;     /* [steps][ranks] nanoseconds in ops of the passes */
    int straggler;          /* rank, -1 for none */
    int64_t nanoseconds;    /* of the steps */
    int64_t tokens;
    double flops; /* of passes and updates */
    /* As it was measured, but no less than what a kind of op or a layer did: the measurement may
     * have had less of the machine than the steps. */
    ls_machine_peak peak;
    ls_step_times share;
    double bottlenecks[LS_BOTTLENECK_COUNT]; /* share of the step's time */
    ls_bottleneck bottleneck;
} ls_profile_summary;

/* Of the spans in the file. */
ls_status ls_profile_summary_make(ls_profile_summary *summary, const ls_profile *profile,
                                  ls_error *error) LS_MUST_CHECK;
void ls_profile_summary_deinit(ls_profile_summary *summary);

ls_status ls_profile_summary_text(const ls_profile_summary *summary, const ls_profile *profile,
                                  ls_text *text, ls_error *error) LS_MUST_CHECK;
ls_status ls_profile_summary_json(const ls_profile_summary *summary, const ls_profile *profile,
                                  ls_text *text, ls_error *error) LS_MUST_CHECK;
const char *ls_bottleneck_name(ls_bottleneck bottleneck);
/* One line each: what bounds the run, and what to try. */
void ls_bottleneck_lines(const ls_profile_summary *summary, const ls_profile *profile,
                         char what[300], char option[300]);

#endif

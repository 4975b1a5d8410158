/* What each rank's threads did and when: spans, written into memory that is taken before the run.
 *
 * One thread writes a track, and only while the recording is on: off, a call is one test. Who
 * records says what a span means; monitor/trace_file.c turns them into a file. */
#ifndef LS_BASE_TRACE_H
#define LS_BASE_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* The tracks of a rank. */
typedef enum ls_trace_thread {
    LS_TRACE_COMPUTE,
    LS_TRACE_COMMUNICATION,
    LS_TRACE_COPIES,  /* what is written to the device for a pass, done by the compute thread */
    LS_TRACE_DATA,    /* the thread that reads ahead; one a process, with the first rank */
    LS_TRACE_GATHERS, /* of communication, where these have a thread of their own */
    LS_TRACE_THREAD_COUNT
} ls_trace_thread;

enum { LS_TRACE_NO_OP = -1 };

typedef struct ls_span {
    const char *name;        /* static text, "wait for exchanges"; NULL: an op of the program */
    double begin, end;       /* ls_seconds */
    int32_t op;              /* index into the program's ops, LS_TRACE_NO_OP where there is none */
    int32_t tokens, samples; /* of the pass; 0 where it has no say */
    int64_t bytes;           /* moved; 0: not counted here */
} ls_span;

typedef struct ls_track {
    const atomic_bool *on;
    ls_span *spans;   /* [capacity] */
    atomic_int count; /* published after the span: a reader may look while it grows */
    int32_t capacity;
    int32_t step_begin; /* count when the present step began */
    bool full;          /* a span found no room */
} ls_track;

typedef struct ls_trace ls_trace;

/* `ranks` times LS_TRACE_THREAD_COUNT tracks with room for `capacity` spans each. */
ls_status ls_trace_new(ls_trace **out, int ranks, int64_t capacity, ls_error *error) LS_MUST_CHECK;
void ls_trace_free(ls_trace *trace); /* NULL is allowed */
/* NULL for no trace: everything below takes that for "do not record". */
ls_track *ls_trace_track(ls_trace *trace, int rank, ls_trace_thread thread);

/* Between steps, while no rank works. The data track goes on from the first step to the close, as
 * its thread works between steps too. A step that found no room on one of the ranks' tracks is
 * taken back from all of them, unless it was the first; then, and ever after, nothing is recorded:
 * false. */
void ls_trace_step_begin(ls_trace *trace);
bool ls_trace_step_end(ls_trace *trace);
void ls_trace_close(ls_trace *trace);

static inline bool ls_track_is_on(const ls_track *track)
{
    return track && atomic_load_explicit(track->on, memory_order_relaxed);
}
void ls_track_add(ls_track *track, const ls_span *span); /* does nothing while it is off */

#endif

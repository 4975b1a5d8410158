/* A pool of threads that runs one task at a time, cut into parts with fixed borders.
 *
 * Which thread runs a part never changes a result: parts write disjoint memory and a part's own
 * order of operations does not depend on the number of parts' owners. */
#ifndef LS_BASE_THREADS_H
#define LS_BASE_THREADS_H

#include <stdint.h>

#include "base/status.h"

typedef struct ls_threads ls_threads;

/* `count` threads in all, the caller's included; count 1 starts none. Every worker rounds to
 * nearest and flushes denormals; the calling thread does so inside ls_threads_run. */
ls_status ls_threads_new(ls_threads **out, int count, ls_error *error) LS_MUST_CHECK;
void ls_threads_free(ls_threads *threads);
int ls_threads_count(const ls_threads *threads);

/* Run part 0 .. parts-1, each once, on all threads; returns when all are done. Parts are handed
 * out in order as threads become free. `thread` is 0 .. count-1: an index for scratch memory. */
typedef void (*ls_part_function)(void *context, int64_t part, int thread);
void ls_threads_run(ls_threads *threads, int64_t parts, ls_part_function function, void *context);

/* Hardware threads, by the system's numbers, that a thread may run on. topology.h parts them. */
enum { LS_MOST_CORES = 1024 };
typedef struct ls_cores {
    uint64_t bits[LS_MOST_CORES / 64]; /* bit i of word w: number 64 w + i */
} ls_cores;
ls_cores ls_cores_own(void); /* of the calling thread: its affinity mask */
/* Keep the calling thread, or the threads that a pool has started, on these cores. Where the system
 * refuses they stay where they are: only speed depends on it. */
void ls_cores_bind(const ls_cores *cores);
void ls_threads_bind(ls_threads *threads, const ls_cores *cores);

/* Round to nearest, denormals flushed to zero (x86: MXCSR); returns the former state. */
uint32_t ls_float_mode_enter(void);
void ls_float_mode_leave(uint32_t former);

#endif

/* A profile of some steps: what each rank's threads did, as a Chrome trace and as a summary.
 *
 *   FOLDER/trace.json     opens in Perfetto (ui.perfetto.dev) and chrome://tracing; below 20 MB
 *   FOLDER/summary.json   by kind of op, layer and rank: time, share, rates; waits, the bottleneck
 *   FOLDER/summary.txt    the same to read
 *
 * All memory for recording is taken beforehand; both files are made from the same spans, so that
 * their totals are equal. Every process records its ranks; the first one gathers and writes. */
#ifndef LS_MONITOR_PROFILE_H
#define LS_MONITOR_PROFILE_H

#include "base/trace.h"
#include "base/usage.h"
#include "comm/processes.h"
#include "engine/assembly.h"
#include "engine/machine_peak.h"
#include "engine/trainer.h"

typedef struct ls_profile ls_profile;

typedef struct ls_profile_options {
    const char *folder;            /* made if it is not there */
    const ls_assembly *assembly;   /* borrowed: whose ops the spans name */
    int64_t first_step, last_step; /* both recorded */
    int devices;                   /* ranks of this process, and of every other */
    int threads, cores;            /* threads: of a rank; cores: that this process may have */
    ls_machine_peak peak;          /* of all threads of this process */
    ls_processes *processes;       /* borrowed; NULL: this is the only one */
    int64_t limit_bytes;           /* of trace.json; 0: LS_TRACE_FILE_BYTES */
} ls_profile_options;

enum { LS_TRACE_FILE_BYTES = 20 * 1000 * 1000 };

ls_status ls_profile_new(ls_profile **out, const ls_profile_options *options,
                         ls_error *error) LS_MUST_CHECK;
void ls_profile_free(ls_profile *profile); /* NULL is allowed */
ls_trace *ls_profile_trace(ls_profile *profile);

/* Around each step, also those that are not recorded; between them `ls_profile_waited` adds the
 * time that the first rank waited for its batch. NULL does nothing. */
void ls_profile_step_begin(ls_profile *profile, int64_t step);
void ls_profile_waited(ls_profile *profile, double begin, double end);
void ls_profile_step_end(ls_profile *profile, const ls_step_result *result,
                         const ls_step_times *times, double begin, int64_t tokens);

/* True once, on all processes, after the last step that was to be recorded. */
bool ls_profile_is_due(ls_profile *profile);
/* Then: bring what all processes recorded to the first one. Collective. */
ls_status ls_profile_gather(ls_profile *profile, ls_error *error) LS_MUST_CHECK;
/* On the first process: write it. `notes`: what to tell the user, a line, or "". */
ls_status ls_profile_write(ls_profile *profile, char notes[400], ls_error *error) LS_MUST_CHECK;

#endif

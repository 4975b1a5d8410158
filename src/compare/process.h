/* One program run to its end, its output in a file. */
#ifndef LS_COMPARE_PROCESS_H
#define LS_COMPARE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct ls_process_result {
    int exit_status;    /* -1: ended by a signal */
    int signal;         /* 0: ended by itself */
    int64_t peak_bytes; /* most resident memory */
} ls_process_result;

/* Run words[0] with all `words` (ended by NULL): standard input empty, standard output and error to
 * the new file `log`. It has a process group of its own, so that a terminal's Ctrl-C reaches the
 * caller only, and is ended if the caller dies. While it runs should_stop (NULL allowed) is asked;
 * true: SIGTERM, SIGKILL after three seconds, and LS_INTERRUPTED once it is gone. How it ended is
 * in *result; only what keeps it from starting is an error. */
ls_status ls_process_run(ls_process_result *result, const char *const *words, const char *log,
                         bool (*should_stop)(void *context), void *context,
                         ls_error *error) LS_MUST_CHECK;

/* Why it ended, for people: its last line that begins with "lockstep: ", else the signal by name or
 * the exit status. */
void ls_process_reason(char *into, size_t bytes, const ls_process_result *result, const char *log);

#endif

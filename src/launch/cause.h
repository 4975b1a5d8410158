/* Why a run ended: the first thing that went wrong, out of what mpirun says about it. */
#ifndef LS_LAUNCH_CAUSE_H
#define LS_LAUNCH_CAUSE_H

#include <stdbool.h>

#include "base/status.h"
#include "base/text.h"
#include "launch/output.h"

typedef enum ls_cause_kind {
    LS_CAUSE_NONE,      /* the run ended as it should */
    LS_CAUSE_EXITED,    /* a rank ended with a status above 0 */
    LS_CAUSE_KILLED,    /* a rank was ended by a signal */
    LS_CAUSE_HOST_LOST, /* a host no longer answers */
    LS_CAUSE_LAUNCHER,  /* mpirun was ended by a signal, or started nothing */
} ls_cause_kind;

typedef struct ls_cause {
    ls_cause_kind kind;
    int rank; /* -1 where it is not known */
    char host[LS_HOST_NAME_BYTES];
    int signal, code;
} ls_cause;

/* From mpirun's text and its wait status (as of waitpid). Without MPI the text is empty and the
 * status is that of rank 0. */
void ls_cause_find(ls_cause *cause, const ls_output *output, int ranks, bool direct,
                   int wait_status);

/* The exit status of the whole run: the rank's own, 4 where a rank or host was lost, 1 where mpirun
 * failed. */
int ls_cause_exit_status(const ls_cause *cause);
/* Whether starting again can help: a rank or a host was lost, nothing was wrong with the input. */
bool ls_cause_is_loss(const ls_cause *cause);
/* "rank 1 on alpha was ended by SIGKILL (Killed); its last line: ...", one line without its end. */
ls_status ls_cause_print(const ls_cause *cause, const ls_output *output, ls_text *text,
                         ls_error *error) LS_MUST_CHECK;
/* "SIGKILL"; "signal 40" for one without a name. Writes and returns `into`. */
enum { LS_SIGNAL_BYTES = 32 };
const char *ls_signal_print(char into[LS_SIGNAL_BYTES], int signal);

#endif

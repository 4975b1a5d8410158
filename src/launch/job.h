/* One run of a command under guard: its output passed on, the terminal's signals turned into what
 * the run understands. */
#ifndef LS_LAUNCH_JOB_H
#define LS_LAUNCH_JOB_H

#include <stdbool.h>

#include "base/status.h"
#include "launch/output.h"
#include "launch/words.h"

/* What the user asked for by SIGINT, SIGTERM, SIGHUP or SIGUSR1. */
typedef struct ls_interrupts {
    int descriptor; /* of signalfd */
    int count;      /* 1: finish the step; 2: end at once */
    int last;       /* the signal */
} ls_interrupts;

/* From now on these signals come through the descriptor only. */
ls_status ls_interrupts_open(ls_interrupts *interrupts, ls_error *error) LS_MUST_CHECK;
void ls_interrupts_close(ls_interrupts *interrupts);
/* Sleep, or return sooner when one has come. */
void ls_interrupts_wait(ls_interrupts *interrupts, double seconds);

typedef struct ls_job {
    const ls_words *words, *environment;
    int stop_signal; /* SIGUSR1 under mpirun, SIGTERM for one process */
    ls_output *output;
} ls_job;

/* Runs until nothing of it is left. The wait status is that of words[0]. */
ls_status ls_job_run(const ls_job *job, ls_interrupts *interrupts, int *wait_status,
                     ls_error *error) LS_MUST_CHECK;

#endif

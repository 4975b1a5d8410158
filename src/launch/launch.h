/* Start a lockstep command on several processes, on this machine or many, and see it through. */
#ifndef LS_LAUNCH_LAUNCH_H
#define LS_LAUNCH_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

typedef struct ls_launch_options {
    int processes;          /* at least 1 */
    const char *hosts;      /* a host file; NULL: this machine */
    int max_restarts;       /* after a rank or host was lost */
    int min_processes;      /* with fewer the run is given up; 0: no fewer than `processes` */
    bool dry_run;           /* print the ranks and the command line, start nothing */
    const char *program;    /* what to run on each rank, a path; NULL: this program */
    char *const *arguments; /* of the program: "train", ... */
    size_t argument_count;
    const char *output; /* the folder in which the run's progress shows; NULL if none */
} ls_launch_options;

/* Runs to the end, with all restarts. Prints the ranks, notes and the first cause of a failure on
 * standard error. *exit_status is the run's own, 4 after a loss, 128 + signal after a second
 * interrupt. An error is one of launching itself. */
ls_status ls_launch(const ls_launch_options *options, int *exit_status,
                    ls_error *error) LS_MUST_CHECK;

/* `lockstep launch-rank WORDS...`, see rank.h. */
ls_status ls_launch_rank(char *const *words, ls_error *error) LS_MUST_CHECK;

#endif

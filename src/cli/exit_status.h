/* Exit statuses, and the one way in which errors reach the user. */
#ifndef LS_CLI_EXIT_STATUS_H
#define LS_CLI_EXIT_STATUS_H

#include "lockstep.h"

enum {
    LS_EXIT_DONE = 0,
    LS_EXIT_FAILED = 1,      /* bad input, or the run failed */
    LS_EXIT_USAGE = 2,       /* the command line, or an illegal combination of settings */
    LS_EXIT_SOME_FAILED = 3, /* compare: the others are there */
    LS_EXIT_LOST = 4,        /* a rank was lost, or kept the others waiting for too long */
    LS_EXIT_NOT_FINITE = 5,
    LS_EXIT_DIFFERENT = 6, /* verify, an audit or compare found a difference */
    LS_EXIT_STOPPED = 75,  /* by a signal, with the model written */
};

int ls_exit_status(ls_status status);

/* Print "lockstep: TEXT" on standard error unless all is well; returns the exit status. */
int ls_exit_report(ls_status status, const ls_error *error);

/* Fill *error as the library does, for what the program itself finds. Returns `status`. */
ls_status ls_complain(ls_error *error, ls_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif

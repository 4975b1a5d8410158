/* A program and all that it starts, held together so that nothing of it outlives this process.
 *
 * A guard process stands between: it has no terminal, so that Ctrl-C reaches nobody but us, and all
 * orphans below it become its children. When we end, in whatever way, it notices and ends them all;
 * should it be killed itself, the program is killed with it. */
#ifndef LS_LAUNCH_GUARD_H
#define LS_LAUNCH_GUARD_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/status.h"
#include "launch/words.h"

typedef struct ls_guard {
    pid_t pid;
    int control;    /* we write */
    int report;     /* the guard writes once, when nothing is left */
    int streams[2]; /* the program's standard output and error, for reading */
} ls_guard;

typedef struct ls_guard_report {
    int exec_error; /* errno, if the program could not be started */
    int wait_status;
} ls_guard_report;

/* Start words[0], looked for along PATH, with NAME=VALUE settings added to the environment. Its
 * input is /dev/null. `stop_signal` is what ls_guard_stop sends to it. */
ls_status ls_guard_start(ls_guard *guard, const ls_words *words, const ls_words *environment,
                         int stop_signal, ls_error *error) LS_MUST_CHECK;
void ls_guard_stop(const ls_guard *guard); /* ask the program to finish */
/* End everything: SIGTERM to the program, which lets mpirun end its ranks on other hosts, then
 * SIGKILL to what is left after two seconds. The report comes when nothing is. */
void ls_guard_end(const ls_guard *guard);
/* Read the report, once `report` is readable; LS_IO if the guard was killed. */
ls_status ls_guard_read(const ls_guard *guard, ls_guard_report *report,
                        ls_error *error) LS_MUST_CHECK;
/* Close all ends and wait for the guard. Where the program still runs it is ended first. */
void ls_guard_close(ls_guard *guard);

#endif

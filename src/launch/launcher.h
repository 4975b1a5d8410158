/* mpirun: which one there is, and the command line that starts a run the right way. */
#ifndef LS_LAUNCH_LAUNCHER_H
#define LS_LAUNCH_LAUNCHER_H

#include "base/status.h"
#include "launch/layout.h"
#include "launch/words.h"

typedef enum ls_launcher_kind {
    LS_LAUNCHER_DIRECT, /* one process, no MPI */
    LS_LAUNCHER_OPENMPI,
    LS_LAUNCHER_MPICH /* Hydra, also that of MPICH's descendants */
} ls_launcher_kind;

typedef struct ls_launcher {
    ls_launcher_kind kind;
    char program[32]; /* as found along PATH */
    char version[32];
} ls_launcher;

/* Kind and version from what a program says to --version. Any other is LS_UNSUPPORTED with its
 * first words. */
ls_status ls_launcher_recognise(ls_launcher *launcher, const char *text,
                                ls_error *error) LS_MUST_CHECK;
/* The first of mpirun, mpiexec and mpiexec.hydra along PATH; none is LS_UNSUPPORTED with the
 * package to install. */
ls_status ls_launcher_find(ls_launcher *launcher, ls_error *error) LS_MUST_CHECK;
const char *ls_launcher_name(const ls_launcher *launcher); /* "Open MPI", "MPICH" */

/* What starts `command` (program and arguments) on every rank of the layout. `self` is this
 * program's path: it binds each rank to its cores (rank.h). `environment` gets NAME=VALUE settings
 * to add to ours. `oversubscribed`: more processes than cores here. */
typedef struct ls_launcher_job {
    const ls_layout *layout;
    const char *self;
    const ls_words *command;
    bool oversubscribed;
} ls_launcher_job;
ls_status ls_launcher_compose(const ls_launcher *launcher, const ls_launcher_job *job,
                              ls_words *words, ls_words *environment,
                              ls_error *error) LS_MUST_CHECK;

/* The program by which hosts are reached, ssh unless Open MPI's settings name another. */
const char *ls_launcher_agent(void);

#endif

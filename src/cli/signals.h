/* SIGINT, SIGTERM and SIGUSR1, which mpirun passes on: the first asks the run to stop after its
 * step, a second ends it at once. */
#ifndef LS_CLI_SIGNALS_H
#define LS_CLI_SIGNALS_H

#include <stdbool.h>

void ls_signals_install(void);
bool ls_signals_stop_requested(void *context); /* for ls_callbacks.should_stop */

#endif

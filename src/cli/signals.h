/* SIGINT and SIGTERM: the first asks the run to stop after its step, a second ends it at once.
 *
 * Under mpirun SIGUSR1, which it forwards to all processes, asks them to stop after their step;
 * SIGTERM is what it sends to those that are left when one is gone: the run ends without it. */
#ifndef LS_CLI_SIGNALS_H
#define LS_CLI_SIGNALS_H

#include <stdbool.h>

void ls_signals_install(void);
void ls_signals_end(void); /* all is said: what mpirun still sends changes nothing */
bool ls_signals_stop_requested(void *context); /* for ls_callbacks.should_stop */
bool ls_signals_peer_is_gone(void *context);   /* for ls_callbacks.peer_is_gone */

#endif

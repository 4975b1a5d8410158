/* Attempt after attempt until the run has ended, cannot be helped, or gets nowhere. */
#ifndef LS_LAUNCH_SUPERVISOR_H
#define LS_LAUNCH_SUPERVISOR_H

#include "base/status.h"
#include "launch/attempt.h"

ls_status ls_supervise(const ls_launch_context *context, int *exit_status,
                       ls_error *error) LS_MUST_CHECK;

/* Seconds to wait after so many restarts before the next one: 1, 2, 4, ... 60. */
double ls_restart_delay(int restarts);

/* The hosts of `all` that a program can be run on now, by the agent ("ssh"); this machine always
 * is. Deinit `left` in any case. */
ls_status ls_hosts_alive(const ls_hosts *all, const char *agent, ls_hosts *left,
                         ls_error *error) LS_MUST_CHECK;

#endif

/* Run a short helper program and keep what it says. */
#ifndef LS_LAUNCH_CAPTURE_H
#define LS_LAUNCH_CAPTURE_H

#include <stddef.h>

#include "base/status.h"

/* The first bytes of standard output and error together, NUL-terminated, and the wait status. A
 * program that runs longer than `seconds` is killed (and its status says so). Input is /dev/null.
 * What cannot be started is LS_IO. */
ls_status ls_capture(char *const *words, double seconds, char *into, size_t bytes, int *wait_status,
                     ls_error *error) LS_MUST_CHECK;

#endif

/* A run that is too large for its devices: how large, and the smallest change that would fit. */
#ifndef LS_API_FITTING_H
#define LS_API_FITTING_H

#include "api/session.h"
#include "engine/memory.h"

/* LS_NO_MEMORY with the table's figures of what was asked for and the flags to add or change:
 * the fewest changes, and of as many the first in the order of samples a pass, recompute, a
 * strategy that divides more, offload to the host, to a disk, more devices, shorter rows. Not what
 * it takes when the search itself runs out of memory. */
ls_status ls_fitting_refuse(const ls_session *session, const ls_run_memory_options *memory,
                            ls_error *error) LS_MUST_CHECK;

#endif

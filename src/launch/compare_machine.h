/* The machine that a comparison ran on. */
#ifndef LS_LAUNCH_COMPARE_MACHINE_H
#define LS_LAUNCH_COMPARE_MACHINE_H

#include "launch/compare.h"

/* Cores that this process may run on. */
ls_status ls_compare_core_count(int64_t *count, ls_error *error) LS_MUST_CHECK;

/* Names and sizes from /proc and uname; what the system does not tell is "" or 0. Then half a
 * second of adding one large array to another on `threads` threads: the best pass gives
 * bytes_per_second, two reads and a write an element. Without memory for the arrays it is NaN. */
void ls_compare_machine_look(ls_compare_machine *machine, int64_t cores, int64_t threads);

#endif

/* The machine that a comparison ran on. */
#ifndef LS_COMPARE_MACHINE_H
#define LS_COMPARE_MACHINE_H

#include "compare/compare.h"

/* Cores that this process may run on. */
ls_status ls_compare_core_count(int64_t *count, ls_error *error) LS_MUST_CHECK;

/* Half a second of adding one large array to another on machine->bandwidth_threads threads, two
 * reads and a write an element: the best pass raises bytes_per_second. Without memory for the
 * arrays nothing happens. */
void ls_compare_machine_measure(ls_compare_machine *machine);

/* Names and sizes from /proc and uname; what the system does not tell is "" or 0. bytes_per_second
 * is NaN until it is measured. */
void ls_compare_machine_look(ls_compare_machine *machine, int64_t cores, int64_t threads);

#endif

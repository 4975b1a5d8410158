/* The texts of progress, apart from when and where they are shown. */
#ifndef LS_CLI_PROGRESS_LINE_H
#define LS_CLI_PROGRESS_LINE_H

#include <stddef.h>

#include "lockstep.h"

/* One line of at most `columns` columns: bar, step, loss, learning rate, gradient norm, tokens a
 * second, time left. What matters least is left out first where the terminal is narrow. */
void ls_progress_live_line(char *into, size_t bytes, int columns, const ls_step_report *report);

/* The same for a log: everything, in words. */
void ls_progress_plain_line(char *into, size_t bytes, const ls_step_report *report);

/* "step 5/12  data 0.1 ms  forward 20.3 ms  ...": where the time of this step went. */
void ls_progress_breakdown_line(char *into, size_t bytes, const ls_step_report *report);

/* "reading train.tsv 45 %", or without percentage where the total is not known. */
void ls_progress_stage_line(char *into, size_t bytes, int columns, const char *what, int64_t done,
                            int64_t total);

int ls_progress_percent(int64_t done, int64_t total); /* 0 .. 100, rounded down */

#endif

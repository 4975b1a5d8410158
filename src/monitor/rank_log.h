/* rank-N.log in the output folder: what one rank has done, a line at a time. */
#ifndef LS_MONITOR_RANK_LOG_H
#define LS_MONITOR_RANK_LOG_H

#include "base/status.h"

typedef struct ls_rank_log ls_rank_log;

/* Empties the file of a former run. */
ls_status ls_rank_log_open(ls_rank_log **out, const char *folder, int rank,
                           ls_error *error) LS_MUST_CHECK;
void ls_rank_log_free(ls_rank_log *log); /* NULL is allowed */

/* One line of up to 1,000 bytes, in one write; allocates nothing. */
ls_status ls_rank_log_line(ls_rank_log *log, ls_error *error, const char *format, ...)
    LS_PRINTF(3, 4) LS_MUST_CHECK;

#endif

/* A log for each rank of this process. */
#ifndef LS_API_RANK_LOGS_H
#define LS_API_RANK_LOGS_H

#include "api/training_run.h"

/* With --log-ranks all, after the start: open a log for each rank of the process, write its lines,
 * close it. Without that setting these do nothing. */
ls_status ls_rank_logs_open(ls_training_run *run, ls_error *error) LS_MUST_CHECK;
ls_status ls_rank_logs_step(ls_training_run *run, const ls_batch *batch, int64_t step,
                            const ls_step_result *result, ls_error *error) LS_MUST_CHECK;
ls_status ls_rank_logs_line(ls_training_run *run, const char *line, ls_error *error) LS_MUST_CHECK;
void ls_rank_logs_close(ls_training_run *run);

#endif

/* A file a metric, in the layout of DeepSpeed's csv_monitor: FOLDER/JOB/Train_Samples_lr.csv with
 * the header "step,lr", where the first column counts samples, not steps
 * (deepspeed/monitor/csv_monitor.py; names: docs/code-docs/source/monitor.rst of DeepSpeed). */
#ifndef LS_MONITOR_CSV_H
#define LS_MONITOR_CSV_H

#include "monitor/sink.h"

/* Makes the folder if it is not there. `keep`: write after what is in the files. */
ls_status ls_csv_open(ls_sink **out, const char *folder, const char *job_name, bool keep,
                      ls_error *error) LS_MUST_CHECK;

#endif

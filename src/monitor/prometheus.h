/* The run's present numbers in Prometheus' text format, for the textfile collector of a node
 * exporter: the file is written whole under another name and renamed, at most once a second
 * (prometheus.io/docs/instrumenting/exposition_formats, version 0.0.4). */
#ifndef LS_MONITOR_PROMETHEUS_H
#define LS_MONITOR_PROMETHEUS_H

#include "monitor/sink.h"

/* `run`: the value of the label of that name, which tells the files of several runs apart. The
 * first file is written here, with what is known before the first step: nothing but the run. */
ls_status ls_prometheus_open(ls_sink **out, const char *path, const char *run,
                             ls_error *error) LS_MUST_CHECK;

#endif

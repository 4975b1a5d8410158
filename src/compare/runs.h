/* The runs of a comparison, one process each: command lines, folders, reasons. */
#ifndef LS_COMPARE_RUNS_H
#define LS_COMPARE_RUNS_H

#include "compare/compare.h"
#include "compare/folder.h"

/* Steps of a timing run that do not count: memory is touched, caches fill. As many as run.json
 * leaves out of its own numbers. */
enum { LS_COMPARE_WARM_UP_STEPS = 3 };

/* A full run of `row` with a seed, evaluations included: fills the next of row->seeds, with the
 * first one row->full too. Its run.json, metrics.jsonl, profile/ and log are kept below the folder.
 * A run that fails sets the row's state and reason and is LS_OK; LS_INTERRUPTED and what keeps the
 * comparison itself from going on are errors. */
ls_status ls_compare_run_full(const ls_compare_options *options, const ls_compare_folder *folder,
                              ls_compare_row *row, int64_t seed, ls_error *error) LS_MUST_CHECK;

/* A short run without evaluation: fills the next of row->rounds. */
ls_status ls_compare_run_timing(const ls_compare_options *options, const ls_compare_folder *folder,
                                ls_compare_row *row, ls_error *error) LS_MUST_CHECK;

/* Steps of a full run at this batch size, so that all see as many samples; -1: as many as the
 * epochs have. */
int64_t ls_compare_steps(const ls_compare_options *options, int64_t batch_size);

#endif

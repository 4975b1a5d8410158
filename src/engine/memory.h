/* How many samples go through a pass, and what a run needs of a device's memory. */
#ifndef LS_ENGINE_MEMORY_H
#define LS_ENGINE_MEMORY_H

#include "base/text.h"
#include "engine/assembly.h"

/* A training program and, beside it, the evaluation program that shares its activation memory. */
typedef struct ls_run_programs {
    ls_assembly training, evaluation;
} ls_run_programs;

typedef struct ls_run_memory_options {
    ls_assembly_options training; /* samples_per_pass: the caller's wish, see below */
    int64_t samples_per_pass;     /* a number, LS_SAMPLES_ALL or LS_SAMPLES_AUTO */
    int64_t evaluation_longest_row;
} ls_run_memory_options;

/* Assemble both, with the samples a pass that were asked for, or with auto the most that fit the
 * device's budget: the batch in 1, 2, 3, ... passes. What is too large for the device is no error:
 * with auto it has the passes that take least of those that were tried. */
ls_status ls_run_programs_find(ls_run_programs *programs, const ls_run_memory_options *options,
                               const ls_device *device, ls_error *error) LS_MUST_CHECK;
bool ls_run_programs_fit(const ls_run_programs *programs, const ls_device *device);
void ls_run_programs_deinit(ls_run_programs *programs);

/* Bytes of the device that both take together. */
int64_t ls_run_programs_bytes(const ls_run_programs *programs);
/* Of those, what the evaluation program has of its own. */
int64_t ls_run_programs_evaluation_bytes(const ls_run_programs *programs);
/* A line a named part, then the total. */
ls_status ls_run_programs_print(const ls_run_programs *programs, ls_text *text,
                                ls_error *error) LS_MUST_CHECK;

#endif

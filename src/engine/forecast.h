/* What a full step of a program moves and about how long it takes, before anything runs. */
#ifndef LS_ENGINE_FORECAST_H
#define LS_ENGINE_FORECAST_H

#include "engine/assembly.h"

/* Passes of a full batch on the rank that has most samples. */
int64_t ls_forecast_passes(const ls_assembly *assembly, const ls_assembly_options *options);

/* Elements that a full step moves between ranks, summed over all of them, as ls_ranks_elements
 * counts them. Of an embedding table its touched rows count (whole where it is gathered after the
 * update): as many as `touched` says, NULL: as many as a step can touch; every root is taken to
 * have them all. Exact for these rows where each rank has as many roots as the others (the same
 * power of two of leaves); elsewhere a table's rows are taken to be spread evenly over owners. */
int64_t ls_forecast_elements(const ls_assembly *assembly, const ls_assembly_options *options,
                             const ls_touched_capacity *touched);

/* What the ranks of a machine reach together. */
typedef struct ls_machine_rates {
    double flops_per_second, bytes_per_second; /* products; bytes read and written */
    double disk_bytes_per_second;              /* of the folder that is offloaded to; 0: none */
} ls_machine_rates;

/* Seconds of a step: each op takes as long as its operations or its bytes do at the machine's
 * rates, whichever is more; the ranks share the machine. Nothing overlaps, as it is the same cores
 * that compute, add up and copy. */
typedef struct ls_step_seconds {
    double compute, exchange, offload;
} ls_step_seconds;

/* Of a full batch of rows of `row_tokens` tokens each. */
ls_step_seconds ls_forecast_seconds(const ls_assembly *assembly, const ls_assembly_options *options,
                                    double row_tokens, const ls_machine_rates *rates);

#endif

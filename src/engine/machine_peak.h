/* What this machine reaches at best, to hold a run's own rates against. */
#ifndef LS_ENGINE_MACHINE_PEAK_H
#define LS_ENGINE_MACHINE_PEAK_H

#include <stdint.h>

#include "base/status.h"

typedef struct ls_machine_peak {
    double flops_per_second; /* of the best matrix product, a model's own shape or a large one */
    double bytes_per_second; /* read and written by a copy larger than the caches */
} ls_machine_peak;

/* On `threads` threads of their own, in about a second. `tokens`, `features` and `depth`: T, N and
 * K of the products (the feed-forward layer's, a usual step's tokens). */
ls_status ls_machine_peak_measure(ls_machine_peak *peak, int threads, int64_t tokens,
                                  int64_t features, int64_t depth, ls_error *error) LS_MUST_CHECK;

#endif

/* The layouts that a run can have: strategy, offload, recompute, devices. */
#ifndef LS_API_CANDIDATES_H
#define LS_API_CANDIDATES_H

#include <stdbool.h>

#include "api/strategy.h"
#include "base/text.h"

enum { LS_MOST_CANDIDATES = 32 };

typedef struct ls_candidate {
    char name[64]; /* "zero3+offload+recompute"; a file on a disk: "zero3+offload=disk" */
    ls_strategy strategy;
    int devices;
} ls_candidate;

/* Name what the strategy says. */
void ls_candidate_name(ls_candidate *candidate);

/* Those on `devices` devices that the settings leave open, simpler ones first: with --recompute or
 * an --offload- setting given only those that are so. `disk`: what is offloaded to a disk is
 * another one than what is offloaded to the host. Returns their number. */
int ls_candidates_list(ls_candidate candidates[LS_MOST_CANDIDATES], const ls_options *options,
                       int devices, bool disk);

/* The devices that --devices stands for: its list, or the one number. Fresh memory, free with
 * ls_free. LS_USAGE says what is wrong with the list. */
ls_status ls_device_counts(int **counts, int *count, const ls_options *options,
                           ls_error *error) LS_MUST_CHECK;

#endif

/* What the files of the ranks share: ranks.c; ranks_read.c for what several of them hold;
 * ranks_checks.c for what they look for in each other's numbers. */
#ifndef LS_ENGINE_RANKS_INTERNAL_H
#define LS_ENGINE_RANKS_INTERNAL_H

#include "engine/rank_group.h"
#include "engine/ranks.h"

/* What the processes tell each other of a step. */
typedef struct ls_step_share {
    ls_step_times times; /* sums over the process's ranks */
    double flops;
    int64_t elements;
    uint64_t samples_digest;
    bool stop;
} ls_step_share;

struct ls_ranks {
    const ls_run_programs *programs;
    ls_processes *processes;
    int count, first; /* of this process; number of the first one among all */
    ls_rank_group *group;
    bool (*should_stop)(void *context);
    void *context;
    ls_trainer **trainers;
    ls_evaluator **evaluators;
    ls_executor **executors; /* of the trainers */
    /* What the ranks are working on: */
    const ls_weights *weights;
    uint64_t seed;
    ls_parameters_notes *notes; /* [count] */
    int64_t step;
    const ls_batch *batch;
    ls_step_result *results; /* [count] */
    int64_t elements;        /* of all ranks */
    ls_step_share *shares;   /* [processes] */
    ls_finding *findings;    /* [count] */
    char finding[LS_FINDING_BYTES];
    int64_t audits;       /* so far */
    uint64_t *own_hashes; /* of an audit: what this process tells of its ranks, */
    uint64_t *all_hashes; /* and what all tell, process after process */
};

/* Of a step whose numbers are not finite; collective. */
ls_status ls_ranks_find_beginning(ls_ranks *ranks, const char **finding,
                                  ls_error *error) LS_MUST_CHECK;
/* Room for audits; ls_ranks_free frees it. */
ls_status ls_ranks_new_audits(ls_ranks *ranks, ls_error *error) LS_MUST_CHECK;

static inline int ls_ranks_processes(const ls_ranks *ranks)
{
    return ranks->processes ? ls_processes_here(ranks->processes)->count : 1;
}

#endif

/* What the ranks look for in each other's numbers: where those that are not finite began, and
 * whether all ranks have the same (audit.h). */
#include <string.h>

#include "base/alloc.h"
#include "engine/ranks_internal.h"

/* --- not finite ------------------------------------------------------------------------------- */

static ls_status diagnose(void *context, int rank, ls_error *error)
{
    ls_ranks *ranks = context;
    return ls_trainer_diagnose(ranks->trainers[rank], ranks->batch, &ranks->findings[rank], error);
}

/* This process's finding, and those of the others, become one in the order of ranks. */
static ls_status merge_processes(ls_ranks *ranks, ls_error *error)
{
    ls_finding *all = NULL;
    int processes = ls_ranks_processes(ranks);
    if (processes == 1) return LS_OK;
    LS_TRY(LS_NEW(all, processes, "what was found", error));
    ls_status status = ls_processes_gather(ranks->processes, &ranks->findings[0], sizeof *all, all,
                                           "where the numbers stopped being finite", error);
    for (int i = 1; status == LS_OK && i < processes; i++)
        ls_finding_merge(&all[0], &all[i]);
    if (status == LS_OK) ranks->findings[0] = all[0];
    ls_free(all);
    return status;
}

ls_status ls_ranks_find_beginning(ls_ranks *ranks, const char **finding, ls_error *error)
{
    *finding = ranks->finding;
    LS_TRY(ls_rank_group_run(ranks->group, diagnose, ranks, error));
    for (int rank = 1; rank < ranks->count; rank++)
        ls_finding_merge(&ranks->findings[0], &ranks->findings[rank]);
    LS_TRY(merge_processes(ranks, error));
    ls_finding_print(&ranks->findings[0], ranks->finding);
    return LS_OK;
}

/* --- audits ----------------------------------------------------------------------------------- */

static ls_audit *side(const ls_ranks *ranks, int index)
{
    return ls_trainer_audit(ranks->trainers[index]);
}

ls_status ls_ranks_new_audits(ls_ranks *ranks, ls_error *error)
{
    ls_audit_hashes hashes = ls_audit_hashes_of(side(ranks, 0));
    int64_t own = ranks->count * hashes.tensors;
    if (own < 2 * hashes.values) own = 2 * hashes.values;
    LS_TRY(LS_NEW(ranks->own_hashes, own, "hashes of an audit", error));
    return LS_NEW(ranks->all_hashes, own * ls_ranks_processes(ranks), "hashes of an audit", error);
}

static ls_status gather_hashes(ls_ranks *ranks, int64_t count, ls_error *error)
{
    int64_t bytes = count * (int64_t)sizeof *ranks->own_hashes;
    if (ls_ranks_processes(ranks) > 1)
        return ls_processes_gather(ranks->processes, ranks->own_hashes, bytes, ranks->all_hashes,
                                   "the hashes of an audit", error);
    memcpy(ranks->all_hashes, ranks->own_hashes, (size_t)bytes);
    return LS_OK;
}

static ls_status hash_state(void *context, int rank, ls_error *error)
{
    ls_ranks *ranks = context;
    return ls_audit_hash_state(side(ranks, rank), error);
}

/* Of all ranks of all processes. */
static ls_status compare_state(ls_ranks *ranks, int size, ls_error *error)
{
    int64_t tensors = ls_audit_hashes_of(side(ranks, 0)).tensors;
    LS_TRY(ls_rank_group_run(ranks->group, hash_state, ranks, error));
    for (int rank = 0; rank < ranks->count; rank++)
        memcpy(ranks->own_hashes + rank * tensors, ls_audit_hashes_of(side(ranks, rank)).state,
               (size_t)tensors * sizeof *ranks->own_hashes);
    LS_TRY(gather_hashes(ranks, ranks->count * tensors, error));
    return ls_audit_compare_state(side(ranks, 0), ranks->all_hashes, size, ranks->step, error);
}

/* A process tells what its ranks have of the two halves: the pass of `audited`, and what `checker`
 * made of it. */
static ls_status compare_pass(ls_ranks *ranks, int audited, int checker, ls_error *error)
{
    int64_t values = ls_audit_hashes_of(side(ranks, 0)).values;
    size_t bytes = (size_t)values * sizeof *ranks->own_hashes;
    memset(ranks->own_hashes, 0, 2 * bytes);
    for (int rank = 0; rank < ranks->count; rank++) {
        ls_audit_hashes hashes = ls_audit_hashes_of(side(ranks, rank));
        if (ranks->first + rank == audited) memcpy(ranks->own_hashes, hashes.passed, bytes);
        if (ranks->first + rank == checker)
            memcpy(ranks->own_hashes + values, hashes.repeated, bytes);
    }
    LS_TRY(gather_hashes(ranks, 2 * values, error));
    const uint64_t *passed = ranks->all_hashes + audited / ranks->count * 2 * values;
    const uint64_t *repeated = ranks->all_hashes + (checker / ranks->count * 2 + 1) * values;
    return ls_audit_compare_pass(side(ranks, 0), passed, repeated, audited, checker, ranks->step,
                                 error);
}

/* The ranks take turns to be checked. */
ls_status ls_ranks_step_audited(ls_ranks *ranks, int64_t number, const ls_batch *batch,
                                ls_step_result *result, ls_error *error)
{
    int size = ls_rank_group_comm(ranks->group, 0)->size;
    int audited = (int)(ranks->audits++ % size), checker = (audited + 1) % size;
    ranks->step = number;
    LS_TRY(compare_state(ranks, size, error));
    for (int rank = 0; rank < ranks->count; rank++)
        ls_trainer_audit_next(ranks->trainers[rank], audited);
    LS_TRY(ls_ranks_step(ranks, number, batch, result, error));
    return compare_pass(ranks, audited, checker, error);
}

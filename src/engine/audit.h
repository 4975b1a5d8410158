/* Looking for numbers that a machine got wrong without a word (--audit-every): ranks that hold the
 * same tensors compare hashes of them, and one rank's pass is computed again by another, or by
 * itself where it is the only one, into gradients of its own that the plan names (LS_PLAN_AUDIT).
 *
 * Every result is a function of the same inputs, so any difference at all is an error. */
#ifndef LS_ENGINE_AUDIT_H
#define LS_ENGINE_AUDIT_H

#include "data/batch.h"
#include "engine/executor.h"
#include "engine/state.h"

/* One rank's side. */
typedef struct ls_audit ls_audit;

ls_status ls_audit_new(ls_audit **out, const ls_assembly *assembly, ls_executor *executor,
                       ls_error *error) LS_MUST_CHECK;
void ls_audit_free(ls_audit *audit); /* NULL is allowed */

/* Hash every tensor of the state that all ranks hold whole. */
ls_status ls_audit_hash_state(ls_audit *audit, ls_error *error) LS_MUST_CHECK;
/* Hash the gradients of the rank's passes, before any exchange. */
void ls_audit_hash_pass(ls_audit *audit, const ls_executor *executor);
/* Compute the passes of `rank` over the batch here, and hash what comes of them. The step's inputs
 * are copied from `executor`. */
void ls_audit_repeat(ls_audit *audit, ls_executor *executor, const ls_batch *batch,
                     int64_t leaf_size, int rank);

/* What a side has hashed, for comparing with other ranks'. */
typedef struct ls_audit_hashes {
    int64_t tensors, values;
    const uint64_t *state;             /* [tensors] of ls_audit_hash_state */
    const uint64_t *passed, *repeated; /* [values] of ls_audit_hash_pass, ls_audit_repeat */
} ls_audit_hashes;
ls_audit_hashes ls_audit_hashes_of(const ls_audit *audit);

/* `state` [ranks][tensors]: LS_DIFFERENT names step, tensor and the ranks in the minority (all of
 * them, if there is none). */
ls_status ls_audit_compare_state(const ls_audit *audit, const uint64_t *state, int ranks,
                                 int64_t step, ls_error *error) LS_MUST_CHECK;
/* What `rank` hashed of its pass, and what `checker` made of it. */
ls_status ls_audit_compare_pass(const ls_audit *audit, const uint64_t *passed,
                                const uint64_t *repeated, int rank, int checker, int64_t step,
                                ls_error *error) LS_MUST_CHECK;

/* Gradients, inputs and scalars of the second pass; 0 where passes are exchanged one by one, so
 * that no rank can compute another's alone. */
int64_t ls_audit_bytes(const ls_assembly *assembly);

#endif

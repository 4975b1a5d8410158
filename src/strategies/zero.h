/* What the parts of the ZeRO rewrite share. */
#ifndef LS_STRATEGIES_ZERO_H
#define LS_STRATEGIES_ZERO_H

#include "strategies/rewrite.h"
#include "strategies/strategy.h"

typedef struct ls_zero_rewrite {
    ls_rewrite rewrite;
    ls_program *program;
    const ls_zero_options *options;
    int units;
    ls_value_id *now;              /* [values] what stands for each of them now, or itself */
    ls_value_id *values, *results; /* [values] of the bucket that is being filled */
    int32_t count, value_count;    /* values of the bucket; of the program as it was */
    int64_t bytes;
} ls_zero_rewrite;

static inline const ls_value *ls_zero_value(const ls_zero_rewrite *z, ls_value_id id)
{
    return ls_value_of(z->program, id);
}

static inline bool ls_zero_has_role(const ls_zero_rewrite *z, ls_value_id id, ls_role role)
{
    return id != LS_NO_VALUE && ls_zero_value(z, id)->role == role;
}

/* A parameter that every rank has, whatever is divided beside it. */
bool ls_zero_is_whole(const ls_zero_rewrite *z, ls_value_id parameter);

int32_t ls_zero_first_update(const ls_program *program);

/* Put a value into the bucket. Of a gather what arrives counts, of an exchange one partial sum. */
void ls_zero_add(ls_zero_rewrite *z, ls_value_id value, ls_value_id result);
/* Close the bucket and put in its collective. */
ls_status ls_zero_send(ls_zero_rewrite *z, ls_op_kind kind, ls_segment segment, int32_t before,
                       bool in_place, int32_t *bucket, ls_error *error) LS_MUST_CHECK;
ls_status ls_zero_wait(ls_zero_rewrite *z, ls_segment segment, int32_t before, int32_t bucket,
                       ls_error *error) LS_MUST_CHECK;

/* [units] runs, none of which has a value yet: fresh memory, free with ls_free. */
ls_status ls_zero_new_runs(const ls_zero_rewrite *z, ls_value_id **runs,
                           ls_error *error) LS_MUST_CHECK;
/* The value becomes part of its unit's run; runs[unit] is the run's first value. */
void ls_zero_shard(ls_zero_rewrite *z, ls_value_id id, ls_value_id *runs);

/* Parameters in parts, gathered unit by unit (zero_parameters.c). */
ls_status ls_zero_parameters(ls_zero_rewrite *z, ls_error *error) LS_MUST_CHECK;

#endif

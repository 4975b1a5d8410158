#include "strategies/rewrite.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

static ls_status copy_values(ls_program *program, const ls_value_id **out,
                             const ls_value_id *values, int32_t count, ls_error *error)
{
    ls_value_id *copy;
    LS_TRY(LS_ARENA_NEW(&program->arena, copy, count, error));
    memcpy(copy, values, (size_t)count * sizeof *copy);
    *out = copy;
    return LS_OK;
}

ls_status ls_rewrite_bucket(ls_rewrite *r, const ls_value_id *values, const ls_value_id *results,
                            int32_t count, int64_t bytes, int32_t *bucket, ls_error *error)
{
    ls_bucket made = {.count = count, .bytes = bytes};
    LS_TRY(copy_values(r->program, &made.values, values, count, error));
    if (results) LS_TRY(copy_values(r->program, &made.results, results, count, error));
    LS_TRY(LS_GROW(r->buckets, r->bucket_capacity, r->bucket_count + 1, "buckets", error));
    *bucket = r->program->bucket_count + r->bucket_count;
    r->buckets[r->bucket_count++] = made;
    return LS_OK;
}

ls_status ls_rewrite_insert(ls_rewrite *r, int32_t before, ls_op op, int32_t bucket,
                            ls_error *error, const char *name, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, name);
    vsnprintf(text, sizeof text, name, arguments);
    va_end(arguments);
    op.attributes.bucket = bucket;
    LS_TRY(ls_arena_text(&r->program->arena, &op.name, error, "%s", text));
    LS_TRY(LS_GROW(r->insertions, r->insertion_capacity, r->insertion_count + 1, "program ops",
                   error));
    r->insertions[r->insertion_count++] = (ls_insertion){before, op};
    return LS_OK;
}

/* Counting sort by `before`: where the first insertion in front of each op goes. */
static void merge(const ls_rewrite *r, ls_op *ops, int32_t *next)
{
    const ls_program *program = r->program;
    for (int32_t i = 0; i < r->insertion_count; i++)
        next[r->insertions[i].before + 1]++;
    for (int32_t i = 0; i <= program->op_count; i++)
        next[i + 1] += next[i];
    /* next[i] insertions stand in front of op i's own insertions, and i ops. */
    for (int32_t i = 0; i < program->op_count; i++)
        ops[next[i + 1] + i] = program->ops[i];
    for (int32_t i = 0; i < r->insertion_count; i++) {
        int32_t before = r->insertions[i].before;
        ops[next[before]++ + before] = r->insertions[i].op;
    }
}

static ls_status merge_ops(ls_rewrite *r, ls_error *error)
{
    ls_program *program = r->program;
    ls_op *ops = NULL;
    int32_t *next = NULL;
    ls_status status;
    size_t count = (size_t)program->op_count + (size_t)r->insertion_count;
    LS_TRY_GOTO(status, LS_NEW(ops, count + 1, "program ops", error), done);
    LS_TRY_GOTO(status, LS_NEW(next, program->op_count + 2, "program ops", error), done);
    merge(r, ops, next);
    ls_program_swap_ops(program, &ops, (int32_t)count, count + 1);
done:
    ls_free(ops);
    ls_free(next);
    return status;
}

ls_status ls_rewrite_finish(ls_rewrite *r, ls_error *error)
{
    ls_program *program = r->program;
    ls_bucket *buckets;
    int32_t former = program->bucket_count;
    LS_TRY(LS_ARENA_NEW(&program->arena, buckets, former + r->bucket_count, error));
    if (former) memcpy(buckets, program->buckets, (size_t)former * sizeof *buckets);
    if (r->bucket_count)
        memcpy(buckets + former, r->buckets, (size_t)r->bucket_count * sizeof *buckets);
    LS_TRY(merge_ops(r, error));
    program->buckets = buckets;
    program->bucket_count = former + r->bucket_count;
    return LS_OK;
}

void ls_rewrite_deinit(ls_rewrite *r)
{
    ls_free(r->insertions);
    ls_free(r->buckets);
    *r = (ls_rewrite){0};
}

int64_t ls_rewrite_bytes(const ls_program *program, ls_value_id id)
{
    const ls_value *value = ls_value_of(program, id);
    bool slots = value->role != LS_ROLE_PARAMETER && value->parameter != LS_NO_VALUE;
    return ls_value_bytes(value, &ls_fixed_extents) / (slots ? value->shape[0].constant : 1);
}

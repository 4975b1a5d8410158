#include "engine/forecast.h"

#include "comm/tree.h"
#include "program/layout.h"

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* --- passes and roots ------------------------------------------------------------------------- */

/* Leaves that are exchanged together: a pass of all ranks, or all of the step. */
static int64_t leaves_together(const ls_assembly *assembly, const ls_assembly_options *options)
{
    int64_t leaves = ls_assembly_leaves(options);
    if (!assembly->shard.gradients) return leaves;
    return least(leaves, ls_assembly_pass_leaves(assembly, options->leaf_size));
}

int64_t ls_forecast_passes(const ls_assembly *assembly, const ls_assembly_options *options)
{
    int64_t leaves = ls_assembly_leaves(options), together = leaves_together(assembly, options);
    if (assembly->shard.gradients) return (leaves + together - 1) / together;
    int64_t share = (leaves + assembly->ranks - 1) / assembly->ranks * options->leaf_size;
    share = least(share, options->batch_size);
    return (share + assembly->samples_per_pass - 1) / assembly->samples_per_pass;
}

/* --- elements --------------------------------------------------------------------------------- */

typedef struct traffic {
    const ls_assembly *assembly;
    const ls_program *program;
    const ls_touched_capacity *touched; /* NULL: at capacity */
    int64_t ranks;
} traffic;

/* Rows of a table that a step touches; `shape`: as many as it can. */
static int64_t touched_rows(const traffic *t, const ls_value *table, int64_t shape)
{
    const ls_inputs *inputs = &t->assembly->model.inputs;
    if (!t->touched) return shape;
    if (table->touched == inputs->word.touched) return t->touched->word;
    return table->touched == inputs->position.touched ? t->touched->position : t->touched->type;
}

/* Elements of one partial sum. */
static int64_t sum_elements(const traffic *t, ls_value_id id)
{
    const ls_value *value = ls_value_of(t->program, id);
    int64_t elements = ls_value_elements(value, &ls_fixed_extents) / value->shape[0].constant;
    if (!value->row_sparse) return elements;
    const ls_value *table = ls_value_of(t->program, value->parameter);
    int64_t columns = value->shape[2].constant;
    return touched_rows(t, table, value->shape[1].constant) * columns;
}

/* Of those, what a rank owns. */
static int64_t owned_sums(const traffic *t, ls_value_id id, int64_t elements, bool owned, int rank)
{
    const ls_value *value = ls_value_of(t->program, id);
    if (value->row_sparse) return elements / t->ranks;
    if (owned && elements == 1) return rank == 0; /* the loss */
    if (owned) {
        ls_range range = ls_layout_owned(t->program, value->parameter, rank);
        return range.end - range.begin;
    }
    int64_t blocks = (elements + LS_BLOCK - 1) / LS_BLOCK;
    int64_t begin = least(blocks * rank / t->ranks * LS_BLOCK, elements);
    return least(blocks * (rank + 1) / t->ranks * LS_BLOCK, elements) - begin;
}

/* Every root is read by all owners but its own rank. */
static int64_t exchanged(const traffic *t, const ls_op *op, ls_tree_range all)
{
    const ls_bucket *bucket = &t->program->buckets[op->attributes.bucket];
    int64_t elements = 0, moved = 0;
    int first = ls_tree_range_roots(ls_tree_share(all, (int)t->ranks, 0));
    bool even = true;
    for (int32_t i = 0; i < bucket->count; i++)
        elements += sum_elements(t, bucket->values[i]);
    for (int rank = 1; even && rank < t->ranks; rank++)
        even = ls_tree_range_roots(ls_tree_share(all, (int)t->ranks, rank)) == first;
    if (even) return first * (t->ranks - 1) * elements;
    for (int rank = 0; rank < t->ranks; rank++) {
        int64_t roots = ls_tree_range_roots(ls_tree_share(all, (int)t->ranks, rank));
        for (int32_t i = 0; roots && i < bucket->count; i++) {
            int64_t own = sum_elements(t, bucket->values[i]);
            moved +=
                roots * (own - owned_sums(t, bucket->values[i], own, op->attributes.owned, rank));
        }
    }
    return moved;
}

/* Sums that go to all after they are added. */
static int64_t returned(const traffic *t, const ls_op *op)
{
    const ls_bucket *bucket = &t->program->buckets[op->attributes.bucket];
    int64_t elements = 0;
    if (op->attributes.owned) return 0;
    for (int32_t i = 0; i < bucket->count; i++)
        elements += sum_elements(t, bucket->values[i]);
    return (t->ranks - 1) * elements;
}

static int64_t gathered(const traffic *t, const ls_op *op)
{
    const ls_bucket *bucket = &t->program->buckets[op->attributes.bucket];
    int64_t elements = 0;
    for (int32_t i = 0; i < bucket->count; i++) {
        const ls_value *result = ls_value_of(t->program, ls_bucket_result(bucket, i));
        int64_t own =
            result->role == LS_ROLE_SCALAR ? 1 : ls_value_elements(result, &ls_fixed_extents);
        if (result->row_sparse && bucket->results) {
            int64_t rows = touched_rows(t, result, result->shape[0].constant);
            own = least(rows, t->assembly->token_capacity) * result->shape[1].constant;
        }
        elements += own * (result->dtype == LS_F64 ? 2 : 1);
    }
    return (t->ranks - 1) * elements;
}

int64_t ls_forecast_elements(const ls_assembly *assembly, const ls_assembly_options *options,
                             const ls_touched_capacity *touched)
{
    const ls_program *program = assembly->program;
    traffic t = {assembly, program, touched, assembly->ranks};
    int64_t leaves = ls_assembly_leaves(options), together = leaves_together(assembly, options);
    int64_t passes = ls_forecast_passes(assembly, options), elements = 0;
    for (int32_t i = 0; i < program->op_count && t.ranks > 1; i++) {
        const ls_op *op = &program->ops[i];
        int64_t times = op->segment == LS_SEGMENT_PASS ? passes : 1;
        if (op->kind == LS_OP_GATHER) elements += times * gathered(&t, op);
        if (op->kind != LS_OP_EXCHANGE_GRADIENTS) continue;
        elements += times * returned(&t, op);
        for (int64_t begin = 0; begin < leaves; begin += together)
            elements +=
                exchanged(&t, op, (ls_tree_range){begin, least(begin + together, leaves), leaves});
    }
    return elements;
}

/* --- seconds ---------------------------------------------------------------------------------- */

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Bytes that a copy moves between the device and elsewhere, on one rank. */
static double copied_bytes(const ls_program *program, const ls_op *op)
{
    int runs = 0;
    if (op->kind == LS_OP_AWAIT) return 0;
    if (op->attributes.elements) {
        const ls_value_id *operands = op->kind == LS_OP_FETCH ? op->outputs : op->inputs;
        while (runs < LS_MAX_OUTPUTS && operands[runs] != LS_NO_VALUE)
            runs++;
        return (double)sizeof(float) * (double)op->attributes.elements * runs;
    }
    /* What a rank owns of a unit. */
    double elements = 0;
    ls_value_id run = op->outputs[0];
    for (ls_value_id id = run; id < program->value_count; id++)
        if (ls_value_of(program, id)->run == run)
            elements += (double)ls_value_elements(ls_value_of(program, id), &ls_fixed_extents);
    return (double)sizeof(float) * elements / (program->ranks ? program->ranks : 1);
}

static bool is_on_disk(const ls_program *program, const ls_op *op)
{
    ls_value_id run = op->kind == LS_OP_FETCH ? op->inputs[0] : op->outputs[0];
    return run != LS_NO_VALUE && ls_value_of(program, run)->space == LS_SPACE_FILE;
}

/* A copy reads and writes memory, or the disk that all ranks share. */
static double copy_seconds(const ls_program *program, const ls_op *op, double ranks,
                           const ls_machine_rates *rates)
{
    double bytes = ranks * copied_bytes(program, op);
    if (is_on_disk(program, op))
        return rates->disk_bytes_per_second > 0 ? bytes / rates->disk_bytes_per_second : 0;
    return 2 * bytes / rates->bytes_per_second;
}

ls_step_seconds ls_forecast_seconds(const ls_assembly *assembly, const ls_assembly_options *options,
                                    double row_tokens, const ls_machine_rates *rates)
{
    const ls_program *program = assembly->program;
    double ranks = assembly->ranks;
    int64_t passes = ls_forecast_passes(assembly, options);
    double samples = (double)options->batch_size / ranks / (double)passes;
    ls_extents extents = {{1, (int64_t)(samples * row_tokens + 0.5), (int64_t)(samples + 0.5)}};
    ls_step_seconds seconds = {0};
    for (int32_t i = 0; i < program->op_count; i++) {
        const ls_op *op = &program->ops[i];
        double times = op->segment == LS_SEGMENT_PASS ? (double)passes : 1;
        if (ls_op_is_collective(op->kind)) continue;
        if (ls_op_is_copy(op->kind)) {
            seconds.offload += times * copy_seconds(program, op, ranks, rates);
            continue;
        }
        ls_cost cost = program->definitions[op->kind]->cost(program, op, &extents);
        /* What ranks own costs each of them its part. */
        if (op->attributes.owned && op->attributes.elements == 0) times /= ranks;
        seconds.compute +=
            times * ranks *
            larger(cost.flops / rates->flops_per_second, cost.bytes / rates->bytes_per_second);
    }
    /* Each element is read and written. */
    seconds.exchange = 2.0 * sizeof(float) * (double)ls_forecast_elements(assembly, options, NULL) /
                       rates->bytes_per_second;
    return seconds;
}

#include "base/alloc.h"
#include "strategies/zero.h"

/* Operands of the embedding op. */
enum { EMBEDDING_ROWS = 3, TABLES = 3 };

/* Consecutive ops that read parameters of one unit. */
typedef struct visit {
    int unit;
    bool backward;
    int32_t first, end; /* ops */
    int32_t bucket;     /* that gathers the unit */
    int64_t elements;   /* that arrive with it */
} visit;

bool ls_zero_is_whole(const ls_zero_rewrite *z, ls_value_id parameter)
{
    if (!z->options->shard.parameters) return true;
    return ls_value_elements(ls_zero_value(z, parameter), &ls_fixed_extents) <
           z->options->whole_below;
}

static bool is_divided(const ls_zero_rewrite *z, ls_value_id id)
{
    return ls_zero_has_role(z, id, LS_ROLE_PARAMETER) && !ls_zero_is_whole(z, id);
}

/* The unit whose divided parameters an op of the pass reads, -1: none. */
static int reads_unit(const ls_zero_rewrite *z, const ls_op *op)
{
    for (int in = 0; op->segment == LS_SEGMENT_PASS && in < LS_MAX_INPUTS; in++)
        if (is_divided(z, op->inputs[in])) return ls_zero_value(z, op->inputs[in])->unit;
    return -1;
}

static int32_t find_visits(const ls_zero_rewrite *z, visit *visits)
{
    int32_t count = 0;
    bool backward = false;
    for (int32_t i = 0; i < z->program->op_count; i++) {
        const ls_op *op = &z->program->ops[i];
        int unit = reads_unit(z, op);
        backward |= op->kind == LS_OP_CLASSIFIER_LOSS;
        if (unit < 0) continue;
        const visit *last = count ? &visits[count - 1] : NULL;
        if (last && last->unit == unit && last->backward == backward) continue;
        if (count) visits[count - 1].end = i;
        visits[count++] = (visit){.unit = unit, .backward = backward, .first = i};
    }
    if (count) visits[count - 1].end = ls_zero_first_update(z->program);
    return count;
}

/* Only the forward pass reads tables, and of those only rows that it touches. */
static ls_status new_gathered(ls_zero_rewrite *z, ls_value_id parameter, int32_t visit_index,
                              bool backward, ls_error *error)
{
    ls_value made = *ls_zero_value(z, parameter);
    made.role = LS_ROLE_COMMUNICATION;
    if (made.row_sparse) {
        if (backward) return LS_OK;
        made.shape[0] = ls_zero_value(z, made.touched)->shape[0];
    }
    LS_TRY(ls_program_value(z->program, &z->now[parameter], made, error, "gathered.%d.%s",
                            (int)visit_index, made.name));
    ls_zero_add(z, parameter, z->now[parameter]);
    return LS_OK;
}

static void replace_operands(const ls_zero_rewrite *z, ls_op *op)
{
    const ls_inputs *inputs = z->options->inputs;
    const ls_value_id rows[TABLES] = {inputs->word.rows, inputs->position.rows, inputs->type.rows};
    for (int in = 0; in < LS_MAX_INPUTS; in++) {
        ls_value_id id = op->inputs[in];
        if (!is_divided(z, id)) continue;
        op->inputs[in] = z->now[id];
        if (op->kind == LS_OP_EMBEDDING && ls_zero_value(z, id)->row_sparse)
            op->inputs[EMBEDDING_ROWS + in] = rows[in];
    }
}

/* Elements that arrive with a visit. */
static int64_t visit_elements(const ls_zero_rewrite *z, const visit *v)
{
    int64_t elements = 0;
    for (ls_value_id id = 0; id < z->value_count; id++) {
        const ls_value *value = ls_zero_value(z, id);
        if (!is_divided(z, id) || value->unit != v->unit) continue;
        if (!value->row_sparse)
            elements += ls_value_elements(value, &ls_fixed_extents);
        else if (!v->backward)
            elements += ls_value_elements(ls_zero_value(z, value->touched), &ls_fixed_extents) *
                        value->shape[1].constant;
    }
    return elements;
}

/* Gather a unit in front of an op, and let the visit's ops read what arrives. */
static ls_status gather_visit(ls_zero_rewrite *z, visit *visits, int32_t index, int32_t before,
                              ls_error *error)
{
    visit *v = &visits[index];
    for (ls_value_id id = 0; id < z->value_count; id++)
        if (is_divided(z, id) && ls_zero_value(z, id)->unit == v->unit)
            LS_TRY(new_gathered(z, id, index, v->backward, error));
    for (int32_t op = v->first; op < v->end; op++)
        if (z->program->ops[op].segment == LS_SEGMENT_PASS)
            replace_operands(z, &z->program->ops[op]);
    return ls_zero_send(z, LS_OP_GATHER, LS_SEGMENT_PASS, before, false, &v->bucket, error);
}

/* Put in, in front of a visit's first op, the gathers of it and of those that are ahead of it: of
 * one, or of as many as `prefetch_elements` hold together. *next: the first that is not gathered
 * yet. */
static ls_status gather_ahead(ls_zero_rewrite *z, visit *visits, int32_t count, int32_t index,
                              int32_t *next, ls_error *error)
{
    int64_t most = z->options->prefetch_elements, ahead = 0;
    if (*next == index) LS_TRY(gather_visit(z, visits, (*next)++, visits[index].first, error));
    for (int32_t i = index + 1; i < *next; i++)
        ahead += visits[i].elements;
    while (*next < count) {
        ahead += visits[*next].elements;
        bool fits = z->options->prefetch_limited ? ahead <= most : *next == index + 1;
        if (!fits) return LS_OK;
        LS_TRY(gather_visit(z, visits, (*next)++, visits[index].first, error));
    }
    return LS_OK;
}

static ls_status gather_visits(ls_zero_rewrite *z, visit *visits, ls_error *error)
{
    int32_t count = find_visits(z, visits), next = 0;
    for (int32_t i = 0; i < count; i++)
        visits[i].elements = visit_elements(z, &visits[i]);
    for (int32_t i = 0; i < count; i++) {
        LS_TRY(gather_ahead(z, visits, count, i, &next, error));
        LS_TRY(ls_zero_wait(z, LS_SEGMENT_PASS, visits[i].first, visits[i].bucket, error));
    }
    return LS_OK;
}

ls_status ls_zero_parameters(ls_zero_rewrite *z, ls_error *error)
{
    ls_value_id *runs = NULL;
    visit *visits = NULL;
    ls_status status;
    LS_TRY_GOTO(status, ls_zero_new_runs(z, &runs, error), done);
    LS_TRY_GOTO(status, LS_NEW(visits, z->program->op_count + 1, "gathers", error), done);
    LS_TRY_GOTO(status, ls_inputs_declare_rows(z->program, z->options->inputs, error), done);
    LS_TRY_GOTO(status, gather_visits(z, visits, error), done);
    for (ls_value_id id = 0; id < z->value_count; id++)
        if (is_divided(z, id)) ls_zero_shard(z, id, runs);
done:
    ls_free(runs);
    ls_free(visits);
    return status;
}

#include "engine/exchange.h"

#include <string.h>

#include "base/alloc.h"
#include "base/queue.h"
#include "comm/tree.h"

/* Slices of a gradient begin at borders of the norm's blocks. */
enum { BLOCK = 1024, QUEUED_OPS = 4096, MOST_ROOTS_A_RANK = LS_MAX_SLOTS };

struct ls_exchange {
    ls_comm *comm;
    ls_executor *executor;
    const ls_program *program;
    const ls_plan *plan;
    ls_queue *queue;
    void **gradients, **scalars; /* [ranks] base of each rank's arena */
    ls_status status;            /* of the queue's thread: the first failure */
    ls_error error;
    int64_t elements;
    /* Room for one sum: [roots] */
    const float **sources;
    uint8_t *merges;
};

static float *address(const ls_exchange *x, int rank, ls_value_id id)
{
    bool gradient = ls_value_of(x->program, id)->role == LS_ROLE_GRADIENT;
    unsigned char *arena = (gradient ? x->gradients : x->scalars)[rank];
    return (float *)(arena + x->plan->offset[id]);
}

static int64_t slot_elements(const ls_exchange *x, ls_value_id id)
{
    static const ls_extents fixed = {{1}};
    return ls_value_elements(ls_value_of(x->program, id), &fixed) / x->program->gradient_slots;
}

/* Which roots are added, in the order of the batch's leaves: those of `present`, all if NULL.
 * Sources point at `offset` in the slot. Returns their number. */
static int32_t gather_sources(ls_exchange *x, const ls_step_roots *step, ls_value_id id,
                              const uint8_t *present, int64_t offset, int64_t elements)
{
    int64_t stride = slot_elements(x, id);
    int32_t count = 0, slot = 0;
    int64_t total = step->roots[step->count - 1].last + 1;
    ls_tree_range whole = {0, total, total};
    ls_tree_stack stack = {0};
    const ls_tree_root *open = NULL;
    for (int32_t i = 0; i < step->count; i++) {
        const ls_tree_root *root = &step->roots[i];
        if (root->slot == 0) slot = 0;
        if (present && !present[i]) continue;
        if (open)
            x->merges[count - 1] = (uint8_t)ls_tree_push(&stack, whole, open->last, root->first);
        x->sources[count++] = address(x, root->rank, id) + slot++ * stride + offset;
        if (root->rank != x->comm->rank) x->elements += elements;
        open = root;
    }
    if (open) x->merges[count - 1] = (uint8_t)ls_tree_push(&stack, whole, open->last, -1);
    return count;
}

static void sum_range(ls_exchange *x, const ls_step_roots *step, ls_value_id id,
                      const uint8_t *present, int64_t begin, int64_t end)
{
    if (begin >= end) return;
    ls_device *device = ls_executor_device(x->executor);
    int32_t count = gather_sources(x, step, id, present, begin, end - begin);
    float *to = address(x, x->comm->rank, id) + begin;
    if (count == 1 && x->sources[0] == to) return;
    device->operations->ordered_sum(device, to, x->sources, x->merges, count, end - begin);
}

/* The elements of a slot that `rank` owns: whole blocks, whole rows of a table. */
static void slice_of(const ls_exchange *x, ls_value_id id, int rank, int64_t *begin, int64_t *end)
{
    const ls_value *value = ls_value_of(x->program, id);
    int64_t elements = slot_elements(x, id), unit = BLOCK, units;
    if (value->row_sparse) {
        const ls_touched_rows *touched = ls_executor_bound(x->executor, value->touched);
        unit = value->shape[2].constant;
        elements = touched->count * unit;
    }
    units = (elements + unit - 1) / unit;
    *begin = units * rank / x->comm->size * unit;
    *end = units * (rank + 1) / x->comm->size * unit;
    if (*end > elements) *end = elements;
    if (*begin > *end) *begin = *end;
}

static void sum_slice(ls_exchange *x, const ls_step_roots *step, ls_value_id id)
{
    const ls_value *value = ls_value_of(x->program, id);
    int64_t begin, end;
    slice_of(x, id, x->comm->rank, &begin, &end);
    if (!value->row_sparse) {
        sum_range(x, step, id, NULL, begin, end);
        return;
    }
    const ls_touched_rows *touched = ls_executor_bound(x->executor, value->touched);
    int64_t hidden = value->shape[2].constant;
    for (int64_t row = begin / hidden; row < end / hidden; row++)
        sum_range(x, step, id, touched->present + row * step->count, row * hidden,
                  (row + 1) * hidden);
}

static void copy_slices(ls_exchange *x, ls_value_id id)
{
    for (int step = 1; step < x->comm->size; step++) {
        /* Each rank starts at its neighbour, so that not all read from one. */
        int rank = (x->comm->rank + step) % x->comm->size;
        int64_t begin, end;
        slice_of(x, id, rank, &begin, &end);
        if (begin >= end) continue;
        memcpy(address(x, x->comm->rank, id) + begin, address(x, rank, id) + begin,
               (size_t)(end - begin) * sizeof(float));
        x->elements += end - begin;
    }
}

static ls_status run_bucket(ls_exchange *x, const ls_op_call *call, ls_error *error)
{
    const ls_bucket *bucket = &x->program->buckets[call->op->attributes.bucket];
    const ls_step_roots *step = call->inputs[0].data;
    LS_TRY(x->comm->operations->barrier(x->comm, error)); /* all ranks' partial sums are there */
    for (int32_t i = 0; i < bucket->count; i++)
        sum_slice(x, step, bucket->values[i]);
    LS_TRY(x->comm->operations->barrier(x->comm, error)); /* all slices are summed */
    for (int32_t i = 0; i < bucket->count; i++)
        copy_slices(x, bucket->values[i]);
    return LS_OK;
}

static void run_queued(void *context, const void *item)
{
    ls_exchange *x = context;
    if (x->status == LS_OK) x->status = run_bucket(x, item, &x->error);
}

static void enqueue(void *context, const ls_op_call *call)
{
    ls_queue_push(((ls_exchange *)context)->queue, call);
}

ls_status ls_exchange_new(ls_exchange **out, ls_comm *comm, ls_executor *executor,
                          const ls_program *program, const ls_plan *plan, ls_error *error)
{
    ls_exchange *x = NULL;
    ls_status status;
    LS_TRY(LS_NEW(x, 1, "exchange", error));
    x->comm = comm;
    x->executor = executor;
    x->program = program;
    x->plan = plan;
    LS_TRY_GOTO(status, LS_NEW(x->gradients, comm->size, "exchange", error), fail);
    LS_TRY_GOTO(status, LS_NEW(x->scalars, comm->size, "exchange", error), fail);
    LS_TRY_GOTO(status, LS_NEW(x->sources, comm->size * MOST_ROOTS_A_RANK, "exchange", error),
                fail);
    LS_TRY_GOTO(status, LS_NEW(x->merges, comm->size * MOST_ROOTS_A_RANK, "exchange", error), fail);
    LS_TRY_GOTO(status, ls_queue_new(&x->queue, QUEUED_OPS, run_queued, x, error), fail);
    LS_TRY_GOTO(status,
                comm->operations->share(comm, ls_executor_arena(executor, LS_PLAN_GRADIENTS),
                                        x->gradients, error),
                fail);
    LS_TRY_GOTO(status,
                comm->operations->share(comm, ls_executor_arena(executor, LS_PLAN_SCALARS),
                                        x->scalars, error),
                fail);
    ls_executor_set_exchange(executor, enqueue, x);
    *out = x;
    return LS_OK;
fail:
    ls_exchange_free(x);
    return status;
}

void ls_exchange_free(ls_exchange *x)
{
    if (!x) return;
    ls_queue_free(x->queue);
    ls_free(x->gradients);
    ls_free(x->scalars);
    ls_free(x->sources);
    ls_free(x->merges);
    ls_free(x);
}

ls_status ls_exchange_finish(ls_exchange *x, ls_error *error)
{
    ls_queue_wait(x->queue);
    if (x->status != LS_OK) {
        if (error) *error = x->error;
        return x->status;
    }
    return x->comm->operations->barrier(x->comm, error); /* nobody reads this rank any more */
}

int64_t ls_exchange_elements(const ls_exchange *x)
{
    return x->elements;
}

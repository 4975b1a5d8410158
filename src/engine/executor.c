#include "engine/executor.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "engine/faults.h"

typedef struct prepared_op {
    ls_device_function function; /* NULL: a collective or a copy */
    int32_t fetch;               /* await: the op that it waits for */
    long number;                 /* fetch: of its last run, in the copy queue */
    ls_op_call call;
} prepared_op;

struct ls_executor {
    const ls_program *program;
    const ls_plan *plan;
    ls_device *device;
    const ls_executor *host;
    int rank;
    bool poison;
    void *arenas[LS_PLAN_ARENA_COUNT];
    prepared_op *ops;
    const void **bound;  /* [values] address of each host value */
    ls_offload *offload; /* NULL: everything is on the device */
    ls_exchange_function exchange;
    void *exchange_context;
    ls_extents extents;      /* of the run that goes on; the calls point here */
    ls_op_measure *measures; /* NULL: nothing is measured */
    ls_track *track;         /* NULL: nothing is recorded */
    ls_op_observer observer; /* NULL: nobody looks */
    void *observer_context;
    int32_t backward_begin; /* first backward op, op_count if there is none */
    ls_run_times times;
};

static const ls_extents fixed = {{1}}; /* parameters have no symbolic sizes */

static bool shared_with_host(ls_plan_arena arena)
{
    return arena == LS_PLAN_PARAMETERS || arena == LS_PLAN_MESSAGES || ls_plan_is_transient(arena);
}

static ls_status take_arenas(ls_executor *executor, const ls_executor_options *options,
                             ls_error *error)
{
    for (ls_plan_arena arena = 0; arena < LS_PLAN_SCRATCH; arena++) {
        int64_t bytes = executor->plan->bytes[arena];
        if (options->host && shared_with_host(arena)) {
            if (bytes > options->host->plan->bytes[arena])
                return ls_fail(error, LS_INTERNAL, "engine: shared %s are too small",
                               ls_plan_arena_name(arena));
            executor->arenas[arena] = options->host->arenas[arena];
        } else if (bytes) {
            /* Planned for the longest rows: an ordinary batch uses the front of each activation. */
            ls_memory_use use = ls_plan_is_transient(arena) ? LS_MEMORY_SPARSE : LS_MEMORY_DENSE;
            if (options->shared_arenas >> arena & 1) use = LS_MEMORY_SHARED;
            LS_TRY(executor->device->operations->allocate(executor->device, bytes, use,
                                                          ls_plan_arena_name(arena),
                                                          &executor->arenas[arena], error));
        }
    }
    if (options->host) return LS_OK;
    return executor->device->operations->reserve_scratch(executor->device, &options->limits, error);
}

static ls_status take_offload(ls_executor *executor, const ls_executor_options *options,
                              ls_error *error)
{
    if (options->host) executor->offload = options->host->offload;
    if (options->host) return LS_OK;
    if (!executor->plan->bytes[LS_PLAN_HOST_MEMORY] && !executor->plan->bytes[LS_PLAN_FILE])
        return LS_OK;
    return ls_offload_new(&executor->offload, executor->program, executor->plan, executor->rank,
                          executor->device, options->offload_folder, error);
}

/* The parameter that an op of the update works on, LS_NO_VALUE: none. */
static ls_value_id updated_parameter(const ls_program *program, const ls_op *op)
{
    for (int in = 0; op->segment == LS_SEGMENT_UPDATE && in < LS_MAX_INPUTS; in++) {
        if (op->inputs[in] == LS_NO_VALUE) continue;
        ls_value_id id = ls_layout_parameter(program, op->inputs[in]);
        if (id != LS_NO_VALUE) return id;
    }
    return LS_NO_VALUE;
}

/* What of its parameter an op of the update works on: an owner's part, or all of it; of that, what
 * lies in the block. Of a copy: what of the runs. */
static ls_range range_of(const ls_executor *executor, const ls_op *op)
{
    const ls_program *program = executor->program;
    const ls_attributes *block = &op->attributes;
    ls_value_id id = updated_parameter(program, op);
    if (ls_op_is_copy(op->kind) && block->elements)
        return (ls_range){block->first_element, block->first_element + block->elements};
    if (op->kind == LS_OP_FETCH) return ls_layout_run_part(program, op->outputs[0], executor->rank);
    if (id == LS_NO_VALUE) return (ls_range){0, 0};
    if (block->elements)
        return ls_layout_part(program, id, executor->rank, block->first_element, block->elements);
    if (block->owned) return ls_layout_owned(program, id, executor->rank);
    return (ls_range){0, ls_value_elements(ls_value_of(program, id), &fixed)};
}

static ls_operand operand_of(const ls_executor *executor, const ls_op *op, ls_value_id id)
{
    const ls_program *program = executor->program;
    const ls_value *value = ls_value_of(program, id);
    ls_operand operand = {value, ls_executor_address(executor, id), 0};
    ls_value_id parameter = updated_parameter(program, op);
    if (value->role == LS_ROLE_OFFLOAD && value->space != LS_SPACE_DEVICE) {
        operand.first = executor->plan->offset[id] / (int64_t)sizeof(float);
    } else if (value->role == LS_ROLE_OFFLOAD && parameter != LS_NO_VALUE) {
        /* A block of a run: where the parameter would begin, counted from the block's start. */
        operand.first = ls_layout_owned(program, parameter, executor->rank).begin +
                        op->attributes.first_element -
                        ls_layout_position(program, parameter, executor->rank);
    } else if (value->layout != LS_LAYOUT_WHOLE) {
        parameter = ls_layout_parameter(program, id);
        operand.first = ls_layout_owned(program, parameter, executor->rank).begin;
    }
    return operand;
}

static ls_status prepare_op(ls_executor *executor, const ls_op *op, prepared_op *prepared,
                            ls_error *error)
{
    if (!ls_op_is_collective(op->kind) && !ls_op_is_copy(op->kind)) {
        prepared->function = executor->device->operations->function(executor->device, op->kind);
        if (!prepared->function)
            return ls_fail(error, LS_UNSUPPORTED, "device %s has no %s",
                           executor->device->operations->name, ls_op_name(op->kind));
    }
    ls_op_call *call = &prepared->call;
    *call = (ls_op_call){.op = op, .extents = &executor->extents, .owned = range_of(executor, op)};
    for (int i = 0; i < LS_MAX_INPUTS; i++)
        if (op->inputs[i] != LS_NO_VALUE) call->inputs[i] = operand_of(executor, op, op->inputs[i]);
    for (int i = 0; i < LS_MAX_OUTPUTS; i++)
        if (op->outputs[i] != LS_NO_VALUE)
            call->outputs[i] = operand_of(executor, op, op->outputs[i]);
    return LS_OK;
}

/* Each await waits for the last fetch before it into what it reads. */
static void find_fetch(ls_executor *executor, int32_t index)
{
    const ls_op *ops = executor->program->ops;
    int32_t fetch = index;
    while (ops[index].kind == LS_OP_AWAIT && fetch > 0 &&
           (ops[fetch].kind != LS_OP_FETCH || ops[fetch].outputs[0] != ops[index].inputs[0]))
        fetch--;
    executor->ops[index].fetch = fetch;
}

static ls_status prepare_ops(ls_executor *executor, ls_error *error)
{
    const ls_program *program = executor->program;
    LS_TRY(LS_NEW(executor->ops, program->op_count + 1, "prepared ops", error));
    LS_TRY(LS_NEW(executor->bound, program->value_count + 1, "prepared ops", error));
    for (int32_t i = 0; i < program->op_count; i++) {
        LS_TRY(prepare_op(executor, &program->ops[i], &executor->ops[i], error));
        find_fetch(executor, i);
    }
    while (executor->backward_begin < program->op_count &&
           !program->ops[executor->backward_begin].backward)
        executor->backward_begin++;
    return LS_OK;
}

ls_status ls_executor_new(ls_executor **out, const ls_executor_options *options, ls_error *error)
{
    ls_executor *executor = NULL;
    LS_TRY(LS_NEW(executor, 1, "executor", error));
    executor->program = options->program;
    executor->plan = options->plan;
    executor->device = options->device;
    executor->host = options->host;
    executor->rank = options->rank;
    executor->poison = options->poison || (options->host && options->host->poison);
    ls_status status = take_arenas(executor, options, error);
    if (status == LS_OK) status = take_offload(executor, options, error);
    if (status == LS_OK) status = prepare_ops(executor, error);
    if (status != LS_OK) {
        ls_executor_free(executor);
        return status;
    }
    *out = executor;
    return LS_OK;
}

void ls_executor_free(ls_executor *executor)
{
    if (!executor) return;
    /* First of all: it may still read the staging blocks. */
    if (!executor->host) ls_offload_free(executor->offload);
    for (ls_plan_arena arena = 0; arena < LS_PLAN_SCRATCH; arena++)
        if (!executor->host || !shared_with_host(arena))
            executor->device->operations->release(executor->device, executor->arenas[arena]);
    ls_free(executor->ops);
    ls_free(executor->bound);
    ls_free(executor);
}

ls_device *ls_executor_device(const ls_executor *executor)
{
    return executor->device;
}

void *ls_executor_address(const ls_executor *executor, ls_value_id value)
{
    if (value == LS_NO_VALUE || executor->plan->offset[value] < 0 ||
        !ls_plan_is_on_device(executor->plan->arena[value]))
        return NULL;
    unsigned char *arena = executor->arenas[executor->plan->arena[value]];
    int64_t place = 0;
    if (ls_value_of(executor->program, value)->layout == LS_LAYOUT_RUN)
        place = ls_layout_place(executor->program, value, executor->rank) * (int64_t)sizeof(float);
    return arena + executor->plan->offset[value] + place;
}

ls_range ls_executor_held(const ls_executor *executor, ls_value_id value)
{
    ls_value_id parameter = ls_layout_parameter(executor->program, value);
    if (ls_value_of(executor->program, value)->layout != LS_LAYOUT_WHOLE)
        return ls_layout_owned(executor->program, parameter, executor->rank);
    return (ls_range){0, ls_value_elements(ls_value_of(executor->program, parameter), &fixed)};
}

ls_offload *ls_executor_offload(const ls_executor *executor)
{
    return executor->offload;
}

ls_status ls_executor_check(const ls_executor *executor, ls_error *error)
{
    return executor->offload ? ls_offload_check(executor->offload, error) : LS_OK;
}

void *ls_executor_arena(const ls_executor *executor, ls_plan_arena arena)
{
    return executor->arenas[arena];
}

void ls_executor_set_exchange(ls_executor *executor, ls_exchange_function function, void *context)
{
    executor->exchange = function;
    executor->exchange_context = context;
}

void ls_executor_bind(ls_executor *executor, ls_value_id value, void *address)
{
    if (value == LS_NO_VALUE) return;
    executor->bound[value] = address;
    for (int32_t i = 0; i < executor->program->op_count; i++)
        for (int in = 0; in < LS_MAX_INPUTS; in++)
            if (executor->program->ops[i].inputs[in] == value)
                executor->ops[i].call.inputs[in].data = address;
}

const void *ls_executor_bound(const ls_executor *executor, ls_value_id value)
{
    return executor->bound[value];
}

void ls_executor_write(ls_executor *executor, ls_value_id value, const void *from,
                       const ls_extents *extents)
{
    void *to = ls_executor_address(executor, value);
    if (!to) return; /* an input that this program does not read */
    int64_t bytes = ls_value_bytes(ls_value_of(executor->program, value), extents);
    executor->device->operations->upload(executor->device, to, from, bytes);
}

void ls_executor_read(ls_executor *executor, ls_value_id value, void *to, const ls_extents *extents)
{
    int64_t bytes = ls_value_bytes(ls_value_of(executor->program, value), extents);
    executor->device->operations->download(executor->device, to,
                                           ls_executor_address(executor, value), bytes);
    executor->device->operations->wait(executor->device);
}

ls_status ls_executor_get(ls_executor *executor, ls_value_id value, int64_t first, int64_t count,
                          float *to, ls_error *error)
{
    if (ls_value_is_offloaded(ls_value_of(executor->program, value)))
        return ls_offload_read(executor->offload, value, first, count, to, error);
    const float *from = ls_executor_address(executor, value);
    from += first - ls_executor_held(executor, value).begin;
    executor->device->operations->download(executor->device, to, from, count * (int64_t)sizeof *to);
    executor->device->operations->wait(executor->device);
    return LS_OK;
}

ls_status ls_executor_put(ls_executor *executor, ls_value_id value, int64_t first, int64_t count,
                          const float *from, ls_error *error)
{
    if (ls_value_is_offloaded(ls_value_of(executor->program, value)))
        return ls_offload_write(executor->offload, value, first, count, from, error);
    float *to = ls_executor_address(executor, value);
    to += first - ls_executor_held(executor, value).begin;
    executor->device->operations->upload(executor->device, to, from, count * (int64_t)sizeof *from);
    executor->device->operations->wait(executor->device);
    return LS_OK;
}

void ls_executor_measure(ls_executor *executor, ls_op_measure *measures)
{
    executor->measures = measures;
}

void ls_executor_observe(ls_executor *executor, ls_op_observer observer, void *context)
{
    executor->observer = observer;
    executor->observer_context = context;
}

int ls_executor_rank(const ls_executor *executor)
{
    return executor->rank;
}

static void poison(const ls_executor *executor, unsigned char *to, int64_t bytes)
{
    unsigned char piece[4096];
    memset(piece, 0xff, sizeof piece);
    for (int64_t at = 0; at < bytes; at += (int64_t)sizeof piece) {
        int64_t left = bytes - at;
        executor->device->operations->upload(executor->device, to + at, piece,
                                             left < (int64_t)sizeof piece ? left
                                                                          : (int64_t)sizeof piece);
    }
}

/* After the last op that uses it, a value's bytes are anyone's. What the last op of all writes is
 * read by the host. */
static void poison_ended(const ls_executor *executor, int32_t index)
{
    const ls_program *program = executor->program;
    for (ls_value_id id = 0; index + 1 < program->op_count && id < program->value_count; id++) {
        /* What is stored is read by the copy queue after the op that enqueues it. */
        bool transient = ls_plan_is_transient(executor->plan->arena[id]) &&
                         executor->plan->arena[id] != LS_PLAN_STAGING;
        if (!transient || executor->plan->last[id] != index || executor->plan->offset[id] < 0)
            continue;
        poison(executor, ls_executor_address(executor, id),
               ls_value_bytes(ls_value_of(program, id), &executor->plan->capacity));
    }
}

static void run_copy(ls_executor *executor, prepared_op *prepared)
{
    if (prepared->call.op->kind == LS_OP_AWAIT)
        ls_offload_wait_for(executor->offload, executor->ops[prepared->fetch].number);
    else
        prepared->number = ls_offload_enqueue(executor->offload, &prepared->call);
}

void ls_executor_trace(ls_executor *executor, ls_track *track)
{
    executor->track = track;
}

ls_run_times ls_executor_times(const ls_executor *executor)
{
    return executor->times;
}

static ls_cost cost_of(const ls_executor *executor, int32_t index, const ls_extents *extents)
{
    const ls_op *op = &executor->program->ops[index];
    return executor->program->definitions[op->kind]->cost(executor->program, op, extents);
}

static bool runs(const ls_executor *executor, int32_t index, unsigned segments)
{
    return segments >> executor->program->ops[index].segment & 1;
}

/* By the device; collectives and copies are others' work. */
static bool is_computed(const ls_executor *executor, int32_t index)
{
    ls_op_kind kind = executor->program->ops[index].kind;
    return !ls_op_is_collective(kind) && !ls_op_is_copy(kind);
}

double ls_executor_flops(const ls_executor *executor, unsigned segments, const ls_extents *extents)
{
    double flops = 0;
    for (int32_t i = 0; i < executor->program->op_count; i++)
        if (runs(executor, i, segments) && is_computed(executor, i))
            flops += cost_of(executor, i, extents).flops;
    return flops;
}

static void run_exchange(ls_executor *executor, int32_t index)
{
    double start = ls_seconds();
    executor->exchange(executor->exchange_context, &executor->ops[index].call);
    if (index < executor->backward_begin)
        executor->times.exchange_before += ls_seconds() - start;
    else
        executor->times.exchange_after += ls_seconds() - start;
}

static void run_op(ls_executor *executor, int32_t index)
{
    prepared_op *prepared = &executor->ops[index];
    (void)ls_fault_point(executor, "op");
    if (prepared->function)
        prepared->function(executor->device, &prepared->call);
    else if (ls_op_is_copy(prepared->call.op->kind))
        run_copy(executor, prepared);
    else
        run_exchange(executor, index);
    if (executor->observer) {
        executor->device->operations->wait(executor->device);
        if (!executor->observer(executor->observer_context, &prepared->call))
            executor->observer = NULL;
    }
    if (executor->poison) poison_ended(executor, index);
}

/* Waits for the op, so that the time is its own. */
static void run_measured(ls_executor *executor, int32_t index)
{
    ls_span span = {.op = index,
                    .tokens = (int32_t)executor->extents.size[LS_SYMBOL_TOKENS],
                    .samples = (int32_t)executor->extents.size[LS_SYMBOL_SEQUENCES]};
    span.begin = ls_seconds();
    run_op(executor, index);
    executor->device->operations->wait(executor->device);
    span.end = ls_seconds();
    ls_track_add(executor->track, &span);
    if (!executor->measures) return;
    ls_op_measure *measure = &executor->measures[index];
    ls_cost cost = cost_of(executor, index, &executor->extents);
    measure->seconds += span.end - span.begin;
    measure->flops += cost.flops;
    measure->bytes += cost.bytes;
    measure->runs++;
}

void ls_executor_run(ls_executor *executor, unsigned segments, const ls_extents *extents)
{
    bool measured = executor->measures || ls_track_is_on(executor->track);
    executor->extents = *extents;
    executor->extents.size[LS_SYMBOL_NONE] = 1;
    executor->times = (ls_run_times){0};
    for (int32_t i = 0; i < executor->program->op_count; i++) {
        if (!runs(executor, i, segments)) continue;
        if ((segments & LS_RUN_COLLECTIVES) && is_computed(executor, i)) continue;
        if (i >= executor->backward_begin && executor->times.backward_began == 0) {
            executor->device->operations->wait(executor->device);
            executor->times.backward_began = ls_seconds();
        }
        if (measured)
            run_measured(executor, i);
        else
            run_op(executor, i);
    }
    executor->device->operations->wait(executor->device);
    if (executor->times.backward_began == 0) executor->times.backward_began = ls_seconds();
}

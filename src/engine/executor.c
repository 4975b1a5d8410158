#include "base/alloc.h"
#include "engine/executor_internal.h"

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
    return (ls_range){0, ls_value_elements(ls_value_of(program, id), &ls_fixed_extents)};
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

static ls_status prepare_op(ls_executor *executor, const ls_op *op, ls_prepared_op *prepared,
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
    return (ls_range){
        0, ls_value_elements(ls_value_of(executor->program, parameter), &ls_fixed_extents)};
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

int ls_executor_rank(const ls_executor *executor)
{
    return executor->rank;
}

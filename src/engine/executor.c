#include "engine/executor.h"

#include "base/alloc.h"
#include "base/clock.h"

typedef struct prepared_op {
    ls_device_function function;
    ls_op_call call;
} prepared_op;

struct ls_executor {
    const ls_program *program;
    const ls_plan *plan;
    ls_device *device;
    const ls_executor *host;
    int rank;
    void *arenas[LS_PLAN_ARENA_COUNT];
    prepared_op *ops;
    const void **bound; /* [values] address of each host value */
    ls_exchange_function exchange;
    void *exchange_context;
    ls_extents extents;      /* of the run that goes on; the calls point here */
    ls_op_measure *measures; /* NULL: nothing is measured */
    ls_op_observer observer; /* NULL: nobody looks */
    void *observer_context;
};

static bool shared_with_host(ls_plan_arena arena)
{
    return arena == LS_PLAN_PARAMETERS || arena == LS_PLAN_ACTIVATIONS;
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
            bool dense = arena != LS_PLAN_ACTIVATIONS;
            LS_TRY(executor->device->operations->allocate(executor->device, bytes, dense,
                                                          ls_plan_arena_name(arena),
                                                          &executor->arenas[arena], error));
        }
    }
    if (options->host) return LS_OK;
    return executor->device->operations->reserve_scratch(executor->device, &options->limits, error);
}

static ls_status prepare_op(ls_executor *executor, const ls_op *op, prepared_op *prepared,
                            ls_error *error)
{
    if (op->segment != LS_SEGMENT_EXCHANGE)
        prepared->function = executor->device->operations->function(executor->device, op->kind);
    if (!prepared->function && op->segment != LS_SEGMENT_EXCHANGE)
        return ls_fail(error, LS_UNSUPPORTED, "device %s has no %s",
                       executor->device->operations->name, ls_op_name(op->kind));
    ls_op_call *call = &prepared->call;
    *call = (ls_op_call){.op = op, .extents = &executor->extents};
    for (int i = 0; i < LS_MAX_INPUTS; i++)
        if (op->inputs[i] != LS_NO_VALUE)
            call->inputs[i] = (ls_operand){ls_value_of(executor->program, op->inputs[i]),
                                           ls_executor_address(executor, op->inputs[i])};
    for (int i = 0; i < LS_MAX_OUTPUTS; i++)
        if (op->outputs[i] != LS_NO_VALUE)
            call->outputs[i] = (ls_operand){ls_value_of(executor->program, op->outputs[i]),
                                            ls_executor_address(executor, op->outputs[i])};
    return LS_OK;
}

static ls_status prepare_ops(ls_executor *executor, ls_error *error)
{
    const ls_program *program = executor->program;
    LS_TRY(LS_NEW(executor->ops, program->op_count + 1, "prepared ops", error));
    LS_TRY(LS_NEW(executor->bound, program->value_count + 1, "prepared ops", error));
    for (int32_t i = 0; i < program->op_count; i++)
        LS_TRY(prepare_op(executor, &program->ops[i], &executor->ops[i], error));
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
    ls_status status = take_arenas(executor, options, error);
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

int ls_executor_rank(const ls_executor *executor)
{
    return executor->rank;
}

void *ls_executor_address(const ls_executor *executor, ls_value_id value)
{
    if (value == LS_NO_VALUE || executor->plan->offset[value] < 0) return NULL;
    unsigned char *arena = executor->arenas[executor->plan->arena[value]];
    return arena + executor->plan->offset[value];
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

void ls_executor_measure(ls_executor *executor, ls_op_measure *measures)
{
    executor->measures = measures;
}

void ls_executor_observe(ls_executor *executor, ls_op_observer observer, void *context)
{
    executor->observer = observer;
    executor->observer_context = context;
}

static void run_op(ls_executor *executor, int32_t index)
{
    const prepared_op *prepared = &executor->ops[index];
    if (prepared->function)
        prepared->function(executor->device, &prepared->call);
    else
        executor->exchange(executor->exchange_context, &prepared->call);
}

static void run_observed(ls_executor *executor, int32_t index)
{
    run_op(executor, index);
    executor->device->operations->wait(executor->device);
    if (!executor->observer(executor->observer_context, &executor->ops[index].call))
        executor->observer = NULL;
}

static void run_measured(ls_executor *executor, int32_t index)
{
    const ls_op *op = executor->ops[index].call.op;
    ls_op_measure *measure = &executor->measures[index];
    ls_cost cost =
        executor->program->definitions[op->kind]->cost(executor->program, op, &executor->extents);
    double start = ls_seconds();
    run_op(executor, index);
    executor->device->operations->wait(executor->device);
    measure->seconds += ls_seconds() - start;
    measure->flops += cost.flops;
    measure->bytes += cost.bytes;
    measure->runs++;
}

void ls_executor_run(ls_executor *executor, unsigned segments, const ls_extents *extents)
{
    executor->extents = *extents;
    executor->extents.size[LS_SYMBOL_NONE] = 1;
    for (int32_t i = 0; i < executor->program->op_count; i++) {
        if (!(segments >> executor->program->ops[i].segment & 1)) continue;
        if (executor->measures)
            run_measured(executor, i);
        else if (executor->observer)
            run_observed(executor, i);
        else
            run_op(executor, i);
    }
    executor->device->operations->wait(executor->device);
}

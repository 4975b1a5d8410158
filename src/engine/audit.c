#include "engine/audit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/leaf_schedule.h"
#include "comm/tree.h"
#include "engine/faults.h"
#include "engine/feeder.h"

/* Numbers are hashed in pieces that fit on the stack. */
enum { PIECE = 4096 };

struct ls_audit {
    const ls_assembly *assembly;
    ls_executor *host;
    ls_plan plan; /* the assembly's, without what the second pass shares or never reads */
    ls_executor *executor;
    ls_feeder *feeder;
    ls_state state;
    uint64_t *tensors;           /* [state.count] hashes */
    uint64_t *passed, *repeated; /* [values] hashes of gradients */
};

int64_t ls_audit_bytes(const ls_assembly *assembly)
{
    const ls_plan *plan = &assembly->plan;
    if (assembly->shard.gradients) return 0;
    return plan->bytes[LS_PLAN_GRADIENTS] + plan->bytes[LS_PLAN_INPUTS] +
           plan->bytes[LS_PLAN_SCALARS];
}

ls_status ls_audit_new(ls_audit **out, const ls_assembly *assembly, ls_executor *executor,
                       ls_error *error)
{
    ls_audit *audit = NULL;
    ls_status status;
    int64_t values = assembly->program->value_count;
    LS_TRY(LS_NEW(audit, 1, "audit", error));
    audit->assembly = assembly;
    audit->host = executor;
    audit->plan = assembly->plan;
    audit->plan.bytes[LS_PLAN_OPTIMIZER_STATE] = 0;
    ls_executor_options second = {.program = assembly->program,
                                  .plan = &audit->plan,
                                  .device = ls_executor_device(executor),
                                  .limits = assembly->limits,
                                  .host = executor,
                                  .rank = ls_executor_rank(executor)};
    if (!assembly->shard.gradients) {
        LS_TRY_GOTO(status, ls_executor_new(&audit->executor, &second, error), fail);
        LS_TRY_GOTO(status, ls_feeder_new(&audit->feeder, assembly, audit->executor, error), fail);
    }
    LS_TRY_GOTO(status, ls_state_list(&audit->state, assembly, error), fail);
    LS_TRY_GOTO(status, LS_NEW(audit->tensors, audit->state.count + 1, "audit", error), fail);
    LS_TRY_GOTO(status, LS_NEW(audit->passed, values, "audit", error), fail);
    LS_TRY_GOTO(status, LS_NEW(audit->repeated, values, "audit", error), fail);
    *out = audit;
    return LS_OK;
fail:
    ls_audit_free(audit);
    return status;
}

void ls_audit_free(ls_audit *audit)
{
    if (!audit) return;
    ls_feeder_free(audit->feeder);
    ls_executor_free(audit->executor);
    ls_state_deinit(&audit->state);
    ls_free(audit->tensors);
    ls_free(audit->passed);
    ls_free(audit->repeated);
    ls_free(audit);
}

/* --- hashes ---------------------------------------------------------------------------------- */

static uint64_t hash_more(ls_device *device, const float *data, int64_t count, uint64_t hash)
{
    float piece[PIECE];
    for (int64_t at = 0; at < count; at += PIECE) {
        int64_t here = count - at < PIECE ? count - at : PIECE;
        device->operations->download(device, piece, data + at, here * (int64_t)sizeof *piece);
        device->operations->wait(device);
        hash = XXH3_64bits_withSeed(piece, (size_t)here * sizeof *piece, hash);
    }
    return hash;
}

static bool is_held_by_all(const ls_audit *audit, ls_value_id value)
{
    return ls_value_of(audit->assembly->program, value)->layout == LS_LAYOUT_WHOLE;
}

ls_status ls_audit_hash_state(ls_audit *audit, ls_error *error)
{
    float piece[PIECE];
    LS_TRY(ls_fault_weights(audit->host, audit->assembly, "audit", error));
    for (size_t i = 0; i < audit->state.count; i++) {
        const ls_state_tensor *tensor = &audit->state.tensors[i];
        uint64_t hash = 0;
        for (int64_t at = 0; at < tensor->elements && is_held_by_all(audit, tensor->value);
             at += PIECE) {
            int64_t count = tensor->elements - at < PIECE ? tensor->elements - at : PIECE;
            LS_TRY(ls_executor_get(audit->host, tensor->value, at, count, piece, error));
            hash = XXH3_64bits_withSeed(piece, (size_t)count * sizeof *piece, hash);
        }
        audit->tensors[i] = hash;
    }
    return LS_OK;
}

/* Of a table's row: those roots of the rank that have a token of it lie in its first slots. */
static int row_slots(const ls_touched_rows *touched, const ls_step_roots *roots, int rank,
                     int64_t row)
{
    int slots = 0;
    if (!touched->present) return 1;
    for (int32_t root = 0; root < roots->count; root++)
        slots += roots->roots[root].rank == rank && touched->present[row * roots->count + root];
    return slots;
}

/* The partial sums that `rank` has of one gradient; slots and rows beyond hold what was there. */
static uint64_t hash_gradient(const ls_audit *audit, const ls_executor *executor, ls_value_id id,
                              int rank)
{
    const ls_program *program = audit->assembly->program;
    const ls_value *value = ls_value_of(program, id);
    const float *data = ls_executor_address(executor, id);
    ls_device *device = ls_executor_device(executor);
    const ls_step_roots *roots = ls_executor_bound(executor, audit->assembly->model.inputs.roots);
    int64_t stride = ls_value_elements(value, &ls_fixed_extents) / value->shape[0].constant;
    uint64_t hash = 0;
    if (!value->row_sparse) {
        for (int32_t root = 0; root < roots->count; root++)
            if (roots->roots[root].rank == rank)
                hash = hash_more(device, data + roots->roots[root].slot * stride, stride, hash);
        return hash;
    }
    const ls_touched_rows *touched = ls_executor_bound(executor, value->touched);
    int64_t width = value->shape[2].constant;
    for (int64_t row = 0; row < touched->count; row++)
        for (int slot = row_slots(touched, roots, rank, row); slot-- > 0;)
            hash = hash_more(device, data + slot * stride + row * width, width, hash);
    return hash;
}

static void hash_gradients(const ls_audit *audit, const ls_executor *executor, int rank,
                           uint64_t *hashes)
{
    const ls_program *program = audit->assembly->program;
    for (ls_value_id id = 0; id < program->value_count; id++)
        if (ls_value_of(program, id)->role == LS_ROLE_GRADIENT && ls_executor_address(executor, id))
            hashes[id] = hash_gradient(audit, executor, id, rank);
}

void ls_audit_hash_pass(ls_audit *audit, const ls_executor *executor)
{
    hash_gradients(audit, executor, ls_executor_rank(executor), audit->passed);
}

/* --- the second pass ------------------------------------------------------------------------- */

/* Learning rate, random key and the like: what a step writes once. */
static void copy_step_inputs(const ls_audit *audit, ls_executor *from)
{
    const ls_inputs *inputs = &audit->assembly->model.inputs;
    const ls_value_id values[] = {inputs->random_key, inputs->loss_scale};
    uint32_t words[2];
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        if (!ls_executor_address(audit->executor, values[i])) continue;
        ls_executor_read(from, values[i], words, &ls_fixed_extents);
        ls_executor_write(audit->executor, values[i], words, &ls_fixed_extents);
    }
}

void ls_audit_repeat(ls_audit *audit, ls_executor *executor, const ls_batch *batch,
                     int64_t leaf_size, int rank)
{
    copy_step_inputs(audit, executor);
    int32_t passes = ls_feeder_start(audit->feeder, batch, leaf_size, rank);
    for (int32_t pass = 0; pass < passes; pass++) {
        int32_t begin, end;
        ls_feeder_share(audit->feeder, batch, pass, &begin, &end);
        ls_extents extents = ls_feeder_pass(audit->feeder, batch, begin, end);
        ls_executor_run(audit->executor, LS_RUN_PASS, &extents);
    }
    hash_gradients(audit, audit->executor, rank, audit->repeated);
}

/* --- comparing ------------------------------------------------------------------------------- */

ls_audit_hashes ls_audit_hashes_of(const ls_audit *audit)
{
    return (ls_audit_hashes){.tensors = (int64_t)audit->state.count,
                             .values = audit->assembly->program->value_count,
                             .state = audit->tensors,
                             .passed = audit->passed,
                             .repeated = audit->repeated};
}

/* The hashes of one tensor on all ranks. */
typedef struct column {
    const uint64_t *first;
    size_t stride;
    int ranks;
} column;

static uint64_t hash_of(const column *hashes, int rank)
{
    return hashes->first[(size_t)rank * hashes->stride];
}

static int votes(const column *hashes, uint64_t hash)
{
    int count = 0;
    for (int rank = 0; rank < hashes->ranks; rank++)
        count += hash_of(hashes, rank) == hash;
    return count;
}

static ls_status fail_state(const char *tensor, const column *hashes, int64_t step, ls_error *error)
{
    uint64_t most = hash_of(hashes, 0);
    char list[300] = "";
    for (int rank = 1; rank < hashes->ranks; rank++)
        if (votes(hashes, hash_of(hashes, rank)) > votes(hashes, most))
            most = hash_of(hashes, rank);
    bool majority = 2 * votes(hashes, most) > hashes->ranks;
    int named = 0;
    for (int rank = 0; rank < hashes->ranks; rank++) {
        size_t used = strlen(list);
        if (majority && hash_of(hashes, rank) == most) continue;
        snprintf(list + used, sizeof list - used, "%s%d", named++ ? ", " : "", rank);
    }
    return ls_fail(error, LS_DIFFERENT,
                   "audit before step %" PRId64
                   ": tensor %s is not the same on all ranks: %s %s %s. Memory or a processor made "
                   "an error there; no checkpoint is written",
                   step, tensor, named == 1 ? "rank" : "ranks", list,
                   majority ? (named == 1 ? "is in the minority" : "are in the minority")
                            : "differ, with no majority that tells which is right");
}

ls_status ls_audit_compare_state(const ls_audit *audit, const uint64_t *state, int ranks,
                                 int64_t step, ls_error *error)
{
    for (size_t tensor = 0; tensor < audit->state.count; tensor++) {
        column hashes = {state + tensor, audit->state.count, ranks};
        if (votes(&hashes, hash_of(&hashes, 0)) < ranks)
            return fail_state(audit->state.tensors[tensor].name, &hashes, step, error);
    }
    return LS_OK;
}

ls_status ls_audit_compare_pass(const ls_audit *audit, const uint64_t *passed,
                                const uint64_t *repeated, int rank, int checker, int64_t step,
                                ls_error *error)
{
    const ls_program *program = audit->assembly->program;
    for (ls_value_id id = 0; id < program->value_count; id++) {
        if (ls_value_of(program, id)->role != LS_ROLE_GRADIENT) continue;
        if (passed[id] == repeated[id]) continue;
        char who[64];
        snprintf(who, sizeof who, "ranks %d and %d", rank, checker);
        return ls_fail(error, LS_DIFFERENT,
                       "audit of step %" PRId64
                       ": the gradient of tensor %s is not the same when the pass of rank %d is "
                       "computed again by rank %d. Memory or a processor of %s made an error; no "
                       "checkpoint is written",
                       step, ls_value_of(program, ls_value_of(program, id)->parameter)->name, rank,
                       checker, rank == checker ? "this machine" : who);
    }
    return LS_OK;
}

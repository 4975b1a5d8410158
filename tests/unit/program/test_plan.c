/* The memory plan: no two values that are alive at the same time share a byte, checked by brute
 * force on the models' programs and on random ones; and it wastes little. */
#include "tiny_programs.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"

static ls_error error;

/* Ops [first, last] between which a value's bytes must not change; first -1: never used. */
typedef struct life {
    int32_t first, last;
} life;

static bool uses(const ls_op *op, const ls_program *program, ls_value_id storage)
{
    for (int i = 0; i < LS_MAX_INPUTS; i++)
        if (op->inputs[i] != LS_NO_VALUE && program->values[op->inputs[i]].storage == storage)
            return true;
    for (int i = 0; i < LS_MAX_OUTPUTS; i++)
        if (op->outputs[i] != LS_NO_VALUE && program->values[op->outputs[i]].storage == storage)
            return true;
    if (!ls_op_is_collective(op->kind)) return false;
    const ls_bucket *bucket = &program->buckets[op->attributes.bucket];
    for (int32_t i = 0; i < bucket->count; i++)
        if (bucket->values[i] == storage || ls_bucket_result(bucket, i) == storage) return true;
    return false;
}

static bool is_transient(const ls_value *value)
{
    return value->role == LS_ROLE_ACTIVATION || value->role == LS_ROLE_COMMUNICATION;
}

static life life_of(const ls_program *program, ls_value_id storage)
{
    life l = {-1, -1};
    for (int32_t i = 0; i < program->op_count; i++) {
        if (!uses(&program->ops[i], program, storage)) continue;
        if (l.first < 0) l.first = i;
        l.last = i;
    }
    /* Everything else stays through the step. */
    if (!is_transient(&program->values[storage]) && l.first >= 0) l = (life){0, program->op_count};
    return l;
}

/* Of a storage: its largest value. */
static int64_t bytes_of(const ls_program *program, ls_value_id storage, const ls_extents *capacity)
{
    int64_t most = 0;
    for (ls_value_id id = 0; id < program->value_count; id++)
        if (program->values[id].storage == storage) {
            int64_t bytes = ls_value_bytes(&program->values[id], capacity);
            if (bytes > most) most = bytes;
        }
    return most;
}

static void check_places(const ls_program *program, const ls_plan *plan, const life *lives)
{
    for (ls_value_id id = 0; id < program->value_count; id++) {
        const ls_value *value = &program->values[id];
        int64_t offset = plan->offset[id];
        if (value->layout == LS_LAYOUT_RUN) {
            assert_true(offset == plan->offset[value->run]);
            continue; /* see test_layout.c */
        }
        assert_true(offset == plan->offset[value->storage]);
        assert_int_equal(plan->arena[id], plan->arena[value->storage]);
        bool needed = lives[value->storage].first >= 0 && value->space == LS_SPACE_DEVICE;
        assert_int_equal(offset >= 0, needed);
        if (!needed) continue;
        assert_int_equal(offset % LS_PLAN_ALIGNMENT, 0);
        assert_true(offset + ls_value_bytes(value, &plan->capacity) <=
                    plan->bytes[plan->arena[id]]);
    }
}

static void check_overlaps(const ls_program *program, const ls_plan *plan, const life *lives,
                           const int64_t *bytes)
{
    for (ls_value_id a = 0; a < program->value_count; a++)
        for (ls_value_id b = 0; b < a; b++) {
            if (program->values[a].storage != a || program->values[b].storage != b) continue;
            if (plan->offset[a] < 0 || plan->offset[b] < 0) continue;
            if (plan->arena[a] != plan->arena[b]) continue;
            if (program->values[a].layout == LS_LAYOUT_RUN) continue;
            if (program->values[b].layout == LS_LAYOUT_RUN) continue;
            bool together = lives[a].first <= lives[b].last && lives[b].first <= lives[a].last;
            bool overlap = plan->offset[a] < plan->offset[b] + bytes[b] &&
                           plan->offset[b] < plan->offset[a] + bytes[a];
            if (together && overlap && bytes[a] && bytes[b])
                fail_msg("%s at %lld and %s at %lld overlap", program->values[a].name,
                         (long long)plan->offset[a], program->values[b].name,
                         (long long)plan->offset[b]);
        }
}

/* The least that any plan of such values could take: what lives at once. */
static int64_t most_at_once(const ls_program *program, const life *lives, const int64_t *bytes,
                            ls_role role)
{
    int64_t most = 0;
    for (int32_t i = 0; i < program->op_count; i++) {
        int64_t sum = 0;
        for (ls_value_id id = 0; id < program->value_count; id++)
            if (program->values[id].storage == id && program->values[id].role == role &&
                lives[id].first <= i && i <= lives[id].last && lives[id].first >= 0)
                sum += (bytes[id] + LS_PLAN_ALIGNMENT - 1) / LS_PLAN_ALIGNMENT * LS_PLAN_ALIGNMENT;
        if (sum > most) most = sum;
    }
    return most;
}

/* Returns how many times the least possible the activations take. */
static double check_plan(const ls_program *program, const ls_plan *plan)
{
    life *lives = calloc((size_t)program->value_count, sizeof *lives);
    int64_t *bytes = calloc((size_t)program->value_count, sizeof *bytes);
    for (ls_value_id id = 0; id < program->value_count; id++) {
        lives[id] = life_of(program, id);
        bytes[id] = bytes_of(program, id, &plan->capacity);
    }
    check_places(program, plan, lives);
    check_overlaps(program, plan, lives, bytes);
    int64_t least = most_at_once(program, lives, bytes, LS_ROLE_ACTIVATION);
    int64_t sent = most_at_once(program, lives, bytes, LS_ROLE_COMMUNICATION);
    assert_true(plan->bytes[LS_PLAN_ACTIVATIONS] >= least);
    assert_true(plan->bytes[LS_PLAN_COMMUNICATION] >= sent);
    assert_true((double)plan->bytes[LS_PLAN_COMMUNICATION] <= 1.1 * (double)sent);
    int64_t total = 0;
    for (int arena = 0; arena < LS_PLAN_ARENA_COUNT; arena++)
        total += plan->bytes[arena];
    assert_int_equal(total, ls_plan_total(plan));
    free(lives);
    free(bytes);
    return least ? (double)plan->bytes[LS_PLAN_ACTIVATIONS] / (double)least : 1;
}

static void programs_of_models_fit_and_waste_little(void **state)
{
    (void)state;
    static const char *const models[] = {"tiny-bert", "tiny-distilbert"};
    static const int64_t passes[] = {16, 5, 1};
    for (int i = 0; i < 12; i++) {
        tiny_program tiny;
        tiny_program_open(&tiny, models[i % 2], i / 2 % 2, passes[i / 4]);
        double waste = check_plan(tiny.assembly.program, &tiny.assembly.plan);
        if (waste > 1.05)
            fail_msg("%s: activations take %.3f of the least possible", models[i % 2], waste);
        tiny_program_close(&tiny);
    }
}

/* A unit that is gathered shares bytes with those before and after it, not with its neighbours. */
static void what_is_on_its_way_does_not_overlap(void **state)
{
    (void)state;
    static const char *const strategies[] = {"ddp", "zero1", "zero2", "zero3"};
    for (int i = 0; i < 32; i++) {
        tiny_program tiny;
        tiny_program_open_ranks(&tiny, i / 4 % 2 ? "tiny-bert" : "tiny-distilbert", i / 16, 4,
                                strategies[i % 4], i / 8 % 2 ? 2 : 4);
        const ls_assembly *assembly = &tiny.assembly;
        (void)check_plan(assembly->program, &assembly->plan);
        bool sends = i % 4 == 3 || (i / 16 && i % 4);
        assert_int_equal(assembly->plan.bytes[LS_PLAN_COMMUNICATION] > 0, sends);
        tiny_program_close(&tiny);
    }
}

/* --- random programs -------------------------------------------------------------------------- */

static uint32_t draws;

static int32_t draw(int32_t bound)
{
    ls_philox_block block = ls_philox((ls_philox_key){{3, 14}}, (ls_philox_block){{draws++}});
    return (int32_t)(block.word[0] % (uint32_t)bound);
}

static void add_random_value(ls_program *program)
{
    static const ls_role roles[] = {LS_ROLE_ACTIVATION, LS_ROLE_ACTIVATION, LS_ROLE_ACTIVATION,
                                    LS_ROLE_ACTIVATION, LS_ROLE_PARAMETER,  LS_ROLE_INPUT,
                                    LS_ROLE_SCALAR,     LS_ROLE_GRADIENT};
    ls_value value = {.dtype = (ls_dtype)draw(LS_DTYPE_COUNT),
                      .role = roles[draw(8)],
                      .rank = draw(3),
                      .parameter = LS_NO_VALUE,
                      .touched = LS_NO_VALUE};
    for (int i = 0; i < value.rank; i++)
        value.shape[i] = (ls_dimension){(ls_symbol)draw(LS_SYMBOL_COUNT), draw(3), draw(40)};
    if (value.role == LS_ROLE_INPUT && draw(3) == 0) value.space = LS_SPACE_HOST;
    ls_value_id id;
    assert_ok(ls_program_value(program, &id, value, &error, "v%d", program->value_count), error);
    /* A new version of an earlier activation: in its bytes. */
    ls_value_id other = draw(id + 1);
    if (value.role == LS_ROLE_ACTIVATION && draw(4) == 0 &&
        program->values[other].role == LS_ROLE_ACTIVATION)
        program->values[id].storage = program->values[other].storage;
}

static void add_random_op(ls_program *program)
{
    ls_op op = ls_op_of(LS_OP_LINEAR, LS_SEGMENT_PASS, "op");
    for (int i = draw(5); i > 0; i--)
        op.inputs[i] = draw(program->value_count);
    for (int i = draw(3); i >= 0; i--)
        op.outputs[i] = draw(program->value_count);
    assert_ok(ls_program_op(program, &op, &error), error);
}

static void random_programs_do_not_overlap(void **state)
{
    (void)state;
    double waste = 0;
    enum { PROGRAMS = 300 };
    for (int number = 0; number < PROGRAMS; number++) {
        ls_program *program;
        ls_plan plan, again;
        ls_extents capacity = {{1, 1 + draw(50), 1 + draw(9)}};
        assert_ok(ls_program_new(&program, NULL, &error), error);
        for (int i = 1 + draw(60); i > 0; i--)
            add_random_value(program);
        for (int i = draw(80); i > 0; i--)
            add_random_op(program);
        assert_ok(ls_plan_make(&plan, program, &capacity, &error), error);
        waste += check_plan(program, &plan) / PROGRAMS;
        assert_ok(ls_plan_make(&again, program, &capacity, &error), error);
        assert_memory_equal(plan.offset, again.offset,
                            (size_t)program->value_count * sizeof *plan.offset);
        ls_plan_deinit(&plan);
        ls_plan_deinit(&again);
        ls_program_free(program);
    }
    assert_true(waste < 1.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_of_models_fit_and_waste_little),
        cmocka_unit_test(what_is_on_its_way_does_not_overlap),
        cmocka_unit_test(random_programs_do_not_overlap),
    };
    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}

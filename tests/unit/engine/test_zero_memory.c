/* What a rank holds where optimizer state, gradients and parameters are divided: bytes by the
 * formulas, whole tensors in and out, steps without allocations, and values that are used only
 * while they are alive. */
#include "tiny_ranks.h"

#include "base/alloc.h"

/* Values that overlap are data races, which the thread sanitizer would tell of. */
#if defined(__SANITIZE_THREAD__)
enum { MAY_OVERLAP = 0 };
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
enum { MAY_OVERLAP = 0 };
#else
enum { MAY_OVERLAP = 1 };
#endif
#else
enum { MAY_OVERLAP = 1 };
#endif

enum { ROWS = 102, BATCH = 32, STEPS_AN_EPOCH = 4 };

static char *folder;
static const char *train, *alike;

static int setup(void **state)
{
    (void)state;
    folder = test_folder();
    train = strdup(tiny_file(folder, "train.tsv", ROWS));
    alike = strdup(tiny_alike(folder, "alike.tsv", ROWS));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free((char *)train);
    free((char *)alike);
    test_folder_remove(folder);
    return 0;
}

static const char *const strategies[] = {"zero1", "zero2", "zero3"};

static tiny_ranks_options options_of(const char *strategy, int count, int64_t samples_per_pass)
{
    return (tiny_ranks_options){.rows = train,
                                .folder = folder,
                                .strategy = strategy,
                                .count = count,
                                .batch_size = BATCH,
                                .samples_per_pass = samples_per_pass,
                                .poison = true};
}

/* --- what a rank holds ------------------------------------------------------------------------ */

static int64_t aligned(int64_t bytes)
{
    return (bytes + LS_PLAN_ALIGNMENT - 1) / LS_PLAN_ALIGNMENT * LS_PLAN_ALIGNMENT;
}

enum { MOST_UNITS = 32 };

/* Elements of the largest slice of each unit, and of all of it; with or without tables. */
static int find_slices(const ls_assembly *assembly, bool tables, int64_t largest[MOST_UNITS],
                       int64_t all[MOST_UNITS])
{
    int units = 0;
    memset(largest, 0, MOST_UNITS * sizeof *largest);
    for (int rank = 0; rank < assembly->ranks; rank++) {
        int64_t slice[MOST_UNITS] = {0};
        memset(all, 0, MOST_UNITS * sizeof *all);
        for (size_t i = 0; i < assembly->model.parameter_count; i++) {
            ls_value_id id = assembly->model.parameters[i].value;
            const ls_value *value = ls_value_of(assembly->program, id);
            if (value->row_sparse && !tables) continue;
            ls_range owned = ls_layout_owned(assembly->program, id, rank);
            slice[value->unit] += owned.end - owned.begin;
            all[value->unit] += ls_value_elements(value, &ls_fixed_extents);
            if (value->unit >= units) units = value->unit + 1;
        }
        for (int unit = 0; unit < units; unit++)
            if (slice[unit] > largest[unit]) largest[unit] = slice[unit];
    }
    return units;
}

static int64_t sharded_bytes(const ls_assembly *assembly, bool tables)
{
    int64_t largest[MOST_UNITS], all[MOST_UNITS], bytes = 0;
    int units = find_slices(assembly, tables, largest, all);
    for (int unit = 0; unit < units; unit++)
        bytes += aligned(largest[unit] * (int64_t)sizeof(float));
    return bytes;
}

/* The rows of tables that a step can touch, as far as one rank owns them. */
static int64_t table_shard_bytes(const ls_assembly *assembly)
{
    int64_t bytes = 0;
    for (ls_value_id id = 0; id < assembly->program->value_count; id++) {
        const ls_value *value = ls_value_of(assembly->program, id);
        if (value->layout != LS_LAYOUT_ROWS) continue;
        assert_true(value->shape[1].constant <=
                    ls_value_of(assembly->program, value->touched)->shape[0].constant);
        bytes += aligned(ls_value_bytes(value, &ls_fixed_extents));
    }
    return bytes;
}

static void each_stage_divides_one_thing_more(void **state)
{
    (void)state;
    for (int count = 2; count <= TINY_MOST_RANKS; count++) {
        tiny_ranks ddp, zero[3];
        tiny_ranks_options options = options_of("ddp", count, LS_SAMPLES_ALL);
        tiny_ranks_plan(&ddp, &options);
        const int64_t *whole = ddp.programs.training.plan.bytes;
        for (int stage = 1; stage <= 3; stage++) {
            options.strategy = strategies[stage - 1];
            tiny_ranks_plan(&zero[stage - 1], &options);
            const ls_assembly *assembly = &zero[stage - 1].programs.training;
            const int64_t *bytes = assembly->plan.bytes;
            int64_t all = sharded_bytes(assembly, true), dense = sharded_bytes(assembly, false);
            assert_int_equal(bytes[LS_PLAN_OPTIMIZER_STATE], 2 * all);
            assert_int_equal(bytes[LS_PLAN_GRADIENTS], stage < 2
                                                           ? whole[LS_PLAN_GRADIENTS]
                                                           : dense + table_shard_bytes(assembly));
            assert_int_equal(bytes[LS_PLAN_PARAMETERS],
                             stage < 3 ? whole[LS_PLAN_PARAMETERS] : all);
            assert_int_equal(bytes[LS_PLAN_ACTIVATIONS] <= whole[LS_PLAN_ACTIVATIONS], 1);
            tiny_ranks_close(&zero[stage - 1]);
        }
        tiny_ranks_close(&ddp);
    }
}

/* A small BERT: units of many blocks, as real models have. */
static void plan_small_bert(ls_assembly *assembly, const ls_model_config *config,
                            const ls_device *device, const char *strategy, int ranks)
{
    ls_error error;
    ls_assembly_options options = {.config = config,
                                   .classes = 2,
                                   .training = true,
                                   .batch_size = BATCH,
                                   .leaf_size = 4,
                                   .strategy = strategy,
                                   .ranks = ranks,
                                   .bucket_bytes = 25 << 20,
                                   .samples_per_pass = BATCH,
                                   .longest_row = 64};
    assert_ok(ls_assembly_make(assembly, &options, device, &error), error);
}

static void bytes_are_those_of_the_formulas(void **state)
{
    (void)state;
    ls_error error;
    ls_device *device;
    ls_model_config config;
    assert_ok(ls_cpu_device_new(&device, 1, 0, &error), error);
    assert_ok(ls_model_config_load(&config, tiny_model("tiny-bert"), &error), error);
    config.hidden_size = 384;
    config.heads = 12;
    config.intermediate_size = 1536;
    config.layers = 6;
    config.vocab_size = 30522;
    config.max_positions = 512;
    for (int ranks = 2; ranks <= 8; ranks *= 2) {
        ls_assembly ddp, zero[3];
        int64_t largest[MOST_UNITS], all[MOST_UNITS], p = 0, dense = 0;
        plan_small_bert(&ddp, &config, device, "ddp", ranks);
        for (int stage = 1; stage <= 3; stage++)
            plan_small_bert(&zero[stage - 1], &config, device, strategies[stage - 1], ranks);
        int units = find_slices(&zero[0], false, largest, all);
        for (int unit = 0; unit < units; unit++)
            dense += all[unit];
        units = find_slices(&zero[0], true, largest, all);
        for (int unit = 0; unit < units; unit++) {
            p += all[unit];
            /* Cuts are at blocks, so a slice is at most a block off. */
            assert_true(largest[unit] >= all[unit] / ranks);
            assert_true(largest[unit] <= all[unit] / ranks + LS_BLOCK);
        }
        int64_t padding = units * (LS_BLOCK * (int64_t)sizeof(float) + LS_PLAN_ALIGNMENT);
        for (int stage = 1; stage <= 3; stage++) {
            const int64_t *bytes = zero[stage - 1].plan.bytes;
            int64_t state_bytes = bytes[LS_PLAN_OPTIMIZER_STATE], shard = 4 * p / ranks;
            assert_in_range(state_bytes, 2 * shard, 2 * (shard + padding));
            if (stage >= 2) {
                int64_t gradients = bytes[LS_PLAN_GRADIENTS] - table_shard_bytes(&zero[stage - 1]);
                /* The embeddings' few dense elements are one rank's. */
                assert_in_range(gradients, 4 * dense / ranks,
                                4 * dense / ranks + padding + 4 * 2 * config.hidden_size);
            }
            if (stage == 3) assert_in_range(bytes[LS_PLAN_PARAMETERS], shard, shard + padding);
        }
        /* Of tables a step touches few rows, so gradients are no full quarter of it all. */
        const int64_t *few = zero[2].plan.bytes, *whole = ddp.plan.bytes;
        double part = (double)(few[LS_PLAN_PARAMETERS] + few[LS_PLAN_GRADIENTS] +
                               few[LS_PLAN_OPTIMIZER_STATE]) /
                      (double)(whole[LS_PLAN_PARAMETERS] + whole[LS_PLAN_GRADIENTS] +
                               whole[LS_PLAN_OPTIMIZER_STATE]);
        assert_true(part < 1.4 / ranks);
        for (int stage = 1; stage <= 3; stage++)
            ls_assembly_deinit(&zero[stage - 1]);
        ls_assembly_deinit(&ddp);
    }
    ls_model_config_deinit(&config);
    ls_device_free(device);
}

static void units_are_really_divided(void **state)
{
    (void)state;
    for (int count = 2; count <= TINY_MOST_RANKS; count++) {
        tiny_ranks r;
        tiny_ranks_options options = options_of("zero3", count, LS_SAMPLES_ALL);
        tiny_ranks_plan(&r, &options);
        const ls_program *program = r.programs.training.program;
        int owners[MOST_UNITS] = {0}, units = 0;
        for (int rank = 0; rank < count; rank++) {
            bool owns[MOST_UNITS] = {false};
            for (size_t i = 0; i < r.programs.training.model.parameter_count; i++) {
                ls_value_id id = r.programs.training.model.parameters[i].value;
                ls_range owned = ls_layout_owned(program, id, rank);
                int unit = ls_value_of(program, id)->unit;
                owns[unit] |= owned.begin < owned.end;
                if (unit >= units) units = unit + 1;
            }
            for (int unit = 0; unit < units; unit++)
                owners[unit] += owns[unit];
        }
        /* Embeddings and layers on nearly all ranks; the head has five blocks, one of them large.
         */
        for (int unit = 0; unit < units; unit++)
            assert_in_range(owners[unit], unit + 1 < units && count <= 6 ? count : 2, count);
        tiny_ranks_close(&r);
    }
}

/* Gathers of a pass by unit, of a step's update by parameter: each layer twice, forward and
 * backward; a step's parameters once. */
static void units_are_really_gathered(void **state)
{
    (void)state;
    for (int s = 0; s < 3; s++) {
        tiny_ranks r;
        tiny_ranks_options options = options_of(strategies[s], 4, LS_SAMPLES_ALL);
        tiny_ranks_plan(&r, &options);
        const ls_program *program = r.programs.training.program;
        int in_pass[MOST_UNITS] = {0}, in_update = 0;
        for (int32_t i = 0; i < program->op_count; i++) {
            const ls_op *op = &program->ops[i];
            if (op->kind != LS_OP_GATHER) continue;
            const ls_bucket *bucket = &program->buckets[op->attributes.bucket];
            const ls_value *first = ls_value_of(program, bucket->values[0]);
            if (op->segment == LS_SEGMENT_PASS) {
                assert_int_equal(first->role, LS_ROLE_PARAMETER);
                in_pass[first->unit]++;
            } else {
                for (int32_t v = 0; v < bucket->count; v++)
                    in_update += ls_value_of(program, bucket->values[v])->role == LS_ROLE_PARAMETER;
            }
        }
        int layers = (int)r.programs.training.model.config->layers;
        for (int unit = 1; unit <= layers; unit++)
            assert_int_equal(in_pass[unit], s == 2 ? 2 : 0);
        assert_int_equal(in_pass[0] > 0, s == 2);
        assert_int_equal(in_pass[layers + 1] > 0, s == 2);
        assert_int_equal(in_update, s == 2 ? 0 : (int)r.programs.training.model.parameter_count);
        tiny_ranks_close(&r);
    }
}

/* The last batch of an epoch has two of eight leaves, and needs no slot more. */
static void a_short_batch_costs_no_gradients(void **state)
{
    (void)state;
    for (int s = -1; s < 1; s++)
        for (int count = 2; count <= 8; count *= 2) {
            tiny_ranks r;
            tiny_ranks_options options =
                options_of(s < 0 ? "ddp" : strategies[s], count, LS_SAMPLES_ALL);
            tiny_ranks_plan(&r, &options);
            assert_int_equal(r.programs.training.program->gradient_slots, 1);
            tiny_ranks_close(&r);
        }
}

/* --- memory ----------------------------------------------------------------------------------- */

static int refuse(void *context, size_t bytes)
{
    (void)context, (void)bytes;
    return 1;
}

static void steps_allocate_nothing(void **state)
{
    (void)state;
    for (int s = 0; s < 3; s++) {
        tiny_ranks r;
        tiny_ranks_options options = options_of(strategies[s], 3, 4);
        tiny_ranks_open(&r, &options);
        uint64_t count = ls_allocation_count();
        ls_set_allocation_hook(refuse, NULL);
        tiny_ranks_steps(&r, 2 * STEPS_AN_EPOCH);
        ls_set_allocation_hook(NULL, NULL);
        assert_true(ls_allocation_count() == count);
        int64_t planned = ls_run_programs_bytes(&r.programs);
        for (int rank = 0; rank < 3; rank++)
            assert_int_equal(r.devices[rank]->allocated_bytes, planned);
        tiny_ranks_close(&r);
    }
}

/* What is written as a whole is read as a whole, however it is divided and cut. */
static void whole_tensors_go_in_and_out(void **state)
{
    (void)state;
    ls_error error;
    tiny_ranks r;
    tiny_ranks_options options = options_of("zero3", 5, LS_SAMPLES_ALL);
    tiny_ranks_open(&r, &options);
    const ls_program *program = r.programs.training.program;
    for (ls_value_id id = 0; id < program->value_count; id++) {
        const ls_value *value = ls_value_of(program, id);
        if (value->role != LS_ROLE_PARAMETER && value->role != LS_ROLE_OPTIMIZER_STATE) continue;
        static float written[1 << 14];
        int64_t elements = ls_value_elements(value, &ls_fixed_extents);
        assert_true(elements <= 1 << 14);
        for (int64_t e = 0; e < elements; e++)
            written[e] = (float)(id * 1000 + e % 977);
        for (int64_t at = 0; at < elements; at += 700)
            assert_ok(ls_ranks_write(r.ranks, id, at, elements - at < 700 ? elements - at : 700,
                                     written + at, &error),
                      error);
    }
    for (ls_value_id id = 0; id < program->value_count; id++) {
        const ls_value *value = ls_value_of(program, id);
        if (value->role != LS_ROLE_PARAMETER && value->role != LS_ROLE_OPTIMIZER_STATE) continue;
        static float read[1 << 14];
        int64_t elements = ls_value_elements(value, &ls_fixed_extents);
        for (int64_t at = 0; at < elements; at += 1500)
            assert_ok(ls_ranks_read(r.ranks, id, at, elements - at < 1500 ? elements - at : 1500,
                                    read + at, &error),
                      error);
        for (int64_t e = 0; e < elements; e++)
            if (read[e] != (float)(id * 1000 + e % 977))
                fail_msg("%s[%lld]: %g", value->name, (long long)e, (double)read[e]);
    }
    /* One element more than there are. */
    static float beyond[1 << 14];
    ls_value_id table = r.programs.training.model.parameters[0].value;
    int64_t elements = ls_value_elements(ls_value_of(program, table), &ls_fixed_extents);
    assert_int_equal(ls_ranks_read(r.ranks, table, 0, elements + 1, beyond, &error), LS_INTERNAL);
    tiny_ranks_close(&r);
}

/* --- a plan that is too small ----------------------------------------------------------------- */

static bool is_read(const ls_program *program, ls_value_id storage, int32_t from, int32_t to)
{
    for (int32_t i = from + 1; i <= to; i++)
        for (int in = 0; in < LS_MAX_INPUTS; in++) {
            ls_value_id id = program->ops[i].inputs[in];
            if (id != LS_NO_VALUE && ls_value_of(program, id)->storage == storage) return true;
        }
    return false;
}

static bool is_gathered(const ls_value *value)
{
    return strncmp(value->name, "gathered.", 9) == 0 && !value->row_sparse;
}

/* Places where one value ends and another begins that is alive beside it, and is written while the
 * first is still to be read, or the other way round; of gathered ones, those of one bucket, which
 * are written before either is read. All bytes of both are used. */
static int find_seams(const ls_program *program, const ls_plan *plan, ls_plan_arena arena,
                      int64_t *seams, int most)
{
    int count = 0;
    for (ls_value_id a = 0; a < program->value_count; a++)
        for (ls_value_id b = 0; b < program->value_count; b++) {
            const ls_value *first = ls_value_of(program, a), *second = ls_value_of(program, b);
            if (a == b || plan->arena[a] != arena || plan->arena[b] != arena) continue;
            if (first->storage != a || second->storage != b) continue;
            if (plan->offset[a] < 0 || plan->offset[b] < 0) continue;
            int64_t end = plan->offset[a] + aligned(ls_value_bytes(first, &plan->capacity));
            bool early = plan->first[a] < plan->first[b] &&
                         is_read(program, a, plan->first[b], plan->last[a]);
            bool late = plan->first[b] < plan->first[a] &&
                        is_read(program, b, plan->first[a], plan->last[b]);
            bool together = is_gathered(first) && is_gathered(second) &&
                            plan->first[a] == plan->first[b] &&
                            is_read(program, a, plan->first[a], plan->last[a]) &&
                            is_read(program, b, plan->first[b], plan->last[b]);
            bool used = arena == LS_PLAN_COMMUNICATION ? together : early || late;
            if (end != plan->offset[b] || !used) continue;
            bool seen = false;
            for (int i = 0; i < count; i++)
                seen |= seams[i] == end;
            if (!seen && count < most) seams[count++] = end;
        }
    return count;
}

static void shorten(ls_plan *plan, const ls_program *program, ls_plan_arena arena, int64_t seam)
{
    for (ls_value_id id = 0; id < program->value_count; id++)
        if (plan->arena[id] == arena && plan->offset[id] >= seam)
            plan->offset[id] -= LS_PLAN_ALIGNMENT;
    plan->bytes[arena] -= LS_PLAN_ALIGNMENT;
}

/* Two steps on texts of one length; seam 0: the plan as it is. Returns the weights, none where the
 * run has failed. */
static tiny_held train_alike(ls_plan_arena arena, int64_t seam)
{
    tiny_ranks r;
    ls_error error;
    tiny_held held = {0};
    tiny_ranks_options options = options_of("zero3", 2, LS_SAMPLES_ALL);
    options.rows = alike;
    tiny_ranks_plan(&r, &options);
    if (seam) {
        shorten(&r.programs.training.plan, r.programs.training.program, arena, seam);
        /* The evaluation program shares the bytes. */
        r.programs.evaluation.plan.bytes[arena] = 0;
    }
    tiny_ranks_load(&r);
    ls_status status = LS_OK;
    for (int64_t step = 1; step <= 2 && status == LS_OK; step++) {
        ls_step_result result;
        status = ls_ranks_step(r.ranks, step, tiny_ranks_batch(&r), &result, &error);
    }
    assert_true(status == LS_OK || status == LS_NOT_FINITE);
    if (status == LS_OK) held = tiny_ranks_held(&r);
    tiny_ranks_close(&r);
    return held;
}

static void a_plan_that_is_64_bytes_short_shows(void **state)
{
    (void)state;
    enum { MOST_SEAMS = 400, TRIED = 6 };
    static const ls_plan_arena arenas[] = {LS_PLAN_ACTIVATIONS, LS_PLAN_COMMUNICATION};
    tiny_held wanted = train_alike(LS_PLAN_ACTIVATIONS, 0), again;
    again = train_alike(LS_PLAN_ACTIVATIONS, 0);
    assert_true(wanted.count > 0 && tiny_same(&again, &wanted));
    free(again.elements);
    for (int a = 0; a < 2; a++) {
        int64_t seams[MOST_SEAMS];
        tiny_ranks r;
        tiny_ranks_options options = options_of("zero3", 2, LS_SAMPLES_ALL);
        options.rows = alike;
        tiny_ranks_plan(&r, &options);
        int count = find_seams(r.programs.training.program, &r.programs.training.plan, arenas[a],
                               seams, MOST_SEAMS);
        tiny_ranks_close(&r);
        assert_true(count >= TRIED);
        for (int i = 0; MAY_OVERLAP && i < TRIED; i++) {
            int64_t seam = seams[i * count / TRIED];
            tiny_held other = train_alike(arenas[a], seam);
            if (tiny_same(&other, &wanted))
                fail_msg("%s, 64 bytes short at %lld: nobody noticed",
                         ls_plan_arena_name(arenas[a]), (long long)seam);
            free(other.elements);
        }
    }
    free(wanted.elements);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_stage_divides_one_thing_more),
        cmocka_unit_test(bytes_are_those_of_the_formulas),
        cmocka_unit_test(units_are_really_divided),
        cmocka_unit_test(units_are_really_gathered),
        cmocka_unit_test(a_short_batch_costs_no_gradients),
        cmocka_unit_test(steps_allocate_nothing),
        cmocka_unit_test(whole_tensors_go_in_and_out),
        cmocka_unit_test(a_plan_that_is_64_bytes_short_shows),
    };
    return cmocka_run_group_tests_name("zero_memory", tests, setup, teardown);
}

/* The offload rewrite: text in, text out. Each moment of each parameter is updated once, on the
 * rank that owns it, in a block that is there, and goes back before another takes its place. */
#include "built_programs.h"

#include "program/layout.h"
#include "program/plan.h"

enum { PAGE = 1024 };

/* 0 ranks: not divided, as with single and ddp. */
static void divide(built *b, int ranks, ls_sharding shard)
{
    if (ranks == 0) return;
    ls_zero_options options = {.shard = shard,
                               .ranks = ranks,
                               .bucket_bytes = 16 << 10,
                               .first_bucket_bytes = 16 << 10,
                               .root_slots = 2,
                               .inputs = &b->model.inputs,
                               .loss = &b->model.results.loss};
    assert_ok(ls_zero(b->program, &options, &error), error);
}

static void rewrite(built *b, ls_space space, int64_t block_elements)
{
    ls_offload_options options = {.optimizer = space, .block_elements = block_elements};
    assert_ok(ls_offload_state(b->program, &options, &error), error);
    assert_ok(ls_program_verify(b->program, &error), error);
}

/* Lines of the program that begin with `first` and hold `word`. */
static void lines_of(const ls_program *program, ls_text *into, const char *first, const char *word)
{
    ls_text text = {0};
    assert_ok(ls_program_print(program, &text, &error), error);
    for (char *line = text.data, *next; *line; line = next) {
        next = strchr(line, '\n') + 1;
        size_t length = (size_t)(next - line);
        if (strncmp(line, first, strlen(first)) == 0 && memmem(line, length, word, strlen(word)))
            assert_ok(ls_text_print(into, &error, "%.*s", (int)length, line), error);
    }
    ls_text_deinit(&text);
}

/* clang-format off */
static const char copies[] =
    "update first_moments.block.2, second_moments.block.2 = fetch(first_moments, second_moments) elements=24576..33792  # block.2\n"
    "update first_moments.block.1, second_moments.block.1 = fetch(first_moments, second_moments) elements=12288..24576  # block.1\n"
    "update await(first_moments.block.2, second_moments.block.2)  # block.2\n"
    "update first_moments, second_moments = store(first_moments.block.2, second_moments.block.2, first_moments, second_moments) elements=24576..33792  # block.2\n"
    "update first_moments.block.0, second_moments.block.0 = fetch(first_moments, second_moments) elements=0..12288  # block.0\n"
    "update await(first_moments.block.1, second_moments.block.1)  # block.1\n"
    "update first_moments, second_moments = store(first_moments.block.1, second_moments.block.1, first_moments, second_moments) elements=12288..24576  # block.1\n"
    "update await(first_moments.block.0, second_moments.block.0)  # block.0\n"
    "update first_moments, second_moments = store(first_moments.block.0, second_moments.block.0, first_moments, second_moments) elements=0..12288  # block.0\n";
static const char updates[] =
    "update classifier.weight, first_moments.block.2, second_moments.block.2 = adamw(classifier.weight, gradient.classifier.weight, first_moments.block.2, second_moments.block.2, learning_rate, correction1, correction2_root, clip_factor, proceed) block=24576..33792  # classifier.weight\n";
static const char values[] =
    "value first_moment.classifier.weight f32[3, 36] optimizer_state file in first_moments\n"
    "value first_moments f32[33792] offload file\n"
    "value first_moments.block.0 f32[12288] offload\n"
    "value first_moments.block.1 f32[12288] offload\n"
    "value first_moments.block.2 f32[9216] offload\n";
/* clang-format on */

static void check_lines(const ls_program *program, const char *first, const char *word,
                        const char *wanted)
{
    ls_text got = {0};
    lines_of(program, &got, first, word);
    check_text(word, got.data ? got.data : "", wanted);
    ls_text_deinit(&got);
}

static void blocks_come_and_go_in_turn(void **state)
{
    (void)state;
    built b;
    ls_text got = {0};
    build(&b, "tiny-bert");
    rewrite(&b, LS_SPACE_FILE, 12 * PAGE);
    check_lines(b.program, "update ", "# block.", copies);
    check_lines(b.program, "update classifier", "# classifier.weight", updates);
    lines_of(b.program, &got, "value first_moment.", "classifier.weight");
    lines_of(b.program, &got, "value first_moments", "");
    check_text("values", got.data, values);
    ls_text_deinit(&got);
    close_built(&b);
}

/* Beside the update of others, parameters are gathered as soon as all that they need are updated.
 */
static void gathers_stand_behind_their_updates(void **state)
{
    (void)state;
    built b;
    build(&b, "tiny-bert");
    divide(&b, 3, (ls_sharding){.optimizer_state = true});
    rewrite(&b, LS_SPACE_HOST_MEMORY, PAGE);
    int32_t first = 0, last = 0;
    for (int32_t i = 0; i < b.program->op_count; i++) {
        const ls_op *op = &b.program->ops[i];
        bool parameters =
            op->kind == LS_OP_GATHER && op->segment == LS_SEGMENT_UPDATE &&
            b.program->buckets[op->attributes.bucket].values[0] >= 0 &&
            ls_value_of(b.program, b.program->buckets[op->attributes.bucket].values[0])->role ==
                LS_ROLE_PARAMETER;
        if (parameters && !first) first = i;
        if (op->kind == LS_OP_ADAMW) last = i;
    }
    assert_true(first > 0 && first < last);
    close_built(&b);
}

/* --- who updates what ------------------------------------------------------------------------- */

/* What has been updated on a rank, and which blocks are there. */
typedef struct progress {
    int rank;
    int64_t done[8192]; /* [values] elements of a parameter */
    ls_value_id first, second;
    int64_t begin, end; /* elements of the runs that they hold */
    bool stored;
} progress;

static void check_update(const ls_program *program, const ls_op *op, progress *p)
{
    ls_value_id parameter = op->inputs[0];
    assert_false(p->stored);
    assert_true(op->inputs[2] == p->first && op->inputs[3] == p->second);
    assert_true(op->outputs[1] == p->first && op->outputs[2] == p->second);
    assert_int_equal(op->outputs[0], parameter);
    assert_int_equal(op->attributes.first_element, p->begin);
    assert_int_equal(op->attributes.elements, p->end - p->begin);
    ls_range part = ls_layout_part(program, parameter, p->rank, p->begin, op->attributes.elements);
    ls_range owned = ls_layout_owned(program, parameter, p->rank);
    p->done[parameter] += part.end - part.begin;
    /* From the end to the beginning, without gaps. */
    if (part.begin < part.end) assert_int_equal(part.begin, owned.end - p->done[parameter]);
}

static void check_rank(const ls_program *program, int rank)
{
    static progress p;
    int64_t begins[8192] = {0}, ends[8192] = {0};
    int fetches = 0, stores = 0;
    assert_true(program->value_count < 8192);
    p = (progress){.rank = rank, .stored = true};
    for (int32_t i = 0; i < program->op_count; i++) {
        const ls_op *op = &program->ops[i];
        if (op->kind == LS_OP_FETCH) {
            fetches++;
            assert_true(fetches - stores <= 2);
            begins[op->outputs[0]] = op->attributes.first_element;
            ends[op->outputs[0]] = op->attributes.first_element + op->attributes.elements;
        } else if (op->kind == LS_OP_AWAIT) {
            assert_true(p.stored);
            p.first = op->inputs[0];
            p.second = op->inputs[1];
            p.begin = begins[p.first];
            p.end = ends[p.first];
            p.stored = false;
        } else if (op->kind == LS_OP_STORE) {
            assert_true(op->inputs[0] == p.first && op->inputs[1] == p.second);
            assert_int_equal(op->attributes.first_element, p.begin);
            p.stored = true;
            stores++;
        } else if (op->kind == LS_OP_ADAMW) {
            check_update(program, op, &p);
        }
    }
    assert_true(p.stored && stores == fetches && stores > 0);
    for (ls_value_id id = 0; id < program->value_count; id++) {
        if (ls_value_of(program, id)->role != LS_ROLE_PARAMETER) continue;
        ls_range owned = ls_layout_owned(program, id, rank);
        assert_int_equal(p.done[id], owned.end - owned.begin);
    }
}

static const ls_sharding stages[] = {
    {0},
    {.optimizer_state = true},
    {.optimizer_state = true, .gradients = true},
    {.optimizer_state = true, .gradients = true, .parameters = true},
};

static void each_element_is_updated_once(void **state)
{
    (void)state;
    static const int64_t sizes[] = {PAGE, 3 * PAGE, 10 * PAGE, 1 << 20};
    for (size_t i = 0; i < 4; i++) {
        for (size_t stage = 0; stage < 4; stage++) {
            built b;
            int ranks = stage ? 2 + (int)i % 3 : 0;
            build(&b, i & 1 ? "tiny-bert" : "tiny-distilbert");
            divide(&b, ranks, stages[stage]);
            rewrite(&b, i & 1 ? LS_SPACE_FILE : LS_SPACE_HOST_MEMORY, sizes[i]);
            for (int rank = 0; rank == 0 || rank < ranks; rank++)
                check_rank(b.program, rank);
            close_built(&b);
        }
    }
}

/* Two blocks of each run are on the device, and nothing else of the moments. */
static void two_blocks_are_on_the_device(void **state)
{
    (void)state;
    for (size_t stage = 0; stage < 4; stage++) {
        built b;
        ls_plan plan;
        ls_extents capacity = {{1, 64, 8}};
        build(&b, "tiny-bert");
        divide(&b, stage ? 3 : 0, stages[stage]);
        rewrite(&b, LS_SPACE_FILE, 2 * PAGE);
        assert_ok(ls_plan_make(&plan, b.program, &capacity, &error), error);
        assert_int_equal(plan.bytes[LS_PLAN_OPTIMIZER_STATE], 0);
        assert_int_equal(plan.bytes[LS_PLAN_STAGING], 4 * 2 * PAGE * 4);
        assert_int_equal(plan.bytes[LS_PLAN_FILE], 2 * 4 * ls_layout_home_elements(b.program));
        assert_int_equal(plan.bytes[LS_PLAN_HOST_MEMORY], 0);
        ls_plan_deinit(&plan);
        close_built(&b);
    }
}

/* --- parameters ------------------------------------------------------------------------------- */

static void rewrite_parameters(built *b, const char *model, int ranks)
{
    ls_offload_options options = {.parameters = LS_SPACE_FILE, .block_elements = PAGE};
    build(b, model);
    divide(b, ranks, stages[3]);
    assert_ok(ls_offload_state(b->program, &options, &error), error);
    assert_ok(ls_program_verify(b->program, &error), error);
}

static const ls_bucket *bucket_of(const ls_program *program, const ls_op *op)
{
    return &program->buckets[op->attributes.bucket];
}

static bool gathers_parameters(const ls_program *program, const ls_op *op)
{
    return op->kind == LS_OP_GATHER && op->segment == LS_SEGMENT_PASS &&
           ls_value_of(program, bucket_of(program, op)->values[0])->parameter != LS_NO_VALUE;
}

/* A unit's part is fetched, waited for, gathered, and gone before the second next one is fetched.
 */
static void parts_of_units_come_before_they_are_gathered(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 3; ranks++) {
        built b;
        int fetched = 0, awaited = 0, gathered = 0, done = 0;
        ls_value_id staged[64];
        rewrite_parameters(&b, ranks & 1 ? "tiny-bert" : "tiny-distilbert", ranks);
        for (int32_t i = 0; i < b.program->op_count; i++) {
            const ls_op *op = &b.program->ops[i];
            if (op->segment != LS_SEGMENT_PASS) continue;
            if (op->kind == LS_OP_FETCH) {
                assert_true(fetched < 64 && fetched - done < 2);
                staged[fetched++] = op->outputs[0];
            } else if (op->kind == LS_OP_AWAIT) {
                assert_true(awaited < fetched && op->inputs[0] == staged[awaited]);
                awaited++;
            } else if (gathers_parameters(b.program, op)) {
                assert_true(gathered + 1 == awaited);
                assert_int_equal(bucket_of(b.program, op)->values[0], staged[gathered++]);
            } else if (op->kind == LS_OP_WAIT && done < gathered &&
                       bucket_of(b.program, op)->values[0] == staged[done]) {
                done++;
            }
            for (int in = 0; in < LS_MAX_INPUTS; in++)
                if (op->inputs[in] != LS_NO_VALUE)
                    assert_int_not_equal(ls_value_of(b.program, op->inputs[in])->role,
                                         LS_ROLE_PARAMETER);
        }
        /* Each unit twice: in the forward and in the backward pass. */
        assert_true(fetched >= 2 * b.config.layers && done == fetched && gathered == fetched);
        close_built(&b);
    }
}

static void no_parameter_is_planned_on_the_device(void **state)
{
    (void)state;
    built b;
    ls_plan plan;
    ls_extents capacity = {{1, 64, 8}};
    rewrite_parameters(&b, "tiny-bert", 2);
    assert_ok(ls_plan_make(&plan, b.program, &capacity, &error), error);
    assert_int_equal(plan.bytes[LS_PLAN_PARAMETERS], 0);
    assert_int_equal(plan.bytes[LS_PLAN_FILE], 4 * ls_layout_home_elements(b.program));
    for (ls_value_id id = 0; id < b.program->value_count; id++)
        if (plan.arena[id] == LS_PLAN_STAGING && plan.offset[id] >= 0)
            assert_int_equal(plan.offset[id] % 4096, 0);
    ls_plan_deinit(&plan);
    close_built(&b);
}

/* What a gather sends without a fetch nobody has written. */
static void a_gather_without_a_fetch_is_an_error(void **state)
{
    (void)state;
    built b;
    rewrite_parameters(&b, "tiny-bert", 2);
    int32_t fetch = 0, gather = 0;
    while (b.program->ops[fetch].kind != LS_OP_FETCH)
        fetch++;
    while (!gathers_parameters(b.program, &b.program->ops[gather]))
        gather++;
    ls_op early = b.program->ops[gather];
    b.program->ops[gather] = b.program->ops[fetch];
    b.program->ops[fetch] = early;
    assert_int_equal(ls_program_verify(b.program, &error), LS_INTERNAL);
    assert_non_null(strstr(error.text, "nothing has written"));
    close_built(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_come_and_go_in_turn),
        cmocka_unit_test(gathers_stand_behind_their_updates),
        cmocka_unit_test(each_element_is_updated_once),
        cmocka_unit_test(two_blocks_are_on_the_device),
        cmocka_unit_test(parts_of_units_come_before_they_are_gathered),
        cmocka_unit_test(no_parameter_is_planned_on_the_device),
        cmocka_unit_test(a_gather_without_a_fetch_is_an_error),
    };
    return cmocka_run_group_tests_name("offload", tests, NULL, NULL);
}

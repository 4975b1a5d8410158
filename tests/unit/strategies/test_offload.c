/* The offload rewrite: text in, text out. Each moment of each parameter is updated once, in a block
 * that is there, and goes back before another takes its place. */
#include "built_programs.h"

enum { PAGE = 1024 };

static void rewrite(built *b, ls_space space, int64_t block_elements)
{
    ls_offload_options options = {space, block_elements};
    build(b, "tiny-bert");
    assert_ok(ls_offload_optimizer(b->program, &options, &error), error);
    assert_ok(ls_program_verify(b->program, &error), error);
}

/* Lines of the program that begin with one of two words; all of them with NULL. */
static void lines_of(const ls_program *program, ls_text *into, const char *first,
                     const char *second)
{
    ls_text text = {0};
    assert_ok(ls_program_print(program, &text, &error), error);
    for (char *line = text.data, *next; *line; line = next) {
        next = strchr(line, '\n') + 1;
        bool wanted = strncmp(line, first, strlen(first)) == 0 ||
                      (second && strncmp(line, second, strlen(second)) == 0);
        if (wanted) assert_ok(ls_text_print(into, &error, "%.*s", (int)(next - line), line), error);
    }
    ls_text_deinit(&text);
}

/* clang-format off */
static const char copies[] =
    "update first_moments.block.0, second_moments.block.0 = fetch(first_moments, second_moments) elements=0..10240  # block.0\n"
    "update first_moments.block.1, second_moments.block.1 = fetch(first_moments, second_moments) elements=10240..20480  # block.1\n"
    "update await(first_moments.block.0, second_moments.block.0)  # block.0\n"
    "update first_moments, second_moments = store(first_moments.block.0, second_moments.block.0, first_moments, second_moments) elements=0..10240  # block.0\n"
    "update first_moments.block.2, second_moments.block.2 = fetch(first_moments, second_moments) elements=20480..28672  # block.2\n"
    "update await(first_moments.block.1, second_moments.block.1)  # block.1\n"
    "update first_moments, second_moments = store(first_moments.block.1, second_moments.block.1, first_moments, second_moments) elements=10240..20480  # block.1\n"
    "update await(first_moments.block.2, second_moments.block.2)  # block.2\n"
    "update first_moments, second_moments = store(first_moments.block.2, second_moments.block.2, first_moments, second_moments) elements=20480..28672  # block.2\n";
static const char values[] =
    "value first_moment.classifier.bias f32[3] optimizer_state file in first_moments+0\n"
    "value first_moment.classifier.weight f32[3, 36] optimizer_state file in first_moments+64\n"
    "value first_moment.bert.pooler.dense.bias f32[36] optimizer_state file in first_moments+512\n";
/* clang-format on */

static void blocks_come_and_go_in_turn(void **state)
{
    (void)state;
    built b;
    ls_text updates = {0}, got = {0}, runs = {0};
    rewrite(&b, LS_SPACE_FILE, 10 * PAGE);
    lines_of(b.program, &updates, "update ", NULL);
    for (char *line = updates.data, *next; *line; line = next) {
        next = strchr(line, '\n') + 1;
        if (memmem(line, (size_t)(next - line), "# block.", 8))
            assert_ok(ls_text_print(&got, &error, "%.*s", (int)(next - line), line), error);
    }
    check_text("copies", got.data, copies);
    lines_of(b.program, &runs, "value first_moment.", NULL);
    runs.data[strlen(values)] = '\0';
    check_text("values", runs.data, values);
    ls_text_deinit(&runs);
    lines_of(b.program, &runs, "value first_moments", NULL);
    check_text("runs", runs.data,
               "value first_moments f32[28672] offload file\n"
               "value first_moments.block.0 f32[10240] offload\n"
               "value first_moments.block.1 f32[10240] offload\n"
               "value first_moments.block.2 f32[8192] offload in first_moments.block.0\n");
    ls_text_deinit(&updates);
    ls_text_deinit(&runs);
    ls_text_deinit(&got);
    close_built(&b);
}

/* What has been updated of each parameter, and where its moments are. */
typedef struct progress {
    int64_t done[4096];
    ls_value_id first, second; /* blocks that are awaited */
    int64_t begin, end;        /* elements of the runs that they hold */
    bool stored;
} progress;

static void check_update(const ls_program *program, const ls_op *op, progress *p)
{
    const ls_attributes *part = &op->attributes;
    ls_value_id parameter = op->inputs[0];
    assert_false(p->stored);
    assert_true(op->inputs[2] == p->first && op->inputs[3] == p->second);
    assert_true(op->outputs[1] == p->first && op->outputs[2] == p->second);
    assert_true(op->outputs[0] == parameter && part->elements > 0);
    assert_int_equal(part->first_element, p->done[parameter]);
    assert_true(part->moment_element + part->elements <= p->end - p->begin);
    p->done[parameter] += part->elements;
    /* The place in the run is where the moment's value is said to be. */
    for (ls_value_id id = 0; id < program->value_count; id++) {
        const ls_value *value = ls_value_of(program, id);
        if (value->role != LS_ROLE_OPTIMIZER_STATE || value->parameter != parameter) continue;
        int64_t place = value->run_offset / (int64_t)sizeof(float) + part->first_element;
        assert_int_equal(place, p->begin + part->moment_element);
    }
}

static void check_program(const ls_program *program)
{
    static const ls_extents fixed = {{1}};
    static progress p;
    p = (progress){.stored = true};
    assert_true(program->value_count < 4096);
    int parts = 0, fetches = 0, stores = 0;
    int64_t begins[4096] = {0};
    for (int32_t i = 0; i < program->op_count; i++) {
        const ls_op *op = &program->ops[i];
        if (op->kind == LS_OP_FETCH) {
            fetches++;
            begins[op->outputs[0]] = op->attributes.first_element;
        } else if (op->kind == LS_OP_AWAIT) {
            assert_true(p.stored);
            p.first = op->inputs[0];
            p.second = op->inputs[1];
            p.begin = begins[p.first];
            p.end = p.begin + ls_value_elements(ls_value_of(program, p.first), &fixed);
            p.stored = false;
        } else if (op->kind == LS_OP_STORE) {
            assert_true(op->inputs[0] == p.first && op->inputs[1] == p.second);
            assert_int_equal(op->attributes.first_element, p.begin);
            p.stored = true;
            stores++;
        } else if (op->kind == LS_OP_ADAMW) {
            check_update(program, op, &p);
            parts++;
        }
    }
    assert_true(p.stored && stores == fetches && parts >= stores);
    for (ls_value_id id = 0; id < program->value_count; id++)
        if (ls_value_of(program, id)->role == LS_ROLE_PARAMETER)
            assert_int_equal(p.done[id], ls_value_elements(ls_value_of(program, id), &fixed));
}

static void each_element_is_updated_once(void **state)
{
    (void)state;
    static const int64_t sizes[] = {PAGE,      2 * PAGE,  3 * PAGE, 10 * PAGE,
                                    27 * PAGE, 28 * PAGE, 1 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        built b;
        rewrite(&b, i & 1 ? LS_SPACE_FILE : LS_SPACE_HOST_MEMORY, sizes[i]);
        check_program(b.program);
        close_built(&b);
    }
}

/* The verifier sees a block that is overwritten before it has gone back. */
static void a_fetch_too_early_is_an_error(void **state)
{
    (void)state;
    built b;
    rewrite(&b, LS_SPACE_FILE, 10 * PAGE);
    int32_t at = 0;
    while (b.program->ops[at].kind != LS_OP_STORE)
        at++;
    ls_op fetch = b.program->ops[at + 1];
    assert_int_equal(fetch.kind, LS_OP_FETCH);
    b.program->ops[at + 1] = b.program->ops[at];
    b.program->ops[at] = fetch;
    assert_int_equal(ls_program_verify(b.program, &error), LS_INTERNAL);
    assert_non_null(strstr(error.text, "overwritten"));
    close_built(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_come_and_go_in_turn),
        cmocka_unit_test(each_element_is_updated_once),
        cmocka_unit_test(a_fetch_too_early_is_an_error),
    };
    return cmocka_run_group_tests_name("offload", tests, NULL, NULL);
}

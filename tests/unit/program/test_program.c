/* The verifier finds whatever a rewrite could break, and the printed program is what it was. */
#include "tiny_programs.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/files.h"
#include "base/text.h"

static ls_error error;

/* The program is wrong now: the text names the op and says all of `what`. */
static void expect_refused(const ls_program *program, const char *op, const char *what)
{
    error = (ls_error){0};
    ls_status status = ls_program_verify(program, &error);
    if (status != LS_INTERNAL || !strstr(error.text, op) || !strstr(error.text, what))
        fail_msg("wanted '%s' and '%s', got %d: %s", op, what, status, error.text);
}

static ls_op *find_op(const ls_program *program, ls_op_kind kind, const char *name)
{
    for (int32_t i = 0; i < program->op_count; i++)
        if (program->ops[i].kind == kind && strstr(program->ops[i].name, name))
            return &program->ops[i];
    fail_msg("no %s %s", ls_op_name(kind), name);
    return NULL;
}

static bool reads(const ls_op *op, ls_value_id value)
{
    for (int i = 0; i < LS_MAX_INPUTS; i++)
        if (op->inputs[i] == value && value != LS_NO_VALUE) return true;
    return false;
}

static bool reads_from(const ls_op *op, const ls_op *writer)
{
    for (int i = 0; i < LS_MAX_OUTPUTS; i++)
        if (reads(op, writer->outputs[i])) return true;
    return false;
}

static void swap_ops(ls_op *a, ls_op *b)
{
    ls_op held = *a;
    *a = *b;
    *b = held;
}

static void programs_of_models_are_right(void **state)
{
    (void)state;
    static const char *const models[] = {"tiny-bert", "tiny-distilbert"};
    for (int i = 0; i < 4; i++) {
        tiny_program tiny;
        tiny_program_open(&tiny, models[i / 2], i % 2, 16);
        assert_ok(ls_program_verify(tiny.assembly.program, &error), error);
        tiny_program_close(&tiny);
    }
}

/* Each op that reads what the op before it writes, put before that one. */
static void reading_before_writing_is_found(void **state)
{
    (void)state;
    tiny_program tiny;
    int found = 0;
    tiny_program_open(&tiny, "tiny-bert", true, 16);
    ls_program *program = tiny.assembly.program;
    for (int32_t i = 1; i < program->op_count; i++) {
        ls_op *op = &program->ops[i], *before = op - 1;
        if (op->segment != before->segment || !reads_from(op, before)) continue;
        swap_ops(op, before);
        assert_int_equal(ls_program_verify(program, &error), LS_INTERNAL);
        /* Squared norms are the parts of one value: what is read then is not whole. */
        bool whole = before->kind != LS_OP_GRADIENT_NORM;
        assert_non_null(strstr(error.text, whole ? " reads " : "was read before"));
        swap_ops(op, before);
        found++;
    }
    assert_true(found > 40);
    ls_op *first = find_op(program, LS_OP_LINEAR, "layer.0.attention.self.query");
    swap_ops(first, &program->ops[0]);
    expect_refused(program, "layer.0.attention.self.query", "nothing has written");
    tiny_program_close(&tiny);
}

/* A gradient with several parts is added up in place: whoever reads a former version of it after
 * the next part was added reads the wrong numbers. */
static void reading_what_was_overwritten_is_found(void **state)
{
    (void)state;
    tiny_program tiny;
    int found = 0;
    tiny_program_open(&tiny, "tiny-bert", true, 16);
    ls_program *program = tiny.assembly.program;
    for (int32_t i = 0; i < program->op_count; i++) {
        const ls_op *op = &program->ops[i];
        if (!op->attributes.accumulate) continue;
        ls_value_id former = op->inputs[2], latest = op->outputs[0];
        assert_int_equal(program->values[former].storage, program->values[latest].storage);
        for (int32_t later = i + 1; later < program->op_count; later++)
            for (int in = 0; in < LS_MAX_INPUTS; in++) {
                ls_op *reader = &program->ops[later];
                if (reader->inputs[in] != latest) continue;
                reader->inputs[in] = former;
                expect_refused(program, program->values[former].name, "has been overwritten");
                reader->inputs[in] = latest;
                found++;
            }
    }
    assert_true(found > 4);
    assert_ok(ls_program_verify(program, &error), error);
    tiny_program_close(&tiny);
}

/* Each operand of each op, left out or replaced by something that does not exist. */
static void a_missing_operand_is_found(void **state)
{
    (void)state;
    tiny_program tiny;
    tiny_program_open(&tiny, "tiny-bert", true, 16);
    ls_program *program = tiny.assembly.program;
    for (int32_t i = 0; i < program->op_count; i++) {
        ls_op *op = &program->ops[i];
        const ls_op_definition *definition = program->definitions[op->kind];
        for (int in = 0; in < LS_MAX_INPUTS; in++) {
            ls_value_id held = op->inputs[in];
            bool optional = definition->optional_inputs >> in & 1;
            if (in < definition->inputs && !optional) {
                op->inputs[in] = LS_NO_VALUE;
                expect_refused(program, op->name, "is missing");
            }
            op->inputs[in] = program->value_count;
            expect_refused(program, op->name, "is not one of its own");
            op->inputs[in] = -7;
            expect_refused(program, op->name, "is not one of its own");
            op->inputs[in] = held;
        }
        for (int out = 0; out < LS_MAX_OUTPUTS; out++) {
            ls_value_id held = op->outputs[out];
            op->outputs[out] = program->value_count;
            expect_refused(program, op->name, "is not one of its own");
            op->outputs[out] = held;
        }
        ls_value_id held = op->outputs[0];
        op->outputs[0] = LS_NO_VALUE;
        expect_refused(program, op->name, "is missing");
        op->outputs[0] = held;
    }
    assert_ok(ls_program_verify(program, &error), error);
    tiny_program_close(&tiny);
}

/* Every value that has a shape, one column wider, of another rank, and of another dtype. Blocks of
 * squared norms may be more than are needed; a host value has no shape that an op looks at. */
static void a_wrong_shape_or_dtype_is_found(void **state)
{
    (void)state;
    tiny_program tiny;
    int checked = 0;
    tiny_program_open(&tiny, "tiny-bert", true, 16);
    ls_program *program = tiny.assembly.program;
    for (ls_value_id id = 0; id < program->value_count; id++) {
        ls_value *value = &program->values[id], held = *value;
        bool used = false, looked_at = value->space == LS_SPACE_DEVICE;
        for (int32_t i = 0; i < program->op_count; i++) {
            used |= reads(&program->ops[i], id);
            if (program->ops[i].kind == LS_OP_SQUARED_NORM && program->ops[i].outputs[0] == id)
                looked_at = false;
        }
        if (!used || !looked_at || value->rank == 0 || value->role == LS_ROLE_INPUT) continue;
        value->shape[value->rank - 1].constant++;
        expect_refused(program, "program: ", "has another shape or dtype");
        *value = held;
        value->dtype = value->dtype == LS_F32 ? LS_I32 : LS_F32;
        expect_refused(program, "program: ", "has another shape or dtype");
        *value = held;
        checked++;
    }
    assert_true(checked > 100);
    tiny_program_close(&tiny);
}

static void schedules_must_lie_on_the_host(void **state)
{
    (void)state;
    tiny_program tiny;
    tiny_program_open(&tiny, "tiny-bert", true, 16);
    ls_op *op = find_op(tiny.assembly.program, LS_OP_WEIGHT_GRADIENT, "query");
    op->inputs[2] = tiny.assembly.model.inputs.ids;
    expect_refused(tiny.assembly.program, "query", "must be a host value");
    tiny_program_close(&tiny);
}

static void segments_follow_each_other(void **state)
{
    (void)state;
    tiny_program tiny;
    tiny_program_open(&tiny, "tiny-bert", true, 16);
    ls_program *program = tiny.assembly.program;
    program->ops[0].segment = LS_SEGMENT_UPDATE;
    expect_refused(program, program->ops[1].name, "stands after the update");
    tiny_program_close(&tiny);
}

/* --- printing --------------------------------------------------------------------------------- */

static void print(const ls_program *program, ls_text *text)
{
    assert_ok(ls_program_print(program, text, &error), error);
}

static void compare_with_golden(const char *text, const char *name)
{
    char path[4096], written[4096], *golden;
    size_t bytes;
    snprintf(path, sizeof path, "%s/tests/golden/%s", LS_TEST_SOURCE, name);
    snprintf(written, sizeof written, "%s/%s", LS_TEST_BUILD, name);
    test_write_file(written, text, strlen(text));
    assert_ok(ls_file_read(&golden, &bytes, path, 1 << 20, &error), error);
    int line = 1;
    for (size_t i = 0; text[i] && text[i] == golden[i]; i++)
        line += text[i] == '\n';
    bool same = strcmp(text, golden) == 0;
    ls_free(golden);
    if (!same)
        fail_msg("%s differs from line %d on; if that is meant, copy %s there", path, line,
                 written);
}

static void the_printed_program_is_stable(void **state)
{
    (void)state;
    tiny_program tiny, again;
    ls_text text = {0}, second = {0};
    tiny_program_open(&tiny, "tiny-bert", true, 6);
    tiny_program_open(&again, "tiny-bert", true, 6);
    print(tiny.assembly.program, &text);
    print(again.assembly.program, &second);
    assert_string_equal(text.data, second.data);
    compare_with_golden(text.data, "tiny-bert-program.txt");
    ls_text_deinit(&text);
    ls_text_deinit(&second);
    tiny_program_close(&tiny);
    tiny_program_close(&again);
}

/* Passes change nothing but the number of slots; evaluation has no dropout and no update. */
static void the_print_tells_programs_apart(void **state)
{
    (void)state;
    tiny_program tiny;
    ls_text text = {0};
    tiny_program_open(&tiny, "tiny-bert", false, 6);
    print(tiny.assembly.program, &text);
    assert_null(strstr(text.data, "dropout="));
    assert_null(strstr(text.data, "adamw"));
    assert_null(strstr(text.data, "gradient"));
    assert_non_null(strstr(text.data, "probabilities"));
    ls_text_deinit(&text);
    tiny_program_close(&tiny);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_of_models_are_right),
        cmocka_unit_test(reading_before_writing_is_found),
        cmocka_unit_test(reading_what_was_overwritten_is_found),
        cmocka_unit_test(a_missing_operand_is_found),
        cmocka_unit_test(a_wrong_shape_or_dtype_is_found),
        cmocka_unit_test(schedules_must_lie_on_the_host),
        cmocka_unit_test(segments_follow_each_other),
        cmocka_unit_test(the_printed_program_is_stable),
        cmocka_unit_test(the_print_tells_programs_apart),
    };
    return cmocka_run_group_tests_name("program", tests, NULL, NULL);
}

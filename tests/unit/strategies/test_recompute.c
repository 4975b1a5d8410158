/* The recompute rewrite: text in, text out. Forward ops stand in the backward pass a second time,
 * only those whose results are read there, and nothing else changes. */
#include "built_programs.h"

#include <stdlib.h>

static void rewrite(built *b, ls_recompute_what what)
{
    ls_recompute_options options = {what, 1, 1 + (int)b->config.layers};
    assert_ok(ls_recompute(b->program, &options, &error), error);
    assert_ok(ls_program_verify(b->program, &error), error);
}

/* The ops that were put in, each group behind the name of the op that it stands before. */
static void split(const ls_program *program, ls_text *others, ls_text *again)
{
    ls_text text = {0};
    bool inside = false;
    assert_ok(ls_program_print(program, &text, &error), error);
    for (char *line = text.data, *next; *line; line = next) {
        next = strchr(line, '\n') + 1;
        int length = (int)(next - line);
        if (strncmp(line, "value recompute.", 16) == 0) continue;
        if (strncmp(line, "pass recompute.", 15) == 0) {
            assert_ok(ls_text_print(again, &error, "%.*s", length - 5, line + 5), error);
            inside = true;
            continue;
        }
        if (inside)
            assert_ok(ls_text_print(again, &error, "before %.*s\n", (int)strcspn(line + 5, " ,"),
                                    line + 5),
                      error);
        inside = false;
        assert_ok(ls_text_print(others, &error, "%.*s", length, line), error);
    }
    ls_text_deinit(&text);
}

/* What is read from the ops that were put in is read under the former name. */
static void take_out(ls_text *text, const char *word)
{
    for (char *at; (at = strstr(text->data, word));)
        memmove(at, at + strlen(word), strlen(at + strlen(word)) + 1);
}

/* clang-format off */
#define LAYER "bert.encoder.layer.0."
#define AGAIN "recompute." LAYER
static const char layer[] =
    AGAIN "attention.self.query = linear(bert.embeddings.dropout, " LAYER "attention.self.query.weight, " LAYER "attention.self.query.bias)  # " AGAIN "attention.self.query\n"
    AGAIN "attention.self.key = linear(bert.embeddings.dropout, " LAYER "attention.self.key.weight, " LAYER "attention.self.key.bias)  # " AGAIN "attention.self.key\n"
    AGAIN "attention.self.value = linear(bert.embeddings.dropout, " LAYER "attention.self.value.weight, " LAYER "attention.self.value.bias)  # " AGAIN "attention.self.value\n"
    AGAIN "attention.context, " AGAIN "attention.context.softmax = attention(" AGAIN "attention.self.query, " AGAIN "attention.self.key, " AGAIN "attention.self.value, offsets, token_samples, positions, random_key) dropout=0.1 site=1 heads=3 head_size=12  # " AGAIN "attention.context\n"
    AGAIN "attention.output.dense = linear(" AGAIN "attention.context, " LAYER "attention.output.dense.weight, " LAYER "attention.output.dense.bias)  # " AGAIN "attention.output.dense\n"
    AGAIN "attention.output.LayerNorm, " AGAIN "attention.output.LayerNorm.sum, " AGAIN "attention.output.LayerNorm.mean, " AGAIN "attention.output.LayerNorm.inverse_deviation = layer_norm(" AGAIN "attention.output.dense, bert.embeddings.dropout, " LAYER "attention.output.LayerNorm.weight, " LAYER "attention.output.LayerNorm.bias, token_samples, positions, random_key) dropout=0.1 site=2  # " AGAIN "attention.output.LayerNorm\n"
    AGAIN "intermediate.dense, " AGAIN "intermediate.dense.slope = linear(" AGAIN "attention.output.LayerNorm, " LAYER "intermediate.dense.weight, " LAYER "intermediate.dense.bias) activation=gelu  # " AGAIN "intermediate.dense\n"
    "before gradient." LAYER "output.dense.weight\n";
static const char attention[] =
    AGAIN "attention.self.query = linear(bert.embeddings.dropout, " LAYER "attention.self.query.weight, " LAYER "attention.self.query.bias)  # " AGAIN "attention.self.query\n"
    AGAIN "attention.self.key = linear(bert.embeddings.dropout, " LAYER "attention.self.key.weight, " LAYER "attention.self.key.bias)  # " AGAIN "attention.self.key\n"
    AGAIN "attention.self.value = linear(bert.embeddings.dropout, " LAYER "attention.self.value.weight, " LAYER "attention.self.value.bias)  # " AGAIN "attention.self.value\n"
    AGAIN "attention.context, " AGAIN "attention.context.softmax = attention(" AGAIN "attention.self.query, " AGAIN "attention.self.key, " AGAIN "attention.self.value, offsets, token_samples, positions, random_key) dropout=0.1 site=1 heads=3 head_size=12  # " AGAIN "attention.context\n"
    "before gradient." LAYER "attention.output.dense.weight\n";
/* clang-format on */

/* tiny-bert has two layers, of which the last is left alone. */
static void ops_stand_where_their_results_are_read(void **state)
{
    (void)state;
    static const struct {
        ls_recompute_what what;
        const char *wanted;
    } cases[] = {{LS_RECOMPUTE_LAYER, layer}, {LS_RECOMPUTE_ATTENTION, attention}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        built b;
        ls_text before = {0}, after = {0}, none = {0}, again = {0};
        build(&b, "tiny-bert");
        split(b.program, &before, &none);
        assert_true(none.length == 0);
        close_built(&b);
        build_passes(&b, "tiny-bert", 0);
        rewrite(&b, cases[i].what);
        build_update(&b);
        split(b.program, &after, &again);
        take_out(&after, "recompute.");
        check_text("the other ops", after.data, before.data);
        check_text("what runs again", again.data, cases[i].wanted);
        ls_text_deinit(&before);
        ls_text_deinit(&after);
        ls_text_deinit(&again);
        close_built(&b);
    }
}

static bool is_read(const ls_program *program, ls_value_id id, int32_t from)
{
    for (int32_t i = from; i < program->op_count; i++)
        for (int in = 0; in < LS_MAX_INPUTS; in++)
            if (program->ops[i].inputs[in] == id) return true;
    return false;
}

/* Of a layer that is left as it is, many values wait for the backward pass; of the others what the
 * last op wrote, or all but the attention's. */
static int kept_values(const ls_program *program, int unit)
{
    int kept = 0;
    for (int32_t i = 0; i < program->forward_count; i++)
        for (int out = 0; out < LS_MAX_OUTPUTS && program->ops[i].unit == unit; out++) {
            ls_value_id id = program->ops[i].outputs[out];
            kept += id != LS_NO_VALUE && is_read(program, id, program->forward_count);
        }
    return kept;
}

/* Whatever runs again is read, and belongs with the backward ops around it. */
static void check_again(const ls_program *program)
{
    for (int32_t i = program->forward_count; i < program->op_count; i++) {
        const ls_op *op = &program->ops[i];
        if (strncmp(op->name, "recompute.", 10) != 0) continue;
        bool read = false;
        for (int out = 0; out < LS_MAX_OUTPUTS; out++)
            read =
                read || (op->outputs[out] != LS_NO_VALUE && is_read(program, op->outputs[out], i));
        if (!read) fail_msg("nobody reads %s", op->name);
        assert_int_equal(program->ops[i - 1].unit, op->unit);
        assert_int_equal(program->ops[i + 1].unit, op->unit);
    }
}

static void what_is_kept_is_little(void **state)
{
    (void)state;
    static const char *const models[] = {"tiny-bert", "tiny-distilbert"};
    enum { LAYERS = 4 };
    for (size_t m = 0; m < 2; m++) {
        for (int what = LS_RECOMPUTE_NONE; what <= LS_RECOMPUTE_ATTENTION; what++) {
            built b;
            build_passes(&b, models[m], LAYERS);
            int32_t ops = b.program->op_count;
            if (what) rewrite(&b, (ls_recompute_what)what);
            assert_true((b.program->op_count > ops) == (what != LS_RECOMPUTE_NONE));
            check_again(b.program);
            for (int unit = 1; unit < LAYERS; unit++) {
                /* Output, sum, mean and inverse deviation; all that the rules keep; the same
                 * without query, key, value, context and softmax. */
                static const int wanted[] = {15, 4, 10};
                assert_int_equal(kept_values(b.program, unit), wanted[what]);
            }
            build_update(&b);
            assert_ok(ls_program_verify(b.program, &error), error);
            close_built(&b);
        }
    }
}

/* Nothing is saved in the last layer, so that a model of one layer stays as it is. */
static void the_last_layer_is_left_alone(void **state)
{
    (void)state;
    built b;
    build_passes(&b, "tiny-bert", 1);
    int32_t ops = b.program->op_count;
    rewrite(&b, LS_RECOMPUTE_LAYER);
    assert_int_equal(b.program->op_count, ops);
    close_built(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ops_stand_where_their_results_are_read),
        cmocka_unit_test(what_is_kept_is_little),
        cmocka_unit_test(the_last_layer_is_left_alone),
    };
    return cmocka_run_group_tests_name("recompute", tests, NULL, NULL);
}

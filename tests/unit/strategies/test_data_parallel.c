/* The data parallel rewrite: text in, text out. Exchanges are put in where their bucket is
 * complete, and nothing else changes. */
#include "built_programs.h"

static void rewrite(built *b, int64_t bucket_bytes, int64_t first_bucket_bytes)
{
    ls_data_parallel_options options = {.bucket_bytes = bucket_bytes,
                                        .first_bucket_bytes = first_bucket_bytes,
                                        .roots = b->model.inputs.roots,
                                        .loss = b->model.results.loss};
    assert_ok(ls_data_parallel(b->program, &options, &error), error);
    assert_ok(ls_program_verify(b->program, &error), error);
}

/* The program's text without its exchanges, and those alone, each behind the op it stands after. */
static void split(const ls_program *program, ls_text *others, ls_text *exchanges)
{
    ls_text text = {0};
    char previous[300] = "";
    assert_ok(ls_program_print(program, &text, &error), error);
    for (char *line = text.data, *next; *line; line = next) {
        next = strchr(line, '\n') + 1;
        int length = (int)(next - line);
        if (strncmp(line, "exchange ", 9) == 0) {
            assert_ok(ls_text_print(exchanges, &error, "%s: %.*s", previous, length - 9, line + 9),
                      error);
            continue;
        }
        snprintf(previous, sizeof previous, "%.*s", (int)strcspn(line + 5, " ,"), line + 5);
        assert_ok(ls_text_print(others, &error, "%.*s", length, line), error);
    }
    ls_text_deinit(&text);
}

/* clang-format off */
/* What tiny-bert's exchanges are with buckets of 16 KiB, and with one for all. */
static const char small_buckets[] =
    "gradient.bert.encoder.layer.1.intermediate.dense.weight: exchange_gradients(roots) bucket=0 bytes=21388 ["
    "gradient.classifier.bias, "
    "gradient.classifier.weight, "
    "gradient.bert.pooler.dense.bias, "
    "gradient.bert.pooler.dense.weight, "
    "gradient.bert.encoder.layer.1.output.LayerNorm.weight, "
    "gradient.bert.encoder.layer.1.output.LayerNorm.bias, "
    "gradient.bert.encoder.layer.1.output.dense.bias, "
    "gradient.bert.encoder.layer.1.output.dense.weight, "
    "gradient.bert.encoder.layer.1.intermediate.dense.bias, "
    "gradient.bert.encoder.layer.1.intermediate.dense.weight]  # bucket.0\n"
    "gradient.bert.encoder.layer.1.attention.self.query.bias: exchange_gradients(roots) bucket=1 bytes=16416 ["
    "gradient.bert.encoder.layer.1.attention.output.LayerNorm.weight, "
    "gradient.bert.encoder.layer.1.attention.output.LayerNorm.bias, "
    "gradient.bert.encoder.layer.1.attention.output.dense.bias, "
    "gradient.bert.encoder.layer.1.attention.output.dense.weight, "
    "gradient.bert.encoder.layer.1.attention.self.value.bias, "
    "gradient.bert.encoder.layer.1.attention.self.value.weight, "
    "gradient.bert.encoder.layer.1.attention.self.key.bias, "
    "gradient.bert.encoder.layer.1.attention.self.key.weight, "
    "gradient.bert.encoder.layer.1.attention.self.query.bias]  # bucket.1\n"
    "gradient.bert.encoder.layer.0.intermediate.dense.weight: exchange_gradients(roots) bucket=2 bytes=20800 ["
    "gradient.bert.encoder.layer.1.attention.self.query.weight, "
    "gradient.bert.encoder.layer.0.output.LayerNorm.weight, "
    "gradient.bert.encoder.layer.0.output.LayerNorm.bias, "
    "gradient.bert.encoder.layer.0.output.dense.bias, "
    "gradient.bert.encoder.layer.0.output.dense.weight, "
    "gradient.bert.encoder.layer.0.intermediate.dense.bias, "
    "gradient.bert.encoder.layer.0.intermediate.dense.weight]  # bucket.2\n"
    "gradient.bert.encoder.layer.0.attention.self.query.bias: exchange_gradients(roots) bucket=3 bytes=16416 ["
    "gradient.bert.encoder.layer.0.attention.output.LayerNorm.weight, "
    "gradient.bert.encoder.layer.0.attention.output.LayerNorm.bias, "
    "gradient.bert.encoder.layer.0.attention.output.dense.bias, "
    "gradient.bert.encoder.layer.0.attention.output.dense.weight, "
    "gradient.bert.encoder.layer.0.attention.self.value.bias, "
    "gradient.bert.encoder.layer.0.attention.self.value.weight, "
    "gradient.bert.encoder.layer.0.attention.self.key.bias, "
    "gradient.bert.encoder.layer.0.attention.self.key.weight, "
    "gradient.bert.encoder.layer.0.attention.self.query.bias]  # bucket.3\n"
    "gradient.bert.embeddings.token_type_embeddings.weight: exchange_gradients(roots) bucket=4 bytes=14400 ["
    "gradient.bert.encoder.layer.0.attention.self.query.weight, "
    "gradient.bert.embeddings.LayerNorm.weight, "
    "gradient.bert.embeddings.LayerNorm.bias, "
    "gradient.bert.embeddings.word_embeddings.weight, "
    "gradient.bert.embeddings.position_embeddings.weight, "
    "gradient.bert.embeddings.token_type_embeddings.weight, "
    "loss]  # bucket.4\n";
static const char one_bucket[] =
    "gradient.bert.embeddings.token_type_embeddings.weight: exchange_gradients(roots) bucket=0 bytes=89420 ["
    "gradient.classifier.bias, "
    "gradient.classifier.weight, "
    "gradient.bert.pooler.dense.bias, "
    "gradient.bert.pooler.dense.weight, "
    "gradient.bert.encoder.layer.1.output.LayerNorm.weight, "
    "gradient.bert.encoder.layer.1.output.LayerNorm.bias, "
    "gradient.bert.encoder.layer.1.output.dense.bias, "
    "gradient.bert.encoder.layer.1.output.dense.weight, "
    "gradient.bert.encoder.layer.1.intermediate.dense.bias, "
    "gradient.bert.encoder.layer.1.intermediate.dense.weight, "
    "gradient.bert.encoder.layer.1.attention.output.LayerNorm.weight, "
    "gradient.bert.encoder.layer.1.attention.output.LayerNorm.bias, "
    "gradient.bert.encoder.layer.1.attention.output.dense.bias, "
    "gradient.bert.encoder.layer.1.attention.output.dense.weight, "
    "gradient.bert.encoder.layer.1.attention.self.value.bias, "
    "gradient.bert.encoder.layer.1.attention.self.value.weight, "
    "gradient.bert.encoder.layer.1.attention.self.key.bias, "
    "gradient.bert.encoder.layer.1.attention.self.key.weight, "
    "gradient.bert.encoder.layer.1.attention.self.query.bias, "
    "gradient.bert.encoder.layer.1.attention.self.query.weight, "
    "gradient.bert.encoder.layer.0.output.LayerNorm.weight, "
    "gradient.bert.encoder.layer.0.output.LayerNorm.bias, "
    "gradient.bert.encoder.layer.0.output.dense.bias, "
    "gradient.bert.encoder.layer.0.output.dense.weight, "
    "gradient.bert.encoder.layer.0.intermediate.dense.bias, "
    "gradient.bert.encoder.layer.0.intermediate.dense.weight, "
    "gradient.bert.encoder.layer.0.attention.output.LayerNorm.weight, "
    "gradient.bert.encoder.layer.0.attention.output.LayerNorm.bias, "
    "gradient.bert.encoder.layer.0.attention.output.dense.bias, "
    "gradient.bert.encoder.layer.0.attention.output.dense.weight, "
    "gradient.bert.encoder.layer.0.attention.self.value.bias, "
    "gradient.bert.encoder.layer.0.attention.self.value.weight, "
    "gradient.bert.encoder.layer.0.attention.self.key.bias, "
    "gradient.bert.encoder.layer.0.attention.self.key.weight, "
    "gradient.bert.encoder.layer.0.attention.self.query.bias, "
    "gradient.bert.encoder.layer.0.attention.self.query.weight, "
    "gradient.bert.embeddings.LayerNorm.weight, "
    "gradient.bert.embeddings.LayerNorm.bias, "
    "gradient.bert.embeddings.word_embeddings.weight, "
    "gradient.bert.embeddings.position_embeddings.weight, "
    "gradient.bert.embeddings.token_type_embeddings.weight, "
    "loss]  # bucket.0\n";
/* clang-format on */

static void exchanges_stand_where_their_bucket_is_complete(void **state)
{
    (void)state;
    static const struct {
        int64_t bucket_bytes, first;
        const char *wanted;
    } cases[] = {{16 << 10, 16 << 10, small_buckets}, {25 << 20, 1 << 20, one_bucket}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        built b;
        ls_text before = {0}, after = {0}, none = {0}, exchanges = {0};
        build(&b, "tiny-bert");
        split(b.program, &before, &none);
        assert_true(none.length == 0);
        rewrite(&b, cases[i].bucket_bytes, cases[i].first);
        split(b.program, &after, &exchanges);
        check_text("the other ops", after.data, before.data);
        check_text("exchanges", exchanges.data, cases[i].wanted);
        ls_text_deinit(&before);
        ls_text_deinit(&after);
        ls_text_deinit(&exchanges);
        close_built(&b);
    }
}

static bool writes(const ls_op *op, ls_value_id id)
{
    for (int out = 0; out < LS_MAX_OUTPUTS; out++)
        if (op->outputs[out] == id) return true;
    return false;
}

/* Each gradient and the loss in one bucket, which stands right after the op that completes its last
 * one; all but the last have the size that was asked for, and would not without that op. */
static void check_buckets(const ls_program *program, ls_value_id loss, int64_t first, int64_t later)
{
    int sent[4096] = {0}, position = 0;
    int32_t next = 0;
    for (int32_t i = 0; i < program->op_count; i++) {
        const ls_op *op = &program->ops[i];
        if (op->kind != LS_OP_EXCHANGE_GRADIENTS) continue;
        assert_int_equal(op->segment, LS_SEGMENT_EXCHANGE);
        assert_int_equal(op->attributes.bucket, next++);
        const ls_bucket *bucket = &program->buckets[op->attributes.bucket];
        bool last = next == program->bucket_count;
        int64_t bytes = 0, before_last_op = 0, wanted = next == 1 ? first : later;
        for (int32_t m = 0; m < bucket->count; m++) {
            const ls_value *value = ls_value_of(program, bucket->values[m]);
            int64_t own = ls_value_bytes(value, &ls_fixed_extents) / program->gradient_slots;
            sent[bucket->values[m]]++;
            if (bucket->values[m] == loss) continue;
            bytes += own;
            if (!writes(&program->ops[i - 1], bucket->values[m])) before_last_op += own;
        }
        assert_int_equal(bytes, bucket->bytes);
        if (last) continue;
        assert_true(bytes >= wanted && before_last_op < wanted);
        assert_true(i > position);
        position = i;
    }
    assert_int_equal(next, program->bucket_count);
    for (ls_value_id id = 0; id < program->value_count; id++)
        assert_int_equal(sent[id],
                         id == loss || ls_value_of(program, id)->role == LS_ROLE_GRADIENT);
}

static void each_gradient_is_in_one_bucket(void **state)
{
    (void)state;
    static const char *const models[] = {"tiny-bert", "tiny-distilbert"};
    static const int64_t sizes[][2] = {{1, 1},
                                       {4, 4},
                                       {8 << 10, 1 << 10},
                                       {16 << 10, 16},
                                       {1 << 20, 1 << 10},
                                       {25 << 20, 1 << 20}};
    for (size_t m = 0; m < 2; m++) {
        int32_t fewest = 1000;
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            built b;
            build(&b, models[m]);
            assert_true(b.program->value_count < 4096);
            rewrite(&b, sizes[i][0], sizes[i][1]);
            check_buckets(b.program, b.model.results.loss, sizes[i][1], sizes[i][0]);
            assert_true(b.program->bucket_count <= fewest);
            fewest = b.program->bucket_count;
            close_built(&b);
        }
        assert_int_equal(fewest, 1);
    }
}

/* The verifier knows what an exchange must not do. */
static void an_exchange_too_early_is_an_error(void **state)
{
    (void)state;
    built b;
    build(&b, "tiny-bert");
    rewrite(&b, 16 << 10, 16 << 10);
    int32_t at = 0;
    while (b.program->ops[at].kind != LS_OP_EXCHANGE_GRADIENTS)
        at++;
    ls_op early = b.program->ops[at];
    b.program->ops[at] = b.program->ops[at - 1];
    b.program->ops[at - 1] = early;
    assert_int_equal(ls_program_verify(b.program, &error), LS_INTERNAL);
    assert_non_null(strstr(error.text, "bucket.0 (exchange_gradients) sends "));
    b.program->ops[at - 1] = b.program->ops[at];
    b.program->ops[at] = early;
    assert_ok(ls_program_verify(b.program, &error), error);
    b.program->ops[at].attributes.bucket = b.program->bucket_count;
    assert_int_equal(ls_program_verify(b.program, &error), LS_INTERNAL);
    close_built(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exchanges_stand_where_their_bucket_is_complete),
        cmocka_unit_test(each_gradient_is_in_one_bucket),
        cmocka_unit_test(an_exchange_too_early_is_an_error),
    };
    return cmocka_run_group_tests_name("data_parallel", tests, NULL, NULL);
}

/* The ZeRO rewrite: text in, text out. Where collectives stand, what they move, what becomes of the
 * values; and what the verifier thinks of a rewrite that is wrong. */
#include "testing.h"

#include <stdio.h>
#include <string.h>

#include "models/model.h"
#include "ops/registry.h"
#include "optimizers/optimizer.h"
#include "program/layout.h"
#include "strategies/strategy.h"

typedef struct built {
    ls_model_config config;
    ls_program *program;
    ls_model model;
    ls_value_id loss;
} built;

static ls_error error;

static void build(built *b, bool training)
{
    char path[4096];
    *b = (built){0};
    snprintf(path, sizeof path, "%s/tests/data/tiny-bert", LS_TEST_SOURCE);
    assert_ok(ls_model_config_load(&b->config, path, &error), error);
    assert_ok(ls_program_new(&b->program, ls_op_definitions, &error), error);
    b->program->training = training;
    b->program->gradient_slots = 2;
    ls_model_options options = {.classes = 3, .touched = {.word = 40, .position = 20, .type = 2}};
    assert_ok(ls_model_build(b->program, &b->model, &b->config, &options, &error), error);
    b->loss = b->model.results.loss;
    if (!training) return;
    assert_ok(ls_program_differentiate(b->program, b->model.inputs.schedules, &error), error);
    ls_optimizer_options optimizer = {.max_norm = 1.0f};
    ls_gradient_norm_results norm;
    assert_ok(ls_adamw(b->program, &b->model.inputs, &optimizer, &norm, &error), error);
}

static ls_zero_options options_of(built *b, ls_sharding shard)
{
    return (ls_zero_options){.shard = shard,
                             .ranks = 4,
                             .bucket_bytes = 64 << 10,
                             .first_bucket_bytes = 16 << 10,
                             .root_slots = 3,
                             .inputs = &b->model.inputs,
                             .loss = &b->loss};
}

static void rewrite(built *b, ls_sharding shard)
{
    ls_zero_options options = options_of(b, shard);
    assert_ok(ls_zero(b->program, &options, &error), error);
    assert_ok(ls_program_verify(b->program, &error), error);
}

static void close_built(built *b)
{
    ls_program_free(b->program);
    ls_model_deinit(&b->model);
    ls_model_config_deinit(&b->config);
}

static const ls_sharding zero1 = {.optimizer_state = true};
static const ls_sharding zero2 = {.optimizer_state = true, .gradients = true};
static const ls_sharding zero3 = {.optimizer_state = true, .gradients = true, .parameters = true};
static const ls_sharding forward = {.parameters = true};

/* --- text out --------------------------------------------------------------------------------- */

/* A line a collective: the op that stands before it, segment, kind, bucket, values and bytes; the
 * first and the last value and what becomes of the last. */
static void list_collectives(const ls_program *program, ls_text *text)
{
    static const char *const segments[] = {"pass", "exchange", "update"};
    const char *former = "";
    for (int32_t i = 0; i < program->op_count; i++) {
        const ls_op *op = &program->ops[i];
        if (!ls_op_is_collective(op->kind)) {
            former = op->name;
            continue;
        }
        const ls_bucket *bucket = &program->buckets[op->attributes.bucket];
        assert_ok(ls_text_print(text, &error, "%s: %s %s %d", former, segments[op->segment],
                                ls_op_name(op->kind), op->attributes.bucket),
                  error);
        if (op->kind != LS_OP_WAIT)
            assert_ok(ls_text_print(
                          text, &error, ", %d values, %lld bytes, %s .. %s%s%s", bucket->count,
                          (long long)bucket->bytes, ls_value_of(program, bucket->values[0])->name,
                          ls_value_of(program, bucket->values[bucket->count - 1])->name,
                          bucket->results ? " to " : "",
                          bucket->results
                              ? ls_value_of(program, bucket->results[bucket->count - 1])->name
                              : ""),
                      error);
        assert_ok(ls_text_print(text, &error, "\n"), error);
    }
}

static void check_text(const char *what, const char *got, const char *wanted)
{
    if (strcmp(got, wanted) == 0) return;
    size_t at = 0;
    while (got[at] && got[at] == wanted[at])
        at++;
    fail_msg("%s differ at\n%.300s\nwanted\n%.300s\nall:\n%s", what, got + at, wanted + at, got);
}

/* clang-format off */
static const char zero1_text[] =
    "bert.encoder.layer.1.intermediate.dense: exchange exchange_gradients 0, 10 values, 21388 bytes, gradient.classifier.bias .. gradient.bert.encoder.layer.1.intermediate.dense.weight\n"
    "bert.embeddings.position_embeddings.weight: exchange exchange_gradients 1, 30 values, 67744 bytes, gradient.bert.encoder.layer.1.attention.output.LayerNorm.weight .. gradient.bert.embeddings.position_embeddings.weight\n"
    "bert.embeddings.token_type_embeddings.weight: exchange exchange_gradients 2, 2 values, 288 bytes, gradient.bert.embeddings.token_type_embeddings.weight .. loss\n"
    "bert.embeddings.token_type_embeddings.weight: update gather 3, 2 values, 488 bytes, squared_norms .. loss\n"
    "bert.embeddings.token_type_embeddings.weight: update wait 3\n"
    "bert.encoder.layer.0.attention.self.value.weight: update gather 4, 32 values, 69548 bytes, classifier.bias .. bert.encoder.layer.0.attention.self.value.weight\n"
    "bert.embeddings.token_type_embeddings.weight: update gather 5, 9 values, 42192 bytes, bert.encoder.layer.0.attention.self.key.bias .. bert.embeddings.token_type_embeddings.weight\n"
    "bert.embeddings.token_type_embeddings.weight: update wait 4\n"
    "bert.embeddings.token_type_embeddings.weight: update wait 5\n";
static const char zero2_text[] =
    "bert.pooler.dense: pass exchange_gradients 0, 5 values, 5772 bytes, loss .. gradient.bert.pooler.dense.weight to shard.gradient.bert.pooler.dense.weight\n"
    "bert.encoder.layer.1.attention.self.query: pass exchange_gradients 1, 16 values, 37216 bytes, gradient.bert.encoder.layer.1.output.LayerNorm.weight .. gradient.bert.encoder.layer.1.attention.self.query.weight to shard.gradient.bert.encoder.layer.1.attention.self.query.weight\n"
    "bert.encoder.layer.1.attention.self.query: pass wait 0\n"
    "bert.encoder.layer.0.attention.self.query: pass exchange_gradients 2, 16 values, 37216 bytes, gradient.bert.encoder.layer.0.output.LayerNorm.weight .. gradient.bert.encoder.layer.0.attention.self.query.weight to shard.gradient.bert.encoder.layer.0.attention.self.query.weight\n"
    "bert.encoder.layer.0.attention.self.query: pass wait 1\n"
    "bert.embeddings.token_type_embeddings.weight: pass exchange_gradients 3, 5 values, 9216 bytes, gradient.bert.embeddings.LayerNorm.weight .. gradient.bert.embeddings.token_type_embeddings.weight to shard.gradient.bert.embeddings.token_type_embeddings.weight\n"
    "bert.embeddings.token_type_embeddings.weight: pass wait 2\n"
    "bert.embeddings.token_type_embeddings.weight: pass wait 3\n"
    "bert.embeddings.token_type_embeddings.weight: update gather 4, 2 values, 488 bytes, squared_norms .. step.loss\n"
    "bert.embeddings.token_type_embeddings.weight: update wait 4\n"
    "bert.encoder.layer.0.attention.self.value.weight: update gather 5, 32 values, 69548 bytes, classifier.bias .. bert.encoder.layer.0.attention.self.value.weight\n"
    "bert.embeddings.token_type_embeddings.weight: update gather 6, 9 values, 42192 bytes, bert.encoder.layer.0.attention.self.key.bias .. bert.embeddings.token_type_embeddings.weight\n"
    "bert.embeddings.token_type_embeddings.weight: update wait 5\n"
    "bert.embeddings.token_type_embeddings.weight: update wait 6\n";
static const char zero3_text[] =
    ": pass gather 4, 5 values, 9216 bytes, bert.embeddings.word_embeddings.weight .. bert.embeddings.LayerNorm.bias to gathered.0.bert.embeddings.LayerNorm.bias\n"
    ": pass gather 5, 16 values, 37216 bytes, bert.encoder.layer.0.attention.self.query.weight .. bert.encoder.layer.0.output.LayerNorm.bias to gathered.1.bert.encoder.layer.0.output.LayerNorm.bias\n"
    ": pass wait 4\n"
    "bert.embeddings: pass gather 6, 16 values, 37216 bytes, bert.encoder.layer.1.attention.self.query.weight .. bert.encoder.layer.1.output.LayerNorm.bias to gathered.2.bert.encoder.layer.1.output.LayerNorm.bias\n"
    "bert.embeddings: pass wait 5\n"
    "bert.encoder.layer.1.first_tokens: pass gather 7, 4 values, 5772 bytes, bert.pooler.dense.weight .. classifier.bias to gathered.3.classifier.bias\n"
    "bert.encoder.layer.1.first_tokens: pass wait 6\n"
    "bert.encoder.layer.1.output.LayerNorm: pass gather 8, 4 values, 5772 bytes, bert.pooler.dense.weight .. classifier.bias to gathered.4.classifier.bias\n"
    "bert.encoder.layer.1.output.LayerNorm: pass wait 7\n"
    "classifier: pass gather 9, 16 values, 37216 bytes, bert.encoder.layer.1.attention.self.query.weight .. bert.encoder.layer.1.output.LayerNorm.bias to gathered.5.bert.encoder.layer.1.output.LayerNorm.bias\n"
    "classifier: pass wait 8\n"
    "bert.pooler.dense: pass exchange_gradients 0, 5 values, 5772 bytes, loss .. gradient.bert.pooler.dense.weight to shard.gradient.bert.pooler.dense.weight\n"
    "bert.encoder.layer.1.output.LayerNorm: pass gather 10, 16 values, 37216 bytes, bert.encoder.layer.0.attention.self.query.weight .. bert.encoder.layer.0.output.LayerNorm.bias to gathered.6.bert.encoder.layer.0.output.LayerNorm.bias\n"
    "bert.encoder.layer.1.output.LayerNorm: pass wait 9\n"
    "bert.encoder.layer.1.attention.self.query: pass exchange_gradients 1, 16 values, 37216 bytes, gradient.bert.encoder.layer.1.output.LayerNorm.weight .. gradient.bert.encoder.layer.1.attention.self.query.weight to shard.gradient.bert.encoder.layer.1.attention.self.query.weight\n"
    "bert.encoder.layer.1.attention.self.query: pass wait 0\n"
    "bert.encoder.layer.0.output.LayerNorm: pass gather 11, 2 values, 288 bytes, bert.embeddings.LayerNorm.weight .. bert.embeddings.LayerNorm.bias to gathered.7.bert.embeddings.LayerNorm.bias\n"
    "bert.encoder.layer.0.output.LayerNorm: pass wait 10\n"
    "bert.encoder.layer.0.attention.self.query: pass exchange_gradients 2, 16 values, 37216 bytes, gradient.bert.encoder.layer.0.output.LayerNorm.weight .. gradient.bert.encoder.layer.0.attention.self.query.weight to shard.gradient.bert.encoder.layer.0.attention.self.query.weight\n"
    "bert.encoder.layer.0.attention.self.query: pass wait 1\n"
    "bert.embeddings.LayerNorm: pass wait 11\n"
    "bert.embeddings.token_type_embeddings.weight: pass exchange_gradients 3, 5 values, 9216 bytes, gradient.bert.embeddings.LayerNorm.weight .. gradient.bert.embeddings.token_type_embeddings.weight to shard.gradient.bert.embeddings.token_type_embeddings.weight\n"
    "bert.embeddings.token_type_embeddings.weight: pass wait 2\n"
    "bert.embeddings.token_type_embeddings.weight: pass wait 3\n"
    "bert.embeddings.token_type_embeddings.weight: update gather 12, 2 values, 488 bytes, squared_norms .. step.loss\n"
    "bert.embeddings.token_type_embeddings.weight: update wait 12\n";
static const char forward_text[] =
    ": pass gather 0, 5 values, 9216 bytes, bert.embeddings.word_embeddings.weight .. bert.embeddings.LayerNorm.bias to gathered.0.bert.embeddings.LayerNorm.bias\n"
    ": pass gather 1, 16 values, 37216 bytes, bert.encoder.layer.0.attention.self.query.weight .. bert.encoder.layer.0.output.LayerNorm.bias to gathered.1.bert.encoder.layer.0.output.LayerNorm.bias\n"
    ": pass wait 0\n"
    "bert.embeddings.LayerNorm: pass gather 2, 16 values, 37216 bytes, bert.encoder.layer.1.attention.self.query.weight .. bert.encoder.layer.1.output.LayerNorm.bias to gathered.2.bert.encoder.layer.1.output.LayerNorm.bias\n"
    "bert.embeddings.LayerNorm: pass wait 1\n"
    "bert.encoder.layer.1.first_tokens: pass gather 3, 4 values, 5772 bytes, bert.pooler.dense.weight .. classifier.bias to gathered.3.classifier.bias\n"
    "bert.encoder.layer.1.first_tokens: pass wait 2\n"
    "bert.encoder.layer.1.output.LayerNorm: pass wait 3\n";

/* clang-format on */

static void collectives_stand_where_they_belong(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const ls_sharding *shard;
        const char *wanted;
    } cases[] = {{"zero1", &zero1, zero1_text},
                 {"zero2", &zero2, zero2_text},
                 {"zero3", &zero3, zero3_text},
                 {"forward", &forward, forward_text}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        built b;
        ls_text text = {0};
        build(&b, cases[i].shard->optimizer_state);
        rewrite(&b, *cases[i].shard);
        list_collectives(b.program, &text);
        check_text(cases[i].name, text.data, cases[i].wanted);
        ls_text_deinit(&text);
        close_built(&b);
    }
}

/* --- the other ops ---------------------------------------------------------------------------- */

/* Everything else stays in its order, under its name, with its random numbers. */
static void other_ops_stay(void **state)
{
    (void)state;
    static const ls_sharding *const shards[] = {&zero1, &zero2, &zero3};
    for (int i = 0; i < 3; i++) {
        built before, after;
        int32_t at = 0;
        build(&before, true);
        build(&after, true);
        rewrite(&after, *shards[i]);
        for (int32_t op = 0; op < after.program->op_count; op++) {
            const ls_op *got = &after.program->ops[op], *wanted = &before.program->ops[at];
            if (ls_op_is_collective(got->kind)) continue;
            bool owned = got->kind == LS_OP_ADAMW || got->kind == LS_OP_SQUARED_NORM;
            assert_true(at++ < before.program->op_count);
            assert_int_equal(got->kind, wanted->kind);
            assert_int_equal(got->segment, wanted->segment);
            assert_string_equal(got->name, wanted->name);
            assert_int_equal(got->attributes.site, wanted->attributes.site);
            assert_int_equal(got->attributes.owned, owned);
            for (int out = 0; out < LS_MAX_OUTPUTS; out++)
                assert_int_equal(got->outputs[out], wanted->outputs[out]);
            /* Ops of the pass have other operands with whole parameters gone only. */
            for (int in = 0; in < LS_MAX_INPUTS && got->segment == LS_SEGMENT_PASS && i < 2; in++)
                assert_int_equal(got->inputs[in], wanted->inputs[in]);
        }
        assert_int_equal(at, before.program->op_count);
        close_built(&before);
        close_built(&after);
    }
}

static int count_values(const ls_program *program, ls_role role, ls_layout layout)
{
    int count = 0;
    for (ls_value_id id = 0; id < program->value_count; id++)
        count +=
            ls_value_of(program, id)->role == role && ls_value_of(program, id)->layout == layout;
    return count;
}

static void each_stage_shards_one_thing_more(void **state)
{
    (void)state;
    static const ls_sharding *const shards[] = {&zero1, &zero2, &zero3};
    for (int i = 0; i < 3; i++) {
        built b;
        build(&b, true);
        rewrite(&b, *shards[i]);
        int parameters = (int)b.model.parameter_count, tables = 3;
        assert_int_equal(count_values(b.program, LS_ROLE_OPTIMIZER_STATE, LS_LAYOUT_RUN),
                         2 * parameters);
        assert_int_equal(count_values(b.program, LS_ROLE_OPTIMIZER_STATE, LS_LAYOUT_WHOLE), 0);
        assert_int_equal(count_values(b.program, LS_ROLE_GRADIENT, LS_LAYOUT_WHOLE),
                         i < 1 ? parameters : 0);
        assert_int_equal(count_values(b.program, LS_ROLE_GRADIENT, LS_LAYOUT_RUN),
                         i < 1 ? 0 : parameters - tables);
        assert_int_equal(count_values(b.program, LS_ROLE_GRADIENT, LS_LAYOUT_ROWS),
                         i < 1 ? 0 : tables);
        assert_int_equal(count_values(b.program, LS_ROLE_PARAMETER, LS_LAYOUT_RUN),
                         i < 2 ? 0 : parameters);
        close_built(&b);
    }
}

/* Tables are read by touched row, whose numbers are another input than the ids. */
static void embeddings_read_rows_that_were_gathered(void **state)
{
    (void)state;
    built b;
    build(&b, true);
    rewrite(&b, zero3);
    const ls_op *op = b.program->ops;
    while (op->kind != LS_OP_EMBEDDING)
        op++;
    static const char *const names[] = {"word", "position", "token_type"};
    const ls_value_id rows[] = {b.model.inputs.word.rows, b.model.inputs.position.rows,
                                b.model.inputs.type.rows};
    static const int64_t capacity[] = {40, 20, 2};
    for (int table = 0; table < 3; table++) {
        const ls_value *gathered = ls_value_of(b.program, op->inputs[table]);
        assert_non_null(strstr(gathered->name, "gathered."));
        assert_non_null(strstr(gathered->name, names[table]));
        assert_int_equal(gathered->shape[0].constant, capacity[table]);
        assert_int_equal(op->inputs[3 + table], rows[table]);
    }
    close_built(&b);
}

/* --- the verifier ----------------------------------------------------------------------------- */

static int32_t find_op(const ls_program *program, ls_op_kind kind, int32_t nth)
{
    for (int32_t i = 0; i < program->op_count; i++)
        if (program->ops[i].kind == kind && nth-- == 0) return i;
    fail_msg("no such %s", ls_op_name(kind));
    return -1;
}

static void remove_op(ls_program *program, int32_t at)
{
    memmove(&program->ops[at], &program->ops[at + 1],
            (size_t)(program->op_count - at - 1) * sizeof *program->ops);
    program->op_count--;
}

static void expect_refused(built *b, const char *says)
{
    assert_int_equal(ls_program_verify(b->program, &error), LS_INTERNAL);
    if (!strstr(error.text, says)) fail_msg("should say '%s': %s", says, error.text);
    close_built(b);
}

static void wrong_rewrites_are_errors(void **state)
{
    (void)state;
    built b;
    /* No wait before the first use of a unit. */
    build(&b, true);
    rewrite(&b, zero3);
    remove_op(b.program, find_op(b.program, LS_OP_WAIT, 0));
    expect_refused(&b, "has not arrived: a wait is missing");
    /* None for the last exchange of a pass. */
    build(&b, true);
    rewrite(&b, zero2);
    int32_t update = 0, last = 0;
    for (; b.program->ops[update].segment != LS_SEGMENT_UPDATE; update++)
        if (b.program->ops[update].kind == LS_OP_WAIT) last = update;
    remove_op(b.program, last);
    expect_refused(&b, "is on its way at the end of the pass");
    /* An exchange of what is not complete. */
    build(&b, true);
    rewrite(&b, zero2);
    int32_t exchange = find_op(b.program, LS_OP_EXCHANGE_GRADIENTS, 1);
    ls_op early = b.program->ops[exchange];
    b.program->ops[exchange] = b.program->ops[exchange - 1];
    b.program->ops[exchange - 1] = early;
    expect_refused(&b, "which nothing has written");
    /* Parameters that are not gathered again. */
    build(&b, true);
    rewrite(&b, zero1);
    int32_t gather = find_op(b.program, LS_OP_GATHER, 1);
    remove_op(b.program, gather);
    expect_refused(&b, "is not gathered after its update");
    /* The norm of all blocks, of which the rank has its own. */
    build(&b, true);
    rewrite(&b, zero1);
    remove_op(b.program, find_op(b.program, LS_OP_GATHER, 0));
    expect_refused(&b, "which only its owners have");
    /* An update of the whole of what is divided. */
    build(&b, true);
    rewrite(&b, zero1);
    b.program->ops[find_op(b.program, LS_OP_ADAMW, 3)].attributes.owned = false;
    expect_refused(&b, "only its owners have");
    build(&b, true);
    rewrite(&b, zero3);
    b.program->ops[find_op(b.program, LS_OP_ADAMW, 3)].attributes.owned = false;
    expect_refused(&b, "which is sharded");
    /* A forward op that reads a parameter that is not whole. */
    build(&b, true);
    rewrite(&b, zero3);
    int32_t linear = find_op(b.program, LS_OP_LINEAR, 2);
    char name[300];
    snprintf(name, sizeof name, "%s.bias", b.program->ops[linear].name);
    b.program->ops[linear].inputs[2] = ls_program_find(b.program, name);
    expect_refused(&b, "which is sharded");
    /* A bucket that is not there. */
    build(&b, true);
    rewrite(&b, zero3);
    b.program->ops[find_op(b.program, LS_OP_GATHER, 0)].attributes.bucket = 1000;
    expect_refused(&b, "there is no bucket 1000");
}

/* --- what is gathered, and when --------------------------------------------------------------- */

/* Gathers of an op's segment that move this parameter. */
static int gathers_of(const ls_program *program, ls_value_id parameter, ls_segment segment)
{
    int count = 0;
    for (int32_t i = 0; i < program->op_count; i++) {
        const ls_op *op = &program->ops[i];
        if (op->kind != LS_OP_GATHER || op->segment != segment) continue;
        const ls_bucket *bucket = &program->buckets[op->attributes.bucket];
        for (int32_t k = 0; k < bucket->count; k++)
            count += bucket->values[k] == parameter;
    }
    return count;
}

static void small_tensors_stay_whole(void **state)
{
    (void)state;
    static const int64_t thresholds[] = {0, 37, 1297, 1 << 20};
    for (size_t t = 0; t < sizeof thresholds / sizeof *thresholds; t++) {
        built b;
        int whole = 0, divided = 0;
        build(&b, true);
        ls_zero_options options = options_of(&b, zero3);
        options.whole_below = thresholds[t];
        assert_ok(ls_zero(b.program, &options, &error), error);
        assert_ok(ls_program_verify(b.program, &error), error);
        for (ls_value_id id = 0; id < b.program->value_count; id++) {
            const ls_value *value = ls_value_of(b.program, id);
            if (value->role != LS_ROLE_PARAMETER) continue;
            bool small = ls_value_elements(value, &ls_fixed_extents) < thresholds[t];
            assert_int_equal(value->layout, small ? LS_LAYOUT_WHOLE : LS_LAYOUT_RUN);
            assert_int_equal(gathers_of(b.program, id, LS_SEGMENT_UPDATE), small);
            int gathers = gathers_of(b.program, id, LS_SEGMENT_PASS);
            assert_in_range(gathers, small ? 0 : 1, small ? 0 : 2);
            *(small ? &whole : &divided) += 1;
        }
        assert_int_equal(whole == 0, t == 0);
        assert_int_equal(divided == 0, t == 3);
        close_built(&b);
    }
}

/* Elements of gathers of the pass that are not waited for yet, at most, beside the one that is
 * waited for next; *most_gathers: how many of them. */
static int64_t most_ahead(const ls_program *program, int *most_gathers)
{
    int64_t waiting[64], most = 0;
    int first = 0, count = 0;
    *most_gathers = 0;
    for (int32_t i = 0; i < program->op_count; i++) {
        const ls_op *op = &program->ops[i];
        if (op->segment != LS_SEGMENT_PASS || !ls_op_is_collective(op->kind)) continue;
        const ls_bucket *bucket = &program->buckets[op->attributes.bucket];
        if (ls_value_of(program, bucket->values[0])->role != LS_ROLE_PARAMETER) continue;
        if (op->kind == LS_OP_GATHER) {
            waiting[count++] = bucket->bytes / (int64_t)sizeof(float);
            continue;
        }
        int64_t ahead = 0;
        for (int k = first + 1; k < count; k++)
            ahead += waiting[k];
        if (ahead > most) most = ahead;
        if (count - first - 1 > *most_gathers) *most_gathers = count - first - 1;
        first++;
    }
    assert_int_equal(first, count);
    return most;
}

static void units_are_gathered_as_far_ahead_as_is_said(void **state)
{
    (void)state;
    static const int64_t limits[] = {0, 9304, 20000, 1 << 30};
    int former = -1;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        built b;
        int gathers;
        build(&b, true);
        ls_zero_options options = options_of(&b, zero3);
        options.prefetch_limited = true;
        options.prefetch_elements = limits[i];
        assert_ok(ls_zero(b.program, &options, &error), error);
        assert_ok(ls_program_verify(b.program, &error), error);
        assert_in_range(most_ahead(b.program, &gathers), 0, limits[i]);
        assert_true(gathers > former);
        former = gathers;
        close_built(&b);
    }
    /* Embeddings, two layers and the head, and back but for the embeddings. */
    assert_in_range(former, 6, 7);
    built b;
    build(&b, true);
    rewrite(&b, zero3);
    (void)most_ahead(b.program, &former);
    assert_int_equal(former, 1);
    close_built(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_tensors_stay_whole),
        cmocka_unit_test(units_are_gathered_as_far_ahead_as_is_said),
        cmocka_unit_test(collectives_stand_where_they_belong),
        cmocka_unit_test(other_ops_stay),
        cmocka_unit_test(each_stage_shards_one_thing_more),
        cmocka_unit_test(embeddings_read_rows_that_were_gathered),
        cmocka_unit_test(wrong_rewrites_are_errors),
    };
    return cmocka_run_group_tests_name("zero", tests, NULL, NULL);
}

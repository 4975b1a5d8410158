/* Each op's backward against central differences, in double, of the op written down again here from
 * its definition; and every kind of op that has a gradient, or is part of one, is among them. */
#include "gradient_lab.h"

enum { HIDDEN = 12, FEATURES = 10, HEADS = 2, HEAD_SIZE = HIDDEN / HEADS, CLASSES = 3 };

static const float epsilon = 1e-6f;

typedef struct gradient_case {
    const char *name;
    /* Declares tensors, appends the op, says what the loss reads. */
    void (*build)(lab *l, const struct gradient_case *c);
    /* The results from the tensors, in double; out[i] is [rows][columns] of result i. */
    void (*forward)(const lab *l, const struct gradient_case *c, double *const *out);
    ls_symbol rows;
    float dropout;
    ls_activation activation;
    bool flag; /* layer norm: with residual; embedding: with types */
} gradient_case;

/* --- the mask, by its documented keys ----------------------------------------------------------
 */

static int32_t sample_of(int64_t token)
{
    int32_t sample = 0;
    while (lab_offsets[sample + 1] <= token)
        sample++;
    return sample;
}

/* Of row `row`, element `element`: 0 or 1 / (1 - p). */
static double mask(const gradient_case *c, int64_t row, int64_t element)
{
    if (c->dropout <= 0) return 1;
    bool tokens = c->rows == LS_SYMBOL_TOKENS;
    int32_t sample = tokens ? sample_of(row) : (int32_t)row;
    uint32_t position = tokens ? (uint32_t)(row - lab_offsets[sample]) : 0;
    ls_philox_block words = ls_philox(
        (ls_philox_key){{lab_key[0], lab_key[1]}},
        (ls_philox_block){{lab_sample_ids[sample], SITE, position, (uint32_t)(element / 4)}});
    return ls_uniform(words.word[element % 4]) >= c->dropout ? (double)(1 / (1 - c->dropout)) : 0;
}

/* --- embedding -------------------------------------------------------------------------------- */

static void build_embedding(lab *l, const gradient_case *c)
{
    ls_embedding_tables tables = {.type = LS_NO_VALUE};
    ls_value_id sum;
    tables.word = lab_parameter(l, VOCABULARY, HIDDEN, l->inputs->word.touched);
    tables.position = lab_parameter(l, POSITIONS, HIDDEN, l->inputs->position.touched);
    if (c->flag) tables.type = lab_parameter(l, TYPES, HIDDEN, l->inputs->type.touched);
    assert_ok(ls_embedding(l->program, "embedding", l->inputs, tables, &sum, &l->error), l->error);
    lab_result_of(l, sum);
}

static void embedding(const lab *l, const gradient_case *c, double *const *out)
{
    for (int64_t t = 0; t < TOKENS; t++)
        for (int64_t e = 0; e < HIDDEN; e++) {
            int64_t position = t - lab_offsets[sample_of(t)];
            out[0][t * HIDDEN + e] = l->tensors[0].data[lab_ids[t] * HIDDEN + e] +
                                     l->tensors[1].data[position * HIDDEN + e];
            if (c->flag) out[0][t * HIDDEN + e] += l->tensors[2].data[lab_types[t] * HIDDEN + e];
        }
}

/* --- layer norm ------------------------------------------------------------------------------- */

static void build_layer_norm(lab *l, const gradient_case *c)
{
    ls_layer_norm_operands operands = {
        .residual = LS_NO_VALUE, .epsilon = epsilon, .dropout = c->dropout, .site = SITE};
    ls_value_id y;
    operands.branch = lab_activation(l, c->rows, HIDDEN);
    operands.gamma = lab_parameter(l, HIDDEN, 0, LS_NO_VALUE);
    operands.beta = lab_parameter(l, HIDDEN, 0, LS_NO_VALUE);
    if (c->flag) operands.residual = lab_activation(l, c->rows, HIDDEN);
    assert_ok(ls_layer_norm(l->program, "norm", l->inputs, operands, &y, &l->error), l->error);
    lab_result_of(l, y);
}

static void layer_norm(const lab *l, const gradient_case *c, double *const *out)
{
    for (int64_t row = 0; row < l->tensors[0].rows; row++) {
        double sum[HIDDEN], mean = 0, variance = 0;
        for (int64_t e = 0; e < HIDDEN; e++) {
            sum[e] = l->tensors[0].data[row * HIDDEN + e];
            if (c->flag) sum[e] = l->tensors[3].data[row * HIDDEN + e] + sum[e] * mask(c, row, e);
            mean += sum[e] / HIDDEN;
        }
        for (int64_t e = 0; e < HIDDEN; e++)
            variance += (sum[e] - mean) * (sum[e] - mean) / HIDDEN;
        for (int64_t e = 0; e < HIDDEN; e++)
            out[0][row * HIDDEN + e] =
                (sum[e] - mean) / sqrt(variance + (double)epsilon) * l->tensors[1].data[e] +
                l->tensors[2].data[e];
    }
}

/* --- linear ----------------------------------------------------------------------------------- */

static ls_value_id append_linear(lab *l, ls_value_id x, int64_t features, ls_activation activation)
{
    ls_value_id y, weight = lab_parameter(l, features, HIDDEN, LS_NO_VALUE);
    ls_value_id bias = lab_parameter(l, features, 0, LS_NO_VALUE);
    assert_ok(ls_linear(l->program, "linear", x, weight, bias, activation, &y, &l->error),
              l->error);
    return y;
}

static void build_linear(lab *l, const gradient_case *c)
{
    ls_value_id x = lab_activation(l, c->rows, HIDDEN);
    lab_result_of(l, append_linear(l, x, FEATURES, c->activation));
}

/* x is read by two linears and by the selection of first tokens: its gradient has three parts. */
static void build_readers(lab *l, const gradient_case *c)
{
    ls_value_id x = lab_activation(l, c->rows, HIDDEN), first;
    assert_ok(ls_select_first(l->program, "first", l->inputs, x, &first, &l->error), l->error);
    lab_result_of(l, first);
    lab_result_of(l, append_linear(l, x, FEATURES, LS_ACTIVATION_NONE));
    lab_result_of(l, append_linear(l, x, CLASSES, LS_ACTIVATION_TANH));
}

static double activate(ls_activation activation, double x)
{
    static const double root_of_2_over_pi = 0.79788456080286535588;
    switch (activation) {
    case LS_ACTIVATION_GELU:
        return 0.5 * x * (1 + erf(x * 0.70710678118654752440));
    case LS_ACTIVATION_GELU_TANH:
        return 0.5 * x * (1 + tanh(root_of_2_over_pi * (x + 0.044715 * x * x * x)));
    case LS_ACTIVATION_RELU:
        return x > 0 ? x : 0;
    case LS_ACTIVATION_TANH:
        return tanh(x);
    case LS_ACTIVATION_NONE:
        break;
    }
    return x;
}

/* The linear whose weight is tensor `weight`, of tensor 0. */
static void apply_linear(const lab *l, int weight, ls_activation activation, double *out)
{
    const lab_tensor *x = &l->tensors[0], *w = &l->tensors[weight], *bias = w + 1;
    for (int64_t row = 0; row < x->rows; row++)
        for (int64_t n = 0; n < w->rows; n++) {
            double sum = bias->data[n];
            for (int64_t k = 0; k < HIDDEN; k++)
                sum += x->data[row * HIDDEN + k] * w->data[n * HIDDEN + k];
            out[row * w->rows + n] = activate(activation, sum);
        }
}

static void linear(const lab *l, const gradient_case *c, double *const *out)
{
    apply_linear(l, 1, c->activation, out[0]);
}

static void select_rows(const lab *l, double *out)
{
    for (int64_t sample = 0; sample < SAMPLES; sample++)
        for (int64_t e = 0; e < HIDDEN; e++)
            out[sample * HIDDEN + e] = l->tensors[0].data[lab_offsets[sample] * HIDDEN + e];
}

static void readers(const lab *l, const gradient_case *c, double *const *out)
{
    (void)c;
    select_rows(l, out[0]);
    apply_linear(l, 1, LS_ACTIVATION_NONE, out[1]);
    apply_linear(l, 3, LS_ACTIVATION_TANH, out[2]);
}

/* --- attention -------------------------------------------------------------------------------- */

static void build_attention(lab *l, const gradient_case *c)
{
    ls_attention_operands operands = {
        .heads = HEADS, .max_positions = POSITIONS, .dropout = c->dropout, .site = SITE};
    ls_value_id context;
    operands.query = lab_activation(l, c->rows, HIDDEN);
    operands.key = lab_activation(l, LS_SYMBOL_TOKENS, HIDDEN);
    operands.value = lab_activation(l, LS_SYMBOL_TOKENS, HIDDEN);
    assert_ok(ls_attention(l->program, "attention", l->inputs, operands, &context, &l->error),
              l->error);
    lab_result_of(l, context);
}

/* One query row and head. */
static void attend(const lab *l, const gradient_case *c, int64_t row, int64_t head, double *out)
{
    int32_t sample = c->rows == LS_SYMBOL_TOKENS ? sample_of(row) : (int32_t)row;
    int64_t first = lab_offsets[sample], keys = lab_offsets[sample + 1] - first;
    double weights[LONGEST], sum = 0;
    for (int64_t k = 0; k < keys; k++) {
        double score = 0;
        for (int64_t e = head * HEAD_SIZE; e < (head + 1) * HEAD_SIZE; e++)
            score +=
                l->tensors[0].data[row * HIDDEN + e] * l->tensors[1].data[(first + k) * HIDDEN + e];
        weights[k] = exp(score / sqrt(HEAD_SIZE));
        sum += weights[k];
    }
    for (int64_t e = head * HEAD_SIZE; e < (head + 1) * HEAD_SIZE; e++) {
        out[row * HIDDEN + e] = 0;
        for (int64_t k = 0; k < keys; k++)
            out[row * HIDDEN + e] += weights[k] / sum * mask(c, row, head * POSITIONS + k) *
                                     l->tensors[2].data[(first + k) * HIDDEN + e];
    }
}

static void attention(const lab *l, const gradient_case *c, double *const *out)
{
    for (int64_t row = 0; row < l->tensors[0].rows; row++)
        for (int64_t head = 0; head < HEADS; head++)
            attend(l, c, row, head, out[0]);
}

/* --- dropout, first tokens, loss ---------------------------------------------------------------
 */

static void build_dropout(lab *l, const gradient_case *c)
{
    ls_value_id y, x = lab_activation(l, c->rows, HIDDEN);
    assert_ok(ls_dropout_op(l->program, "x", l->inputs, x, c->dropout, SITE, &y, &l->error),
              l->error);
    lab_result_of(l, y);
}

static void dropout(const lab *l, const gradient_case *c, double *const *out)
{
    for (int64_t i = 0; i < l->tensors[0].rows * HIDDEN; i++)
        out[0][i] = l->tensors[0].data[i] * mask(c, i / HIDDEN, i % HIDDEN);
}

static void build_select_first(lab *l, const gradient_case *c)
{
    ls_value_id y, x = lab_activation(l, c->rows, HIDDEN);
    assert_ok(ls_select_first(l->program, "first", l->inputs, x, &y, &l->error), l->error);
    lab_result_of(l, y);
}

static void select_first(const lab *l, const gradient_case *c, double *const *out)
{
    (void)c;
    select_rows(l, out[0]);
}

/* The rule starts the chain itself, from the mean of the samples' losses. */
static void build_loss(lab *l, const gradient_case *c)
{
    ls_classifier_loss_results results;
    ls_value_id logits = lab_activation(l, c->rows, CLASSES);
    assert_ok(ls_classifier_loss_op(l->program, l->inputs, logits, &results, &l->error), l->error);
    lab_result_of(l, results.sample_loss);
    for (int64_t i = 0; i < SAMPLES; i++)
        l->results[0].weights[i] = 1.0 / SAMPLES;
}

static void loss(const lab *l, const gradient_case *c, double *const *out)
{
    (void)c;
    for (int64_t i = 0; i < SAMPLES; i++) {
        const double *logits = l->tensors[0].data + i * CLASSES;
        double sum = 0;
        for (int64_t class = 0; class < CLASSES; class ++)
            sum += exp(logits[class]);
        out[0][i] = log(sum) - logits[lab_labels[i]];
    }
}

/* --- comparing -------------------------------------------------------------------------------- */

static void evaluate(const lab *l, const gradient_case *c, double *const *out, double *loss_of_all)
{
    c->forward(l, c, out);
    *loss_of_all = 0;
    for (int r = 0; r < l->result_count; r++)
        for (int64_t i = 0; i < l->results[r].rows * l->results[r].columns; i++)
            *loss_of_all += l->results[r].weights[i] * out[r][i];
}

/* Relative to the largest of the tensor: its elements are sums that may cancel. */
static void compare(const char *what, int index, int64_t passes, const double *got,
                    const double *wanted, int64_t count, double bound)
{
    double largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(wanted[i]));
    assert_true(largest > 0);
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(got[i] - wanted[i]) <= bound * largest))
            fail_msg("%s, %d, passes of %lld: element %lld is %.9g, wanted %.9g", what, index,
                     (long long)passes, (long long)i, got[i], wanted[i]);
}

static void check_gradients(lab *l, const gradient_case *c, double *const *out)
{
    static const double step = 1e-5;
    for (int t = 0; t < l->tensor_count; t++) {
        lab_tensor *tensor = &l->tensors[t];
        int64_t count = tensor->rows * tensor->columns;
        double *wanted = malloc((size_t)count * sizeof *wanted), above, below;
        for (int64_t i = 0; i < count; i++) {
            double held = tensor->data[i];
            tensor->data[i] = held + step;
            evaluate(l, c, out, &above);
            tensor->data[i] = held - step;
            evaluate(l, c, out, &below);
            tensor->data[i] = held;
            wanted[i] = (above - below) / (2 * step);
        }
        compare(c->name, t, l->assembly.samples_per_pass, tensor->gradient, wanted, count, 2e-6);
        free(wanted);
    }
}

static bool covered[LS_OP_COUNT];

static void check_case(const gradient_case *c, int64_t samples_per_pass)
{
    lab l;
    double *out[MAX_RESULTS], total;
    lab_open(&l, samples_per_pass);
    c->build(&l, c);
    lab_differentiate(&l);
    lab_run(&l);
    for (int r = 0; r < l.result_count; r++)
        out[r] = malloc((size_t)(l.results[r].rows * l.results[r].columns) * sizeof *out[r]);
    evaluate(&l, c, out, &total);
    for (int r = 0; r < l.result_count; r++)
        compare("forward", r, samples_per_pass, l.results[r].got, out[r],
                l.results[r].rows * l.results[r].columns, 1e-6);
    check_gradients(&l, c, out);
    for (int32_t i = 0; i < l.program->op_count; i++)
        covered[l.program->ops[i].kind] = true;
    for (int r = 0; r < l.result_count; r++)
        free(out[r]);
    lab_close(&l);
}

#define TOKEN_ROWS .rows = LS_SYMBOL_TOKENS
#define SAMPLE_ROWS .rows = LS_SYMBOL_SEQUENCES

static const gradient_case cases[] = {
    {"embedding", build_embedding, embedding, TOKEN_ROWS, .flag = true},
    {"embedding without types", build_embedding, embedding, TOKEN_ROWS},
    {"layer_norm", build_layer_norm, layer_norm, TOKEN_ROWS},
    {"layer_norm, residual", build_layer_norm, layer_norm, TOKEN_ROWS, .flag = true},
    {"layer_norm, all", build_layer_norm, layer_norm, TOKEN_ROWS, .flag = true, .dropout = 0.3f},
    {"layer_norm, samples", build_layer_norm, layer_norm, SAMPLE_ROWS, .flag = true,
     .dropout = 0.3f},
    {"layer_norm, dropout of no branch", build_layer_norm, layer_norm, TOKEN_ROWS, .dropout = 0.3f},
    {"linear", build_linear, linear, TOKEN_ROWS},
    {"linear, samples", build_linear, linear, SAMPLE_ROWS},
    {"linear, gelu", build_linear, linear, TOKEN_ROWS, .activation = LS_ACTIVATION_GELU},
    {"linear, gelu_tanh", build_linear, linear, TOKEN_ROWS, .activation = LS_ACTIVATION_GELU_TANH},
    {"linear, relu", build_linear, linear, SAMPLE_ROWS, .activation = LS_ACTIVATION_RELU},
    {"linear, tanh", build_linear, linear, SAMPLE_ROWS, .activation = LS_ACTIVATION_TANH},
    {"three readers", build_readers, readers, TOKEN_ROWS},
    {"attention", build_attention, attention, TOKEN_ROWS},
    {"attention, dropout", build_attention, attention, TOKEN_ROWS, .dropout = 0.3f},
    {"attention of first tokens", build_attention, attention, SAMPLE_ROWS},
    {"attention of first tokens, dropout", build_attention, attention, SAMPLE_ROWS,
     .dropout = 0.3f},
    {"dropout", build_dropout, dropout, TOKEN_ROWS, .dropout = 0.3f},
    {"dropout, samples", build_dropout, dropout, SAMPLE_ROWS, .dropout = 0.5f},
    {"select_first", build_select_first, select_first, TOKEN_ROWS},
    {"classifier_loss", build_loss, loss, SAMPLE_ROWS},
};

static void gradients_match_finite_differences(void **state)
{
    (void)state;
    static const int64_t passes[] = {SAMPLES, 3, 1};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int p = 0; p < 3; p++)
            check_case(&cases[i], passes[p]);
}

/* What each kind is: a new one must be put here, and then needs a case above. */
typedef enum kind_of_kind {
    NOT_LISTED,
    HAS_GRADIENT,
    IS_BACKWARD,
    IS_UPDATE,
    IS_COLLECTIVE,
    IS_COPY
} kind_of_kind;

static const kind_of_kind kinds[LS_OP_COUNT] = {
    [LS_OP_EMBEDDING] = HAS_GRADIENT,
    [LS_OP_EMBEDDING_GRADIENT] = IS_BACKWARD,
    [LS_OP_LAYER_NORM] = HAS_GRADIENT,
    [LS_OP_LAYER_NORM_BACKWARD] = IS_BACKWARD,
    [LS_OP_LAYER_NORM_SUMS] = IS_BACKWARD,
    [LS_OP_LINEAR] = HAS_GRADIENT,
    [LS_OP_LINEAR_INPUT_GRADIENT] = IS_BACKWARD,
    [LS_OP_WEIGHT_GRADIENT] = IS_BACKWARD,
    [LS_OP_COLUMN_SUMS] = IS_BACKWARD,
    [LS_OP_ACTIVATION_BACKWARD] = IS_BACKWARD,
    [LS_OP_ATTENTION] = HAS_GRADIENT,
    [LS_OP_ATTENTION_BACKWARD] = IS_BACKWARD,
    [LS_OP_DROPOUT] = HAS_GRADIENT,
    [LS_OP_SELECT_FIRST] = HAS_GRADIENT,
    [LS_OP_SELECT_FIRST_BACKWARD] = IS_BACKWARD,
    [LS_OP_CLASSIFIER_LOSS] = HAS_GRADIENT,
    [LS_OP_SQUARED_NORM] = IS_UPDATE,
    [LS_OP_GRADIENT_NORM] = IS_UPDATE,
    [LS_OP_ADAMW] = IS_UPDATE,
    [LS_OP_EXCHANGE_GRADIENTS] = IS_COLLECTIVE,
    [LS_OP_GATHER] = IS_COLLECTIVE,
    [LS_OP_WAIT] = IS_COLLECTIVE,
    [LS_OP_FETCH] = IS_COPY,
    [LS_OP_AWAIT] = IS_COPY,
    [LS_OP_STORE] = IS_COPY,
};

/* Runs after the test above. */
static void every_kind_has_a_case(void **state)
{
    (void)state;
    for (int kind = 0; kind < LS_OP_COUNT; kind++) {
        const ls_op_definition *definition = ls_op_definitions[kind];
        const char *name = ls_op_name((ls_op_kind)kind);
        if (definition->kind != (ls_op_kind)kind) fail_msg("%s: another op's definition", name);
        if (kinds[kind] == NOT_LISTED) fail_msg("%s is not in the list of kinds", name);
        if ((definition->gradient != NULL) != (kinds[kind] == HAS_GRADIENT))
            fail_msg("%s: gradient rule and list of kinds disagree", name);
        bool differentiated = kinds[kind] == HAS_GRADIENT || kinds[kind] == IS_BACKWARD;
        if (differentiated && !covered[kind]) fail_msg("%s has no gradient test", name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_match_finite_differences),
        cmocka_unit_test(every_kind_has_a_case),
    };
    return cmocka_run_group_tests_name("gradients", tests, NULL, NULL);
}

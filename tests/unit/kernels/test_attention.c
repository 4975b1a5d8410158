/* kernels/attention: exact attention of one head over one sequence, against its definition in
 * double and against finite differences of that, and the same bits on every set and among any
 * neighbours. */
#include "testing.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "guarded.h"
#include "kernel_sets.h"

enum { MOST_SEQUENCES = 8 };

typedef struct attention_case {
    int64_t lengths[MOST_SEQUENCES]; /* ends with 0 */
    int64_t heads, head_size;
    float dropout;
    bool first_query_only;
} attention_case;

enum { QUERY, KEY, VALUE, CONTEXT_GRADIENT, INPUTS };
enum { CONTEXT, SOFTMAX, QUERY_GRADIENT, KEY_GRADIENT, VALUE_GRADIENT, OUTPUTS };

/* All arrays of a case, each in guarded memory. */
typedef struct arrays {
    guarded memory[INPUTS + OUTPUTS], scratch;
    float *input[INPUTS], *output[OUTPUTS];
    int64_t output_count[OUTPUTS];
    int32_t offsets[MOST_SEQUENCES + 1];
    uint32_t samples[2048];
    int32_t positions[2048];
    int64_t sequences;
} arrays;

static int setup(void **state)
{
    arrays *all = test_calloc(1, sizeof *all);
    for (int i = 0; i < INPUTS + OUTPUTS; i++)
        guarded_init(&all->memory[i], 2 << 20);
    guarded_init(&all->scratch, 8 << 20);
    *state = all;
    return 0;
}

static int teardown(void **state)
{
    arrays *all = *state;
    for (int i = 0; i < INPUTS + OUTPUTS; i++)
        guarded_deinit(&all->memory[i]);
    guarded_deinit(&all->scratch);
    test_free(all);
    return 0;
}

static void fill(float *to, int64_t count, uint32_t seed)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = ls_uniform(
                    ls_philox((ls_philox_key){{seed, 0}}, (ls_philox_block){{(uint32_t)i, 0, 0, 0}})
                        .word[0]) *
                    4.0f -
                2.0f;
}

static ls_attention make(arrays *all, const attention_case *t)
{
    int64_t tokens = 0, hidden = t->heads * t->head_size;
    all->sequences = 0;
    all->offsets[0] = 0;
    for (int64_t s = 0; t->lengths[s]; s++) {
        for (int64_t i = 0; i < t->lengths[s]; i++) {
            int64_t row = t->first_query_only ? s : tokens + i;
            if (t->first_query_only && i > 0) continue;
            all->samples[row] = (uint32_t)(1000 + 7 * s);
            all->positions[row] = (int32_t)i;
        }
        tokens += t->lengths[s];
        all->offsets[++all->sequences] = (int32_t)tokens;
    }
    int64_t queries = t->first_query_only ? all->sequences : tokens;
    int64_t input_rows[INPUTS] = {queries, tokens, tokens, queries};
    int64_t output_count[OUTPUTS] = {queries * hidden, queries * t->heads * 2, queries * hidden,
                                     tokens * hidden, tokens * hidden};
    for (int i = 0; i < INPUTS; i++) {
        int64_t count = input_rows[i] * hidden;
        all->input[i] = guarded_floats(&all->memory[i], count, 0);
        fill(all->input[i], count, (uint32_t)i + 1);
    }
    for (int i = 0; i < OUTPUTS; i++) {
        all->output_count[i] = output_count[i];
        all->output[i] = guarded_floats(&all->memory[INPUTS + i], output_count[i], 0);
        for (int64_t j = 0; j < output_count[i]; j++)
            all->output[i][j] = NAN; /* must be written, never read */
    }
    return (ls_attention){
        .query = all->input[QUERY],
        .key = all->input[KEY],
        .value = all->input[VALUE],
        .context = all->output[CONTEXT],
        .softmax = all->output[SOFTMAX],
        .offsets = all->offsets,
        .heads = t->heads,
        .head_size = t->head_size,
        .scale = 1.0f / sqrtf((float)t->head_size),
        .first_query_only = t->first_query_only,
        .max_positions = t->lengths[0] % 2 ? 131 : 132, /* a multiple of 4, or none */
        .dropout = {t->dropout, {{11, 5}}, 77, all->samples, all->positions},
        .context_gradient = all->input[CONTEXT_GRADIENT],
        .query_gradient = all->output[QUERY_GRADIENT],
        .key_gradient = all->output[KEY_GRADIENT],
        .value_gradient = all->output[VALUE_GRADIENT],
    };
}

static void run(arrays *all, const ls_kernels *kernels, const ls_attention *a)
{
    ls_kernel_limits limits = {.depth = 1, .rows = 1, .head_size = a->head_size};
    for (int64_t s = 0; s < all->sequences; s++) {
        int64_t length = all->offsets[s + 1] - all->offsets[s];
        if (length > limits.sequence_length) limits.sequence_length = length;
    }
    int64_t floats = (int64_t)(kernels->scratch_bytes(&limits) + 3) / 4;
    float *scratch = guarded_floats(&all->scratch, floats, 0);
    memset(scratch, 0xff, (size_t)floats * 4);
    for (int64_t s = 0; s < all->sequences; s++)
        for (int64_t head = 0; head < a->heads; head++)
            kernels->attention_forward(a, s, head, scratch);
    memset(scratch, 0xff, (size_t)floats * 4);
    for (int64_t s = 0; s < all->sequences; s++)
        for (int64_t head = a->heads - 1; head >= 0; head--)
            kernels->attention_backward(a, s, head, scratch);
}

static double mask_of(const ls_attention *a, int64_t row, int64_t head, int64_t key)
{
    if (a->dropout.probability == 0.0f) return 1.0;
    uint64_t element = (uint64_t)(head * a->max_positions + key);
    ls_philox_block block =
        ls_philox(a->dropout.key, (ls_philox_block){{a->dropout.samples[row], a->dropout.site,
                                                     (uint32_t)a->dropout.positions[row],
                                                     (uint32_t)(element / 4)}});
    bool kept = ls_uniform(block.word[element % 4]) >= a->dropout.probability;
    return kept ? 1.0 / (1.0 - (double)a->dropout.probability) : 0.0;
}

/* The context of one query row and head, by the definition, in double. The arrays are those of
 * ls_attention, widened. */
static void context_in_double(const ls_attention *a, const double *query, const double *key,
                              const double *value, int64_t row, int64_t head, int64_t first,
                              int64_t keys, double *context)
{
    int64_t hidden = a->heads * a->head_size, at = head * a->head_size;
    double weights[256], most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < keys; j++) {
        double score = 0;
        for (int64_t e = 0; e < a->head_size; e++)
            score += query[row * hidden + at + e] * key[(first + j) * hidden + at + e];
        weights[j] = score * (double)a->scale;
        most = fmax(most, weights[j]);
    }
    for (int64_t j = 0; j < keys; j++)
        sum += weights[j] = exp(weights[j] - most);
    for (int64_t e = 0; e < a->head_size; e++)
        context[e] = 0;
    for (int64_t j = 0; j < keys; j++) {
        double weight = weights[j] / sum * mask_of(a, row, head, j);
        for (int64_t e = 0; e < a->head_size; e++)
            context[e] += weight * value[(first + j) * hidden + at + e];
    }
}

static double *widen(const float *from, int64_t count)
{
    double *to = test_malloc((size_t)count * sizeof *to);
    for (int64_t i = 0; i < count; i++)
        to[i] = (double)from[i];
    return to;
}

/* Sum of context * context_gradient over one head of one sequence. */
static double loss_in_double(const arrays *all, const ls_attention *a, double *const input[3],
                             int64_t sequence, int64_t head)
{
    int64_t first = all->offsets[sequence], keys = all->offsets[sequence + 1] - first;
    int64_t row = a->first_query_only ? sequence : first, rows = a->first_query_only ? 1 : keys;
    double loss = 0, context[256];
    for (int64_t i = row; i < row + rows; i++) {
        context_in_double(a, input[QUERY], input[KEY], input[VALUE], i, head, first, keys, context);
        for (int64_t e = 0; e < a->head_size; e++)
            loss +=
                context[e] * (double)a->context_gradient[(i * a->heads + head) * a->head_size + e];
    }
    return loss;
}

static void forward_matches_its_definition(void **state)
{
    arrays *all = *state;
    static const attention_case cases[] = {
        {{1, 17, 130, 5}, 2, 32, 0.0f, false},
        {{9, 61, 1}, 3, 10, 0.25f, false},
        {{57, 16, 2}, 1, 64, 0.1f, true},
        {{33, 112}, 2, 12, 0.5f, false},
        {{7}, 1, 1, 0.0f, true},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        ls_attention a = make(all, &cases[c]);
        run(all, kernel_set(0), &a);
        int64_t hidden = a.heads * a.head_size;
        double *input[3];
        for (int i = 0; i < 3; i++) {
            bool one = i == QUERY && a.first_query_only;
            input[i] = widen(all->input[i],
                             (one ? all->sequences : all->offsets[all->sequences]) * hidden);
        }
        for (int64_t s = 0; s < all->sequences; s++) {
            int64_t first = all->offsets[s], keys = all->offsets[s + 1] - first;
            int64_t row = a.first_query_only ? s : first, rows = a.first_query_only ? 1 : keys;
            for (int64_t i = row; i < row + rows; i++)
                for (int64_t head = 0; head < a.heads; head++) {
                    double context[64];
                    context_in_double(&a, input[QUERY], input[KEY], input[VALUE], i, head, first,
                                      keys, context);
                    for (int64_t e = 0; e < a.head_size; e++)
                        assert_float_equal(a.context[i * hidden + head * a.head_size + e],
                                           context[e], 4e-6);
                }
        }
        for (int i = 0; i < 3; i++)
            test_free(input[i]);
    }
}

static void backward_matches_finite_differences(void **state)
{
    arrays *all = *state;
    static const attention_case cases[] = {
        {{9, 1, 6}, 2, 10, 0.0f, false},
        {{5, 11}, 1, 12, 0.3f, false},
        {{8, 3, 1}, 2, 5, 0.3f, true},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        ls_attention a = make(all, &cases[c]);
        run(all, kernel_set(0), &a);
        int64_t hidden = a.heads * a.head_size;
        double *input[3];
        int64_t rows[3];
        for (int i = 0; i < 3; i++) {
            rows[i] =
                i == QUERY && a.first_query_only ? all->sequences : all->offsets[all->sequences];
            input[i] = widen(all->input[i], rows[i] * hidden);
        }
        for (int i = 0; i < 3; i++)
            for (int64_t at = 0; at < rows[i] * hidden; at++) {
                int64_t row = at / hidden, head = at % hidden / a.head_size, sequence = 0;
                if (i == QUERY && a.first_query_only)
                    sequence = row;
                else
                    while (all->offsets[sequence + 1] <= row)
                        sequence++;
                const double step = 1e-5, here = input[i][at];
                input[i][at] = here + step;
                double above = loss_in_double(all, &a, input, sequence, head);
                input[i][at] = here - step;
                double below = loss_in_double(all, &a, input, sequence, head);
                input[i][at] = here;
                assert_float_equal(all->output[QUERY_GRADIENT + i][at],
                                   (above - below) / (2 * step), 2e-5);
            }
        for (int i = 0; i < 3; i++)
            test_free(input[i]);
    }
}

static void every_set_gives_the_same_bits(void **state)
{
    arrays *all = *state;
    static const attention_case cases[] = {
        {{1, 2, 15, 16, 17, 31}, 3, 32, 0.0f, false},
        {{57, 113, 55, 56}, 2, 64, 0.1f, false},
        {{130, 3, 8}, 2, 12, 0.3f, false},
        {{29, 64, 5}, 5, 10, 0.0f, false},
        {{29, 64, 5, 1}, 3, 10, 0.3f, true},
        {{113, 1, 32}, 1, 33, 0.1f, true},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        float *expected[OUTPUTS] = {NULL};
        for (int set = 0; set < KERNEL_SETS; set++) {
            const ls_kernels *kernels = kernel_set(set);
            if (!kernels) continue;
            ls_attention a = make(all, &cases[c]);
            run(all, kernels, &a);
            for (int i = 0; i < OUTPUTS; i++) {
                size_t bytes = (size_t)all->output_count[i] * sizeof(float);
                if (set == 0) {
                    expected[i] = test_malloc(bytes);
                    memcpy(expected[i], all->output[i], bytes);
                    for (int64_t j = 0; j < all->output_count[i]; j++)
                        assert_true(isfinite(expected[i][j]));
                }
                assert_memory_equal(all->output[i], expected[i], bytes);
            }
        }
        for (int i = 0; i < OUTPUTS; i++)
            test_free(expected[i]);
    }
}

static void a_sequence_has_the_same_bits_alone_and_among_others(void **state)
{
    arrays *all = *state;
    for (int set = 0; set < KERNEL_SETS; set++) {
        const ls_kernels *kernels = kernel_set(set);
        if (!kernels) continue;
        attention_case t = {{21, 77, 40}, 2, 32, 0.1f, false};
        ls_attention a = make(all, &t);
        run(all, kernels, &a);
        const int64_t first = 21, length = 77, hidden = 64;
        float alone[OUTPUTS][77 * 64];
        int32_t offsets[2] = {0, 77};
        ls_attention one = a;
        one.query += first * hidden;
        one.key += first * hidden;
        one.value += first * hidden;
        one.context_gradient += first * hidden;
        one.dropout.samples += first;
        one.dropout.positions += first;
        one.offsets = offsets;
        one.context = alone[CONTEXT];
        one.softmax = alone[SOFTMAX];
        one.query_gradient = alone[QUERY_GRADIENT];
        one.key_gradient = alone[KEY_GRADIENT];
        one.value_gradient = alone[VALUE_GRADIENT];
        ls_kernel_limits limits = {.sequence_length = length, .head_size = 32};
        void *scratch =
            guarded_floats(&all->scratch, (int64_t)(kernels->scratch_bytes(&limits) + 3) / 4, 1);
        for (int64_t head = 0; head < 2; head++) {
            kernels->attention_forward(&one, 0, head, scratch);
            kernels->attention_backward(&one, 0, head, scratch);
        }
        for (int i = 0; i < OUTPUTS; i++) {
            int64_t width = i == SOFTMAX ? 4 : hidden;
            assert_memory_equal(alone[i], all->output[i] + first * width,
                                (size_t)(length * width) * sizeof(float));
        }
        /* and so has a query row of its first token alone */
        float context[64], softmax[4];
        one.first_query_only = true;
        one.context = context;
        one.softmax = softmax;
        for (int64_t head = 0; head < 2; head++)
            kernels->attention_forward(&one, 0, head, scratch);
        assert_memory_equal(context, a.context + first * hidden, sizeof context);
        assert_memory_equal(softmax, a.softmax + first * 4, sizeof softmax);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(forward_matches_its_definition, setup, teardown),
        cmocka_unit_test_setup_teardown(backward_matches_finite_differences, setup, teardown),
        cmocka_unit_test_setup_teardown(every_set_gives_the_same_bits, setup, teardown),
        cmocka_unit_test_setup_teardown(a_sequence_has_the_same_bits_alone_and_among_others, setup,
                                        teardown),
    };
    return cmocka_run_group_tests_name("attention", tests, NULL, NULL);
}

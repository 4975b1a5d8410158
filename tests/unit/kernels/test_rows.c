/* Row kernels: layer norm, dropout, embeddings, loss. Every set against ref to the bit, ref against
 * plain loops in double, dropout masks against base/random.h; operands end at guard pages. */
#include "testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel_sets.h"

enum { ROWS = 6, BEGIN = 1, END = 5, LARGEST = 1536, SIZES = 18 };

static const int64_t sizes[SIZES] = {1,  2,  3,  7,  8,  9,   13,  15,  16,
                                     17, 31, 33, 48, 97, 384, 389, 513, LARGEST};

static bool outside(int64_t row)
{
    return row < BEGIN || row >= END;
}

/* Rows BEGIN .. END - 1 have the bits of `wanted` (the first set's); the others stayed NaN. */
static void check_rows(const char *what, const ls_kernels *set, int64_t size, const float *ours,
                       const float *wanted)
{
    check_bits(what, set->name, size, ours + BEGIN * size, wanted + BEGIN * size,
               (END - BEGIN) * size);
    for (int64_t row = 0; row < ROWS; row++)
        for (int64_t e = 0; e < size && outside(row); e++)
            if (!isnan(ours[row * size + e]))
                fail_msg("%s, %s, size %lld: row %lld was written", what, set->name,
                         (long long)size, (long long)row);
}

static void keep(float *copy, const float *values, int64_t size)
{
    memcpy(copy, values, (size_t)(ROWS * size) * sizeof *copy);
}

static void layer_norm_in_double(double *out, double *slope, const float *x, const float *d,
                                 const float *gamma, const float *beta, double epsilon,
                                 int64_t hidden)
{
    const double n = (double)hidden;
    double mean = 0, variance = 0, sum = 0, sum_x = 0;
    for (int64_t e = 0; e < hidden; e++)
        mean += (double)x[e] / n;
    for (int64_t e = 0; e < hidden; e++)
        variance += ((double)x[e] - mean) * ((double)x[e] - mean) / n;
    const double inverse = 1 / sqrt(variance + epsilon);
    for (int64_t e = 0; e < hidden; e++) {
        double normal = ((double)x[e] - mean) * inverse, g = (double)d[e] * (double)gamma[e];
        out[e] = normal * (double)gamma[e] + (double)beta[e];
        sum += g / n;
        sum_x += g * normal / n;
    }
    for (int64_t e = 0; e < hidden; e++) {
        double normal = ((double)x[e] - mean) * inverse, g = (double)d[e] * (double)gamma[e];
        slope[e] = inverse * (g - sum - normal * sum_x);
    }
}

static void layer_norm_is_right(void **state)
{
    (void)state;
    static float out_ref[ROWS * LARGEST], slope_ref[ROWS * LARGEST];
    static double out_double[LARGEST], slope_double[LARGEST];
    for (int s = 0; s < SIZES; s++) {
        const int64_t hidden = sizes[s];
        const float *x = operand(0, ROWS * hidden, 3.0f, 1),
                    *d = operand(1, ROWS * hidden, 1.0f, 2);
        const float *gamma = operand(2, hidden, 2.0f, 3), *beta = operand(3, hidden, 1.0f, 4);
        const float epsilon = 1e-2f; /* large: a row of one or two elements is well conditioned */
        for (int i = 0; i < KERNEL_SETS; i++) {
            const ls_kernels *set = kernel_set(i);
            if (!set) continue;
            float *out = operand(4, ROWS * hidden, 0.0f, 0);
            float *slope = operand(5, ROWS * hidden, 0.0f, 0);
            float *mean = operand(6, ROWS, 0.0f, 0), *inverse = operand(7, ROWS, 0.0f, 0);
            set->layer_norm(out, mean, inverse, x, gamma, beta, epsilon, hidden, BEGIN, END);
            set->layer_norm_backward(slope, d, x, mean, inverse, gamma, hidden, BEGIN, END);
            if (i == 0) keep(out_ref, out, hidden), keep(slope_ref, slope, hidden);
            check_rows("layer_norm", set, hidden, out, out_ref);
            check_rows("layer_norm_backward", set, hidden, slope, slope_ref);
        }
        for (int64_t row = BEGIN; row < END; row++) {
            const int64_t at = row * hidden;
            layer_norm_in_double(out_double, slope_double, x + at, d + at, gamma, beta,
                                 (double)epsilon, hidden);
            check_close("layer_norm", hidden, out_ref + at, out_double, hidden, 2e-6, 1.0);
            check_close("layer_norm_backward", hidden, slope_ref + at, slope_double, hidden, 2e-6,
                        hidden < 4 ? 20.0 : 1.0);
        }
    }
}

static double mask(const ls_dropout *dropout, int64_t row, int64_t e)
{
    if (dropout->probability == 0.0f) return 1.0;
    ls_philox_block counter = {{dropout->samples[row], dropout->site,
                                dropout->positions ? (uint32_t)dropout->positions[row] : 0,
                                (uint32_t)(e / 4)}};
    float draw = ls_uniform(ls_philox(dropout->key, counter).word[e % 4]);
    return draw >= dropout->probability ? (double)(1.0f / (1.0f - dropout->probability)) : 0.0;
}

static void dropout_follows_the_named_draws(void **state)
{
    (void)state;
    static double wanted[LARGEST], wanted_sum[LARGEST];
    const float probabilities[] = {0.0f, 0.1f, 0.5f, 0x1p-24f, 0.1f + 0x1p-24f, 1.0f - 0x1p-24f};
    const int32_t *ids = operand_ids(0, ROWS, INT32_MAX, 1);
    const int32_t *positions = operand_ids(1, ROWS, 512, 2);
    for (int s = 0; s < SIZES; s++) {
        const int64_t hidden = sizes[s];
        const float *x = operand(2, ROWS * hidden, 2.0f, 3);
        const float *residual = operand(3, ROWS * hidden, 2.0f, 4);
        for (int p = 0; p < 6; p++) {
            const ls_dropout dropout = {.probability = probabilities[p],
                                        .key = {{0x12345678u + (uint32_t)s, 0xfedcba98u}},
                                        .site = 77,
                                        .samples = (const uint32_t *)ids,
                                        .positions = s % 3 ? positions : NULL};
            for (int i = 0; i < KERNEL_SETS; i++) {
                const ls_kernels *set = kernel_set(i);
                if (!set) continue;
                float *to = operand(4, ROWS * hidden, 0.0f, 0);
                float *sum = operand(5, ROWS * hidden, 0.0f, 0);
                float *here = operand(6, ROWS * hidden, 2.0f, 3);
                set->dropout(to, x, hidden, &dropout, BEGIN, END);
                set->residual_dropout(sum, residual, x, hidden, &dropout, BEGIN, END);
                set->dropout(here, here, hidden, &dropout, BEGIN, END);
                check_rows("dropout", set, hidden, to, to);
                check_rows("residual_dropout", set, hidden, sum, sum);
                for (int64_t row = BEGIN; row < END; row++) {
                    const int64_t at = row * hidden;
                    for (int64_t e = 0; e < hidden; e++) {
                        double product = mask(&dropout, row, e) * (double)x[at + e];
                        wanted[e] = (float)product; /* each is rounded once */
                        wanted_sum[e] = (float)(product + (double)residual[at + e]);
                    }
                    check_close("dropout", hidden, to + at, wanted, hidden, 0.0, 0.0);
                    /* Rounded through double: off by a double's last place at most. */
                    check_close("residual_dropout", hidden, sum + at, wanted_sum, hidden, 1.2e-7,
                                0.0);
                    check_bits("dropout in place", set->name, hidden, here + at, to + at, hidden);
                }
            }
        }
    }
}

static void embeddings_are_summed_in_order(void **state)
{
    (void)state;
    enum { VOCABULARY = 11, POSITIONS = 7, TYPES = 2 };
    static float sum_ref[ROWS * LARGEST];
    const int32_t *ids = operand_ids(0, ROWS, VOCABULARY, 1);
    const int32_t *positions = operand_ids(1, ROWS, POSITIONS, 2);
    const int32_t *types = operand_ids(2, ROWS, TYPES, 3);
    for (int s = 0; s < SIZES; s++) {
        const int64_t hidden = sizes[s];
        const float *word = operand(3, VOCABULARY * hidden, 1.0f, 4);
        const float *position = operand(4, POSITIONS * hidden, 1.0f, 5);
        const float *type = operand(5, TYPES * hidden, 1.0f, 6);
        for (int with_type = 0; with_type < 2; with_type++) {
            for (int64_t row = BEGIN; row < END; row++)
                for (int64_t e = 0; e < hidden; e++) {
                    float sum = word[ids[row] * hidden + e] + position[positions[row] * hidden + e];
                    sum_ref[row * hidden + e] =
                        with_type ? sum + type[types[row] * hidden + e] : sum;
                }
            for (int i = 0; i < KERNEL_SETS; i++) {
                const ls_kernels *set = kernel_set(i);
                if (!set) continue;
                float *sum = operand(6, ROWS * hidden, 0.0f, 0);
                set->embedding_sum(sum, word, position, with_type ? type : NULL, ids, positions,
                                   with_type ? types : NULL, hidden, BEGIN, END);
                check_rows("embedding_sum", set, hidden, sum, sum_ref);
            }
        }
    }
}

static void rows_are_gathered_and_added(void **state)
{
    (void)state;
    static const int32_t rows[ROWS] = {0, 4, 1, 5, 3, 2};
    static float gathered[ROWS * LARGEST], added[ROWS * LARGEST];
    for (int s = 0; s < SIZES; s++) {
        const int64_t hidden = sizes[s];
        const float *from = operand(0, ROWS * hidden, 1.0f, 1);
        for (int i = 0; i < KERNEL_SETS; i++) {
            const ls_kernels *set = kernel_set(i);
            if (!set) continue;
            float *to = operand(1, ROWS * hidden, 0.0f, 0);
            float *sum = operand(2, ROWS * hidden, 1.0f, 2);
            for (int64_t row = 0; row < ROWS; row++)
                for (int64_t e = 0; e < hidden; e++) {
                    gathered[row * hidden + e] = from[rows[row] * hidden + e];
                    float *one = &added[rows[row] * hidden + e];
                    *one = sum[rows[row] * hidden + e];
                    if (!outside(row)) *one = *one + from[row * hidden + e];
                }
            set->gather_rows(to, from, rows, hidden, BEGIN, END);
            set->add_rows(sum, from, rows, hidden, BEGIN, END);
            check_rows("gather_rows", set, hidden, to, gathered);
            check_bits("add_rows", set->name, hidden, sum, added, ROWS * hidden);
        }
    }
}

static double loss_in_double(double *p, const float *x, int64_t classes, int32_t label)
{
    double largest = (double)x[0], sum = 0;
    for (int64_t c = 1; c < classes; c++)
        largest = fmax(largest, (double)x[c]);
    for (int64_t c = 0; c < classes; c++)
        sum += p[c] = exp((double)x[c] - largest);
    for (int64_t c = 0; c < classes; c++)
        p[c] /= sum;
    return log(sum) - ((double)x[label] - largest);
}

static void losses_are_right(void **state)
{
    (void)state;
    static float p_ref[ROWS * LARGEST], slope_ref[ROWS * LARGEST];
    static double p_double[LARGEST], slope_double[LARGEST];
    float loss_ref[ROWS];
    const float scales[] = {1.0f, 30.0f, 1e30f}; /* the last: all but one probability is 0 */
    for (int s = 0; s < SIZES * 3; s++) {
        const int64_t classes = sizes[s / 3];
        const float *logits = operand(0, ROWS * classes, scales[s % 3], 1u + (uint32_t)s);
        const int32_t *labels = operand_ids(1, ROWS, (int32_t)classes, 2u + (uint32_t)s);
        const float batch = 1.0f / 32.0f;
        for (int i = 0; i < KERNEL_SETS; i++) {
            const ls_kernels *set = kernel_set(i);
            if (!set) continue;
            ls_classifier_loss loss = {.logits = logits,
                                       .labels = labels,
                                       .classes = classes,
                                       .loss = operand(2, ROWS, 0.0f, 0),
                                       .probabilities = operand(3, ROWS * classes, 0.0f, 0),
                                       .logits_gradient = operand(4, ROWS * classes, 0.0f, 0),
                                       .scale = batch};
            set->classifier_loss(&loss, BEGIN, END);
            if (i == 0) {
                keep(p_ref, loss.probabilities, classes);
                keep(slope_ref, loss.logits_gradient, classes);
                memcpy(loss_ref, loss.loss, sizeof loss_ref);
            }
            check_rows("probabilities", set, classes, loss.probabilities, p_ref);
            check_rows("logits_gradient", set, classes, loss.logits_gradient, slope_ref);
            check_rows("loss", set, 1, loss.loss, loss_ref);
            loss.probabilities = loss.logits_gradient = NULL; /* neither wanted */
            set->classifier_loss(&loss, BEGIN, END);
            check_rows("loss", set, 1, loss.loss, loss_ref);
        }
        for (int64_t row = BEGIN; row < END; row++) {
            const int64_t at = row * classes;
            double wanted = loss_in_double(p_double, logits + at, classes, labels[row]);
            check_close("loss", classes, &loss_ref[row], &wanted, 1, 4e-7, 1.0);
            check_close("probabilities", classes, p_ref + at, p_double, classes, 1e-5, 1e-30);
            for (int64_t c = 0; c < classes; c++)
                slope_double[c] = (p_double[c] - (c == labels[row])) * (double)batch;
            check_close("logits_gradient", classes, slope_ref + at, slope_double, classes, 1e-5,
                        1e-3);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layer_norm_is_right),
        cmocka_unit_test(dropout_follows_the_named_draws),
        cmocka_unit_test(embeddings_are_summed_in_order),
        cmocka_unit_test(rows_are_gathered_and_added),
        cmocka_unit_test(losses_are_right),
    };
    return cmocka_run_group_tests_name("kernels/rows", tests, kernel_tests_setup,
                                       kernel_tests_teardown);
}

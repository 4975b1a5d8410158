/* Kernels of elements: activations, products, AdamW, sums of squares. Every set against ref to the
 * bit, ref against double; operands end at guard pages. */
#include "testing.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "formats/json.h"
#include "kernel_sets.h"

enum { LARGEST = 3000, COUNTS = 17 };

static const int64_t counts[COUNTS] = {0,  1,  3,   7,    8,    9,    15,   16,     17,
                                       31, 63, 127, 1023, 1024, 1025, 1536, LARGEST};

static double activation_in_double(ls_activation kind, double x, double *slope)
{
    const double pi = acos(-1.0);
    double cumulative, u, t;
    switch (kind) {
    case LS_ACTIVATION_GELU:
        cumulative = 0.5 * erfc(-x / sqrt(2.0));
        *slope = cumulative + x * exp(-0.5 * x * x) / sqrt(2 * pi);
        return x * cumulative;
    case LS_ACTIVATION_GELU_TANH:
        u = sqrt(2 / pi) * (x + 0.044715 * x * x * x);
        t = tanh(u);
        *slope = 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * sqrt(2 / pi) * (1 + 3 * 0.044715 * x * x);
        return 0.5 * x * (1 + t);
    case LS_ACTIVATION_RELU:
        *slope = x > 0;
        return x > 0 ? x : 0;
    case LS_ACTIVATION_TANH:
        *slope = 1 - tanh(x) * tanh(x);
        return tanh(x);
    default:
        *slope = 1;
        return x;
    }
}

static void activations_are_right(void **state)
{
    (void)state;
    static float out_ref[LARGEST], slope_ref[LARGEST];
    static double out_double[LARGEST], slope_double[LARGEST];
    for (int c = 0; c < COUNTS; c++)
        for (int kind = LS_ACTIVATION_NONE; kind <= LS_ACTIVATION_TANH; kind++) {
            const int64_t count = counts[c];
            const float *x = operand(0, count, c % 2 ? 6.0f : 2.0f, (uint32_t)c);
            const float *d = operand(1, count, 1.0f, 99u + (uint32_t)c);
            for (int i = 0; i < KERNEL_SETS; i++) {
                const ls_kernels *set = kernel_set(i);
                if (!set) continue;
                float *out = operand(2, count, 0.0f, 0), *slope = operand(3, count, 0.0f, 0);
                set->activation((ls_activation)kind, out, slope, x, 0, 1, count);
                set->multiply(slope, d, slope, 0, 1, count);
                if (i == 0) {
                    memcpy(out_ref, out, (size_t)count * sizeof *out);
                    memcpy(slope_ref, slope, (size_t)count * sizeof *slope);
                }
                check_bits("activation", set->name, count, out, out_ref, count);
                check_bits("slope", set->name, count, slope, slope_ref, count);
            }
            for (int64_t e = 0; e < count; e++) {
                double slope;
                out_double[e] = activation_in_double((ls_activation)kind, (double)x[e], &slope);
                slope_double[e] = slope * (double)d[e];
            }
            check_close("activation", count, out_ref, out_double, count, 3e-7, 1.0);
            check_close("slope", count, slope_ref, slope_double, count, 6e-7, 1.0);
        }
}

/* All kinds of floats, denormal and infinite ones too, in one sweep: the same bits on each set, so
 * that exp, erf and tanh have them. NaN is compared as NaN. */
static void activations_have_the_same_bits_everywhere(void **state)
{
    (void)state;
    enum { BLOCK = 4096 };
    static float in[BLOCK], out[KERNEL_SETS][2][BLOCK];
    uint64_t bits = 0, hash = 14695981039346656037u;
    while (bits <= UINT32_MAX) {
        for (int i = 0; i < BLOCK; i++, bits += 4507) {
            uint32_t word = (uint32_t)bits;
            memcpy(&in[i], &word, sizeof word);
        }
        for (int kind = LS_ACTIVATION_GELU; kind <= LS_ACTIVATION_TANH; kind++)
            for (int i = 0; i < KERNEL_SETS; i++) {
                const ls_kernels *set = kernel_set(i);
                if (!set) continue;
                set->activation((ls_activation)kind, out[i][0], out[i][1], in, 0, 1, BLOCK);
                for (int which = 0; which < 2; which++)
                    for (int e = 0; e < BLOCK; e++)
                        if (isnan(out[i][which][e])) {
                            assert_true(!isfinite(in[e]));
                            out[i][which][e] = 0.0f;
                        }
                check_bits("activation", set->name, BLOCK, out[i][0], out[0][0], BLOCK);
                check_bits("slope", set->name, BLOCK, out[i][1], out[0][1], BLOCK);
                for (int e = 0; i == 0 && e < 2 * BLOCK; e++) {
                    uint32_t word;
                    memcpy(&word, &out[0][e / BLOCK][e % BLOCK], sizeof word);
                    hash = (hash ^ word) * 1099511628211u;
                }
            }
    }
    /* Golden: another compiler or machine that gives other bits breaks the promise. */
    assert_int_equal(hash, 0xd4dc742f16c9cfefu);
}

/* Rows of a matrix with something between them; an activation without its slope; results in the
 * operands' bytes. */
static void matrices_are_worked_on_row_by_row(void **state)
{
    (void)state;
    enum { ROWS = 5, MOST = 37, STRIDE = 41 };
    for (int64_t columns = 0; columns <= MOST; columns += columns < 18 ? 1 : 19)
        for (int i = 0; i < KERNEL_SETS; i++) {
            const ls_kernels *set = kernel_set(i);
            const int64_t count = columns ? (ROWS - 1) * STRIDE + columns : 0;
            if (!set) continue;
            const float *x = operand(0, count, 2.0f, 1);
            float *out = operand(1, count, 1.0f, 2), *slope = operand(2, count, 1.0f, 3);
            static float kept[ROWS * STRIDE], alone[ROWS * STRIDE], both[ROWS * STRIDE];
            memcpy(kept, out, (size_t)count * sizeof *out);
            set->activation(LS_ACTIVATION_GELU, out, slope, x, STRIDE, ROWS, columns);
            memcpy(alone, x, (size_t)count * sizeof *out);
            set->activation(LS_ACTIVATION_GELU, alone, NULL, alone, STRIDE, ROWS, columns);
            memcpy(both, out, (size_t)count * sizeof *out);
            set->multiply(both, both, slope, STRIDE, ROWS, columns);
            for (int64_t row = 0; row < ROWS; row++)
                for (int64_t e = row * STRIDE; e < (row + 1) * STRIDE && e < count; e++) {
                    const bool inside = e - row * STRIDE < columns;
                    float value = inside ? 0.0f : kept[e], product = value;
                    if (inside) {
                        float one;
                        kernel_set(0)->activation(LS_ACTIVATION_GELU, &value, &one, &x[e], 0, 1, 1);
                        assert_true(alone[e] == value);
                        product = value * one;
                    }
                    assert_true(out[e] == value && both[e] == product);
                }
        }
}

static void adamw_in_double(double *p, double *m, double *v, double g, const ls_adamw *u)
{
    const double beta1 = (double)u->beta1, beta2 = (double)u->beta2;
    const double rate = (double)u->learning_rate;
    g *= (double)u->clip_factor;
    *p -= rate * (double)u->weight_decay * *p;
    *m += (1 - beta1) * (g - *m);
    *v = beta2 * *v + (1 - beta2) * g * g;
    *p -= rate / (double)u->correction1 * *m /
          (sqrt(*v) / (double)u->correction2_root + (double)u->epsilon);
}

static void adamw_is_right(void **state)
{
    (void)state;
    enum { STEPS = 8 };
    static float ref[3][LARGEST];
    static double wanted[3][LARGEST];
    const char *const names[] = {"parameter", "first moment", "second moment"};
    for (int c = 0; c < COUNTS; c++) {
        const int64_t count = counts[c];
        for (int i = 0; i < KERNEL_SETS; i++) {
            const ls_kernels *set = kernel_set(i);
            if (!set) continue;
            float *ours[3] = {operand(0, count, 1.0f, 5), operand(1, count, 1.0f, 6),
                              operand(2, count, 1.0f, 7)};
            for (int64_t e = 0; e < count; e++) {
                ours[1][e] = ours[2][e] = 0.0f;
                wanted[0][e] = (double)ours[0][e], wanted[1][e] = wanted[2][e] = 0;
            }
            for (int step = 1; step <= STEPS; step++) {
                const float *gradient = operand(3, count, 0.1f, (uint32_t)(step * 100 + c));
                ls_adamw update = {.parameter = ours[0],
                                   .first_moment = ours[1],
                                   .second_moment = ours[2],
                                   .gradient = step % 4 ? gradient : NULL,
                                   .count = count,
                                   .beta1 = 0.9f,
                                   .beta2 = 0.999f,
                                   .epsilon = 1e-8f,
                                   .weight_decay = 0.1f,
                                   .learning_rate = 1e-3f,
                                   .clip_factor = 0.7f};
                update.correction1 = (float)(1 - pow((double)update.beta1, step));
                update.correction2_root = (float)sqrt(1 - pow((double)update.beta2, step));
                set->adamw(&update);
                for (int64_t e = 0; e < count; e++)
                    adamw_in_double(&wanted[0][e], &wanted[1][e], &wanted[2][e],
                                    update.gradient ? (double)gradient[e] : 0, &update);
            }
            for (int which = 0; which < 3; which++) {
                if (i == 0) memcpy(ref[which], ours[which], (size_t)count * sizeof(float));
                check_bits(names[which], set->name, count, ours[which], ref[which], count);
                check_close(names[which], count, ours[which], wanted[which], count, 2e-6, 1e-2);
            }
        }
    }
}

/* Where moments and gradient are zeros the update without them gives the same bits. */
static void adamw_without_moments_is_the_decay(void **state)
{
    (void)state;
    for (int c = 0; c < COUNTS; c++)
        for (int i = 0; i < KERNEL_SETS; i++) {
            const ls_kernels *set = kernel_set(i);
            const int64_t count = counts[c];
            if (!set) continue;
            float *with = operand(0, count, 1.0f, 5), *without = operand(1, count, 1.0f, 5);
            float *started = operand(4, count, 1.0f, 5);
            float *first = operand(2, count, 0.0f, 0), *second = operand(3, count, 0.0f, 0);
            for (int64_t e = 0; e < count; e++) {
                if (e % 5 == 0) with[e] = without[e] = started[e] = e % 2 ? -0.0f : 0.0f;
                first[e] = second[e] = 0.0f;
            }
            for (int step = 0; step < 3; step++) {
                ls_adamw update = {.parameter = with,
                                   .first_moment = first,
                                   .second_moment = second,
                                   .count = count,
                                   .beta1 = 0.9f,
                                   .beta2 = 0.999f,
                                   .epsilon = 1e-8f,
                                   .weight_decay = step ? 0.1f : 0.0f,
                                   .learning_rate = 1e-3f,
                                   .correction1 = 0.1f,
                                   .correction2_root = 0.03f,
                                   .clip_factor = 0.7f};
                set->adamw(&update);
                update.parameter = without;
                update.first_moment = update.second_moment = NULL;
                set->adamw(&update);
                check_bits("parameter", set->name, count, without, with, count);
                /* Without decay each parameter stays what it is, also -0. */
                if (step == 0) check_bits("at rest", set->name, count, with, started, count);
            }
            for (int64_t e = 0; e < count; e++)
                assert_true(first[e] == 0.0f && second[e] == 0.0f);
        }
}

/* torch.optim.Adam in float64, see tools/golden/adam_golden.py. */
static double golden_number(const json_t *root, const char *name, size_t step, size_t element)
{
    const json_t *rows = json_object_get(root, name);
    return json_number_value(json_array_get(json_array_get(rows, step), element));
}

static void adam_with_l2_is_that_of_pytorch(void **state)
{
    (void)state;
    enum { STEPS = 8, COUNT = 37 };
    static float ref[3][COUNT];
    const char *const names[] = {"parameter", "first moment", "second moment"};
    ls_error error;
    json_t *root;
    assert_ok(ls_json_load(&root, LS_TEST_SOURCE "/tests/golden/adam.json", 1 << 20, &error),
              error);
    for (int i = 0; i < KERNEL_SETS; i++) {
        const ls_kernels *set = kernel_set(i);
        if (!set) continue;
        float *ours[3] = {operand(0, COUNT, 1.0f, 5), operand(1, COUNT, 1.0f, 6),
                          operand(2, COUNT, 1.0f, 7)};
        for (size_t e = 0; e < COUNT; e++) {
            ours[0][e] = (float)golden_number(root, "initial", 0, e);
            ours[1][e] = ours[2][e] = 0.0f;
        }
        for (size_t step = 0; step < STEPS; step++) {
            float *gradient = operand(3, COUNT, 0.1f, 8);
            for (size_t e = 0; e < COUNT; e++)
                gradient[e] = (float)golden_number(root, "gradients", step, e);
            ls_adamw update = {.parameter = ours[0],
                               .first_moment = ours[1],
                               .second_moment = ours[2],
                               /* All zero in every fourth step. */
                               .gradient = step % 4 == 3 ? NULL : gradient,
                               .count = COUNT,
                               .beta1 = 0.9f,
                               .beta2 = 0.999f,
                               .epsilon = 1e-8f,
                               .weight_decay = 0.1f,
                               .learning_rate = 1e-2f,
                               .clip_factor = 1.0f,
                               .l2 = true};
            update.correction1 = (float)(1 - pow((double)update.beta1, (double)step + 1));
            update.correction2_root = (float)sqrt(1 - pow((double)update.beta2, (double)step + 1));
            set->adamw(&update);
            for (size_t e = 0; e < COUNT; e++) {
                double wanted = golden_number(root, "parameters", step, e);
                if (!(fabs((double)ours[0][e] - wanted) < 2e-6))
                    fail_msg("%s, step %zu, element %zu: %.9g, wanted %.17g", set->name, step + 1,
                             e, (double)ours[0][e], wanted);
            }
        }
        for (int which = 0; which < 3; which++) {
            if (i == 0) memcpy(ref[which], ours[which], sizeof ref[which]);
            check_bits(names[which], set->name, COUNT, ours[which], ref[which], COUNT);
        }
    }
    ls_json_free(root);
}

/* The stated order in plain code. */
static double block_squares(const float *values, int64_t count)
{
    double lane[16] = {0};
    for (int64_t e = 0; e < count; e++)
        lane[e % 16] += (double)values[e] * (double)values[e];
    for (int width = 8; width > 0; width /= 2)
        for (int i = 0; i < width; i++)
            lane[i] += lane[i + width];
    return lane[0];
}

static void squares_are_summed_in_blocks(void **state)
{
    (void)state;
    double blocks[4];
    for (int c = 0; c < COUNTS; c++) {
        const int64_t count = counts[c], block_count = (count + 1023) / 1024;
        const float *values = operand(0, count, 1e-3f, (uint32_t)c);
        for (int i = 0; i < KERNEL_SETS; i++) {
            const ls_kernels *set = kernel_set(i);
            if (!set) continue;
            set->squared_sums(blocks, values, count, 0, block_count / 2);
            set->squared_sums(blocks, values, count, block_count / 2, block_count);
            for (int64_t b = 0; b < block_count; b++) {
                int64_t left = count - b * 1024;
                double wanted = block_squares(values + b * 1024, left < 1024 ? left : 1024);
                assert_memory_equal(&blocks[b], &wanted, sizeof wanted);
            }
        }
    }
}

static void squares_of_touched_rows_equal_the_whole_table(void **state)
{
    (void)state;
    enum { TABLE_ROWS = 90 };
    static const int64_t widths[] = {1, 5, 16, 17, 100, 384, 513, 1500};
    for (int w = 0; w < 8; w++)
        for (uint32_t every = 1; every <= 40; every += 13) {
            const int64_t hidden = widths[w], count = TABLE_ROWS * hidden;
            const int64_t block_count = (count + 1023) / 1024;
            float *table = calloc((size_t)count, sizeof *table);
            double *whole = calloc((size_t)block_count, sizeof *whole);
            double *touched = calloc((size_t)block_count, sizeof *touched);
            int32_t rows[TABLE_ROWS];
            int64_t row_count = 0;
            uint32_t seed = every;
            for (int32_t row = 0; row < TABLE_ROWS; row++)
                if (random_word(&seed) % every == 0) rows[row_count++] = row;
            const float *values = operand(0, row_count * hidden, 1.0f, every);
            for (int64_t r = 0; r < row_count; r++)
                memcpy(table + rows[r] * hidden, values + r * hidden,
                       (size_t)hidden * sizeof *table);
            for (int i = 0; i < KERNEL_SETS; i++) {
                const ls_kernels *set = kernel_set(i);
                if (!set) continue;
                set->squared_sums(whole, table, count, 0, block_count);
                for (int64_t begin = 0; begin < block_count; begin += 5) {
                    int64_t end = begin + 5 < block_count ? begin + 5 : block_count;
                    set->squared_sums_rows(touched, values, rows, row_count, hidden, begin, end);
                }
                assert_memory_equal(touched, whole, (size_t)block_count * sizeof *whole);
            }
            free(table), free(whole), free(touched);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activations_are_right),
        cmocka_unit_test(activations_have_the_same_bits_everywhere),
        cmocka_unit_test(matrices_are_worked_on_row_by_row),
        cmocka_unit_test(adamw_is_right),
        cmocka_unit_test(adamw_without_moments_is_the_decay),
        cmocka_unit_test(adam_with_l2_is_that_of_pytorch),
        cmocka_unit_test(squares_are_summed_in_blocks),
        cmocka_unit_test(squares_of_touched_rows_equal_the_whole_table),
    };
    return cmocka_run_group_tests_name("kernels/flat", tests, kernel_tests_setup,
                                       kernel_tests_teardown);
}

/* kernels/gemm: every element is one chain of fused multiply-adds, whatever the set, the shape, the
 * strides and the neighbours. */
#include "testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guarded.h"
#include "kernel_sets.h"

enum { UNTOUCHED = 0x7fc12345 };

/* Everything that a product touches, each in guarded memory of its own. */
typedef struct memory {
    guarded a, b, bias, c, slope, factor, scratch;
} memory;

typedef struct gemm_case {
    int64_t rows, columns, depth;
    bool a_transposed, b_transposed;
    bool accumulate, bias, slope, factor;
    ls_activation activation;
    int64_t padding; /* floats between rows of every operand */
    int at_start;
    int blocks; /* see block_kind */
} gemm_case;

static void fill(float *to, int64_t count, uint32_t seed)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = random_float(&seed);
}

static int setup(void **state)
{
    memory *m = test_calloc(1, sizeof *m);
    guarded *each[] = {&m->a, &m->b, &m->bias, &m->c, &m->slope, &m->factor, &m->scratch};
    for (size_t i = 0; i < sizeof each / sizeof each[0]; i++)
        guarded_init(each[i], 4 << 20);
    *state = m;
    return 0;
}

static int teardown(void **state)
{
    memory *m = *state;
    guarded *each[] = {&m->a, &m->b, &m->bias, &m->c, &m->slope, &m->factor, &m->scratch};
    for (size_t i = 0; i < sizeof each / sizeof each[0]; i++)
        guarded_deinit(each[i]);
    test_free(m);
    return 0;
}

/* Floats from the first to the last element of a [rows][columns] matrix. */
static int64_t extent(int64_t rows, int64_t columns, int64_t stride)
{
    return rows > 0 && columns > 0 ? (rows - 1) * stride + columns : 0;
}

static ls_gemm make_operands(memory *m, const gemm_case *t)
{
    int64_t a_stride = (t->a_transposed ? t->rows : t->depth) + t->padding;
    int64_t b_stride = (t->b_transposed ? t->depth : t->columns) + t->padding;
    int64_t c_stride = t->columns + t->padding;
    int64_t a_count =
        t->a_transposed ? extent(t->depth, t->rows, a_stride) : extent(t->rows, t->depth, a_stride);
    int64_t b_count = t->b_transposed ? extent(t->columns, t->depth, b_stride)
                                      : extent(t->depth, t->columns, b_stride);
    int64_t c_count = extent(t->rows, t->columns, c_stride);
    float *a = guarded_floats(&m->a, a_count, t->at_start);
    float *b = guarded_floats(&m->b, b_count, t->at_start);
    float *bias = guarded_floats(&m->bias, t->columns, t->at_start);
    float *c = guarded_floats(&m->c, c_count, t->at_start);
    float *slope = guarded_floats(&m->slope, c_count, t->at_start);
    float *factor = guarded_floats(&m->factor, c_count, t->at_start);
    fill(a, a_count, 1);
    fill(b, b_count, 2);
    fill(bias, t->columns, 3);
    for (int64_t i = 0; i < c_count; i++) {
        const uint32_t untouched = UNTOUCHED;
        memcpy(&c[i], &untouched, 4);
        memcpy(&slope[i], &untouched, 4);
    }
    fill(factor, c_count, 5);
    if (t->accumulate)
        for (int64_t i = 0; i < t->rows; i++)
            fill(c + i * c_stride, t->columns, (uint32_t)i + 4);
    return (ls_gemm){
        .rows = t->rows,
        .columns = t->columns,
        .depth = t->depth,
        .a = a,
        .a_row = t->a_transposed ? 1 : a_stride,
        .a_depth = t->a_transposed ? a_stride : 1,
        .b = b,
        .b_depth = t->b_transposed ? 1 : b_stride,
        .b_column = t->b_transposed ? b_stride : 1,
        .c = c,
        .c_row = c_stride,
        .accumulate = t->accumulate,
        .bias = t->bias ? bias : NULL,
        .activation = t->activation,
        .slope = t->slope ? slope : NULL,
        .factor = t->factor ? factor : NULL,
    };
}

/* The chains, by the definition. */
static float *expected_chains(const ls_gemm *g)
{
    float *chains = test_malloc((size_t)(g->rows * g->columns + 1) * sizeof(float));
    for (int64_t i = 0; i < g->rows; i++)
        for (int64_t n = 0; n < g->columns; n++) {
            float chain = g->bias ? g->bias[n] : g->accumulate ? g->c[i * g->c_row + n] : 0.0f;
            for (int64_t k = 0; k < g->depth; k++)
                chain = fmaf(g->a[i * g->a_row + k * g->a_depth],
                             g->b[k * g->b_depth + n * g->b_column], chain);
            chains[i * g->columns + n] = chain;
        }
    return chains;
}

static void assert_matrix(const float *matrix, int64_t stride, const float *expected, int64_t rows,
                          int64_t columns, const char *set, const char *what)
{
    for (int64_t i = 0; columns > 0 && i < rows; i++) {
        if (memcmp(matrix + i * stride, expected + i * columns, (size_t)columns * 4)) {
            for (int64_t n = 0; n < columns; n++)
                if (memcmp(&matrix[i * stride + n], &expected[i * columns + n], 4))
                    fail_msg("%s, %s: [%d][%d] of %d x %d is %a, should be %a", set, what, (int)i,
                             (int)n, (int)rows, (int)columns, matrix[i * stride + n],
                             expected[i * columns + n]);
        }
        for (int64_t n = columns; n < stride && i + 1 < rows; n++) {
            uint32_t bits;
            memcpy(&bits, &matrix[i * stride + n], 4);
            assert_int_equal(bits, UNTOUCHED);
        }
    }
}

static void check(memory *m, const gemm_case *t)
{
    for (int i = 0; i < KERNEL_SETS; i++) {
        const ls_kernels *kernels = kernel_set(i);
        ls_cache_blocks blocks;
        if (!kernels) continue;
        ls_gemm g = make_operands(m, t);
        g.blocks = block_kind(kernels, t->blocks, &blocks);
        float *expected = expected_chains(&g);
        ls_kernel_limits limits = {.depth = t->depth, .rows = t->rows};
        size_t bytes = (kernels->scratch_bytes(&limits) + 3) / 4 * 4;
        kernels->gemm(&g, guarded_floats(&m->scratch, (int64_t)(bytes / 4), t->at_start));
        float *slopes = test_malloc((size_t)(t->rows * t->columns + 1) * sizeof(float));
        kernel_set(0)->activation(t->activation, expected, slopes, expected, t->columns, t->rows,
                                  t->columns);
        for (int64_t row = 0; t->factor && row < t->rows; row++)
            for (int64_t n = 0; n < t->columns; n++)
                expected[row * t->columns + n] *= g.factor[row * g.c_row + n];
        if (t->slope)
            assert_matrix(g.slope, g.c_row, slopes, t->rows, t->columns, kernels->name, "slope");
        assert_matrix(g.c, g.c_row, expected, t->rows, t->columns, kernels->name, "C");
        test_free(expected);
        test_free(slopes);
    }
}

static void any_size_is_exact(void **state)
{
    static const int64_t rows[] = {0, 1, 3, 4, 5, 6, 7, 13, 14, 15, 29, 61};
    static const int64_t columns[] = {0, 1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 53};
    static const int64_t depths[] = {0, 1, 7, 8, 9, 15, 16, 17, 37};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (size_t j = 0; j < sizeof columns / sizeof columns[0]; j++)
            for (size_t k = 0; k < sizeof depths / sizeof depths[0]; k++)
                for (int layout = 0; layout < 4; layout++)
                    check(*state,
                          &(gemm_case){.rows = rows[i],
                                       .columns = columns[j],
                                       .depth = depths[k],
                                       .a_transposed = layout & 1,
                                       .b_transposed = layout & 2,
                                       .bias = (i + j + k) % 2,
                                       .accumulate = (i + j + k) % 4 == 2,
                                       .factor = (i + j + k) % 3 == 0,
                                       .padding = (int64_t)(k % 3),
                                       .at_start = (int)(i + k) % 2,
                                       .blocks = (int)(i / 2 + j + (size_t)layout) % BLOCK_KINDS});
}

/* Longer than the blocks in which the kernel walks depth and columns. */
static void blocks_leave_no_trace(void **state)
{
    static const int64_t sizes[][3] = {{15, 385, 385}, {30, 389, 383}, {2, 1153, 384},
                                       {7, 33, 1537},  {1, 400, 769},  {29, 770, 401}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int variant = 0; variant < 8; variant++)
            check(*state,
                  &(gemm_case){.rows = sizes[i][0],
                               .columns = sizes[i][1],
                               .depth = sizes[i][2],
                               .a_transposed = variant & 1,
                               .b_transposed = variant & 2,
                               .bias = variant & 4,
                               .slope = variant & 4,
                               .factor = !(variant & 4) && variant & 2,
                               .accumulate = !(variant & 4) && variant & 1,
                               .activation = variant & 4 ? LS_ACTIVATION_GELU : LS_ACTIVATION_NONE,
                               .padding = variant % 3,
                               .at_start = variant & 1,
                               .blocks = (int)(i + (size_t)variant) % BLOCK_KINDS});
}

static void activations_are_those_of_the_activation_kernel(void **state)
{
    for (int kind = LS_ACTIVATION_NONE; kind <= LS_ACTIVATION_TANH; kind++)
        for (int variant = 0; variant < 8; variant++)
            check(*state, &(gemm_case){.rows = variant & 4 ? 14 : 17,
                                       .columns = variant & 4 ? 32 : 45,
                                       .depth = 19,
                                       .b_transposed = true,
                                       .bias = variant & 1,
                                       .slope = variant & 2,
                                       .activation = (ls_activation)kind,
                                       .padding = 1});
}

static void a_row_has_the_same_bits_alone_and_among_others(void **state)
{
    memory *m = *state;
    for (int set = 0; set < KERNEL_SETS; set++) {
        const ls_kernels *kernels = kernel_set(set);
        if (!kernels) continue;
        gemm_case t = {.rows = 43,
                       .columns = 77,
                       .depth = 500,
                       .b_transposed = true,
                       .bias = true,
                       .activation = LS_ACTIVATION_GELU};
        ls_gemm g = make_operands(m, &t);
        size_t bytes = kernels->scratch_bytes(&(ls_kernel_limits){.depth = 500, .rows = 43});
        void *scratch = guarded_floats(&m->scratch, (int64_t)(bytes + 3) / 4, 0);
        kernels->gemm(&g, scratch);
        for (int64_t row = 0; row < t.rows; row++) {
            float alone[77];
            ls_gemm one = g;
            one.rows = 1;
            one.a += row * g.a_row;
            one.c = alone;
            kernels->gemm(&one, scratch);
            assert_memory_equal(alone, g.c + row * g.c_row, sizeof alone);
            one.columns = 1; /* and so has a column */
            one.b += 76 * g.b_column;
            one.bias += 76;
            kernels->gemm(&one, scratch);
            assert_memory_equal(alone, g.c + row * g.c_row + 76, 4);
        }
    }
}

static void a_set_is_chosen_by_name(void **state)
{
    (void)state;
    ls_error error;
    const ls_kernels *kernels = NULL;
    setenv("LOCKSTEP_ISA", "ref", 1);
    assert_ok(ls_kernels_choose(&kernels, &error), error);
    assert_string_equal(kernels->name, "ref");
    setenv("LOCKSTEP_ISA", "sse9", 1);
    assert_int_equal(ls_kernels_choose(&kernels, &error), LS_INVALID);
    assert_non_null(strstr(error.text, "sse9"));
    assert_non_null(strstr(error.text, "avx512"));
    setenv("LOCKSTEP_ISA", "", 1);
    assert_ok(ls_kernels_choose(&kernels, &error), error);
    for (int set = 0; set < KERNEL_SETS; set++)
        if (kernel_set(set)) assert_true(kernel_set(set)->lanes <= kernels->lanes);
    unsetenv("LOCKSTEP_ISA");
    assert_null(ls_kernels_named("sse9"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(any_size_is_exact, setup, teardown),
        cmocka_unit_test_setup_teardown(blocks_leave_no_trace, setup, teardown),
        cmocka_unit_test_setup_teardown(activations_are_those_of_the_activation_kernel, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_row_has_the_same_bits_alone_and_among_others, setup,
                                        teardown),
        cmocka_unit_test(a_set_is_chosen_by_name),
    };
    return cmocka_run_group_tests_name("gemm", tests, NULL, NULL);
}

/* Sums over samples: column_sums, layer_norm_sums, weight_gradient and embedding_gradient must give
 * the bits of the recursive tree, wherever a batch is cut into passes. */
#include "testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel_sets.h"
#include "leaf_passes.h"

enum { SLOTS = LS_MAX_SLOTS, TABLE_ROWS = 13 };

/* A batch, its data and where it is cut. */
typedef struct batch {
    int32_t leaf_rows[MAX_LEAVES];
    int leaves;
    int32_t rows;
    int64_t left, right; /* columns of the two operands; sums have left, or left * right */
    const float *values, *input, *mean, *inverse;
    const int32_t *ids;
    int32_t id; /* for the chain of one table row */
} batch;

static bool column_chain(const void *context, float *out, int64_t begin, int64_t end)
{
    const batch *b = context;
    for (int64_t e = 0; e < b->left; e++) {
        out[e] = 0.0f;
        for (int64_t t = begin; t < end; t++)
            out[e] = out[e] + b->values[t * b->left + e];
    }
    return true;
}

static bool gamma_chain(const void *context, float *out, int64_t begin, int64_t end)
{
    const batch *b = context;
    for (int64_t e = 0; e < b->left; e++) {
        out[e] = 0.0f;
        for (int64_t t = begin; t < end; t++) {
            int64_t at = t * b->left + e;
            out[e] = fmaf(b->values[at], (b->input[at] - b->mean[t]) * b->inverse[t], out[e]);
        }
    }
    return true;
}

static bool weight_chain(const void *context, float *out, int64_t begin, int64_t end)
{
    const batch *b = context;
    for (int64_t n = 0; n < b->left; n++)
        for (int64_t k = 0; k < b->right; k++) {
            float *sum = &out[n * b->right + k];
            *sum = 0.0f;
            for (int64_t t = begin; t < end; t++)
                *sum = fmaf(b->values[t * b->left + n], b->input[t * b->right + k], *sum);
        }
    return true;
}

static bool table_row_chain(const void *context, float *out, int64_t begin, int64_t end)
{
    const batch *b = context;
    bool any = false;
    for (int64_t t = begin; t < end; t++) {
        if (b->ids[t] != b->id) continue;
        for (int64_t e = 0; e < b->left; e++)
            out[e] = (any ? out[e] : 0.0f) + b->values[t * b->left + e];
        any = true;
    }
    return any;
}

static void column_pass(const ls_kernels *set, const batch *b, const leaf_pass *pass, float *slots,
                        float *more)
{
    (void)more;
    ls_column_sums g = {.values = b->values + pass->first_row * b->left,
                        .stride = b->left,
                        .end = b->left / 3,
                        .slots = slots,
                        .slot_stride = b->left,
                        .schedule = &pass->schedule};
    set->column_sums(&g);
    g.begin = g.end, g.end = b->left; /* two ranges, as two threads would */
    set->column_sums(&g);
}

static void norm_pass(const ls_kernels *set, const batch *b, const leaf_pass *pass, float *slots,
                      float *more)
{
    ls_layer_norm_sums g = {.output_gradient = b->values + pass->first_row * b->left,
                            .input = b->input + pass->first_row * b->left,
                            .mean = b->mean + pass->first_row,
                            .inverse_deviation = b->inverse + pass->first_row,
                            .hidden = b->left,
                            .end = b->left / 2,
                            .gamma_slots = slots,
                            .beta_slots = more,
                            .slot_stride = b->left,
                            .schedule = &pass->schedule};
    set->layer_norm_sums(&g);
    g.begin = g.end, g.end = b->left;
    set->layer_norm_sums(&g);
}

static void weight_pass(const ls_kernels *set, const batch *b, const leaf_pass *pass, float *slots,
                        float *more)
{
    (void)more;
    ls_kernel_limits limits = {.depth = 1, .rows = b->rows, .sequence_length = 1, .head_size = 1};
    void *scratch = malloc(set->scratch_bytes(&limits));
    assert_non_null(scratch);
    ls_weight_gradient g = {.left = b->values + pass->first_row * b->left,
                            .left_stride = b->left,
                            .right = b->input + pass->first_row * b->right,
                            .right_stride = b->right,
                            .left_end = b->left / 2,
                            .right_count = b->right,
                            .slots = slots,
                            .slot_stride = b->left * b->right,
                            .gradient_row = b->right,
                            .schedule = &pass->schedule};
    set->weight_gradient(&g, scratch);
    g.left_begin = g.left_end, g.left_end = b->left;
    set->weight_gradient(&g, scratch);
    free(scratch);
}

typedef void run_pass(const ls_kernels *set, const batch *b, const leaf_pass *pass, float *slots,
                      float *more);

static void check_sum(const char *what, const ls_kernels *set, const batch *b, int64_t count,
                      const float *slots, leaf_chain *chain)
{
    float *wanted = calloc((size_t)count, sizeof *wanted);
    assert_non_null(wanted);
    assert_true(leaf_tree_sum(wanted, count, b->leaf_rows, b->leaves, chain, b));
    check_bits(what, set->name, count, slots, wanted, count);
    free(wanted);
}

/* Random leaves, and cuts at borders and inside leaves. */
static void make_batch(batch *b, leaf_passes *passes, uint32_t seed)
{
    const int leaf_counts[] = {1, 2, 3, 4, 5, 7, 8, 11, 16, 19};
    b->leaves = leaf_counts[random_word(&seed) % 10];
    b->rows = 0;
    for (int leaf = 0; leaf < b->leaves; leaf++)
        b->rows += b->leaf_rows[leaf] = 1 + (int32_t)(random_word(&seed) % 9);
    int32_t cuts[MAX_PASSES];
    int cut_count = 0;
    const uint32_t every = 1 + random_word(&seed) % 20; /* 1: each row is a pass */
    for (int32_t row = 1; row < b->rows && cut_count < MAX_PASSES - 1; row++)
        if (random_word(&seed) % every == 0) cuts[cut_count++] = row;
    if (seed % 5 == 0) cut_count = 0;
    leaf_passes_init(passes, b->leaf_rows, b->leaves, cuts, cut_count);
}

static void check_kernel(const char *what, run_pass *run, leaf_chain *chain, leaf_chain *more_chain,
                         int64_t right)
{
    static const int64_t widths[] = {1, 7, 8, 9, 15, 16, 17, 31, 37, 64, 101, 131, 384};
    leaf_passes *passes = malloc(sizeof *passes);
    assert_non_null(passes);
    for (uint32_t round = 0; round < 78; round++) {
        batch b = {.left = widths[round % 13], .right = right};
        if (right > 1 && b.left > 64) b.left = 61;
        make_batch(&b, passes, round * 7919u + 1u);
        const int64_t count = b.left * right;
        const uint32_t first_seed = round * 31u;
        b.values = operand(0, b.rows * b.left, 2.0f, first_seed + 1);
        b.input = operand(1, b.rows * (right > 1 ? right : b.left), 3.0f, first_seed + 2);
        b.mean = operand(2, b.rows, 1.0f, first_seed + 3);
        b.inverse = operand(3, b.rows, 2.0f, first_seed + 4);
        for (int i = 0; i < KERNEL_SETS; i++) {
            const ls_kernels *set = kernel_set(i);
            if (!set) continue;
            int64_t slot_count = SLOTS;
            float *slots = operand(4, slot_count * count, 0.0f, 0);
            float *more = operand(5, slot_count * count, 0.0f, 0);
            for (int pass = 0; pass < passes->count; pass++)
                run(set, &b, &passes->pass[pass], slots, more);
            check_sum(what, set, &b, count, slots, chain);
            if (more_chain) check_sum(what, set, &b, count, more, more_chain);
        }
    }
    free(passes);
}

static void column_sums_follow_the_tree(void **state)
{
    (void)state;
    check_kernel("column_sums", column_pass, column_chain, NULL, 1);
}

static void layer_norm_sums_follow_the_tree(void **state)
{
    (void)state;
    check_kernel("layer_norm_sums", norm_pass, gamma_chain, column_chain, 1);
}

static void weight_gradients_follow_the_tree(void **state)
{
    (void)state;
    check_kernel("weight_gradient", weight_pass, weight_chain, NULL, 45);
}

static void embedding_gradients_follow_the_tree(void **state)
{
    (void)state;
    static const int64_t widths[] = {1, 8, 15, 16, 17, 129, 384};
    leaf_passes *passes = malloc(sizeof *passes);
    assert_non_null(passes);
    for (uint32_t round = 0; round < 70; round++) {
        batch b = {.left = widths[round % 7]};
        make_batch(&b, passes, round * 104729u + 5u);
        const int64_t count = TABLE_ROWS * b.left;
        b.values = operand(0, b.rows * b.left, 2.0f, round + 1);
        b.ids = operand_ids(1, b.rows, round % 2 ? TABLE_ROWS : 3, round + 2);
        for (int i = 0; i < KERNEL_SETS; i++) {
            const ls_kernels *set = kernel_set(i);
            if (!set) continue;
            float *slots = operand(4, SLOTS * count, 0.0f, 0);
            for (int pass = 0; pass < passes->count; pass++) {
                row_pass rows;
                row_pass_init(&rows, passes, pass, b.leaf_rows, b.leaves, b.ids, TABLE_ROWS);
                int64_t half = rows.schedule.rows / 2;
                const float *gradient = b.values + passes->pass[pass].first_row * b.left;
                set->embedding_gradient(slots, count, gradient, b.left, &rows.schedule, 0, half);
                set->embedding_gradient(slots, count, gradient, b.left, &rows.schedule, half,
                                        rows.schedule.rows);
                row_pass_deinit(&rows);
            }
            for (b.id = 0; b.id < TABLE_ROWS; b.id++) {
                float wanted[384];
                if (leaf_tree_sum(wanted, b.left, b.leaf_rows, b.leaves, table_row_chain, &b))
                    check_bits("embedding_gradient", set->name, b.left, slots + b.id * b.left,
                               wanted, b.left);
                else
                    assert_true(isnan(slots[b.id * b.left])); /* untouched */
            }
        }
    }
    free(passes);
}

/* The order matters: leaves added one after the other, without the tree, give other bits. */
static void another_order_gives_other_bits(void **state)
{
    (void)state;
    batch b = {.leaf_rows = {3, 3, 3, 3, 3, 3}, .leaves = 6, .rows = 18, .left = 384};
    b.values = operand(0, b.rows * b.left, 2.0f, 3);
    float tree[384], chain[384];
    leaf_tree_sum(tree, b.left, b.leaf_rows, b.leaves, column_chain, &b);
    column_chain(&b, chain, 0, b.rows);
    assert_memory_not_equal(tree, chain, sizeof tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(column_sums_follow_the_tree),
        cmocka_unit_test(layer_norm_sums_follow_the_tree),
        cmocka_unit_test(weight_gradients_follow_the_tree),
        cmocka_unit_test(embedding_gradients_follow_the_tree),
        cmocka_unit_test(another_order_gives_other_bits),
    };
    return cmocka_run_group_tests_name("kernels/leaf_sums", tests, kernel_tests_setup,
                                       kernel_tests_teardown);
}

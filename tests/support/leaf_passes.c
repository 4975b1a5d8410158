#include "leaf_passes.h"

#include <stdlib.h>
#include <string.h>

#include "testing.h"

static int32_t total_rows(const int32_t *leaf_rows, int leaves)
{
    int32_t total = 0;
    for (int leaf = 0; leaf < leaves; leaf++)
        total += leaf_rows[leaf];
    return total;
}

static int leaf_of(const int32_t *leaf_rows, int32_t row)
{
    int leaf = 0;
    for (; row >= leaf_rows[leaf]; leaf++)
        row -= leaf_rows[leaf];
    return leaf;
}

void leaf_passes_init(leaf_passes *passes, const int32_t *leaf_rows, int leaves,
                      const int32_t *cuts, int cut_count)
{
    assert_true(leaves <= MAX_LEAVES && cut_count < MAX_PASSES);
    const int32_t total = total_rows(leaf_rows, leaves);
    int32_t depth = 0, row = 0;
    int leaf = 0;
    int32_t leaf_left = leaf_rows[0]; /* rows of `leaf` that no pass holds yet */
    bool open = false;
    passes->count = cut_count + 1;
    for (int i = 0; i <= cut_count; i++) {
        leaf_pass *pass = &passes->pass[i];
        const int32_t end = i < cut_count ? cuts[i] : total;
        memset(pass, 0, sizeof *pass);
        pass->first_row = row;
        pass->schedule.depth = depth;
        pass->schedule.resume = open;
        open = false;
        int pieces = 0;
        while (row < end) {
            int32_t rows = leaf_left < end - row ? leaf_left : end - row;
            row += rows;
            leaf_left -= rows;
            pass->offsets[pieces + 1] = row - pass->first_row;
            if (leaf_left > 0) {
                open = true;
            } else {
                int merges = leaf + 1 == leaves ? depth : __builtin_ctz(~(unsigned)leaf);
                pass->merges[pieces] = (uint8_t)merges;
                depth += 1 - merges;
                if (++leaf < leaves) leaf_left = leaf_rows[leaf];
            }
            pieces++;
        }
        pass->schedule.leave_open = open;
        pass->schedule.pieces = pieces;
        pass->schedule.offsets = pass->offsets;
        pass->schedule.merges = pass->merges;
    }
    assert_int_equal(depth, 1);
}

/* Whether leaves a and b lie in one subtree that ends before leaf `next` (-1: no more leaves). */
static bool closed_before(int a, int b, int next)
{
    if (next < 0) return true;
    int level = 0;
    while (a >> level != b >> level)
        level++;
    return b >> level != next >> level;
}

/* One table row's walk through the batch, up to and with the pass being filled. */
typedef struct row_walk {
    int first_leaf[LS_MAX_SLOTS]; /* of each entry of the stack */
    int depth;
} row_walk;

static int next_leaf_with(const int32_t *leaf_rows, const int32_t *ids, int32_t id, int32_t row,
                          int32_t total, int leaf)
{
    for (; row < total; row++)
        if (ids[row] == id && leaf_of(leaf_rows, row) != leaf) return leaf_of(leaf_rows, row);
    return -1;
}

static void fill_row(row_pass *pass, const leaf_pass *window, int32_t end, const int32_t *leaf_rows,
                     int leaves, const int32_t *ids, int32_t id)
{
    const int32_t total = total_rows(leaf_rows, leaves);
    ls_row_schedule *s = &pass->schedule;
    const int32_t entry = s->rows;
    int32_t pieces = pass->piece_begin[entry], tokens = pass->token_begin[pieces];
    row_walk walk = {{0}, 0};
    bool seen = false, open = false;
    for (int32_t row = 0; row < end; row++) {
        if (ids[row] != id) continue;
        const int leaf = leaf_of(leaf_rows, row);
        if (row >= window->first_row) {
            if (!seen) {
                pass->depth[entry] = (uint8_t)walk.depth;
                pass->resume[entry] = open;
            }
            seen = true;
            pass->tokens[tokens++] = row - window->first_row;
        }
        int32_t next = row + 1;
        while (next < total && ids[next] != id)
            next++;
        open = next < total && leaf_of(leaf_rows, next) == leaf;
        const bool piece_ends = !open || next >= end;
        int merges = 0;
        if (!open) {
            const int after = next_leaf_with(leaf_rows, ids, id, next, total, leaf);
            walk.first_leaf[walk.depth++] = leaf;
            for (; walk.depth > 1 && closed_before(walk.first_leaf[walk.depth - 2], leaf, after);
                 merges++)
                walk.depth--;
        }
        if (row >= window->first_row && piece_ends) {
            pass->merges[pieces++] = (uint8_t)merges;
            pass->token_begin[pieces] = tokens;
        }
    }
    if (!seen) return;
    pass->leave_open[entry] = open;
    pass->gradient_row[entry] = id;
    pass->piece_begin[entry + 1] = pieces;
    s->rows++;
}

void row_pass_init(row_pass *pass, const leaf_passes *passes, int index, const int32_t *leaf_rows,
                   int leaves, const int32_t *ids, int32_t table_rows)
{
    const int32_t total = total_rows(leaf_rows, leaves);
    const int32_t end = index + 1 < passes->count ? passes->pass[index + 1].first_row : total;
    const size_t rows = (size_t)table_rows + 1, pieces = (size_t)total + 1;
    *pass = (row_pass){.gradient_row = calloc(rows, sizeof(int32_t)),
                       .piece_begin = calloc(rows, sizeof(int32_t)),
                       .token_begin = calloc(pieces, sizeof(int32_t)),
                       .tokens = calloc(pieces, sizeof(int32_t)),
                       .merges = calloc(pieces, 1),
                       .depth = calloc(rows, 1),
                       .resume = calloc(rows, 1),
                       .leave_open = calloc(rows, 1)};
    for (int32_t id = 0; id < table_rows; id++)
        fill_row(pass, &passes->pass[index], end, leaf_rows, leaves, ids, id);
    pass->schedule = (ls_row_schedule){pass->schedule.rows, pass->gradient_row, pass->piece_begin,
                                       pass->token_begin,   pass->tokens,       pass->merges,
                                       pass->depth,         pass->resume,       pass->leave_open};
}

void row_pass_deinit(row_pass *pass)
{
    void *const arrays[] = {pass->gradient_row, pass->piece_begin, pass->token_begin,
                            pass->tokens,       pass->merges,      pass->depth,
                            pass->resume,       pass->leave_open};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        free(arrays[i]);
}

typedef struct tree {
    int64_t columns;
    const int32_t *leaf_rows;
    int leaves;
    leaf_chain *chain;
    const void *context;
} tree;

/* The subtree of leaves first .. first + size - 1, size a power of two. */
static bool subtree_sum(const tree *t, float *out, int first, int size)
{
    if (first >= t->leaves) return false;
    if (size == 1) {
        int64_t begin = total_rows(t->leaf_rows, first);
        return t->chain(t->context, out, begin, begin + t->leaf_rows[first]);
    }
    float *right = calloc((size_t)t->columns, sizeof *right);
    assert_non_null(right);
    bool has_left = subtree_sum(t, out, first, size / 2);
    bool has_right = subtree_sum(t, right, first + size / 2, size / 2);
    for (int64_t e = 0; has_right && e < t->columns; e++)
        out[e] = has_left ? out[e] + right[e] : right[e];
    free(right);
    return has_left || has_right;
}

bool leaf_tree_sum(float *out, int64_t columns, const int32_t *leaf_rows, int leaves,
                   leaf_chain *chain, const void *context)
{
    tree t = {columns, leaf_rows, leaves, chain, context};
    return subtree_sum(&t, out, 0, MAX_LEAVES);
}

/* Weight gradients: sums of outer products over tokens, in the order of a leaf schedule.
 *
 * A tile of the gradient walks all pieces of the pass while its chain is in registers. Finished
 * pieces wait on a small stack of tiles in the first-level cache; only what is open when the pass
 * ends goes to the gradient's slots, and only what was open when it began is read from there. */
#include "kernels/functions.h"
#include "kernels/scratch.h"
#include "kernels/tile.h"

/* Rows of the left side that are packed at a time for all tiles of a group, so that each is read
 * from end to end. */
enum { PACK_TOKENS = 8 };

/* The part of the stack that a pass touches. */
typedef struct stack_range {
    int64_t lowest; /* entry that is changed */
    int64_t last;   /* entry that the last piece becomes, or the open chain's */
} stack_range;

/* One tile of G and its packed operands. */
typedef struct gradient_tile {
    const ls_weight_gradient *g;
    int64_t row, rows, column, columns;
    const float *left, *right;
    int64_t width; /* of right */
    ls_tile_kernel kernel;
    const stack_range *range;
    float *stack; /* [LS_MAX_SLOTS] tiles */
} gradient_tile;

static float *slot_at(const gradient_tile *t, int64_t slot)
{
    const ls_weight_gradient *g = t->g;
    return g->slots + slot * g->slot_stride + t->row * g->gradient_row + t->column;
}

static float *stack_at(const gradient_tile *t, int64_t position)
{
    return t->stack + position * TILE_FLOATS;
}

static void load_slot(const gradient_tile *t, int64_t slot)
{
    const float *from = slot_at(t, slot);
    float *to = stack_at(t, slot);
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t k = 0; k < t->columns; k += LS_LANES)
            vec_store(to + i * TILE_COLUMNS + k, vec_load_first(from + i * t->g->gradient_row + k,
                                                                smaller(LS_LANES, t->columns - k)));
}

static void store_slot(const gradient_tile *t, int64_t slot)
{
    const float *from = stack_at(t, slot);
    float *to = slot_at(t, slot);
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t k = 0; k < t->columns; k += LS_LANES)
            vec_store_first(to + i * t->g->gradient_row + k, vec_load(from + i * TILE_COLUMNS + k),
                            smaller(LS_LANES, t->columns - k));
}

/* Every entry that the pass adds to is on the stack before it begins, and every one that it leaves
 * behind goes to its slot. */
static void run_tile(const gradient_tile *t)
{
    const ls_leaf_schedule *schedule = t->g->schedule;
    const stack_range *range = t->range;
    for (int64_t slot = range->lowest; slot < schedule->depth; slot++)
        load_slot(t, slot);
    if (schedule->resume) load_slot(t, schedule->depth);
    ls_tile tile = {
        .a = t->left,
        .a_stride = t->g->left_stride,
        .b = t->right,
        .b_row = t->width,
        .start = schedule->resume ? stack_at(t, schedule->depth) : NULL,
        .start_row = TILE_COLUMNS,
        .pieces = schedule->pieces,
        .offsets = schedule->offsets,
        .merges = schedule->merges,
        .leave_open = schedule->leave_open,
        .stack = stack_at(t, schedule->depth),
        .c = slot_at(t, range->last),
        .c_row = t->g->gradient_row,
    };
    bool edge = t->columns % LS_LANES != 0;
    if (edge) {
        tile.c = stack_at(t, range->last);
        tile.c_row = TILE_COLUMNS;
    }
    t->kernel(&tile);
    for (int64_t slot = range->lowest; slot < range->last + edge; slot++)
        store_slot(t, slot);
}

static stack_range find_range(const ls_leaf_schedule *schedule)
{
    stack_range range = {schedule->depth, schedule->depth};
    int64_t top = schedule->depth;
    for (int32_t piece = 0; piece < schedule->pieces; piece++) {
        bool open = schedule->leave_open && piece + 1 == schedule->pieces;
        range.last = top - (open ? 0 : schedule->merges[piece]);
        range.lowest = smaller(range.lowest, range.last);
        top = range.last + 1;
    }
    return range;
}

/* Output rows of a group of left tiles, against every panel of the right side. */
static void run_group(const ls_weight_gradient *g, float *scratch, int64_t tokens, int64_t tiles,
                      int64_t begin, int64_t end)
{
    int64_t count = g->left_end - g->left_begin;
    int64_t one = left_tile_floats(tokens);
    float *stack = scratch, *left = stack + LS_MAX_SLOTS * TILE_FLOATS;
    float *right = left + left_floats(tokens);
    for (int64_t token = 0; token < 0; token += PACK_TOKENS)
        for (int64_t i = begin; i < end; i++) {
            int64_t row = tile_begin(count, tiles, i);
            pack_a(left + (i - begin) * one + token * TILE_ROWS,
                   g->left + token * g->left_stride + g->left_begin + row, 1, g->left_stride,
                   tile_begin(count, tiles, i + 1) - row, smaller(PACK_TOKENS, tokens - token));
        }
    const stack_range range = find_range(g->schedule);
    gradient_tile t = {.g = g, .range = &range, .right = right, .stack = stack};
    for (t.column = 0; t.column < g->right_count; t.column += TILE_COLUMNS) {
        t.columns = smaller(TILE_COLUMNS, g->right_count - t.column);
        t.width = round_up(t.columns, LS_LANES);
        pack_b(right, g->right + t.column, g->right_stride, 1, tokens, t.columns);
        for (int64_t i = begin; i < end; i++) {
            int64_t row = tile_begin(count, tiles, i);
            t.row = g->left_begin + row;
            t.rows = tile_begin(count, tiles, i + 1) - row;
            t.left = g->left + t.row;
            t.kernel = tile_kernels[A_BY_DEPTH][t.rows - 1][t.width / LS_LANES - 1];
            run_tile(&t);
        }
    }
}

void LS_KERNEL(weight_gradient)(const ls_weight_gradient *g, void *scratch)
{
    if (g->schedule->pieces == 0 || g->left_begin == g->left_end || g->right_count == 0) return;
    int64_t tokens = g->schedule->offsets[g->schedule->pieces];
    int64_t tiles = tile_count(g->left_end - g->left_begin), group = left_group(tokens);
    for (int64_t begin = 0; begin < tiles; begin += group)
        run_group(g, scratch_align(scratch), tokens, tiles, begin, smaller(begin + group, tiles));
}

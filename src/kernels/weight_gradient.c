/* Weight gradients: sums of outer products over tokens, in the order of a leaf schedule.
 *
 * A tile of the gradient walks all pieces of the pass while its chain is in registers. Finished
 * pieces wait on a small stack of tiles in the first-level cache; only what is open when the pass
 * ends goes to the gradient's slots, and only what was open when it began is read from there. */
#include "kernels/functions.h"
#include "kernels/scratch.h"
#include "kernels/tile.h"

/* One tile of G and its packed operands. */
typedef struct gradient_tile {
    const ls_weight_gradient *g;
    int64_t row, rows, column, columns;
    const float *left, *right;
    int64_t width; /* of right */
    ls_tile_kernel kernel;
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

static void load_slot(const gradient_tile *t, float *tile, int64_t slot)
{
    const float *from = slot_at(t, slot);
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t k = 0; k < t->columns; k += LS_LANES)
            vec_store(tile + i * TILE_COLUMNS + k,
                      vec_load_first(from + i * t->g->gradient_row + k,
                                     smaller(LS_LANES, t->columns - k)));
}

/* tile = slot + tile */
static void add_slot(const gradient_tile *t, float *tile, int64_t slot)
{
    const float *from = slot_at(t, slot);
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t k = 0; k < t->columns; k += LS_LANES) {
            float *to = tile + i * TILE_COLUMNS + k;
            vec older = vec_load_first(from + i * t->g->gradient_row + k,
                                       smaller(LS_LANES, t->columns - k));
            vec_store(to, older + vec_load(to));
        }
}

static void store_slot(const gradient_tile *t, const float *tile, int64_t slot)
{
    float *to = slot_at(t, slot);
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t k = 0; k < t->columns; k += LS_LANES)
            vec_store_first(to + i * t->g->gradient_row + k, vec_load(tile + i * TILE_COLUMNS + k),
                            smaller(LS_LANES, t->columns - k));
}

static void run_tile(const gradient_tile *t)
{
    static const float zeros[TILE_COLUMNS];
    const ls_leaf_schedule *schedule = t->g->schedule;
    /* Entries below `waiting` lie in slots, from there to `top` on the stack. */
    int64_t top = schedule->depth, waiting = schedule->depth;
    for (int32_t piece = 0; piece < schedule->pieces; piece++) {
        bool last = piece + 1 == schedule->pieces;
        bool open = last && schedule->leave_open;
        int64_t merges = open ? 0 : schedule->merges[piece];
        int64_t merges_here = smaller(merges, top - waiting);
        int64_t position = top - merges;
        float *result = stack_at(t, position);
        int64_t first = schedule->offsets[piece];
        ls_tile tile = {
            .depth = schedule->offsets[piece + 1] - first,
            .a = t->left + first * TILE_ROWS,
            .b = t->right + first * t->width,
            .b_row = t->width,
            .start = zeros,
            .older = stack_at(t, top > 0 ? top - 1 : 0),
            .merges = merges_here,
            .c = result,
            .c_row = TILE_COLUMNS,
        };
        if (piece == 0 && schedule->resume) {
            load_slot(t, result, schedule->depth);
            tile.start = result;
            tile.start_row = TILE_COLUMNS;
        }
        bool straight = last && merges_here == merges && t->columns % LS_LANES == 0;
        if (straight) {
            tile.c = slot_at(t, position);
            tile.c_row = t->g->gradient_row;
        }
        t->kernel(&tile);
        for (int64_t i = merges_here; i < merges; i++)
            add_slot(t, result, top - 1 - i);
        waiting = smaller(waiting, position);
        top = position + 1;
        if (straight) top = position;
    }
    for (int64_t position = waiting; position < top; position++)
        store_slot(t, stack_at(t, position), position);
}

/* Output rows of a group of left tiles, against every panel of the right side. */
static void run_group(const ls_weight_gradient *g, float *scratch, int64_t tokens, int64_t tiles,
                      int64_t begin, int64_t end)
{
    int64_t count = g->left_end - g->left_begin;
    int64_t one = left_tile_floats(tokens);
    float *stack = scratch, *left = stack + LS_MAX_SLOTS * TILE_FLOATS;
    float *right = left + left_floats(tokens);
    for (int64_t i = begin; i < end; i++) {
        int64_t row = tile_begin(count, tiles, i), next = tile_begin(count, tiles, i + 1);
        LS_KERNEL(pack_a)
        (left + (i - begin) * one, g->left + g->left_begin + row, 1, g->left_stride, next - row,
         tokens);
    }
    gradient_tile t = {.g = g, .right = right, .stack = stack};
    for (t.column = 0; t.column < g->right_count; t.column += TILE_COLUMNS) {
        t.columns = smaller(TILE_COLUMNS, g->right_count - t.column);
        t.width = round_up(t.columns, LS_LANES);
        LS_KERNEL(pack_b)(right, g->right + t.column, g->right_stride, 1, tokens, t.columns);
        for (int64_t i = begin; i < end; i++) {
            int64_t row = tile_begin(count, tiles, i);
            t.row = g->left_begin + row;
            t.rows = tile_begin(count, tiles, i + 1) - row;
            t.left = left + (i - begin) * one;
            t.kernel = LS_KERNEL(tile_kernels)[t.rows - 1][t.width / LS_LANES - 1];
            run_tile(&t);
        }
    }
}

void LS_KERNEL(weight_gradient)(const ls_weight_gradient *g, void *scratch)
{
    if (g->schedule->pieces == 0 || g->left_begin == g->left_end) return;
    int64_t tokens = g->schedule->offsets[g->schedule->pieces];
    int64_t tiles = tile_count(g->left_end - g->left_begin), group = left_group(tokens);
    for (int64_t begin = 0; begin < tiles; begin += group)
        run_group(g, scratch_align(scratch), tokens, tiles, begin, smaller(begin + group, tiles));
}

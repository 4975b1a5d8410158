/* Weight gradients: sums of outer products over tokens, in the order of a leaf schedule.
 *
 * A tile of the gradient walks the pieces of a block of tokens while its chain is in registers;
 * finished pieces wait on a small stack of tiles in the first-level cache. All tiles of a group go
 * over a block while its operands are in the near caches; what a tile's stack holds between two
 * blocks is kept in scratch memory. Only what is open when the pass ends goes to the gradient's
 * slots, and only what was open when it began is read from there. */
#include "kernels/functions.h"
#include "kernels/scratch.h"
#include "kernels/tile.h"
#include "kernels/token_blocks.h"

/* One tile of G. */
typedef struct gradient_tile {
    const ls_weight_gradient *g;
    int64_t lowest; /* entry of the stack that the pass changes */
    int64_t row, rows, column, columns;
    float *stack; /* while a block runs: all tiles share it */
    float *kept;  /* between blocks: the tile's own */
} gradient_tile;

static float *slot_at(const gradient_tile *t, int64_t slot)
{
    const ls_weight_gradient *g = t->g;
    return g->slots + slot * g->slot_stride + t->row * g->gradient_row + t->column;
}

static float *stack_at(const gradient_tile *t, int64_t entry)
{
    return t->stack + (entry - t->lowest) * TILE_FLOATS;
}

static float *kept_at(const gradient_tile *t, int64_t entry)
{
    return t->kept + (entry - t->lowest) * TILE_FLOATS;
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

static void store_slot(const gradient_tile *t, int64_t slot, const float *entry)
{
    float *to = slot_at(t, slot);
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t k = 0; k < t->columns; k += LS_LANES)
            vec_store_first(to + i * t->g->gradient_row + k, vec_load(entry + i * TILE_COLUMNS + k),
                            smaller(LS_LANES, t->columns - k));
}

static void copy_entry(const gradient_tile *t, float *to, const float *from)
{
    for (int64_t i = 0; i < t->rows * TILE_COLUMNS; i += LS_LANES)
        vec_store(to + i, vec_load(from + i));
}

/* The entries that the block adds to come onto the stack, from where they wait. */
static void open_stack(const gradient_tile *t, const token_block *block)
{
    const ls_leaf_schedule *schedule = t->g->schedule;
    for (int64_t entry = block->lowest; entry < block->top; entry++) {
        if (entry < block->waiting)
            load_slot(t, entry);
        else
            copy_entry(t, stack_at(t, entry), kept_at(t, entry));
    }
    if (block->first == 0 && schedule->resume) load_slot(t, schedule->depth);
}

/* The entries that the block leaves behind, but for its last result, which the kernel has stored,
 * go to where they wait; at the end of the pass all do that are not in the slots. */
static void close_stack(const gradient_tile *t, const token_block *block, bool ends)
{
    for (int64_t entry = block->lowest; entry < block->last; entry++) {
        if (ends)
            store_slot(t, entry, stack_at(t, entry));
        else
            copy_entry(t, kept_at(t, entry), stack_at(t, entry));
    }
    if (!ends) return;
    for (int64_t entry = block->waiting; entry < block->lowest; entry++)
        store_slot(t, entry, kept_at(t, entry));
}

/* `left` is packed or NULL; `right` is packed or, with `copy`, where to pack it. */
static void run_tile(const gradient_tile *t, const token_block *block, const float *left,
                     float *right, bool copy)
{
    const ls_weight_gradient *g = t->g;
    const ls_leaf_schedule *schedule = g->schedule;
    const bool ends = block->end == schedule->pieces, edge = t->columns % LS_LANES != 0;
    const bool resume = block->first == 0 && schedule->resume;
    const int64_t width = round_up(t->columns, LS_LANES);
    const int64_t first = schedule->offsets[block->first];
    ls_tile tile = {
        .a = left ? left : g->left + first * g->left_stride + t->row,
        .a_stride = left ? TILE_ROWS : g->left_stride,
        .b = copy ? g->right + first * g->right_stride + t->column : right,
        .b_row = copy ? g->right_stride : width,
        .b_copy = right,
        .start = resume ? stack_at(t, schedule->depth) : NULL,
        .start_row = TILE_COLUMNS,
        .pieces = block->end - block->first,
        .offsets = schedule->offsets + block->first,
        .merges = schedule->merges + block->first,
        .leave_open = ends && schedule->leave_open,
        .stack = stack_at(t, block->top),
        .c = ends ? slot_at(t, block->last) : kept_at(t, block->last),
        .c_row = ends ? g->gradient_row : TILE_COLUMNS,
    };
    if (ends && edge) {
        tile.c = stack_at(t, block->last);
        tile.c_row = TILE_COLUMNS;
    }
    const tile_layout layout = copy ? A_BY_DEPTH_COPY_B : A_BY_DEPTH;
    open_stack(t, block);
    tile_kernels[layout][t->rows - 1][width / LS_LANES - 1](&tile);
    close_stack(t, block, ends);
    if (ends && edge) store_slot(t, block->last, tile.c);
}

/* Tiles begin .. end - 1 of the `tiles` on the left, and some columns on the right, with the
 * scratch memory of their packed operands and stacks. */
typedef struct tile_group {
    int64_t begin, end, tiles;
    int64_t column, columns;
    float *left, *right; /* [tile][tokens][TILE_ROWS]; panels */
    float *stack, *kept;
    token_block_needs needs;
} tile_group;

/* Whole panels are packed by the first wide tile that reads them, the rest here. */
static void pack_right(const ls_weight_gradient *g, const tile_group *group, int64_t first,
                       int64_t tokens)
{
    int64_t whole = WIDE_TILE ? group->columns / TILE_COLUMNS * TILE_COLUMNS : 0;
    if (whole < group->columns)
        pack_b(group->right + whole * tokens,
               g->right + first * g->right_stride + group->column + whole, g->right_stride, 1,
               tokens, group->columns - whole);
}

/* Each row of the left side is read from end to end. A store that is wider than the tile runs into
 * the place of the next token, which comes later. */
static void pack_left(const ls_weight_gradient *g, const tile_group *group, int64_t first,
                      int64_t tokens)
{
    const int64_t count = g->left_end - g->left_begin, stride = left_tile_floats(tokens);
    for (int64_t token = 0; token < tokens; token++) {
        const float *from = g->left + (first + token) * g->left_stride + g->left_begin;
        float *to = group->left + token * TILE_ROWS;
        int64_t row = tile_begin(count, group->tiles, group->begin);
        for (int64_t i = group->begin; i < group->end; i++, to += stride) {
            for (int64_t r = 0; r < TILE_ROWS; r += LS_LANES) {
                const int64_t rest = count - row - r;
                __builtin_prefetch(to + r + 8 * TILE_ROWS, 1);
                vec_store(to + r, rest >= LS_LANES
                                      ? vec_load(from + row + r)
                                      : vec_load_first(from + row + r, lanes_left(rest, 0)));
            }
            row += count / group->tiles + (i < count % group->tiles);
        }
    }
}

static void run_group(const ls_weight_gradient *g, const tile_group *group,
                      const token_block *block)
{
    const int64_t first = g->schedule->offsets[block->first];
    const int64_t tokens = g->schedule->offsets[block->end] - first;
    const int64_t count = g->left_end - g->left_begin;
    if (!WIDE_TILE && (group->needs.blocks > 1 || group->column == 0))
        pack_left(g, group, first, tokens);
    pack_right(g, group, first, tokens);
    gradient_tile t = {
        .g = g, .lowest = group->needs.lowest, .stack = group->stack, .kept = group->kept};
    for (int64_t i = group->begin; i < group->end; i++) {
        const int64_t row = tile_begin(count, group->tiles, i);
        const float *left =
            WIDE_TILE ? NULL : group->left + (i - group->begin) * left_tile_floats(tokens);
        t.row = g->left_begin + row;
        t.rows = tile_begin(count, group->tiles, i + 1) - row;
        for (int64_t k = 0; k < group->columns; k += TILE_COLUMNS) {
            t.column = group->column + k;
            t.columns = smaller(TILE_COLUMNS, group->columns - k);
            run_tile(&t, block, left, group->right + k * tokens,
                     WIDE_TILE && i == group->begin && t.columns % LS_LANES == 0);
            t.kept += group->needs.kept * TILE_FLOATS;
        }
    }
}

void LS_KERNEL(weight_gradient)(const ls_weight_gradient *g, void *scratch)
{
    const ls_leaf_schedule *schedule = g->schedule;
    if (schedule->pieces == 0 || g->left_begin == g->left_end) return;
    const ls_cache_blocks *blocks = g->blocks ? g->blocks : &largest_blocks;
    tile_group group = {.needs = token_block_survey(schedule, blocks->tokens),
                        .tiles = tile_count(g->left_end - g->left_begin)};
    const int64_t tokens = group.needs.tokens;
    group.stack = scratch_align(scratch);
    group.kept = group.stack + STACK_FLOATS;
    group.right = group.kept + KEPT_FLOATS;
    group.left = group.right + right_floats(tokens);
    const int64_t panels = larger(right_floats(0) / (tokens * TILE_COLUMNS), 1);
    int64_t tiles_at_once = group.tiles;
    if (!WIDE_TILE) tiles_at_once = larger(left_floats(0) / left_tile_floats(tokens), 1);
    int64_t columns_at_once = panels * TILE_COLUMNS;
    if (group.needs.blocks > 1) {
        columns_at_once = smaller(columns_at_once, blocks->columns);
        int64_t kept = group.needs.kept * TILE_FLOATS * columns_at_once / TILE_COLUMNS;
        tiles_at_once = smaller(tiles_at_once, KEPT_FLOATS / kept);
    }
    for (group.begin = 0; group.begin < group.tiles; group.begin = group.end) {
        group.end = smaller(group.begin + tiles_at_once, group.tiles);
        for (group.column = 0; group.column < g->right_count; group.column += group.columns) {
            group.columns = smaller(columns_at_once, g->right_count - group.column);
            token_block block = token_block_begin(schedule);
            while (token_block_next(schedule, blocks->tokens, &block))
                run_group(g, &group, &block);
        }
    }
}

/* Weight gradients: sums of outer products over tokens, in the order of a leaf schedule.
 *
 * A tile of the gradient walks the pieces of the pass while its chain is in registers; finished
 * pieces wait on a small stack of tiles in the near caches. Only what is open when the pass ends
 * goes to the gradient's slots, and only what was open when it began is read from there.
 *
 * The right side is packed in panels, a block of tokens at a time; the left side is read where it
 * lies. When a pass has more tokens than a block, each tile has a stack of its own, which waits for
 * the next block. */
#include "kernels/functions.h"
#include "kernels/scratch.h"
#include "kernels/tile.h"

/* How the stack moves: entries between lowest and highest are touched, `last` is what the last
 * piece (or the open chain) becomes, `tokens` the longest block. */
typedef struct stack_range {
    int64_t lowest, highest, last, tokens;
} stack_range;

/* Pieces that are run at once. */
typedef struct token_block {
    int32_t first, end; /* pieces */
    int64_t top;        /* of the stack before them */
    int64_t last;       /* entry that the last of them becomes */
} token_block;

/* One tile of G. */
typedef struct gradient_tile {
    const ls_weight_gradient *g;
    const stack_range *range;
    int64_t row, rows, column, columns;
    float *stack; /* entries of the range */
} gradient_tile;

/* The pieces from block->end on: a whole block of tokens, or one longer piece, or what is left.
 * False at the end. */
static bool next_block(const ls_leaf_schedule *schedule, token_block *block)
{
    if (block->end > 0) block->top = block->last + 1;
    block->first = block->end;
    int64_t top = block->top, begin = schedule->offsets[block->first];
    while (
        block->end < schedule->pieces &&
        (block->end == block->first || schedule->offsets[block->end + 1] - begin <= TOKEN_BLOCK)) {
        bool open = schedule->leave_open && block->end + 1 == schedule->pieces;
        block->last = top - (open ? 0 : schedule->merges[block->end]);
        top = block->last + 1;
        block->end++;
    }
    return block->end > block->first;
}

static token_block first_block(const ls_leaf_schedule *schedule)
{
    token_block block = {.top = schedule->depth};
    next_block(schedule, &block);
    return block;
}

static stack_range find_range(const ls_leaf_schedule *schedule)
{
    stack_range range = {.lowest = schedule->depth, .highest = schedule->depth};
    int64_t top = schedule->depth;
    for (int32_t piece = 0; piece < schedule->pieces; piece++) {
        bool open = schedule->leave_open && piece + 1 == schedule->pieces;
        range.last = top - (open ? 0 : schedule->merges[piece]);
        range.lowest = smaller(range.lowest, range.last);
        if (range.last > range.highest) range.highest = range.last;
        top = range.last + 1;
    }
    token_block block = {.top = schedule->depth};
    while (next_block(schedule, &block)) {
        int64_t tokens = schedule->offsets[block.end] - schedule->offsets[block.first];
        if (tokens > range.tokens) range.tokens = tokens;
    }
    return range;
}

static float *slot_at(const gradient_tile *t, int64_t slot)
{
    const ls_weight_gradient *g = t->g;
    return g->slots + slot * g->slot_stride + t->row * g->gradient_row + t->column;
}

static float *entry_at(const gradient_tile *t, int64_t position)
{
    return t->stack + (position - t->range->lowest) * TILE_FLOATS;
}

static void load_slot(const gradient_tile *t, int64_t slot)
{
    const float *from = slot_at(t, slot);
    float *to = entry_at(t, slot);
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t k = 0; k < t->columns; k += LS_LANES)
            vec_store(to + i * TILE_COLUMNS + k, vec_load_first(from + i * t->g->gradient_row + k,
                                                                smaller(LS_LANES, t->columns - k)));
}

static void store_slot(const gradient_tile *t, int64_t slot)
{
    const float *from = entry_at(t, slot);
    float *to = slot_at(t, slot);
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t k = 0; k < t->columns; k += LS_LANES)
            vec_store_first(to + i * t->g->gradient_row + k, vec_load(from + i * TILE_COLUMNS + k),
                            smaller(LS_LANES, t->columns - k));
}

/* Before the first block every entry that the pass adds to comes onto the stack; after the last one
 * every entry that it leaves behind goes to its slot. */
static void run_tile(const gradient_tile *t, const token_block *block, float *right, bool copy)
{
    const ls_weight_gradient *g = t->g;
    const ls_leaf_schedule *schedule = g->schedule;
    const bool starts = block->first == 0, ends = block->end == schedule->pieces;
    const bool resume = starts && schedule->resume;
    if (starts)
        for (int64_t slot = t->range->lowest; slot < schedule->depth + resume; slot++)
            load_slot(t, slot);
    const bool to_slot = ends && t->columns % LS_LANES == 0;
    const int64_t width = round_up(t->columns, LS_LANES);
    ls_tile tile = {
        .a = g->left + schedule->offsets[block->first] * g->left_stride + t->row,
        .a_stride = g->left_stride,
        .b = right,
        .b_row = width,
        .b_copy = right,
        .start = resume ? entry_at(t, schedule->depth) : NULL,
        .start_row = TILE_COLUMNS,
        .pieces = block->end - block->first,
        .offsets = schedule->offsets + block->first,
        .merges = schedule->merges + block->first,
        .leave_open = ends && schedule->leave_open,
        .stack = entry_at(t, block->top),
        .c = to_slot ? slot_at(t, block->last) : entry_at(t, block->last),
        .c_row = to_slot ? g->gradient_row : TILE_COLUMNS,
    };
    if (copy) {
        tile.b = g->right + schedule->offsets[block->first] * g->right_stride + t->column;
        tile.b_row = g->right_stride;
    }
    const tile_layout layout = copy ? A_BY_DEPTH_COPY_B : A_BY_DEPTH;
    tile_kernels[layout][t->rows - 1][width / LS_LANES - 1](&tile);
    if (ends)
        for (int64_t slot = t->range->lowest; slot <= block->last - to_slot; slot++)
            store_slot(t, slot);
}

/* Tiles begin .. end - 1 of the left side against a group of packed panels, one block of tokens. */
typedef struct tile_group {
    int64_t begin, end, tiles; /* of so many on the left */
    int64_t column, columns;
    float *stacks;
    int64_t stack_floats; /* of one tile; 0: all share one */
} tile_group;

static void run_group(const ls_weight_gradient *g, const stack_range *range,
                      const tile_group *group, const token_block *block, float *right)
{
    const int32_t *offsets = g->schedule->offsets;
    int64_t tokens = offsets[block->end] - offsets[block->first];
    int64_t count = g->left_end - g->left_begin;
    gradient_tile t = {.g = g, .range = range, .stack = group->stacks};
    for (int64_t i = group->begin; i < group->end; i++) {
        int64_t row = tile_begin(count, group->tiles, i);
        t.row = g->left_begin + row;
        t.rows = tile_begin(count, group->tiles, i + 1) - row;
        for (int64_t k = 0; k < group->columns; k += TILE_COLUMNS) {
            t.column = group->column + k;
            t.columns = smaller(TILE_COLUMNS, group->columns - k);
            run_tile(&t, block, right + k * tokens, i == group->begin && t.columns % LS_LANES == 0);
            t.stack += group->stack_floats;
        }
    }
}

void LS_KERNEL(weight_gradient)(const ls_weight_gradient *g, void *scratch)
{
    const ls_leaf_schedule *schedule = g->schedule;
    if (schedule->pieces == 0 || g->left_begin == g->left_end) return;
    const stack_range range = find_range(schedule);
    float *stacks = scratch_align(scratch), *right = stacks + STACK_FLOATS;
    int64_t panels = RIGHT_FLOATS / (range.tokens * TILE_COLUMNS);
    int64_t stack_floats = (range.highest - range.lowest + 1) * TILE_FLOATS;
    int64_t tiles = tile_count(g->left_end - g->left_begin), tiles_at_once = tiles;
    tile_group group = {.tiles = tiles, .stacks = stacks};
    if (first_block(schedule).end < schedule->pieces) {
        group.stack_floats = stack_floats;
        if (panels > 4) panels = 4;
        tiles_at_once = STACK_FLOATS / (stack_floats * (panels > 1 ? panels : 1));
    }
    int64_t column_group = (panels > 1 ? panels : 1) * TILE_COLUMNS;
    for (group.column = 0; group.column < g->right_count; group.column += column_group) {
        group.columns = smaller(column_group, g->right_count - group.column);
        for (group.begin = 0; group.begin < tiles; group.begin = group.end) {
            group.end = smaller(group.begin + tiles_at_once, tiles);
            token_block block = {.top = schedule->depth};
            while (next_block(schedule, &block)) {
                int64_t first = schedule->offsets[block.first];
                int64_t whole = group.columns / TILE_COLUMNS * TILE_COLUMNS;
                if (group.columns % LS_LANES)
                    pack_b(right + whole * (schedule->offsets[block.end] - first),
                           g->right + first * g->right_stride + group.column + whole,
                           g->right_stride, 1, schedule->offsets[block.end] - first,
                           group.columns - whole);
                run_group(g, &range, &group, &block, right);
            }
        }
    }
}

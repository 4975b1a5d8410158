/* A leaf schedule cut into blocks of some tokens, between two pieces, and how the stack of partial
 * sums moves meanwhile. */
#ifndef LS_KERNELS_TOKEN_BLOCKS_H
#define LS_KERNELS_TOKEN_BLOCKS_H

#include "base/leaf_schedule.h"

typedef struct token_block {
    int32_t first, end; /* pieces */
    int32_t top;        /* of the stack before the block */
    int32_t last;       /* entry that the block's last piece, or open chain, becomes */
    int32_t lowest;     /* entry that the block changes; those from it to top are read */
    int32_t waiting;    /* entries below it are still in the gradient's slots */
} token_block;

/* What a whole schedule needs. */
typedef struct token_block_needs {
    int32_t blocks;
    int32_t tokens;  /* of the longest block */
    int32_t lowest;  /* entry that is changed */
    int32_t entries; /* from it up, at most, at any time */
    int32_t kept;    /* the same between two blocks */
} token_block_needs;

static inline token_block token_block_begin(const ls_leaf_schedule *schedule)
{
    return (token_block){
        .last = schedule->depth - 1, .lowest = schedule->depth, .waiting = schedule->depth};
}

/* The next block, of at least one piece and else at most `most` tokens; false at the end. Of the
 * places where it could end it takes the one that leaves the lowest stack, which is the end of a
 * large subtree. */
static inline bool token_block_next(const ls_leaf_schedule *schedule, int32_t most,
                                    token_block *block)
{
    if (block->end == schedule->pieces) return false;
    const int32_t waiting = block->lowest < block->waiting ? block->lowest : block->waiting;
    token_block now = {block->end,  block->end,      block->last + 1,
                       block->last, block->last + 1, waiting};
    token_block best = now;
    const int32_t begin = schedule->offsets[now.first];
    while (now.end < schedule->pieces &&
           (now.end == now.first || schedule->offsets[now.end + 1] - begin <= most)) {
        const bool open = schedule->leave_open && now.end + 1 == schedule->pieces;
        now.last += 1 - (open ? 0 : schedule->merges[now.end]);
        if (now.last < now.lowest) now.lowest = now.last;
        now.end++;
        const bool full = schedule->offsets[now.end] - begin >= most / 2;
        if (best.end == best.first || (full && now.last <= best.last) ||
            now.end == schedule->pieces)
            best = now;
    }
    *block = best;
    return true;
}

static inline token_block_needs token_block_survey(const ls_leaf_schedule *schedule, int32_t most)
{
    token_block_needs needs = {.lowest = schedule->depth};
    int32_t last = schedule->depth - 1, highest = schedule->depth, kept = -1;
    for (int32_t piece = 0; piece < schedule->pieces; piece++) {
        const bool open = schedule->leave_open && piece + 1 == schedule->pieces;
        last += 1 - (open ? 0 : schedule->merges[piece]);
        if (last < needs.lowest) needs.lowest = last;
        if (last > highest) highest = last;
    }
    token_block block = token_block_begin(schedule);
    while (token_block_next(schedule, most, &block)) {
        const int32_t tokens = schedule->offsets[block.end] - schedule->offsets[block.first];
        if (tokens > needs.tokens) needs.tokens = tokens;
        if (block.last > kept) kept = block.last;
        needs.blocks++;
    }
    needs.entries = highest + 1 - needs.lowest;
    needs.kept = kept + 1 - needs.lowest;
    return needs;
}

#endif

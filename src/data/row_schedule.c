#include "data/row_schedule.h"

#include <string.h>

#include "base/alloc.h"

/* Tokens are grouped by table row once a step (a counting sort, so a row's tokens stay in token
 * order). A pass then visits its own tokens only: at the first token of a row it takes all of the
 * row's tokens that belong to the pass, and moves the row's cursor past them. */
struct ls_row_scheduler {
    ls_tree_range range;
    int32_t touched_count;
    int32_t pass_begin;  /* first of the rank's tokens that no pass has taken */
    int64_t token_count; /* of the batch */

    uint64_t *marks;   /* [table_rows / 64, up] a bit for each touched row; zero between starts */
    int32_t *index_of; /* [table_rows] gradient row of a touched row, stale elsewhere */

    /* By gradient row: */
    int32_t *touched; /* table row */
    int32_t *begin;   /* [rows + 1] into order */
    int32_t *cursor;  /* into order: the first token that no pass has taken */
    ls_tree_stack *stacks;
    uint8_t *open; /* 1: the chain of the row's newest leaf goes on in a later pass */

    /* By token: */
    int32_t *leaf;
    int32_t *gradient_row;
    int32_t *order; /* [tokens + 1] tokens grouped by gradient row; -1 at the end */

    /* The pass (see ls_row_schedule): */
    int32_t *pass_row, *piece_begin, *token_begin, *tokens;
    uint8_t *merges, *depth, *resume, *leave_open;
};

ls_status ls_row_scheduler_new(ls_row_scheduler **out, int64_t table_rows, int64_t token_capacity,
                               ls_error *error)
{
    const char *what = "row schedule";
    ls_row_scheduler *made = NULL;
    ls_status status;
    LS_TRY(LS_NEW(made, 1, what, error));
    int64_t rows = table_rows < token_capacity ? table_rows : token_capacity;
    LS_TRY_GOTO(status, LS_NEW(made->marks, (table_rows + 63) / 64, what, error), fail);
    LS_TRY_GOTO(status, LS_NEW(made->index_of, table_rows, what, error), fail);
    LS_TRY_GOTO(status, LS_NEW(made->touched, rows, what, error), fail);
    LS_TRY_GOTO(status, LS_NEW(made->begin, rows + 1, what, error), fail);
    LS_TRY_GOTO(status, LS_NEW(made->cursor, rows, what, error), fail);
    LS_TRY_GOTO(status, LS_NEW(made->stacks, rows, what, error), fail);
    LS_TRY_GOTO(status, LS_NEW(made->open, rows, what, error), fail);
    LS_TRY_GOTO(status, LS_NEW(made->leaf, token_capacity, what, error), fail);
    LS_TRY_GOTO(status, LS_NEW(made->gradient_row, token_capacity, what, error), fail);
    LS_TRY_GOTO(status, LS_NEW(made->order, token_capacity + 1, what, error), fail);
    LS_TRY_GOTO(status, LS_NEW(made->pass_row, rows, what, error), fail);
    LS_TRY_GOTO(status, LS_NEW(made->piece_begin, rows + 1, what, error), fail);
    LS_TRY_GOTO(status, LS_NEW(made->token_begin, token_capacity + 1, what, error), fail);
    LS_TRY_GOTO(status, LS_NEW(made->tokens, token_capacity, what, error), fail);
    LS_TRY_GOTO(status, LS_NEW(made->merges, token_capacity, what, error), fail);
    LS_TRY_GOTO(status, LS_NEW(made->depth, rows, what, error), fail);
    LS_TRY_GOTO(status, LS_NEW(made->resume, rows, what, error), fail);
    LS_TRY_GOTO(status, LS_NEW(made->leave_open, rows, what, error), fail);
    *out = made;
    return LS_OK;
fail:
    ls_row_scheduler_free(made);
    return status;
}

void ls_row_scheduler_free(ls_row_scheduler *scheduler)
{
    if (!scheduler) return;
    ls_free(scheduler->marks);
    ls_free(scheduler->index_of);
    ls_free(scheduler->touched);
    ls_free(scheduler->begin);
    ls_free(scheduler->cursor);
    ls_free(scheduler->stacks);
    ls_free(scheduler->open);
    ls_free(scheduler->leaf);
    ls_free(scheduler->gradient_row);
    ls_free(scheduler->order);
    ls_free(scheduler->pass_row);
    ls_free(scheduler->piece_begin);
    ls_free(scheduler->token_begin);
    ls_free(scheduler->tokens);
    ls_free(scheduler->merges);
    ls_free(scheduler->depth);
    ls_free(scheduler->resume);
    ls_free(scheduler->leave_open);
    ls_free(scheduler);
}

/* Number the touched rows ascending. A bitmap, since one word covers 64 rows of the table. */
static void number_rows(ls_row_scheduler *scheduler, int64_t tokens, const int32_t *table_row)
{
    uint64_t *marks = scheduler->marks;
    int32_t lowest = INT32_MAX, highest = -1, count = 0;
    for (int64_t token = 0; token < tokens; token++) {
        int32_t word = table_row[token] >> 6;
        marks[word] |= (uint64_t)1 << (table_row[token] & 63);
        if (word < lowest) lowest = word;
        if (word > highest) highest = word;
    }
    for (int32_t word = lowest; word <= highest; word++) {
        for (uint64_t bits = marks[word]; bits; bits &= bits - 1) {
            int32_t row = word * 64 + __builtin_ctzll(bits);
            scheduler->index_of[row] = count;
            scheduler->touched[count++] = row;
        }
        marks[word] = 0;
    }
    scheduler->touched_count = count;
}

void ls_row_scheduler_start(ls_row_scheduler *scheduler, int64_t tokens, const int32_t *table_row,
                            const int32_t *leaf)
{
    scheduler->token_count = tokens;
    number_rows(scheduler, tokens, table_row);
    if (tokens) memcpy(scheduler->leaf, leaf, (size_t)tokens * sizeof *leaf);
    for (int64_t token = 0; token < tokens; token++)
        scheduler->gradient_row[token] = scheduler->index_of[table_row[token]];
}

void ls_row_scheduler_own(ls_row_scheduler *scheduler, ls_tree_range range, int64_t own_begin,
                          int64_t own_end)
{
    int32_t rows = scheduler->touched_count, *begin = scheduler->begin, *cursor = scheduler->cursor;
    scheduler->range = range;
    scheduler->pass_begin = (int32_t)own_begin;
    memset(begin, 0, ((size_t)rows + 1) * sizeof *begin);
    for (int64_t token = own_begin; token < own_end; token++)
        begin[scheduler->gradient_row[token] + 1]++;
    for (int32_t row = 0; row < rows; row++) {
        begin[row + 1] += begin[row];
        cursor[row] = begin[row];
        scheduler->stacks[row].depth = 0;
        scheduler->open[row] = 0;
    }
    for (int64_t token = own_begin; token < own_end; token++)
        scheduler->order[cursor[scheduler->gradient_row[token]]++] = (int32_t)token;
    scheduler->order[own_end - own_begin] = -1;
    for (int32_t row = 0; row < rows; row++)
        cursor[row] = begin[row];
}

int32_t ls_row_scheduler_touched(const ls_row_scheduler *scheduler, const int32_t **touched)
{
    *touched = scheduler->touched;
    return scheduler->touched_count;
}

void ls_row_scheduler_presence(const ls_row_scheduler *scheduler, const int32_t *root_of_leaf,
                               int roots, uint8_t *present)
{
    memset(present, 0, (size_t)scheduler->touched_count * (size_t)roots);
    for (int64_t token = 0; token < scheduler->token_count; token++) {
        int64_t row = scheduler->gradient_row[token];
        present[row * roots + root_of_leaf[scheduler->leaf[token]]] = 1;
    }
}

const int32_t *ls_row_scheduler_rows(const ls_row_scheduler *scheduler)
{
    return scheduler->gradient_row;
}

void ls_row_scheduler_in_pass(const ls_row_scheduler *scheduler, int64_t begin, int64_t end,
                              uint8_t *in_pass)
{
    memset(in_pass, 0, (size_t)scheduler->touched_count);
    for (int64_t token = begin; token < end; token++)
        in_pass[scheduler->gradient_row[token]] = 1;
}

/* What the pass has so far. */
typedef struct pass_count {
    int32_t rows, pieces, tokens;
} pass_count;

/* Append the pieces of one row: its tokens from the cursor on that lie before `token_end`. */
static void take_row(ls_row_scheduler *scheduler, int32_t row, int32_t token_end, pass_count *at)
{
    const int32_t *order = scheduler->order, *leaf = scheduler->leaf;
    int32_t cursor = scheduler->cursor[row], end = scheduler->begin[row + 1];
    ls_tree_stack *stack = &scheduler->stacks[row];
    int32_t entry = at->rows++;
    scheduler->pass_row[entry] = row;
    scheduler->piece_begin[entry] = at->pieces;
    scheduler->depth[entry] = (uint8_t)stack->depth;
    scheduler->resume[entry] = scheduler->open[row];
    scheduler->open[row] = 0;
    while (cursor < end && order[cursor] < token_end) {
        int32_t piece_leaf = leaf[order[cursor]];
        scheduler->token_begin[at->pieces] = at->tokens;
        while (cursor < end && order[cursor] < token_end && leaf[order[cursor]] == piece_leaf)
            scheduler->tokens[at->tokens++] = order[cursor++] - scheduler->pass_begin;
        int32_t next = cursor < end ? leaf[order[cursor]] : -1;
        scheduler->open[row] = next == piece_leaf;
        int merges = 0;
        if (next != piece_leaf) merges = ls_tree_push(stack, scheduler->range, piece_leaf, next);
        scheduler->merges[at->pieces++] = (uint8_t)merges;
    }
    scheduler->cursor[row] = cursor;
    scheduler->leave_open[entry] = scheduler->open[row];
}

ls_row_schedule ls_row_scheduler_pass(ls_row_scheduler *scheduler, int64_t token_end)
{
    pass_count at = {0};
    for (int32_t token = scheduler->pass_begin; token < token_end; token++) {
        int32_t row = scheduler->gradient_row[token];
        /* Later tokens of a row that was taken lie before its cursor. */
        if (scheduler->order[scheduler->cursor[row]] == token)
            take_row(scheduler, row, (int32_t)token_end, &at);
    }
    scheduler->piece_begin[at.rows] = at.pieces;
    scheduler->token_begin[at.pieces] = at.tokens;
    scheduler->pass_begin = (int32_t)token_end;
    return (ls_row_schedule){
        .rows = at.rows,
        .gradient_row = scheduler->pass_row,
        .piece_begin = scheduler->piece_begin,
        .token_begin = scheduler->token_begin,
        .tokens = scheduler->tokens,
        .merges = scheduler->merges,
        .depth = scheduler->depth,
        .resume = scheduler->resume,
        .leave_open = scheduler->leave_open,
    };
}

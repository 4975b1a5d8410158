/* Streams between hosts, cut into chunks. Both ends cut alike, from what all ranks know, so that no
 * lengths travel. */
#include "engine/exchange/collectives_internal.h"

ls_cursor ls_cursor_of(const ls_cut *cut, int host, int owner)
{
    return (ls_cursor){
        .host = host, .item = cut->pieces->begin[owner], .end = cut->pieces->begin[owner + 1]};
}

/* Sums of the row that `host` sends. */
static int32_t host_sums(const ls_cut *cut, int host, const uint8_t *present)
{
    int32_t sums = 0, last = -1;
    for (int32_t i = cut->step->begin; i < cut->step->end; i++) {
        int32_t joined = cut->below[i - cut->step->begin];
        if (joined == last || cut->joined[joined].rank != host || (present && !present[i]))
            continue;
        last = joined;
        sums++;
    }
    return sums;
}

/* The most that any host but the owner's sends: it decides how much of a row fits. */
static int32_t most_sums(const ls_cut *cut, int owner_host, const uint8_t *present)
{
    int32_t most = 0;
    if (!cut->step) return 1;
    for (int host = 0; host < cut->comm->hosts; host++) {
        int32_t sums = host == owner_host ? 0 : host_sums(cut, host, present);
        if (sums > most) most = sums;
    }
    return most;
}

/* A gather of all rows in their order takes a piece as one row. */
static bool is_flat(const ls_cut *cut, const ls_piece *piece)
{
    return !cut->step && !piece->wanted && !piece->source_rows;
}

static int64_t rows_of(const ls_cut *cut, const ls_piece *piece)
{
    return is_flat(cut, piece) ? piece->rows > 0 : piece->rows;
}

static int64_t row_elements_of(const ls_cut *cut, const ls_piece *piece)
{
    return is_flat(cut, piece) ? piece->rows * piece->row_elements : piece->row_elements;
}

static bool is_wanted(const ls_cut *cut, const ls_piece *piece, int64_t row)
{
    return cut->step || !piece->wanted || piece->wanted[row];
}

bool ls_cursor_ended(const ls_cut *cut, ls_cursor *at)
{
    while (at->item < at->end) {
        const ls_piece *piece = &cut->pieces->items[at->item];
        int64_t rows = row_elements_of(cut, piece) > 0 ? rows_of(cut, piece) : 0;
        while (at->row < rows && !is_wanted(cut, piece, at->row))
            at->row++;
        if (at->row < rows) return false;
        at->item++;
        at->row = 0;
    }
    return true;
}

bool ls_cursor_next(const ls_cut *cut, ls_cursor *at, int64_t *room, ls_block *block)
{
    if (ls_cursor_ended(cut, at)) return false;
    const ls_piece *piece = &cut->pieces->items[at->item];
    int64_t row_elements = row_elements_of(cut, piece);
    *block = (ls_block){
        .piece = piece, .row = at->row, .first = at->first, .elements = row_elements - at->first};
    if (cut->step && piece->present) block->present = piece->present + at->row * cut->step->count;
    int32_t sums = most_sums(cut, at->host, block->present);
    if (sums > 0) {
        if (*room < sums) return false;
        if (block->elements > *room / sums) block->elements = *room / sums;
        *room -= block->elements * sums;
    }
    at->first += block->elements;
    if (at->first == row_elements) {
        at->first = 0;
        at->row++;
    }
    return true;
}

void ls_cursor_skip_chunk(const ls_cut *cut, ls_cursor *at)
{
    int64_t room = LS_CHUNK_ELEMENTS;
    ls_block ignored;
    while (ls_cursor_next(cut, at, &room, &ignored))
        continue;
}

#include "tokenizer/word_piece.h"

#include "base/alloc.h"
#include "tokenizer/unicode.h"

enum { LETTER, SPACE, PUNCTUATION };

/* As ls_unicode_class, for ASCII: white space, then the four blocks of symbols. */
static const unsigned char ascii_kind[128] = {
    ['\t'] = SPACE,       ['\n'] = SPACE,       ['\v'] = SPACE,      ['\f'] = SPACE,
    ['\r'] = SPACE,       [' '] = SPACE,        ['!'] = PUNCTUATION, ['"'] = PUNCTUATION,
    ['#'] = PUNCTUATION,  ['$'] = PUNCTUATION,  ['%'] = PUNCTUATION, ['&'] = PUNCTUATION,
    ['\''] = PUNCTUATION, ['('] = PUNCTUATION,  [')'] = PUNCTUATION, ['*'] = PUNCTUATION,
    ['+'] = PUNCTUATION,  [','] = PUNCTUATION,  ['-'] = PUNCTUATION, ['.'] = PUNCTUATION,
    ['/'] = PUNCTUATION,  [':'] = PUNCTUATION,  [';'] = PUNCTUATION, ['<'] = PUNCTUATION,
    ['='] = PUNCTUATION,  ['>'] = PUNCTUATION,  ['?'] = PUNCTUATION, ['@'] = PUNCTUATION,
    ['['] = PUNCTUATION,  ['\\'] = PUNCTUATION, [']'] = PUNCTUATION, ['^'] = PUNCTUATION,
    ['_'] = PUNCTUATION,  ['`'] = PUNCTUATION,  ['{'] = PUNCTUATION, ['|'] = PUNCTUATION,
    ['}'] = PUNCTUATION,  ['~'] = PUNCTUATION,
};

/* Kind of the code point at *at, and move behind it. */
static int next_kind(const unsigned char **at, const unsigned char *end)
{
    if (**at < 0x80) return ascii_kind[*(*at)++];
    unsigned class = ls_unicode_class(ls_utf8_decode(at, end));
    if (class & LS_UNICODE_SPACE) return SPACE;
    return class & LS_UNICODE_PUNCTUATION ? PUNCTUATION : LETTER;
}

ls_status ls_pieces_add(ls_pieces *pieces, int32_t id, ls_error *error)
{
    if (pieces->count == pieces->capacity)
        LS_TRY(LS_GROW(pieces->ids, pieces->capacity, pieces->count + 1, "token ids", error));
    pieces->ids[pieces->count++] = id;
    return LS_OK;
}

static size_t count_characters(const unsigned char *bytes, size_t length)
{
    size_t count = 0;
    for (size_t i = 0; i < length; i++)
        count += (bytes[i] & 0xC0) != 0x80;
    return count;
}

/* The longest token that word[start, length) begins with: its id and, in *end, where it ends; -1 if
 * there is none. hashes[i] is that of word[0, i). */
static int32_t longest_piece(const ls_word_piece *model, const uint64_t *hashes,
                             const unsigned char *word, size_t start, size_t length, size_t *end)
{
    const ls_vocabulary *vocabulary = &model->vocabulary;
    size_t prefix_length = start ? model->continuing_prefix_length : 0;
    uint64_t prefix_hash = start ? model->continuing_prefix_hash : 0;
    if (vocabulary->longest <= prefix_length) return -1;
    size_t longest = vocabulary->longest - prefix_length;
    size_t at = length - start > longest ? start + longest : length;
    for (; at > start; at--) {
        if (at < length && (word[at] & 0xC0) == 0x80) continue; /* inside a character */
        uint64_t hash = hashes[at] + (prefix_hash - hashes[start]) * vocabulary->powers[at - start];
        int32_t id = ls_vocabulary_find_joined(vocabulary, hash, model->continuing_prefix,
                                               prefix_length, word + start, at - start);
        if (id < 0) continue;
        *end = at;
        return id;
    }
    return -1;
}

static ls_status cut_word(const ls_word_piece *model, ls_pieces *pieces, const unsigned char *word,
                          size_t length, ls_error *error)
{
    if (length > model->max_characters && count_characters(word, length) > model->max_characters)
        return ls_pieces_add(pieces, model->unknown_id, error);
    if (length >= pieces->hashes_capacity)
        LS_TRY(LS_GROW(pieces->hashes, pieces->hashes_capacity, length + 1, "a word", error));
    uint64_t *hashes = pieces->hashes;
    hashes[0] = 0;
    for (size_t i = 0; i < length; i++)
        hashes[i + 1] = ls_vocabulary_hash_byte(hashes[i], word[i]);

    size_t before = pieces->count, start = 0, end = 0;
    while (start < length) {
        int32_t id = longest_piece(model, hashes, word, start, length, &end);
        if (id < 0) { /* one part that is in no token makes the whole word unknown */
            pieces->count = before;
            return ls_pieces_add(pieces, model->unknown_id, error);
        }
        LS_TRY(ls_pieces_add(pieces, id, error));
        start = end;
    }
    return LS_OK;
}

ls_status ls_word_piece_cut(const ls_word_piece *model, ls_pieces *pieces,
                            const unsigned char *text, size_t length, size_t limit, ls_error *error)
{
    const unsigned char *at = text, *end = text + length;
    while (at < end && pieces->count < limit) {
        const unsigned char *word = at;
        int kind = next_kind(&at, end);
        if (kind == SPACE) continue;
        const unsigned char *word_end = at;
        while (kind == LETTER && at < end) {
            int next = next_kind(&at, end);
            if (next != LETTER) {
                if (next == PUNCTUATION) at = word_end;
                break;
            }
            word_end = at;
        }
        LS_TRY(cut_word(model, pieces, word, (size_t)(word_end - word), error));
    }
    return LS_OK;
}

void ls_pieces_deinit(ls_pieces *pieces)
{
    ls_free(pieces->ids);
    ls_free(pieces->hashes);
    *pieces = (ls_pieces){0};
}

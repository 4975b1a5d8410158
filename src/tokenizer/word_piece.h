/* Normalised text to ids: words are cut at white space and punctuation, then into pieces. */
#ifndef LS_TOKENIZER_WORD_PIECE_H
#define LS_TOKENIZER_WORD_PIECE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "tokenizer/vocabulary.h"

typedef struct ls_word_piece {
    ls_vocabulary vocabulary;
    char *continuing_prefix; /* "##" */
    size_t continuing_prefix_length;
    uint64_t continuing_prefix_hash;
    size_t max_characters; /* a longer word is unknown */
    int32_t unknown_id;
} ls_word_piece;

/* Ids being gathered, and the hashes of a word's beginnings. All zero is an empty one. */
typedef struct ls_pieces {
    int32_t *ids;
    size_t count, capacity;
    uint64_t *hashes; /* [word's bytes + 1] */
    size_t hashes_capacity;
} ls_pieces;

/* Append the ids of `text`, which is valid UTF-8; stop at the first word after which there are
 * `limit` ids or more. */
ls_status ls_word_piece_cut(const ls_word_piece *model, ls_pieces *pieces,
                            const unsigned char *text, size_t length, size_t limit,
                            ls_error *error) LS_MUST_CHECK;
ls_status ls_pieces_add(ls_pieces *pieces, int32_t id, ls_error *error) LS_MUST_CHECK;
void ls_pieces_deinit(ls_pieces *pieces);

#endif

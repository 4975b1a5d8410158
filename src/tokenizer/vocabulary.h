/* Tokens and their ids: a hash table that finds any part of a word without copying it. */
#ifndef LS_TOKENIZER_VOCABULARY_H
#define LS_TOKENIZER_VOCABULARY_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { LS_VOCABULARY_MAX_ID = (1 << 24) - 1 };

typedef struct ls_token {
    size_t offset; /* into text */
    uint32_t length;
    int32_t id;
} ls_token;

/* All zero is an empty vocabulary. */
typedef struct ls_vocabulary {
    char *text; /* every token, each with a NUL after it */
    size_t text_length, text_capacity;
    ls_token *tokens; /* [count] in the order they were added */
    size_t count, tokens_capacity;
    uint64_t *slots; /* [slot_count] hash's upper half << 32 | index + 1; 0: free */
    size_t slot_count;
    int32_t *by_id; /* [id_count] index of the token, -1: none */
    size_t id_count, by_id_capacity;
    size_t longest;   /* bytes of the longest token */
    uint64_t *powers; /* [longest + 1] of the hash's base */
} ls_vocabulary;

/* Adding a token again moves it to the new id, as reading a vocab.txt with a repeated line does in
 * Hugging Face's reader. `id` is 0 .. LS_VOCABULARY_MAX_ID and not another token's. */
ls_status ls_vocabulary_add(ls_vocabulary *vocabulary, const char *token, size_t length, int32_t id,
                            ls_error *error) LS_MUST_CHECK;

/* To be called when all tokens are in, before words are cut. */
ls_status ls_vocabulary_finish(ls_vocabulary *vocabulary, ls_error *error) LS_MUST_CHECK;
void ls_vocabulary_deinit(ls_vocabulary *vocabulary);

/* -1 where it is not in the vocabulary; the second takes a NUL-terminated token. */
int32_t ls_vocabulary_find(const ls_vocabulary *vocabulary, const char *token, size_t length);
int32_t ls_vocabulary_find_text(const ls_vocabulary *vocabulary, const char *token);

/* NULL where no token has this id. */
const char *ls_vocabulary_token(const ls_vocabulary *vocabulary, int32_t id);

/* Polynomial hash: the hash of a word's part follows from the hashes of two of its beginnings:
 *   hash(word[start, end)) = hash(word[0, end)) - hash(word[0, start)) * base^(end - start). */
uint64_t ls_vocabulary_hash(uint64_t beginning, const unsigned char *bytes, size_t length);
#define LS_VOCABULARY_HASH_BASE UINT64_C(0x9E3779B97F4A7C15)
static inline uint64_t ls_vocabulary_hash_byte(uint64_t beginning, unsigned char byte)
{
    return beginning * LS_VOCABULARY_HASH_BASE + byte + 1;
}

/* The token `first` followed by `second`, whose joint hash is `hash`: its id or -1. */
int32_t ls_vocabulary_find_joined(const ls_vocabulary *vocabulary, uint64_t hash, const char *first,
                                  size_t first_length, const void *second, size_t second_length);

#endif

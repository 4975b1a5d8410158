#include "tokenizer/vocabulary.h"

#include <string.h>

#include "base/alloc.h"

/* Multiply and fold: the low bits of a polynomial hash depend on the low bits of its bytes only. */
static uint64_t mix(uint64_t hash)
{
    hash ^= hash >> 32;
    hash *= UINT64_C(0xD6E8FEB86659FD93);
    return hash ^ hash >> 32;
}

uint64_t ls_vocabulary_hash(uint64_t beginning, const unsigned char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        beginning = ls_vocabulary_hash_byte(beginning, bytes[i]);
    return beginning;
}

static uint64_t slot_value(uint64_t mixed, size_t index)
{
    return (mixed & ~UINT64_C(0xFFFFFFFF)) | (index + 1);
}

/* Index of the token, or -1. The table is at most half full, so a probe ends. */
static int64_t find_index(const ls_vocabulary *vocabulary, uint64_t hash, const char *first,
                          size_t first_length, const void *second, size_t second_length)
{
    if (vocabulary->slot_count == 0) return -1;
    uint64_t mixed = mix(hash);
    for (size_t at = mixed & (vocabulary->slot_count - 1); vocabulary->slots[at];
         at = (at + 1) & (vocabulary->slot_count - 1)) {
        uint64_t slot = vocabulary->slots[at];
        if (slot >> 32 != mixed >> 32) continue;
        size_t index = (size_t)(slot & 0xFFFFFFFF) - 1;
        const ls_token *token = &vocabulary->tokens[index];
        const char *text = vocabulary->text + token->offset;
        if (token->length == first_length + second_length &&
            memcmp(text, first, first_length) == 0 &&
            memcmp(text + first_length, second, second_length) == 0)
            return (int64_t)index;
    }
    return -1;
}

static void insert_slot(uint64_t *slots, size_t slot_count, uint64_t value, uint64_t mixed)
{
    size_t at = mixed & (slot_count - 1);
    while (slots[at])
        at = (at + 1) & (slot_count - 1);
    slots[at] = value;
}

static ls_status grow_slots(ls_vocabulary *vocabulary, ls_error *error)
{
    size_t slot_count = vocabulary->slot_count ? 2 * vocabulary->slot_count : 64;
    uint64_t *slots = NULL;
    LS_TRY(LS_NEW(slots, slot_count, "vocabulary", error));
    for (size_t i = 0; i < vocabulary->count; i++) {
        const ls_token *token = &vocabulary->tokens[i];
        const char *text = vocabulary->text + token->offset;
        uint64_t mixed = mix(ls_vocabulary_hash(0, (const unsigned char *)text, token->length));
        insert_slot(slots, slot_count, slot_value(mixed, i), mixed);
    }
    ls_free(vocabulary->slots);
    vocabulary->slots = slots;
    vocabulary->slot_count = slot_count;
    return LS_OK;
}

static ls_status set_id(ls_vocabulary *vocabulary, size_t index, int32_t id, ls_error *error)
{
    size_t needed = (size_t)id + 1;
    LS_TRY(LS_GROW(vocabulary->by_id, vocabulary->by_id_capacity, needed, "vocabulary", error));
    while (vocabulary->id_count < needed)
        vocabulary->by_id[vocabulary->id_count++] = -1;
    vocabulary->by_id[id] = (int32_t)index;
    vocabulary->tokens[index].id = id;
    return LS_OK;
}

ls_status ls_vocabulary_add(ls_vocabulary *vocabulary, const char *token, size_t length, int32_t id,
                            ls_error *error)
{
    if (id < 0 || id > LS_VOCABULARY_MAX_ID)
        return ls_fail(error, LS_INVALID, "token id %d is not in 0 .. %d", id,
                       LS_VOCABULARY_MAX_ID);
    if (length > INT32_MAX)
        return ls_fail(error, LS_INVALID, "token %d has %zu bytes, too many", id, length);
    uint64_t hash = ls_vocabulary_hash(0, (const unsigned char *)token, length);
    int64_t found = find_index(vocabulary, hash, "", 0, token, length);
    if (found >= 0) {
        vocabulary->by_id[vocabulary->tokens[found].id] = -1;
        return set_id(vocabulary, (size_t)found, id, error);
    }
    if (2 * (vocabulary->count + 1) > vocabulary->slot_count) LS_TRY(grow_slots(vocabulary, error));
    LS_TRY(LS_GROW(vocabulary->text, vocabulary->text_capacity,
                   vocabulary->text_length + length + 1, "vocabulary", error));
    LS_TRY(LS_GROW(vocabulary->tokens, vocabulary->tokens_capacity, vocabulary->count + 1,
                   "vocabulary", error));
    size_t index = vocabulary->count;
    vocabulary->tokens[index] =
        (ls_token){.offset = vocabulary->text_length, .length = (uint32_t)length};
    LS_TRY(set_id(vocabulary, index, id, error));
    memcpy(vocabulary->text + vocabulary->text_length, token, length);
    vocabulary->text[vocabulary->text_length + length] = '\0';
    vocabulary->text_length += length + 1;
    vocabulary->count++;
    if (length > vocabulary->longest) vocabulary->longest = length;
    uint64_t mixed = mix(hash);
    insert_slot(vocabulary->slots, vocabulary->slot_count, slot_value(mixed, index), mixed);
    return LS_OK;
}

ls_status ls_vocabulary_finish(ls_vocabulary *vocabulary, ls_error *error)
{
    LS_TRY(LS_NEW(vocabulary->powers, vocabulary->longest + 1, "vocabulary", error));
    vocabulary->powers[0] = 1;
    for (size_t i = 1; i <= vocabulary->longest; i++)
        vocabulary->powers[i] = vocabulary->powers[i - 1] * LS_VOCABULARY_HASH_BASE;
    return LS_OK;
}

void ls_vocabulary_deinit(ls_vocabulary *vocabulary)
{
    ls_free(vocabulary->text);
    ls_free(vocabulary->tokens);
    ls_free(vocabulary->slots);
    ls_free(vocabulary->by_id);
    ls_free(vocabulary->powers);
    *vocabulary = (ls_vocabulary){0};
}

int32_t ls_vocabulary_find_joined(const ls_vocabulary *vocabulary, uint64_t hash, const char *first,
                                  size_t first_length, const void *second, size_t second_length)
{
    int64_t index = find_index(vocabulary, hash, first, first_length, second, second_length);
    return index < 0 ? -1 : vocabulary->tokens[index].id;
}

int32_t ls_vocabulary_find(const ls_vocabulary *vocabulary, const char *token, size_t length)
{
    uint64_t hash = ls_vocabulary_hash(0, (const unsigned char *)token, length);
    return ls_vocabulary_find_joined(vocabulary, hash, "", 0, token, length);
}

int32_t ls_vocabulary_find_text(const ls_vocabulary *vocabulary, const char *token)
{
    return ls_vocabulary_find(vocabulary, token, strlen(token));
}

const char *ls_vocabulary_token(const ls_vocabulary *vocabulary, int32_t id)
{
    if (id < 0 || (size_t)id >= vocabulary->id_count || vocabulary->by_id[id] < 0) return NULL;
    return vocabulary->text + vocabulary->tokens[vocabulary->by_id[id]].offset;
}

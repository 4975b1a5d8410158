#include "tokenizer/tokenizer.h"

#include <string.h>

#include "base/alloc.h"
#include "base/files.h"
#include "tokenizer/tokenizer_parts.h"

static ls_status read_folder(ls_tokenizer *tokenizer, const char *folder,
                             const ls_tokenizer_settings *settings, ls_error *error)
{
    char *json = NULL, *text = NULL;
    ls_status status;
    LS_TRY_GOTO(status, ls_path_join(&json, folder, "tokenizer.json", error), done);
    LS_TRY_GOTO(status, ls_path_join(&text, folder, "vocab.txt", error), done);
    if (ls_path_exists(json))
        status = ls_tokenizer_read_json(tokenizer, json, settings, error);
    else if (ls_path_exists(text))
        status = ls_tokenizer_read_vocabulary(tokenizer, folder, text, settings, error);
    else
        status = ls_fail(error, LS_INVALID,
                         "%s: has neither tokenizer.json nor vocab.txt, so no tokenizer", folder);
    if (status != LS_OK) goto done;
    ls_added_tokens_finish(&tokenizer->raw);
    ls_added_tokens_finish(&tokenizer->normalized);
done:
    ls_free(json);
    ls_free(text);
    return status;
}

ls_status ls_tokenizer_open(ls_tokenizer **out, const char *folder, ls_error *error)
{
    ls_tokenizer_settings settings;
    ls_tokenizer *tokenizer = NULL;
    *out = NULL;
    if (!ls_path_is_folder(folder))
        return ls_fail(error, LS_IO, "%s: is no folder that can be read", folder);
    LS_TRY(ls_tokenizer_settings_read(&settings, folder, error));
    ls_status status = LS_NEW(tokenizer, 1, "tokenizer", error);
    if (status == LS_OK) status = read_folder(tokenizer, folder, &settings, error);
    ls_tokenizer_settings_deinit(&settings);
    if (status != LS_OK) {
        ls_tokenizer_free(tokenizer);
        return status;
    }
    *out = tokenizer;
    return LS_OK;
}

void ls_tokenizer_free(ls_tokenizer *tokenizer)
{
    if (!tokenizer) return;
    ls_vocabulary_deinit(&tokenizer->model.vocabulary);
    ls_vocabulary_deinit(&tokenizer->extra);
    ls_free(tokenizer->model.continuing_prefix);
    ls_added_tokens_deinit(&tokenizer->raw);
    ls_added_tokens_deinit(&tokenizer->normalized);
    ls_free(tokenizer);
}

ls_status ls_tokenizer_scratch_new(ls_tokenizer_scratch **out, ls_error *error)
{
    return LS_NEW(*out, 1, "tokenizer scratch", error);
}

void ls_tokenizer_scratch_free(ls_tokenizer_scratch *scratch)
{
    if (!scratch) return;
    ls_normalized_deinit(&scratch->normalized);
    ls_pieces_deinit(&scratch->pieces);
    ls_free(scratch->types);
    ls_free(scratch);
}

/* Plain text: normalise, then look for the added tokens that are matched after that. */
static ls_status encode_plain(const ls_tokenizer *tokenizer, ls_tokenizer_scratch *scratch,
                              const char *text, size_t length, size_t limit, ls_error *error)
{
    LS_TRY(ls_normalize(&tokenizer->normalizer, &scratch->normalized, text, length, error));
    ls_added_search search = {.text = scratch->normalized.bytes,
                              .length = scratch->normalized.length};
    const ls_added_token *token;
    do {
        size_t begin, end;
        token = ls_added_tokens_next(&tokenizer->normalized, &search, &begin, &end);
        LS_TRY(ls_word_piece_cut(&tokenizer->model, &scratch->pieces, search.text + begin,
                                 end - begin, limit, error));
        if (token) LS_TRY(ls_pieces_add(&scratch->pieces, token->id, error));
    } while (token && scratch->pieces.count < limit);
    return LS_OK;
}

/* Append the ids of one text; may stop once there are `limit` of them in all. */
static ls_status encode_text(const ls_tokenizer *tokenizer, ls_tokenizer_scratch *scratch,
                             const char *text, size_t length, size_t limit, ls_error *error)
{
    ls_added_search search = {.text = (const unsigned char *)text, .length = length};
    const ls_added_token *token;
    do {
        size_t begin, end;
        token = ls_added_tokens_next(&tokenizer->raw, &search, &begin, &end);
        if (end > begin)
            LS_TRY(encode_plain(tokenizer, scratch, text + begin, end - begin, limit, error));
        if (token) LS_TRY(ls_pieces_add(&scratch->pieces, token->id, error));
    } while (token && scratch->pieces.count < limit);
    return LS_OK;
}

/* `longest_first` as Hugging Face's library has it: the longer text is cut first; where both must
 * be cut, they share the room evenly, and the odd token goes to the one that was longer (to the
 * second where both were equally long). */
static void truncate_pair(size_t *first, size_t *second, size_t room)
{
    if (*first + *second <= room) return;
    size_t *shorter = *first > *second ? second : first;
    size_t *longer = *first > *second ? first : second;
    if (*shorter <= room / 2) {
        *longer = room - *shorter;
    } else {
        *shorter = room / 2;
        *longer = room - *shorter;
    }
}

/* Put the special tokens around what was gathered behind the first place: `first` ids, of which
 * first_kept stay, then the pair's, of which second_kept stay. */
static ls_status frame(const ls_tokenizer *tokenizer, ls_tokenizer_scratch *scratch, size_t first,
                       size_t first_kept, size_t second_kept, bool pair, ls_encoding *out,
                       ls_error *error)
{
    ls_pieces *pieces = &scratch->pieces;
    size_t part = first_kept + 2, total = part + (pair ? second_kept + 1 : 0);
    if (total > INT32_MAX)
        return ls_fail(error, LS_INVALID, "a text of %zu tokens is too long", total);
    size_t needed = total > pieces->count ? total : pieces->count;
    LS_TRY(LS_GROW(pieces->ids, pieces->capacity, needed, "token ids", error));
    LS_TRY(LS_GROW(scratch->types, scratch->types_capacity, total, "token types", error));
    int32_t *ids = pieces->ids;
    if (pair) {
        memmove(ids + part, ids + 1 + first, second_kept * sizeof *ids);
        ids[total - 1] = tokenizer->separator_id;
    }
    ids[0] = tokenizer->class_id;
    ids[part - 1] = tokenizer->separator_id;
    memset(scratch->types, 0, part);
    memset(scratch->types + part, 1, total - part);
    *out = (ls_encoding){.ids = ids, .types = scratch->types, .length = (int)total};
    return LS_OK;
}

ls_status ls_tokenizer_encode(const ls_tokenizer *tokenizer, ls_tokenizer_scratch *scratch,
                              const char *text, size_t length, const char *pair, size_t pair_length,
                              int max_length, ls_encoding *out, ls_error *error)
{
    ls_pieces *pieces = &scratch->pieces;
    int special = pair ? 3 : 2;
    if (max_length < 0 || (max_length > 0 && max_length < special))
        return ls_fail(error, LS_USAGE,
                       "a maximum length of %d has no room for the %d special tokens", max_length,
                       special);
    size_t room = max_length ? (size_t)(max_length - special) : SIZE_MAX / 2;
    pieces->count = 0;
    LS_TRY(ls_pieces_add(pieces, tokenizer->class_id, error));
    /* How a pair is cut depends on how long both would be, so that there both are read whole. */
    LS_TRY(encode_text(tokenizer, scratch, text, length, pair ? SIZE_MAX : 1 + room, error));
    size_t first = pieces->count - 1;
    if (pair) LS_TRY(encode_text(tokenizer, scratch, pair, pair_length, SIZE_MAX, error));
    size_t first_kept = first, second_kept = pieces->count - 1 - first;
    truncate_pair(&first_kept, &second_kept, room);
    return frame(tokenizer, scratch, first, first_kept, second_kept, pair != NULL, out, error);
}

int ls_tokenizer_vocabulary_size(const ls_tokenizer *tokenizer)
{
    size_t size = tokenizer->model.vocabulary.id_count, extra = tokenizer->extra.id_count;
    return (int)(size > extra ? size : extra);
}

const char *ls_tokenizer_token(const ls_tokenizer *tokenizer, int32_t id)
{
    const char *token = ls_vocabulary_token(&tokenizer->model.vocabulary, id);
    return token ? token : ls_vocabulary_token(&tokenizer->extra, id);
}

int32_t ls_tokenizer_pad_id(const ls_tokenizer *tokenizer)
{
    return tokenizer->pad_id;
}

int32_t ls_tokenizer_unknown_id(const ls_tokenizer *tokenizer)
{
    return tokenizer->model.unknown_id;
}

int32_t ls_tokenizer_class_id(const ls_tokenizer *tokenizer)
{
    return tokenizer->class_id;
}

int32_t ls_tokenizer_separator_id(const ls_tokenizer *tokenizer)
{
    return tokenizer->separator_id;
}

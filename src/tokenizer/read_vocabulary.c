/* vocab.txt: a token a line, its id the line's number from 0. Settings come from the JSON files
 * beside it, as Transformers reads them. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/files.h"
#include "tokenizer/tokenizer_parts.h"
#include "tokenizer/unicode.h"

enum { MAX_WORD_CHARACTERS = 100 };

/* Length without the white space at the end; *valid is whether it is UTF-8 without NUL. */
static size_t trimmed_length(const char *line, size_t length, bool *valid)
{
    const unsigned char *at = (const unsigned char *)line, *end = at + length;
    size_t kept = 0;
    *valid = true;
    while (at < end) {
        const unsigned char *from = at;
        uint32_t code_point = ls_utf8_decode(&at, end);
        if (code_point == 0 || (code_point == LS_REPLACEMENT_CHARACTER && at - from == 1))
            *valid = false;
        if (!(ls_unicode_class(code_point) & LS_UNICODE_SPACE))
            kept = (size_t)(at - (const unsigned char *)line);
    }
    return kept;
}

static ls_status parse_lines(ls_vocabulary *vocabulary, const char *bytes, size_t count,
                             const char *path, ls_error *error)
{
    int32_t id = 0;
    for (size_t at = 0; at < count; id++) {
        const char *newline = memchr(bytes + at, '\n', count - at);
        size_t end = newline ? (size_t)(newline - bytes) : count;
        bool valid;
        size_t length = trimmed_length(bytes + at, end - at, &valid);
        if (!valid)
            return ls_fail(error, LS_INVALID, "%s: line %d is not UTF-8 text", path, id + 1);
        if (id > LS_VOCABULARY_MAX_ID)
            return ls_fail(error, LS_INVALID, "%s: line %d: more than %d tokens", path, id + 1,
                           LS_VOCABULARY_MAX_ID + 1);
        LS_TRY(ls_vocabulary_add(vocabulary, bytes + at, length, id, error));
        at = end + 1;
    }
    return ls_vocabulary_finish(vocabulary, error);
}

static int by_id(const void *left, const void *right)
{
    const ls_added_token_entry *a = left, *b = right;
    return (a->id > b->id) - (a->id < b->id);
}

/* Add tokens that state their ids, in the order of the ids. */
static ls_status add_sorted(ls_tokenizer *tokenizer, ls_added_token_entry *entries, size_t count,
                            const char *path, ls_error *error)
{
    qsort(entries, count, sizeof *entries, by_id);
    for (size_t i = 0; i < count; i++)
        LS_TRY(ls_tokenizer_add_token(tokenizer, &entries[i], path, error));
    return LS_OK;
}

/* tokenizer_config.json: "added_tokens_decoder": {"0": {"content": "[PAD]", ...}, ...}. */
static ls_status parse_decoder(ls_added_token_entry *entries, const ls_json_view *decoder,
                               ls_error *error)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)decoder->object, key, value)
    {
        char *end;
        LS_TRY(ls_added_token_at(entries, decoder, key, error));
        entries->id = strtoll(key, &end, 10);
        if (*end || end == key || entries->id < 0 || entries->id > LS_VOCABULARY_MAX_ID)
            return ls_json_fail(decoder, key, error, LS_INVALID, "is not a token id");
        entries++;
    }
    return LS_OK;
}

static ls_status add_decoder(ls_tokenizer *tokenizer, const ls_json_view *config, ls_error *error)
{
    ls_json_view decoder;
    ls_added_token_entry *entries = NULL;
    if (!ls_json_find(config, "added_tokens_decoder")) return LS_OK;
    LS_TRY(ls_json_get_object(config, "added_tokens_decoder", LS_JSON_REQUIRED, &decoder, error));
    size_t count = json_object_size(decoder.object);
    LS_TRY(LS_NEW(entries, count, "added tokens", error));
    ls_status status = parse_decoder(entries, &decoder, error);
    if (status == LS_OK) status = add_sorted(tokenizer, entries, count, config->file, error);
    ls_free(entries);
    return status;
}

/* "additional_special_tokens": ["<x>", ...], named extra_special_tokens in newer files. */
static ls_status add_additional(ls_tokenizer *tokenizer, const ls_json_view *view, ls_error *error)
{
    static const char *const keys[2] = {"additional_special_tokens", "extra_special_tokens"};
    for (int i = 0; i < 2; i++) {
        const json_t *value = ls_json_find(view, keys[i]);
        if (!value || (json_is_object(value) && json_object_size(value) == 0)) continue;
        LS_TRY(ls_json_get_array(view, keys[i], LS_JSON_REQUIRED, &value, error));
        for (size_t j = 0; j < json_array_size(value); j++) {
            ls_added_token_entry entry;
            ls_json_view token;
            const json_t *element = json_array_get(value, j);
            entry = (ls_added_token_entry){.content = json_string_value(element), .id = -1};
            if (!entry.content) {
                LS_TRY(ls_json_get_element(view, keys[i], value, j, &token, error));
                LS_TRY(ls_added_token_parse(&entry, &token, error));
            }
            LS_TRY(ls_tokenizer_add_token(tokenizer, &entry, view->file, error));
        }
    }
    return LS_OK;
}

static ls_status parse_legacy(ls_added_token_entry *entries, const ls_json_view *root,
                              ls_error *error)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)root->object, key, value)
    {
        *entries = (ls_added_token_entry){.content = key, .normalized = true};
        LS_TRY(ls_json_get_integer(root, key, LS_JSON_REQUIRED, 0, LS_VOCABULARY_MAX_ID,
                                   &entries->id, error));
        entries++;
    }
    return LS_OK;
}

/* added_tokens.json: {"<x>": 30522, ...}. Special tokens were added before and stay as they are. */
static ls_status add_legacy(ls_tokenizer *tokenizer, const char *path, ls_error *error)
{
    json_t *document = NULL;
    ls_added_token_entry *entries = NULL;
    if (!ls_path_exists(path)) return LS_OK;
    LS_TRY(ls_json_load(&document, path, LS_TOKENIZER_FILE_MAX_BYTES, error));
    ls_json_view root;
    size_t count = json_object_size(document);
    ls_status status = ls_json_view_init(&root, document, path, error);
    if (status == LS_OK) status = LS_NEW(entries, count, "added tokens", error);
    if (status == LS_OK) status = parse_legacy(entries, &root, error);
    if (status == LS_OK) status = add_sorted(tokenizer, entries, count, path, error);
    ls_free(entries);
    ls_json_free(document);
    return status;
}

/* [UNK], [CLS], [SEP] and [PAD] must be there; [MASK] is one only where the vocabulary has it. */
static ls_status add_special(ls_tokenizer *tokenizer, const char *path,
                             const ls_tokenizer_settings *settings, ls_error *error)
{
    const struct {
        const char *key, *name;
        int32_t *id;
    } specials[] = {{"unk_token", "[UNK]", &tokenizer->model.unknown_id},
                    {"cls_token", "[CLS]", &tokenizer->class_id},
                    {"sep_token", "[SEP]", &tokenizer->separator_id},
                    {"pad_token", "[PAD]", &tokenizer->pad_id},
                    {"mask_token", "[MASK]", NULL}};
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++) {
        ls_added_token_entry entry;
        LS_TRY(ls_tokenizer_settings_special(settings, specials[i].key, specials[i].name, &entry,
                                             error));
        if (specials[i].id)
            LS_TRY(ls_tokenizer_special_id(tokenizer, entry.content, path, specials[i].id, error));
        else if (ls_vocabulary_find_text(&tokenizer->model.vocabulary, entry.content) < 0)
            continue;
        LS_TRY(ls_tokenizer_add_token(tokenizer, &entry, path, error));
    }
    return LS_OK;
}

static ls_status add_tokens(ls_tokenizer *tokenizer, const char *folder, const char *path,
                            const ls_tokenizer_settings *settings, ls_error *error)
{
    char *legacy = NULL;
    LS_TRY(add_decoder(tokenizer, &settings->config, error));
    LS_TRY(add_special(tokenizer, path, settings, error));
    if (!ls_json_find(&settings->config, "added_tokens_decoder")) {
        LS_TRY(ls_path_join(&legacy, folder, "added_tokens.json", error));
        ls_status status = add_legacy(tokenizer, legacy, error);
        ls_free(legacy);
        LS_TRY(status);
    }
    LS_TRY(add_additional(tokenizer, &settings->config, error));
    return add_additional(tokenizer, &settings->map, error);
}

ls_status ls_tokenizer_read_vocabulary(ls_tokenizer *tokenizer, const char *folder,
                                       const char *path, const ls_tokenizer_settings *settings,
                                       ls_error *error)
{
    ls_normalizer_flags flags = {
        .clean_text = true, .handle_chinese_chars = true, .lowercase = true};
    char *bytes = NULL;
    size_t count = 0;
    LS_TRY(ls_file_read(&bytes, &count, path, LS_TOKENIZER_FILE_MAX_BYTES, error));
    ls_status status = parse_lines(&tokenizer->model.vocabulary, bytes, count, path, error);
    ls_free(bytes);
    LS_TRY(status);
    LS_TRY(ls_tokenizer_set_model(tokenizer, "##", MAX_WORD_CHARACTERS, error));
    LS_TRY(ls_tokenizer_settings_flags(settings, &flags, error));
    ls_tokenizer_set_normalizer(tokenizer, &flags);
    return add_tokens(tokenizer, folder, path, settings, error);
}

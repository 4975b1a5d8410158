/* tokenizer_config.json and special_tokens_map.json, and what both readers share. */
#include <string.h>

#include "base/alloc.h"
#include "base/files.h"
#include "tokenizer/tokenizer_parts.h"

static ls_status read_optional(json_t **root, char **path, ls_json_view *view, const char *folder,
                               const char *name, ls_error *error)
{
    LS_TRY(ls_path_join(path, folder, name, error));
    *view = (ls_json_view){.file = *path};
    if (!ls_path_exists(*path)) return LS_OK;
    LS_TRY(ls_json_load(root, *path, LS_TOKENIZER_FILE_MAX_BYTES, error));
    return ls_json_view_init(view, *root, *path, error);
}

ls_status ls_tokenizer_settings_read(ls_tokenizer_settings *settings, const char *folder,
                                     ls_error *error)
{
    *settings = (ls_tokenizer_settings){0};
    ls_status status;
    LS_TRY_GOTO(status,
                read_optional(&settings->config_root, &settings->config_path, &settings->config,
                              folder, "tokenizer_config.json", error),
                fail);
    if (ls_json_find(&settings->config, "added_tokens_decoder")) return LS_OK;
    LS_TRY_GOTO(status,
                read_optional(&settings->map_root, &settings->map_path, &settings->map, folder,
                              "special_tokens_map.json", error),
                fail);
    return LS_OK;
fail:
    ls_tokenizer_settings_deinit(settings);
    return status;
}

void ls_tokenizer_settings_deinit(ls_tokenizer_settings *settings)
{
    ls_json_free(settings->config_root);
    ls_json_free(settings->map_root);
    ls_free(settings->config_path);
    ls_free(settings->map_path);
    *settings = (ls_tokenizer_settings){0};
}

ls_status ls_tokenizer_settings_flags(const ls_tokenizer_settings *settings,
                                      ls_normalizer_flags *flags, ls_error *error)
{
    const ls_json_view *config = &settings->config;
    LS_TRY(ls_json_get_bool(config, "do_lower_case", LS_JSON_OPTIONAL, &flags->lowercase, error));
    LS_TRY(ls_json_get_bool(config, "tokenize_chinese_chars", LS_JSON_OPTIONAL,
                            &flags->handle_chinese_chars, error));
    /* null is a setting: as the letter case. */
    const json_t *strip = json_object_get(config->object, "strip_accents");
    if (strip) flags->strip_accents_given = !json_is_null(strip);
    return ls_json_get_bool(config, "strip_accents", LS_JSON_OPTIONAL, &flags->strip_accents,
                            error);
}

ls_status ls_added_token_parse(ls_added_token_entry *entry, const ls_json_view *view,
                               ls_error *error)
{
    bool single_word = false;
    *entry = (ls_added_token_entry){.id = -1};
    LS_TRY(ls_json_get_string(view, "content", LS_JSON_REQUIRED, &entry->content, error));
    LS_TRY(ls_json_get_bool(view, "normalized", LS_JSON_OPTIONAL, &entry->normalized, error));
    LS_TRY(ls_json_get_bool(view, "lstrip", LS_JSON_OPTIONAL, &entry->lstrip, error));
    LS_TRY(ls_json_get_bool(view, "rstrip", LS_JSON_OPTIONAL, &entry->rstrip, error));
    LS_TRY(ls_json_get_bool(view, "single_word", LS_JSON_OPTIONAL, &single_word, error));
    if (!single_word) return LS_OK;
    return ls_json_fail(view, "single_word", error, LS_UNSUPPORTED,
                        "true is not supported (added token \"%s\")", entry->content);
}

ls_status ls_added_token_at(ls_added_token_entry *entry, const ls_json_view *view, const char *key,
                            ls_error *error)
{
    ls_json_view token;
    const json_t *value = ls_json_find(view, key);
    *entry = (ls_added_token_entry){.content = json_string_value(value), .id = -1};
    if (entry->content) return LS_OK;
    LS_TRY(ls_json_get_object(view, key, LS_JSON_REQUIRED, &token, error));
    return ls_added_token_parse(entry, &token, error);
}

ls_status ls_tokenizer_settings_special(const ls_tokenizer_settings *settings, const char *key,
                                        const char *fallback, ls_added_token_entry *entry,
                                        ls_error *error)
{
    *entry = (ls_added_token_entry){.content = fallback, .id = -1};
    const ls_json_view *view = &settings->map;
    if (!ls_json_find(view, key)) view = &settings->config;
    return ls_json_find(view, key) ? ls_added_token_at(entry, view, key, error) : LS_OK;
}

static bool is_added(const ls_added_tokens *added, int32_t id)
{
    for (size_t i = 0; i < added->count; i++)
        if (added->tokens[i].id == id) return true;
    return false;
}

static ls_status find_or_make_id(ls_tokenizer *tokenizer, const ls_added_token_entry *entry,
                                 const char *path, int32_t *id, ls_error *error)
{
    const ls_vocabulary *vocabulary = &tokenizer->model.vocabulary;
    *id = ls_vocabulary_find_text(vocabulary, entry->content);
    if (*id < 0) *id = ls_vocabulary_find_text(&tokenizer->extra, entry->content);
    bool is_new = *id < 0;
    if (is_new) *id = tokenizer->next_added_id++;
    if (entry->id >= 0 && entry->id != *id)
        return ls_fail(error, LS_INVALID,
                       "%s: added token \"%s\" states the id %lld, but its place in the vocabulary "
                       "is %d",
                       path, entry->content, (long long)entry->id, *id);
    if (!is_new) return LS_OK;
    LS_TRY(
        ls_vocabulary_add(&tokenizer->extra, entry->content, strlen(entry->content), *id, error));
    const char *other = ls_vocabulary_token(vocabulary, *id);
    if (other)
        return ls_fail(error, LS_INVALID,
                       "%s: added token \"%s\" gets the id %d, which is that of \"%s\": the "
                       "vocabulary repeats tokens or leaves out ids",
                       path, entry->content, *id, other);
    return LS_OK;
}

ls_status ls_tokenizer_add_token(ls_tokenizer *tokenizer, const ls_added_token_entry *entry,
                                 const char *path, ls_error *error)
{
    int32_t id;
    if (*entry->content == '\0')
        return ls_fail(error, LS_INVALID, "%s: an added token has empty text", path);
    LS_TRY(find_or_make_id(tokenizer, entry, path, &id, error));
    if (is_added(&tokenizer->raw, id) || is_added(&tokenizer->normalized, id)) return LS_OK;
    size_t length = strlen(entry->content);
    if (!entry->normalized)
        return ls_added_tokens_add(&tokenizer->raw, entry->content, length, id, entry->lstrip,
                                   entry->rstrip, error);
    ls_normalized text = {0};
    ls_status status = ls_normalize(&tokenizer->normalizer, &text, entry->content, length, error);
    if (status == LS_OK)
        status = ls_added_tokens_add(&tokenizer->normalized, (const char *)text.bytes, text.length,
                                     id, entry->lstrip, entry->rstrip, error);
    ls_normalized_deinit(&text);
    return status;
}

ls_status ls_tokenizer_special_id(const ls_tokenizer *tokenizer, const char *token,
                                  const char *path, int32_t *id, ls_error *error)
{
    *id = ls_vocabulary_find_text(&tokenizer->model.vocabulary, token);
    if (*id < 0) *id = ls_vocabulary_find_text(&tokenizer->extra, token);
    if (*id >= 0) return LS_OK;
    return ls_fail(error, LS_INVALID, "%s: the vocabulary has no special token \"%s\"", path,
                   token);
}

void ls_tokenizer_set_normalizer(ls_tokenizer *tokenizer, const ls_normalizer_flags *flags)
{
    bool strip = flags->strip_accents_given ? flags->strip_accents : flags->lowercase;
    ls_normalizer_init(&tokenizer->normalizer, flags->clean_text, flags->handle_chinese_chars,
                       strip, flags->lowercase);
}

ls_status ls_tokenizer_set_model(ls_tokenizer *tokenizer, const char *continuing_prefix,
                                 size_t max_characters, ls_error *error)
{
    ls_word_piece *model = &tokenizer->model;
    LS_TRY(ls_copy_string(&model->continuing_prefix, continuing_prefix, error));
    model->continuing_prefix_length = strlen(continuing_prefix);
    model->continuing_prefix_hash = ls_vocabulary_hash(0, (const unsigned char *)continuing_prefix,
                                                       model->continuing_prefix_length);
    model->max_characters = max_characters;
    tokenizer->next_added_id = (int32_t)model->vocabulary.count;
    return LS_OK;
}

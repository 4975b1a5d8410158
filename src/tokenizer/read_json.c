/* tokenizer.json, as the `tokenizers` library writes it. */
#include <string.h>

#include "base/alloc.h"
#include "tokenizer/tokenizer_parts.h"

/* The object at `key`, whose "type" must be `type`. */
static ls_status read_typed(const ls_json_view *root, const char *key, const char *type,
                            ls_json_view *out, ls_error *error)
{
    const char *found = NULL;
    if (!ls_json_find(root, key))
        return ls_json_fail(root, key, error, LS_UNSUPPORTED, "is missing or null, a %s is needed",
                            type);
    LS_TRY(ls_json_get_object(root, key, LS_JSON_REQUIRED, out, error));
    LS_TRY(ls_json_get_string(out, "type", LS_JSON_REQUIRED, &found, error));
    if (strcmp(found, type) == 0) return LS_OK;
    return ls_json_fail(out, "type", error, LS_UNSUPPORTED,
                        "\"%s\" is not supported, only \"%s\" is", found, type);
}

static ls_status read_vocabulary(ls_tokenizer *tokenizer, const ls_json_view *model,
                                 ls_error *error)
{
    ls_vocabulary *vocabulary = &tokenizer->model.vocabulary;
    ls_json_view view;
    LS_TRY(ls_json_get_object(model, "vocab", LS_JSON_REQUIRED, &view, error));
    const char *token;
    json_t *value;
    json_object_foreach((json_t *)view.object, token, value)
    {
        if (!json_is_integer(value) || json_integer_value(value) < 0 ||
            json_integer_value(value) > LS_VOCABULARY_MAX_ID)
            return ls_json_fail(&view, token, error, LS_INVALID,
                                "a token id is an integer in 0 .. %d", LS_VOCABULARY_MAX_ID);
        int32_t id = (int32_t)json_integer_value(value);
        const char *other = ls_vocabulary_token(vocabulary, id);
        if (other)
            return ls_json_fail(&view, token, error, LS_INVALID, "has the id %d, and so has '%s'",
                                id, other);
        LS_TRY(ls_vocabulary_add(vocabulary, token, strlen(token), id, error));
    }
    return ls_vocabulary_finish(vocabulary, error);
}

static ls_status read_model(ls_tokenizer *tokenizer, const ls_json_view *root, ls_error *error)
{
    ls_json_view model;
    const char *prefix = NULL, *unknown = NULL;
    int64_t max_characters = 0;
    LS_TRY(ls_json_get_object(root, "model", LS_JSON_REQUIRED, &model, error));
    /* Old files do not state the type; the keys that follow then tell WordPiece. */
    if (ls_json_find(&model, "type")) LS_TRY(read_typed(root, "model", "WordPiece", &model, error));
    LS_TRY(
        ls_json_get_string(&model, "continuing_subword_prefix", LS_JSON_REQUIRED, &prefix, error));
    LS_TRY(ls_json_get_string(&model, "unk_token", LS_JSON_REQUIRED, &unknown, error));
    LS_TRY(ls_json_get_integer(&model, "max_input_chars_per_word", LS_JSON_REQUIRED, 0, INT32_MAX,
                               &max_characters, error));
    LS_TRY(read_vocabulary(tokenizer, &model, error));
    LS_TRY(ls_tokenizer_set_model(tokenizer, prefix, (size_t)max_characters, error));
    return ls_tokenizer_special_id(tokenizer, unknown, root->file, &tokenizer->model.unknown_id,
                                   error);
}

/* Transformers builds BERT's own tokenizer classes anew from tokenizer_config.json, so that where
 * both files have a setting, that one counts. */
static ls_status config_overrides(const ls_tokenizer_settings *settings, bool *overrides,
                                  ls_error *error)
{
    static const char *const classes[] = {"BertTokenizer", "BertTokenizerFast",
                                          "DistilBertTokenizer", "DistilBertTokenizerFast"};
    const char *class = NULL;
    LS_TRY(
        ls_json_get_string(&settings->config, "tokenizer_class", LS_JSON_OPTIONAL, &class, error));
    *overrides = class == NULL;
    for (size_t i = 0; class && i < sizeof classes / sizeof *classes; i++)
        if (strcmp(class, classes[i]) == 0) *overrides = true;
    return LS_OK;
}

static ls_status read_normalizer(ls_tokenizer *tokenizer, const ls_json_view *root,
                                 const ls_tokenizer_settings *settings, ls_error *error)
{
    ls_json_view view;
    ls_normalizer_flags flags = {0};
    bool overrides;
    LS_TRY(read_typed(root, "normalizer", "BertNormalizer", &view, error));
    LS_TRY(ls_json_get_bool(&view, "clean_text", LS_JSON_REQUIRED, &flags.clean_text, error));
    LS_TRY(ls_json_get_bool(&view, "handle_chinese_chars", LS_JSON_REQUIRED,
                            &flags.handle_chinese_chars, error));
    LS_TRY(ls_json_get_bool(&view, "lowercase", LS_JSON_REQUIRED, &flags.lowercase, error));
    flags.strip_accents_given = ls_json_find(&view, "strip_accents") != NULL;
    LS_TRY(ls_json_get_bool(&view, "strip_accents", LS_JSON_OPTIONAL, &flags.strip_accents, error));
    LS_TRY(config_overrides(settings, &overrides, error));
    if (overrides) LS_TRY(ls_tokenizer_settings_flags(settings, &flags, error));
    ls_tokenizer_set_normalizer(tokenizer, &flags);
    return LS_OK;
}

static ls_status read_added_tokens(ls_tokenizer *tokenizer, const ls_json_view *root,
                                   ls_error *error)
{
    const json_t *array = NULL;
    LS_TRY(ls_json_get_array(root, "added_tokens", LS_JSON_OPTIONAL, &array, error));
    for (size_t i = 0; i < json_array_size(array); i++) {
        ls_json_view view;
        ls_added_token_entry entry;
        LS_TRY(ls_json_get_element(root, "added_tokens", array, i, &view, error));
        LS_TRY(ls_added_token_parse(&entry, &view, error));
        LS_TRY(ls_json_get_integer(&view, "id", LS_JSON_REQUIRED, 0, LS_VOCABULARY_MAX_ID,
                                   &entry.id, error));
        LS_TRY(ls_tokenizer_add_token(tokenizer, &entry, root->file, error));
    }
    return LS_OK;
}

/* A special token and the id that the post-processor inserts for it. */
static ls_status set_special(const ls_tokenizer *tokenizer, const ls_json_view *view,
                             const char *key, const char *token, const json_t *stated, int32_t *id,
                             ls_error *error)
{
    LS_TRY(ls_tokenizer_special_id(tokenizer, token, view->file, id, error));
    if (json_is_integer(stated) && json_integer_value(stated) == *id) return LS_OK;
    return ls_json_fail(view, key, error, LS_INVALID,
                        "the id of \"%s\" is not that of the vocabulary, %d", token, *id);
}

/* BertProcessing: {"sep": ["[SEP]", 102], "cls": ["[CLS]", 101]}. */
static ls_status read_bert_processing(ls_tokenizer *tokenizer, const ls_json_view *view,
                                      ls_error *error)
{
    static const char *const keys[2] = {"cls", "sep"};
    int32_t *const ids[2] = {&tokenizer->class_id, &tokenizer->separator_id};
    for (int i = 0; i < 2; i++) {
        const json_t *pair;
        LS_TRY(ls_json_get_array(view, keys[i], LS_JSON_REQUIRED, &pair, error));
        const char *token = json_string_value(json_array_get(pair, 0));
        if (!token || json_array_size(pair) != 2)
            return ls_json_fail(view, keys[i], error, LS_INVALID, "is not [text, id]");
        LS_TRY(
            set_special(tokenizer, view, keys[i], token, json_array_get(pair, 1), ids[i], error));
    }
    return LS_OK;
}

/* One part of a template: {"Sequence": {"id": "A", "type_id": 0}}, or "SpecialToken" likewise.
 * NULL unless it is of this kind and type. */
static const char *template_part(const json_t *template, size_t index, const char *kind, int type)
{
    const json_t *part = json_object_get(json_array_get(template, index), kind);
    const json_t *type_id = json_object_get(part, "type_id");
    if (!json_is_integer(type_id) || json_integer_value(type_id) != type) return NULL;
    return json_string_value(json_object_get(part, "id"));
}

/* Is it [CLS] A [SEP], or [CLS] A [SEP] B [SEP]? *class and *separator name the special tokens. */
static bool is_bert_template(const json_t *template, bool pair, const char **class,
                             const char **separator)
{
    *class = template_part(template, 0, "SpecialToken", 0);
    *separator = template_part(template, 2, "SpecialToken", 0);
    const char *first = template_part(template, 1, "Sequence", 0);
    bool good = *class && *separator && first && strcmp(first, "A") == 0 &&
                json_array_size(template) == (pair ? 5 : 3);
    if (!good || !pair) return good;
    const char *second = template_part(template, 3, "Sequence", 1);
    const char *last = template_part(template, 4, "SpecialToken", 1);
    return second && last && strcmp(second, "B") == 0 && strcmp(last, *separator) == 0;
}

static ls_status read_template(ls_tokenizer *tokenizer, const ls_json_view *view, ls_error *error)
{
    const json_t *single, *pair;
    const char *class, *separator, *pair_class, *pair_separator;
    LS_TRY(ls_json_get_array(view, "single", LS_JSON_REQUIRED, &single, error));
    LS_TRY(ls_json_get_array(view, "pair", LS_JSON_REQUIRED, &pair, error));
    if (!is_bert_template(single, false, &class, &separator))
        return ls_json_fail(view, "single", error, LS_UNSUPPORTED,
                            "is not BERT's template: class token, A, separator, all type 0");
    if (!is_bert_template(pair, true, &pair_class, &pair_separator) ||
        strcmp(class, pair_class) != 0 || strcmp(separator, pair_separator) != 0)
        return ls_json_fail(view, "pair", error, LS_UNSUPPORTED,
                            "is not BERT's template: class token, A, separator (type 0), B, "
                            "separator (type 1)");
    const char *const names[2] = {class, separator};
    int32_t *const ids[2] = {&tokenizer->class_id, &tokenizer->separator_id};
    ls_json_view tokens, token;
    LS_TRY(ls_json_get_object(view, "special_tokens", LS_JSON_REQUIRED, &tokens, error));
    for (int i = 0; i < 2; i++) {
        const json_t *list;
        LS_TRY(ls_json_get_object(&tokens, names[i], LS_JSON_REQUIRED, &token, error));
        LS_TRY(ls_json_get_array(&token, "ids", LS_JSON_REQUIRED, &list, error));
        if (json_array_size(list) != 1)
            return ls_json_fail(&token, "ids", error, LS_UNSUPPORTED, "has not one element");
        LS_TRY(set_special(tokenizer, &token, "ids", names[i], json_array_get(list, 0), ids[i],
                           error));
    }
    return LS_OK;
}

static ls_status read_post_processor(ls_tokenizer *tokenizer, const ls_json_view *root,
                                     ls_error *error)
{
    ls_json_view view;
    const json_t *value = ls_json_find(root, "post_processor");
    const char *type = json_string_value(json_object_get(value, "type"));
    if (type && strcmp(type, "BertProcessing") == 0) {
        LS_TRY(ls_json_get_object(root, "post_processor", LS_JSON_REQUIRED, &view, error));
        return read_bert_processing(tokenizer, &view, error);
    }
    LS_TRY(read_typed(root, "post_processor", "TemplateProcessing", &view, error));
    return read_template(tokenizer, &view, error);
}

static ls_status read_root(ls_tokenizer *tokenizer, const ls_json_view *root,
                           const ls_tokenizer_settings *settings, ls_error *error)
{
    ls_json_view view;
    const char *version = "1.0";
    LS_TRY(ls_json_get_string(root, "version", LS_JSON_OPTIONAL, &version, error));
    if (strcmp(version, "1.0") != 0)
        return ls_json_fail(root, "version", error, LS_UNSUPPORTED,
                            "\"%s\" is not supported, only \"1.0\" is", version);
    LS_TRY(read_model(tokenizer, root, error));
    LS_TRY(read_normalizer(tokenizer, root, settings, error));
    LS_TRY(read_typed(root, "pre_tokenizer", "BertPreTokenizer", &view, error));
    LS_TRY(read_added_tokens(tokenizer, root, error));
    LS_TRY(read_post_processor(tokenizer, root, error));
    ls_added_token_entry pad;
    LS_TRY(ls_tokenizer_settings_special(settings, "pad_token", "[PAD]", &pad, error));
    return ls_tokenizer_special_id(tokenizer, pad.content, root->file, &tokenizer->pad_id, error);
}

ls_status ls_tokenizer_read_json(ls_tokenizer *tokenizer, const char *path,
                                 const ls_tokenizer_settings *settings, ls_error *error)
{
    json_t *document = NULL;
    ls_json_view root;
    LS_TRY(ls_json_load(&document, path, LS_TOKENIZER_FILE_MAX_BYTES, error));
    ls_status status = ls_json_view_init(&root, document, path, error);
    if (status == LS_OK) status = read_root(tokenizer, &root, settings, error);
    ls_json_free(document);
    return status;
}

/* tokenizer.json, as the `tokenizers` library writes it. */
#include <string.h>

#include "base/alloc.h"
#include "tokenizer/tokenizer_parts.h"

/* The object at `key`, whose "type" must be `type`. */
static ls_status read_typed(const ls_json_node *root, const char *key, const char *type,
                            ls_json_node *out, ls_error *error)
{
    const char *found = NULL;
    if (!ls_json_node_find(root, key))
        return ls_json_node_fail(root, key, error, LS_UNSUPPORTED,
                                 "is missing or null, a %s is needed", type);
    LS_TRY(ls_json_node_object(root, key, out, error));
    LS_TRY(ls_json_node_text(out, "type", &found, error));
    if (strcmp(found, type) == 0) return LS_OK;
    return ls_json_node_fail(out, "type", error, LS_UNSUPPORTED,
                             "\"%s\" is not supported, only \"%s\" is", found, type);
}

static ls_status read_vocabulary(ls_tokenizer *tokenizer, const ls_json_node *model,
                                 ls_error *error)
{
    ls_vocabulary *vocabulary = &tokenizer->model.vocabulary;
    ls_json_node node;
    LS_TRY(ls_json_node_object(model, "vocab", &node, error));
    const char *token;
    json_t *value;
    json_object_foreach((json_t *)node.value, token, value)
    {
        if (!json_is_integer(value) || json_integer_value(value) < 0 ||
            json_integer_value(value) > LS_VOCABULARY_MAX_ID)
            return ls_json_node_fail(&node, token, error, LS_INVALID,
                                     "a token id is an integer in 0 .. %d", LS_VOCABULARY_MAX_ID);
        int32_t id = (int32_t)json_integer_value(value);
        const char *other = ls_vocabulary_token(vocabulary, id);
        if (other)
            return ls_json_node_fail(&node, token, error, LS_INVALID,
                                     "has the id %d, and so has '%s'", id, other);
        LS_TRY(ls_vocabulary_add(vocabulary, token, strlen(token), id, error));
    }
    return ls_vocabulary_finish(vocabulary, error);
}

static ls_status read_model(ls_tokenizer *tokenizer, const ls_json_node *root, ls_error *error)
{
    ls_json_node model;
    const char *prefix = NULL, *unknown = NULL;
    json_int_t max_characters = 0;
    LS_TRY(ls_json_node_object(root, "model", &model, error));
    /* Old files do not state the type; the keys that follow then tell WordPiece. */
    if (ls_json_node_find(&model, "type"))
        LS_TRY(read_typed(root, "model", "WordPiece", &model, error));
    LS_TRY(ls_json_node_text(&model, "continuing_subword_prefix", &prefix, error));
    LS_TRY(ls_json_node_text(&model, "unk_token", &unknown, error));
    LS_TRY(ls_json_node_integer(&model, "max_input_chars_per_word", 0, INT32_MAX, &max_characters,
                                error));
    LS_TRY(read_vocabulary(tokenizer, &model, error));
    LS_TRY(ls_tokenizer_set_model(tokenizer, prefix, (size_t)max_characters, error));
    return ls_tokenizer_special_id(tokenizer, unknown, root->path, &tokenizer->model.unknown_id,
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
    *overrides = true;
    if (!ls_json_node_find(&settings->config, "tokenizer_class")) return LS_OK;
    LS_TRY(ls_json_node_text(&settings->config, "tokenizer_class", &class, error));
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (strcmp(class, classes[i]) == 0) return LS_OK;
    *overrides = false;
    return LS_OK;
}

static ls_status read_normalizer(ls_tokenizer *tokenizer, const ls_json_node *root,
                                 const ls_tokenizer_settings *settings, ls_error *error)
{
    ls_json_node node;
    ls_normalizer_flags flags = {0};
    bool overrides;
    LS_TRY(read_typed(root, "normalizer", "BertNormalizer", &node, error));
    LS_TRY(ls_json_node_bool(&node, "clean_text", &flags.clean_text, error));
    LS_TRY(ls_json_node_bool(&node, "handle_chinese_chars", &flags.handle_chinese_chars, error));
    LS_TRY(ls_json_node_bool(&node, "lowercase", &flags.lowercase, error));
    flags.strip_accents_given = ls_json_node_find(&node, "strip_accents") != NULL;
    if (flags.strip_accents_given)
        LS_TRY(ls_json_node_bool(&node, "strip_accents", &flags.strip_accents, error));
    LS_TRY(config_overrides(settings, &overrides, error));
    if (overrides) LS_TRY(ls_tokenizer_settings_flags(settings, &flags, error));
    ls_tokenizer_set_normalizer(tokenizer, &flags);
    return LS_OK;
}

static ls_status read_added_tokens(ls_tokenizer *tokenizer, const ls_json_node *root,
                                   ls_error *error)
{
    const json_t *array;
    if (!ls_json_node_find(root, "added_tokens")) return LS_OK;
    LS_TRY(ls_json_node_array(root, "added_tokens", &array, error));
    for (size_t i = 0; i < json_array_size(array); i++) {
        ls_json_node node;
        ls_added_token_entry entry;
        LS_TRY(ls_json_node_element(root, "added_tokens", array, i, &node, error));
        LS_TRY(ls_added_token_parse(&entry, root, node.at, node.value, error));
        LS_TRY(ls_json_node_integer(&node, "id", 0, LS_VOCABULARY_MAX_ID, &entry.id, error));
        LS_TRY(ls_tokenizer_add_token(tokenizer, &entry, root->path, error));
    }
    return LS_OK;
}

/* A special token and the id that the post-processor inserts for it. */
static ls_status set_special(const ls_tokenizer *tokenizer, const ls_json_node *node,
                             const char *key, const char *token, const json_t *stated, int32_t *id,
                             ls_error *error)
{
    LS_TRY(ls_tokenizer_special_id(tokenizer, token, node->path, id, error));
    if (json_is_integer(stated) && json_integer_value(stated) == *id) return LS_OK;
    return ls_json_node_fail(node, key, error, LS_INVALID,
                             "the id of \"%s\" is not that of the vocabulary, %d", token, *id);
}

/* BertProcessing: {"sep": ["[SEP]", 102], "cls": ["[CLS]", 101]}. */
static ls_status read_bert_processing(ls_tokenizer *tokenizer, const ls_json_node *node,
                                      ls_error *error)
{
    static const char *const keys[2] = {"cls", "sep"};
    int32_t *const ids[2] = {&tokenizer->class_id, &tokenizer->separator_id};
    for (int i = 0; i < 2; i++) {
        const json_t *pair;
        LS_TRY(ls_json_node_array(node, keys[i], &pair, error));
        const char *token = json_string_value(json_array_get(pair, 0));
        if (!token || json_array_size(pair) != 2)
            return ls_json_node_fail(node, keys[i], error, LS_INVALID, "is not [text, id]");
        LS_TRY(
            set_special(tokenizer, node, keys[i], token, json_array_get(pair, 1), ids[i], error));
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

static ls_status read_template(ls_tokenizer *tokenizer, const ls_json_node *node, ls_error *error)
{
    const json_t *single, *pair;
    const char *class, *separator, *pair_class, *pair_separator;
    LS_TRY(ls_json_node_array(node, "single", &single, error));
    LS_TRY(ls_json_node_array(node, "pair", &pair, error));
    if (!is_bert_template(single, false, &class, &separator))
        return ls_json_node_fail(node, "single", error, LS_UNSUPPORTED,
                                 "is not BERT's template: class token, A, separator, all type 0");
    if (!is_bert_template(pair, true, &pair_class, &pair_separator) ||
        strcmp(class, pair_class) != 0 || strcmp(separator, pair_separator) != 0)
        return ls_json_node_fail(node, "pair", error, LS_UNSUPPORTED,
                                 "is not BERT's template: class token, A, separator (type 0), B, "
                                 "separator (type 1)");
    const char *const names[2] = {class, separator};
    int32_t *const ids[2] = {&tokenizer->class_id, &tokenizer->separator_id};
    ls_json_node tokens, token;
    LS_TRY(ls_json_node_object(node, "special_tokens", &tokens, error));
    for (int i = 0; i < 2; i++) {
        const json_t *list;
        LS_TRY(ls_json_node_object(&tokens, names[i], &token, error));
        LS_TRY(ls_json_node_array(&token, "ids", &list, error));
        if (json_array_size(list) != 1)
            return ls_json_node_fail(&token, "ids", error, LS_UNSUPPORTED, "has not one element");
        LS_TRY(set_special(tokenizer, &token, "ids", names[i], json_array_get(list, 0), ids[i],
                           error));
    }
    return LS_OK;
}

static ls_status read_post_processor(ls_tokenizer *tokenizer, const ls_json_node *root,
                                     ls_error *error)
{
    ls_json_node node;
    const json_t *value = ls_json_node_find(root, "post_processor");
    const char *type = json_string_value(json_object_get(value, "type"));
    if (type && strcmp(type, "BertProcessing") == 0) {
        LS_TRY(ls_json_node_object(root, "post_processor", &node, error));
        return read_bert_processing(tokenizer, &node, error);
    }
    LS_TRY(read_typed(root, "post_processor", "TemplateProcessing", &node, error));
    return read_template(tokenizer, &node, error);
}

static ls_status read_root(ls_tokenizer *tokenizer, const ls_json_node *root,
                           const ls_tokenizer_settings *settings, ls_error *error)
{
    ls_json_node node;
    const char *version = "1.0";
    if (ls_json_node_find(root, "version"))
        LS_TRY(ls_json_node_text(root, "version", &version, error));
    if (strcmp(version, "1.0") != 0)
        return ls_json_node_fail(root, "version", error, LS_UNSUPPORTED,
                                 "\"%s\" is not supported, only \"1.0\" is", version);
    LS_TRY(read_model(tokenizer, root, error));
    LS_TRY(read_normalizer(tokenizer, root, settings, error));
    LS_TRY(read_typed(root, "pre_tokenizer", "BertPreTokenizer", &node, error));
    LS_TRY(read_added_tokens(tokenizer, root, error));
    LS_TRY(read_post_processor(tokenizer, root, error));
    ls_added_token_entry pad;
    LS_TRY(ls_tokenizer_settings_special(settings, "pad_token", "[PAD]", &pad, error));
    return ls_tokenizer_special_id(tokenizer, pad.content, root->path, &tokenizer->pad_id, error);
}

ls_status ls_tokenizer_read_json(ls_tokenizer *tokenizer, const char *path,
                                 const ls_tokenizer_settings *settings, ls_error *error)
{
    json_t *document = NULL;
    LS_TRY(ls_json_file_read(&document, path, error));
    ls_json_node root = {.value = document, .path = path};
    ls_status status = read_root(tokenizer, &root, settings, error);
    json_decref(document);
    return status;
}

/* Inside of a tokenizer, and how the two kinds of folder fill it. Only this folder includes it. */
#ifndef LS_TOKENIZER_TOKENIZER_PARTS_H
#define LS_TOKENIZER_TOKENIZER_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/json.h"
#include "tokenizer/added_tokens.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/word_piece.h"

/* A larger tokenizer.json or vocab.txt is refused. */
enum { LS_TOKENIZER_FILE_MAX_BYTES = 64 << 20 };

struct ls_tokenizer {
    ls_word_piece model;
    ls_normalizer normalizer;
    ls_added_tokens raw;        /* found in the text as it is (normalized: false) */
    ls_added_tokens normalized; /* found in the normalised text */
    ls_vocabulary extra;        /* added tokens that the vocabulary lacks: no word has them */
    int32_t next_added_id;      /* of the next one in `extra` */
    int32_t class_id, separator_id, pad_id;
};

struct ls_tokenizer_scratch {
    ls_normalized normalized;
    ls_pieces pieces;
    uint8_t *types;
    size_t types_capacity;
};

/* What stands in tokenizer_config.json and special_tokens_map.json. A file that is not there is an
 * empty object. */
typedef struct ls_tokenizer_settings {
    json_t *config_root, *map_root;
    char *config_path, *map_path;
    ls_json_view config, map; /* the map is empty where the config lists added_tokens_decoder,
                                 which supersedes it */
} ls_tokenizer_settings;

ls_status ls_tokenizer_settings_read(ls_tokenizer_settings *settings, const char *folder,
                                     ls_error *error) LS_MUST_CHECK;
void ls_tokenizer_settings_deinit(ls_tokenizer_settings *settings);

/* Flags of BERT's normaliser, as they are before the settings were looked at and after. */
typedef struct ls_normalizer_flags {
    bool clean_text, handle_chinese_chars, lowercase;
    bool strip_accents, strip_accents_given; /* not given: as lowercase */
} ls_normalizer_flags;

/* Keys do_lower_case, strip_accents and tokenize_chinese_chars, where present. */
ls_status ls_tokenizer_settings_flags(const ls_tokenizer_settings *settings,
                                      ls_normalizer_flags *flags, ls_error *error) LS_MUST_CHECK;

/* An added token before it has its place. */
typedef struct ls_added_token_entry {
    const char *content;
    int64_t id; /* the one that the file states, -1: none */
    bool normalized, lstrip, rstrip;
} ls_added_token_entry;

/* An object with content, normalized, lstrip, rstrip and single_word, all but the first optional.
 * The content is borrowed from the document. */
ls_status ls_added_token_parse(ls_added_token_entry *entry, const ls_json_view *view,
                               ls_error *error) LS_MUST_CHECK;
/* The value at `key`: text alone, or such an object. */
ls_status ls_added_token_at(ls_added_token_entry *entry, const ls_json_view *view, const char *key,
                            ls_error *error) LS_MUST_CHECK;

/* The text of a special token ("cls_token"), `fallback` where neither file has it. */
ls_status ls_tokenizer_settings_special(const ls_tokenizer_settings *settings, const char *key,
                                        const char *fallback, ls_added_token_entry *entry,
                                        ls_error *error) LS_MUST_CHECK;

/* Gives the token its id: that of the vocabulary, else the next free one behind it. A token that is
 * there already stays as it is. The normaliser is set before. Errors begin with `path`. */
ls_status ls_tokenizer_add_token(ls_tokenizer *tokenizer, const ls_added_token_entry *entry,
                                 const char *path, ls_error *error) LS_MUST_CHECK;

/* Id of a special token; LS_INVALID, naming it, where the vocabulary has none. */
ls_status ls_tokenizer_special_id(const ls_tokenizer *tokenizer, const char *token,
                                  const char *path, int32_t *id, ls_error *error) LS_MUST_CHECK;

/* Set the normaliser, and the model's fields but its vocabulary, which is complete. */
void ls_tokenizer_set_normalizer(ls_tokenizer *tokenizer, const ls_normalizer_flags *flags);
ls_status ls_tokenizer_set_model(ls_tokenizer *tokenizer, const char *continuing_prefix,
                                 size_t max_characters, ls_error *error) LS_MUST_CHECK;

/* Each fills an all-zero tokenizer; what it leaves behind on failure ls_tokenizer_free takes. */
ls_status ls_tokenizer_read_json(ls_tokenizer *tokenizer, const char *path,
                                 const ls_tokenizer_settings *settings,
                                 ls_error *error) LS_MUST_CHECK;
ls_status ls_tokenizer_read_vocabulary(ls_tokenizer *tokenizer, const char *folder,
                                       const char *path, const ls_tokenizer_settings *settings,
                                       ls_error *error) LS_MUST_CHECK;

#endif

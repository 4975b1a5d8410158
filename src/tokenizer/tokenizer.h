/* BERT's tokenizer: Unicode text in, WordPiece ids out.
 *
 * The ids equal those of Hugging Face's fast tokenizers on any line of text (BertNormalizer,
 * BertPreTokenizer and WordPiece of the `tokenizers` library; added tokens, [CLS]/[SEP] and
 * `longest_first` truncation included). */
#ifndef LS_TOKENIZER_TOKENIZER_H
#define LS_TOKENIZER_TOKENIZER_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct ls_tokenizer ls_tokenizer;
typedef struct ls_tokenizer_scratch ls_tokenizer_scratch;

/* Reads `folder`/tokenizer.json, or where there is none vocab.txt with tokenizer_config.json (which
 * may be absent). Truncation and padding written in tokenizer.json are ignored. Another kind of
 * model, normaliser, pre-tokenizer or post-processor is LS_UNSUPPORTED and named; a damaged file, a
 * vocabulary with a repeated id or a missing special token is LS_INVALID and says where. */
ls_status ls_tokenizer_open(ls_tokenizer **out, const char *folder, ls_error *error) LS_MUST_CHECK;
void ls_tokenizer_free(ls_tokenizer *tokenizer); /* NULL is allowed */

/* A scratch holds the growing buffers of one thread; any tokenizer may use it, one at a time. */
ls_status ls_tokenizer_scratch_new(ls_tokenizer_scratch **out, ls_error *error) LS_MUST_CHECK;
void ls_tokenizer_scratch_free(ls_tokenizer_scratch *scratch); /* NULL is allowed */

typedef struct ls_encoding {
    const int32_t *ids;   /* [length] token ids, special tokens included */
    const uint8_t *types; /* [length] token types (segments): 0 or 1 */
    int length;
} ls_encoding;

/* Encode `text`, or the pair (`text`, `pair`) where `pair` is not NULL, with the special tokens
 * around it, cut to at most `max_length` tokens (0: no limit) as Transformers does with
 * truncation=True: `longest_first`, from the right.
 *
 * Safe to call from many threads on one tokenizer, each with a scratch of its own. *out points into
 * the scratch and is valid until the next call with it. Once the buffers have grown to the longest
 * text nothing is allocated. Bytes that are not UTF-8 are read as U+FFFD. A `max_length` below the
 * number of special tokens is LS_USAGE. */
ls_status ls_tokenizer_encode(const ls_tokenizer *tokenizer, ls_tokenizer_scratch *scratch,
                              const char *text, size_t length, const char *pair, size_t pair_length,
                              int max_length, ls_encoding *out, ls_error *error) LS_MUST_CHECK;

/* One more than the largest id: the embedding table must have at least as many rows. */
int ls_tokenizer_vocabulary_size(const ls_tokenizer *tokenizer);

/* Text of a token for display (NUL-terminated), NULL where no token has this id. */
const char *ls_tokenizer_token(const ls_tokenizer *tokenizer, int32_t id);

int32_t ls_tokenizer_pad_id(const ls_tokenizer *tokenizer);
int32_t ls_tokenizer_unknown_id(const ls_tokenizer *tokenizer);
int32_t ls_tokenizer_class_id(const ls_tokenizer *tokenizer);     /* [CLS] */
int32_t ls_tokenizer_separator_id(const ls_tokenizer *tokenizer); /* [SEP] */

#endif

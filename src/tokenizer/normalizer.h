/* BERT's normaliser: clean text, space out ideographs, strip accents, lower case; in this order. */
#ifndef LS_TOKENIZER_NORMALIZER_H
#define LS_TOKENIZER_NORMALIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct ls_normalizer {
    bool clean_text;           /* drop LS_UNICODE_OTHER, make every white space a ' ' */
    bool handle_chinese_chars; /* put a ' ' on each side of LS_UNICODE_IDEOGRAPH */
    bool strip_accents;        /* canonical decomposition, then drop LS_UNICODE_MARK */
    bool lowercase;
    unsigned char ascii[128]; /* result for each ASCII byte; 0: dropped */
} ls_normalizer;

void ls_normalizer_init(ls_normalizer *normalizer, bool clean_text, bool handle_chinese_chars,
                        bool strip_accents, bool lowercase);

/* A normalised text and the buffers that making it needs. All zero is an empty one. */
typedef struct ls_normalized {
    unsigned char *bytes; /* [length] valid UTF-8 */
    size_t length, capacity;
    uint32_t *pending, *ordered; /* marks that wait for canonical ordering */
    size_t pending_length, pending_capacity, ordered_capacity;
} ls_normalized;

/* Replaces what *out held. */
ls_status ls_normalize(const ls_normalizer *normalizer, ls_normalized *out, const char *text,
                       size_t length, ls_error *error) LS_MUST_CHECK;
void ls_normalized_deinit(ls_normalized *normalized);

#endif

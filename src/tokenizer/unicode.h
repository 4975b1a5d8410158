/* What the tokenizer asks about a code point, and UTF-8 in and out. */
#ifndef LS_TOKENIZER_UNICODE_H
#define LS_TOKENIZER_UNICODE_H

#include <stddef.h>
#include <stdint.h>

enum {
    LS_UNICODE_OTHER = 1,        /* dropped by clean_text: control, format, private use, U+FFFD */
    LS_UNICODE_SPACE = 2,        /* property White_Space */
    LS_UNICODE_IDEOGRAPH = 4,    /* in the CJK blocks that BERT sets apart */
    LS_UNICODE_MARK = 8,         /* Mn: an accent */
    LS_UNICODE_PUNCTUATION = 16, /* P*, and all ASCII symbols */
    LS_UNICODE_NON_STARTER = 32, /* canonical combining class above 0 */
};
enum { LS_REPLACEMENT_CHARACTER = 0xFFFD };

/* Sum of the flags above; 0 for most letters, for digits and for unassigned code points. */
unsigned ls_unicode_class(uint32_t code_point);

/* Canonical combining class of a non-starter that is not LS_UNICODE_MARK. */
unsigned ls_unicode_combining_class(uint32_t code_point);

/* Full canonical decomposition (not put in order); returns the number of code points, 1 to 4. */
int ls_unicode_decompose(uint32_t code_point, uint32_t out[4]);

/* Lower case without regard to neighbours or language; returns the number of code points, 1 or 2.
 */
int ls_unicode_lower(uint32_t code_point, uint32_t out[2]);

/* Read one code point and move *at; *at < end. A byte that starts no valid UTF-8 sequence (overlong
 * forms and surrogates are not valid) is one U+FFFD. */
uint32_t ls_utf8_decode(const unsigned char **at, const unsigned char *end);

/* Write 1 to 4 bytes; returns how many. */
size_t ls_utf8_encode(unsigned char *out, uint32_t code_point);

#endif

#include "tokenizer/normalizer.h"

#include <string.h>

#include "base/alloc.h"
#include "tokenizer/unicode.h"

/* More bytes than one code point can become: two spaces around three parts of four bytes. */
enum { ROOM = 64 };

void ls_normalizer_init(ls_normalizer *normalizer, bool clean_text, bool handle_chinese_chars,
                        bool strip_accents, bool lowercase)
{
    *normalizer = (ls_normalizer){.clean_text = clean_text,
                                  .handle_chinese_chars = handle_chinese_chars,
                                  .strip_accents = strip_accents,
                                  .lowercase = lowercase};
    for (unsigned byte = 0; byte < 128; byte++) {
        unsigned class = ls_unicode_class(byte);
        unsigned result = byte;
        if (clean_text && (class & LS_UNICODE_OTHER))
            result = 0;
        else if (clean_text && (class & LS_UNICODE_SPACE))
            result = ' ';
        else if (lowercase && byte >= 'A' && byte <= 'Z')
            result = byte + ('a' - 'A');
        normalizer->ascii[byte] = (unsigned char)result;
    }
}

static void emit(const ls_normalizer *normalizer, ls_normalized *out, uint32_t code_point)
{
    if (!normalizer->lowercase) {
        out->length += ls_utf8_encode(out->bytes + out->length, code_point);
        return;
    }
    uint32_t lower[2];
    int count = ls_unicode_lower(code_point, lower);
    for (int i = 0; i < count; i++)
        out->length += ls_utf8_encode(out->bytes + out->length, lower[i]);
}

/* Stable sort of the waiting marks by combining class (a counting sort, since hostile text can hold
 * millions of them in a row). A mark waits as class << 24 | code point. */
static void order_pending(ls_normalized *out)
{
    uint32_t *from = out->pending;
    size_t start[257] = {0}, count = out->pending_length;
    for (size_t i = 0; i < count; i++)
        start[(from[i] >> 24) + 1]++;
    for (int k = 0; k < 256; k++)
        start[k + 1] += start[k];
    for (size_t i = 0; i < count; i++)
        out->ordered[start[from[i] >> 24]++] = from[i];
    memcpy(from, out->ordered, count * sizeof *from);
}

/* Write the marks that wait; room for `rest` more bytes is kept. */
static ls_status flush_pending(const ls_normalizer *normalizer, ls_normalized *out, size_t rest,
                               ls_error *error)
{
    size_t count = out->pending_length;
    LS_TRY(LS_GROW(out->bytes, out->capacity, out->length + 8 * count + rest + ROOM,
                   "normalised text", error));
    if (count > 1) {
        LS_TRY(LS_GROW(out->ordered, out->ordered_capacity, count, "combining marks", error));
        order_pending(out);
    }
    for (size_t i = 0; i < count; i++)
        emit(normalizer, out, out->pending[i] & 0xFFFFFF);
    out->pending_length = 0;
    return LS_OK;
}

/* One code point of a decomposition: put in canonical order, accents dropped. */
static ls_status place(const ls_normalizer *normalizer, ls_normalized *out, uint32_t code_point,
                       size_t rest, ls_error *error)
{
    unsigned class = ls_unicode_class(code_point);
    if (!(class & LS_UNICODE_NON_STARTER)) {
        if (out->pending_length) LS_TRY(flush_pending(normalizer, out, rest, error));
        if (!(class & LS_UNICODE_MARK)) emit(normalizer, out, code_point);
    } else if (!(class & LS_UNICODE_MARK)) {
        LS_TRY(LS_GROW(out->pending, out->pending_capacity, out->pending_length + 1,
                       "combining marks", error));
        out->pending[out->pending_length++] =
            code_point | (uint32_t)ls_unicode_combining_class(code_point) << 24;
    }
    return LS_OK;
}

/* A code point beyond ASCII; `rest` bytes of text follow it. */
static ls_status add_code_point(const ls_normalizer *normalizer, ls_normalized *out,
                                uint32_t code_point, size_t rest, ls_error *error)
{
    unsigned class = ls_unicode_class(code_point);
    if (normalizer->clean_text) {
        if (class & LS_UNICODE_OTHER) return LS_OK;
        if (class & LS_UNICODE_SPACE) code_point = ' ';
    }
    LS_TRY(LS_GROW(out->bytes, out->capacity, out->length + rest + ROOM, "normalised text", error));
    bool apart = normalizer->handle_chinese_chars && (class & LS_UNICODE_IDEOGRAPH);
    if (apart) LS_TRY(place(normalizer, out, ' ', rest, error));
    if (normalizer->strip_accents) {
        uint32_t parts[4];
        int count = ls_unicode_decompose(code_point, parts);
        for (int i = 0; i < count; i++)
            LS_TRY(place(normalizer, out, parts[i], rest, error));
    } else {
        emit(normalizer, out, code_point);
    }
    if (apart) LS_TRY(place(normalizer, out, ' ', rest, error));
    return LS_OK;
}

ls_status ls_normalize(const ls_normalizer *normalizer, ls_normalized *out, const char *text,
                       size_t length, ls_error *error)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + length;
    out->length = out->pending_length = 0;
    LS_TRY(LS_GROW(out->bytes, out->capacity, length + ROOM, "normalised text", error));
    while (at < end) {
        /* Room for all that is left, so that plain text runs without checks. */
        unsigned char *to = out->bytes + out->length;
        for (; at < end && *at < 0x80 && !out->pending_length; at++) {
            *to = normalizer->ascii[*at];
            to += *to != 0;
        }
        out->length = (size_t)(to - out->bytes);
        if (at == end) break;
        if (*at < 0x80) {
            LS_TRY(flush_pending(normalizer, out, (size_t)(end - at), error));
            continue;
        }
        uint32_t code_point = ls_utf8_decode(&at, end);
        LS_TRY(add_code_point(normalizer, out, code_point, (size_t)(end - at), error));
    }
    return flush_pending(normalizer, out, 0, error);
}

void ls_normalized_deinit(ls_normalized *normalized)
{
    ls_free(normalized->bytes);
    ls_free(normalized->pending);
    ls_free(normalized->ordered);
    *normalized = (ls_normalized){0};
}

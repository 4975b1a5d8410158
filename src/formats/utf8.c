#include "formats/utf8.h"

#include <stdint.h>
#include <string.h>

/* Length of the sequence at `at`, or 0. Second-byte bounds: Unicode 15, table 3-7. */
static size_t sequence_length(const unsigned char *at, size_t left)
{
    unsigned char first = at[0], low = 0x80, high = 0xbf;
    size_t length;
    if (first < 0x80) return 1;
    if (first >= 0xc2 && first <= 0xdf)
        length = 2;
    else if (first >= 0xe0 && first <= 0xef)
        length = 3;
    else if (first >= 0xf0 && first <= 0xf4)
        length = 4;
    else
        return 0;
    if (length > left) return 0;
    if (first == 0xe0) low = 0xa0;
    if (first == 0xed) high = 0x9f;
    if (first == 0xf0) low = 0x90;
    if (first == 0xf4) high = 0x8f;
    if (at[1] < low || at[1] > high) return 0;
    for (size_t i = 2; i < length; i++)
        if ((at[i] & 0xc0) != 0x80) return 0;
    return length;
}

size_t ls_utf8_valid_prefix(const char *bytes, size_t count)
{
    const unsigned char *at = (const unsigned char *)bytes;
    size_t done = 0;
    while (done < count) {
        uint64_t word;
        if (count - done >= sizeof word) {
            memcpy(&word, at + done, sizeof word);
            if ((word & UINT64_C(0x8080808080808080)) == 0) {
                done += sizeof word;
                continue;
            }
        }
        size_t length = sequence_length(at + done, count - done);
        if (length == 0) break;
        done += length;
    }
    return done;
}

ls_status ls_utf8_json(ls_text *text, const char *value, ls_error *error)
{
    if (!value) return ls_text_append(text, "null", 4, error);
    ls_text clean = {0};
    ls_status status = ls_text_append(&clean, "", 0, error);
    for (size_t left = strlen(value); left && status == LS_OK;) {
        size_t good = ls_utf8_valid_prefix(value, left);
        status = ls_text_append(&clean, value, good, error);
        if (status == LS_OK && good < left) status = ls_text_append(&clean, "?", 1, error);
        good += good < left;
        value += good;
        left -= good;
    }
    if (status == LS_OK) status = ls_text_json_string(text, clean.data ? clean.data : "", error);
    ls_text_deinit(&clean);
    return status;
}

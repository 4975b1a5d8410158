#include "tokenizer/unicode.h"

#include "tokenizer/unicode_tables.h"

/* Row of a table of sorted, disjoint runs that holds `code_point`, or -1. `first` and `last` are
 * reached through the row size, so that one search serves every table. */
static int find_run(const void *rows, size_t row_bytes, int count, size_t last_offset,
                    uint32_t code_point)
{
    const char *base = rows;
    int low = 0, high = count;
    while (low < high) {
        int middle = (low + high) / 2;
        const char *row = base + (size_t)middle * row_bytes;
        if (code_point < *(const uint32_t *)row)
            high = middle;
        else if (code_point > *(const uint32_t *)(row + last_offset))
            low = middle + 1;
        else
            return middle;
    }
    return -1;
}

unsigned ls_unicode_class(uint32_t code_point)
{
    int row = find_run(ls_class_runs, sizeof *ls_class_runs, ls_class_runs_count,
                       offsetof(ls_class_run, last), code_point);
    return row < 0 ? 0 : ls_class_runs[row].value;
}

unsigned ls_unicode_combining_class(uint32_t code_point)
{
    int row = find_run(ls_combining_runs, sizeof *ls_combining_runs, ls_combining_runs_count,
                       offsetof(ls_class_run, last), code_point);
    return row < 0 ? 0 : ls_combining_runs[row].value;
}

/* Hangul syllables are composed by arithmetic: The Unicode Standard, section 3.12. */
static int decompose_hangul(uint32_t index, uint32_t out[4])
{
    enum { VOWELS = 21, TRAILING = 28 };
    out[0] = 0x1100 + index / (VOWELS * TRAILING);
    out[1] = 0x1161 + index / TRAILING % VOWELS;
    if (index % TRAILING == 0) return 2;
    out[2] = 0x11A7 + index % TRAILING;
    return 3;
}

int ls_unicode_decompose(uint32_t code_point, uint32_t out[4])
{
    if (code_point >= 0xAC00 && code_point < 0xD7A4)
        return decompose_hangul(code_point - 0xAC00, out);
    /* The first part may decompose further, the second never does: the result is built from its
     * end. The longest chain has three steps (checked when the table is made). */
    uint32_t tail[3];
    int tail_length = 0, row;
    while (tail_length < 3 &&
           (row = find_run(ls_decompositions, sizeof *ls_decompositions, ls_decompositions_count,
                           offsetof(ls_decomposition, composed), code_point)) >= 0) {
        code_point = ls_decompositions[row].first;
        if (ls_decompositions[row].second) tail[tail_length++] = ls_decompositions[row].second;
    }
    int length = 0;
    out[length++] = code_point;
    while (tail_length)
        out[length++] = tail[--tail_length];
    return length;
}

int ls_unicode_lower(uint32_t code_point, uint32_t out[2])
{
    if (code_point == 0x130) { /* the one letter whose lower case is two code points */
        out[0] = 'i';
        out[1] = 0x307;
        return 2;
    }
    int row = find_run(ls_lower_runs, sizeof *ls_lower_runs, ls_lower_runs_count,
                       offsetof(ls_lower_run, last), code_point);
    out[0] = code_point;
    if (row >= 0 && (code_point - ls_lower_runs[row].first) % ls_lower_runs[row].step == 0)
        out[0] = (uint32_t)((int32_t)code_point + ls_lower_runs[row].delta);
    return 1;
}

uint32_t ls_utf8_decode(const unsigned char **at, const unsigned char *end)
{
    const unsigned char *from = *at;
    unsigned lead = *from;
    *at = from + 1;
    if (lead < 0x80) return lead;
    int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    if (lead < 0xC2 || lead > 0xF4 || end - from <= more) return LS_REPLACEMENT_CHARACTER;
    uint32_t code_point = lead & (0x3Fu >> more);
    for (int i = 1; i <= more; i++) {
        if ((from[i] & 0xC0) != 0x80) return LS_REPLACEMENT_CHARACTER;
        code_point = code_point << 6 | (from[i] & 0x3F);
    }
    static const uint32_t smallest[4] = {0, 0x80, 0x800, 0x10000};
    if (code_point < smallest[more] || code_point > 0x10FFFF ||
        (code_point >= 0xD800 && code_point < 0xE000))
        return LS_REPLACEMENT_CHARACTER;
    *at = from + 1 + more;
    return code_point;
}

size_t ls_utf8_encode(unsigned char *out, uint32_t code_point)
{
    if (code_point < 0x80) {
        out[0] = (unsigned char)code_point;
        return 1;
    }
    size_t length = code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--, code_point >>= 6)
        out[i] = (unsigned char)(0x80 | (code_point & 0x3F));
    out[0] = (unsigned char)((0xF00u >> length & 0xF0) | code_point);
    return length;
}

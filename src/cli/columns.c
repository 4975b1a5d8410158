#include "cli/columns.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

size_t ls_utf8_character(const char *text, size_t left)
{
    const unsigned char *byte = (const unsigned char *)text;
    size_t length = byte[0] < 0x80   ? 1
                    : byte[0] < 0xc2 ? 0
                    : byte[0] < 0xe0 ? 2
                    : byte[0] < 0xf0 ? 3
                    : byte[0] < 0xf5 ? 4
                                     : 0;
    if (length == 0 || length > left || byte[0] == 0) return 0;
    for (size_t i = 1; i < length; i++)
        if ((byte[i] & 0xc0) != 0x80) return 0;
    /* Overlong forms, surrogates, and what lies beyond U+10FFFF. */
    if ((byte[0] == 0xe0 && byte[1] < 0xa0) || (byte[0] == 0xed && byte[1] > 0x9f) ||
        (byte[0] == 0xf0 && byte[1] < 0x90) || (byte[0] == 0xf4 && byte[1] > 0x8f))
        return 0;
    return length;
}

bool ls_utf8_is_valid(const char *text, size_t length)
{
    for (size_t at = 0, step; at < length; at += step) {
        step = ls_utf8_character(text + at, length - at);
        if (step == 0) return false;
    }
    return true;
}

static uint32_t code_point(const char *text, size_t length)
{
    static const unsigned char lead[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t code = (unsigned char)text[0] & lead[length];
    for (size_t i = 1; i < length; i++)
        code = code << 6 | ((unsigned char)text[i] & 0x3f);
    return code;
}

/* The large blocks are enough for labels and file names. wcwidth would need a locale to be set. */
static int columns_of_code(uint32_t code)
{
    static const struct block {
        uint32_t first, last;
        int columns;
    } blocks[] = {
        {0x0300, 0x036f, 0}, {0x0591, 0x05bd, 0},   {0x064b, 0x065f, 0},   {0x1100, 0x115f, 2},
        {0x200b, 0x200f, 0}, {0x2e80, 0x303e, 2},   {0x3041, 0xa4cf, 2},   {0xac00, 0xd7a3, 2},
        {0xf900, 0xfaff, 2}, {0xfe00, 0xfe0f, 0},   {0xfe30, 0xfe6f, 2},   {0xff00, 0xff60, 2},
        {0xffe0, 0xffe6, 2}, {0x1f300, 0x1faff, 2}, {0x20000, 0x3fffd, 2},
    };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        if (code >= blocks[i].first && code <= blocks[i].last) return blocks[i].columns;
    return 1;
}

/* The next character, made harmless: its bytes into `shown`, its columns returned. */
static int next_character(const char **text, char shown[5])
{
    size_t length = ls_utf8_character(*text, strlen(*text));
    uint32_t code = length ? code_point(*text, length) : 0;
    bool steers = code < 0x20 || (code >= 0x7f && code < 0xa0) ||
                  (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
    memcpy(shown, steers ? "?" : *text, steers ? 1 : length);
    shown[steers ? 1 : length] = '\0';
    *text += length ? length : 1;
    return steers ? 1 : columns_of_code(code);
}

int ls_columns_of(const char *text)
{
    char shown[5];
    int columns = 0;
    while (*text)
        columns += next_character(&text, shown);
    return columns;
}

int ls_columns_fit(char *into, size_t bytes, const char *text, int columns)
{
    static const char ellipsis[] = "…";
    char shown[5];
    size_t used = 0, kept = 0; /* kept: bytes before which an ellipsis still fits */
    int filled = 0, kept_columns = 0;
    while (*text) {
        int width = next_character(&text, shown);
        if (filled + width > columns || used + strlen(shown) + 1 > bytes) {
            bool fits = columns > 0 && kept + sizeof ellipsis <= bytes;
            if (fits) memcpy(into + kept, ellipsis, sizeof ellipsis);
            if (!fits) into[kept] = '\0';
            return kept_columns + fits;
        }
        memcpy(into + used, shown, strlen(shown));
        used += strlen(shown);
        filled += width;
        if (filled + 1 <= columns && used + sizeof ellipsis <= bytes) {
            kept = used;
            kept_columns = filled;
        }
    }
    into[used] = '\0';
    return filled;
}

/* Of the terminal at which a pipe from standard error ends, 0 if there is none. */
static int far_columns(int descriptor)
{
    const char *text = getenv("LOCKSTEP_TERMINAL_COLUMNS");
    if (descriptor != STDERR_FILENO || !text) return 0;
    long columns = strtol(text, NULL, 10);
    return columns > 0 && columns < 10000 ? (int)columns : 0;
}

int ls_terminal_columns(int descriptor)
{
    struct winsize size;
    int far = far_columns(descriptor);
    if (far) return far;
    if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
    return size.ws_col;
}

bool ls_terminal_is_live(int descriptor)
{
    const char *kind = getenv("TERM");
    if (far_columns(descriptor)) return true;
    return isatty(descriptor) && !(kind && strcmp(kind, "dumb") == 0);
}

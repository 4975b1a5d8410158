#include "formats/relaxed_json.h"

#include <stdbool.h>
#include <string.h>

/* The index behind the string that starts at `at`. */
static size_t string_end(const char *bytes, size_t count, size_t at)
{
    for (at++; at < count && bytes[at] != '"'; at++)
        if (bytes[at] == '\\') at++;
    return at < count ? at + 1 : count;
}

static bool starts_comment(const char *bytes, size_t count, size_t at)
{
    if (bytes[at] == '#') return true;
    return bytes[at] == '/' && at + 1 < count && (bytes[at + 1] == '/' || bytes[at + 1] == '*');
}

/* The index behind the comment that starts at `at`; 0 if it does not end. */
static size_t comment_end(const char *bytes, size_t count, size_t at)
{
    if (bytes[at] == '#' || bytes[at + 1] == '/') {
        while (at < count && bytes[at] != '\n')
            at++;
        return at;
    }
    for (at += 2; at + 1 < count; at++)
        if (bytes[at] == '*' && bytes[at + 1] == '/') return at + 2;
    return 0;
}

static ls_status fail_open_comment(const char *bytes, size_t at, const char *name, ls_error *error)
{
    int line = 1;
    for (size_t i = 0; i < at; i++)
        line += bytes[i] == '\n';
    return ls_fail(error, LS_INVALID, "%s: line %d: this comment has no end", name, line);
}

ls_status ls_json_relax(char *bytes, size_t count, const char *name, ls_error *error)
{
    size_t comma = count; /* the last one with only white space and comments after it */
    for (size_t at = 0; at < count;) {
        char byte = bytes[at];
        if (starts_comment(bytes, count, at)) {
            size_t end = comment_end(bytes, count, at);
            if (end == 0) return fail_open_comment(bytes, at, name, error);
            for (; at < end; at++)
                if (bytes[at] != '\n') bytes[at] = ' ';
            continue;
        }
        if ((byte == '}' || byte == ']') && comma < count) bytes[comma] = ' ';
        if (byte == ',')
            comma = at;
        else if (byte != ' ' && byte != '\n' && byte != '\r' && byte != '\t')
            comma = count;
        at = byte == '"' ? string_end(bytes, count, at) : at + 1;
    }
    return LS_OK;
}

static bool is_key(const char *bytes, size_t count, size_t end)
{
    while (end < count && strchr(" \n\r\t", bytes[end]) && bytes[end])
        end++;
    return end < count && bytes[end] == ':';
}

int ls_json_line_of(const char *bytes, size_t count, const char *path)
{
    int line = 1, depth = 0, matched = 0; /* components of the path around this place */
    for (size_t at = 0; at < count;) {
        char byte = bytes[at];
        size_t end = at + 1;
        if (byte == '"') {
            end = string_end(bytes, count, at);
            size_t length = strcspn(path, ".");
            bool same = depth == matched + 1 && end - at == length + 2 &&
                        memcmp(bytes + at + 1, path, length) == 0;
            if (same && is_key(bytes, count, end)) {
                if (!path[length]) return line;
                path += length + 1;
                matched++;
            }
        }
        line += byte == '\n';
        depth += byte == '{' || byte == '[';
        depth -= byte == '}' || byte == ']';
        if (matched > 0 && depth < matched) return 0;
        at = end;
    }
    return 0;
}

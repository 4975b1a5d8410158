#include "cli/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/exit_status.h"

enum { READ_BYTES = 1 << 16 };

ls_status ls_lines_open(ls_lines *lines, const char *path, ls_error *error)
{
    *lines = (ls_lines){.descriptor = STDIN_FILENO, .name = "standard input"};
    if (!path || strcmp(path, "-") == 0) return LS_OK;
    lines->name = path;
    lines->descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (lines->descriptor < 0)
        return ls_complain(error, LS_IO, "%s: cannot open: %s", path, strerror(errno));
    return LS_OK;
}

void ls_lines_close(ls_lines *lines)
{
    if (lines->descriptor > STDIN_FILENO) close(lines->descriptor);
    free(lines->data);
    *lines = (ls_lines){.descriptor = -1};
}

/* Read once, after moving what is unread to the front. */
static ls_status refill(ls_lines *lines, ls_error *error)
{
    if (lines->start) {
        memmove(lines->data, lines->data + lines->start, lines->used - lines->start);
        lines->used -= lines->start;
        lines->start = 0;
    }
    if (lines->used > LS_LINE_LIMIT)
        return ls_complain(error, LS_INVALID, "%s:%" PRId64 ": a line of more than %d MiB",
                           lines->name, lines->number + 1, LS_LINE_LIMIT >> 20);
    /* One byte more than is read, for the NUL after a last line without line end. */
    if (lines->capacity - lines->used < READ_BYTES + 1) {
        size_t capacity = 2 * lines->capacity + READ_BYTES + 1;
        char *data = realloc(lines->data, capacity);
        if (!data)
            return ls_complain(error, LS_NO_MEMORY, "out of memory: %zu bytes for lines", capacity);
        lines->data = data;
        lines->capacity = capacity;
    }
    ssize_t got;
    do {
        got = read(lines->descriptor, lines->data + lines->used, READ_BYTES);
    } while (got < 0 && errno == EINTR);
    if (got < 0)
        return ls_complain(error, LS_IO, "%s: cannot read: %s", lines->name, strerror(errno));
    lines->used += (size_t)got;
    lines->ended = got == 0;
    return LS_OK;
}

/* One line from the buffer; `end` is where its line end stands, or the end of the data. */
static ls_line take(ls_lines *lines, size_t end)
{
    ls_line line = {.text = lines->data + lines->start, .number = ++lines->number};
    lines->start = end + 1 < lines->used ? end + 1 : lines->used;
    if (line.number == 1 && end >= 3 && memcmp(line.text, "\xef\xbb\xbf", 3) == 0) line.text += 3;
    line.length = (size_t)(lines->data + end - line.text);
    if (line.length && line.text[line.length - 1] == '\r') line.length--;
    line.text[line.length] = '\0';
    return line;
}

ls_status ls_lines_next(ls_lines *lines, ls_line *batch, size_t most, size_t *count,
                        ls_error *error)
{
    size_t searched = lines->start;
    *count = 0;
    while (*count < most) {
        size_t left = lines->used - searched;
        char *end = left ? memchr(lines->data + searched, '\n', left) : NULL;
        if (end) {
            batch[(*count)++] = take(lines, (size_t)(end - lines->data));
            searched = lines->start;
            continue;
        }
        if (*count) break;
        if (lines->ended) {
            if (lines->start < lines->used) batch[(*count)++] = take(lines, lines->used);
            break;
        }
        searched = lines->used - lines->start;
        ls_status status = refill(lines, error);
        if (status != LS_OK) return status;
    }
    return LS_OK;
}

/* Lines of a file or of standard input, a batch at a time. */
#ifndef LS_CLI_LINES_H
#define LS_CLI_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep.h"

enum { LS_LINE_LIMIT = 64 << 20 }; /* bytes; a longer line is refused by its number */

typedef struct ls_line {
    char *text; /* NUL-terminated, without line end; may hold NUL bytes of its own */
    size_t length;
    int64_t number; /* counted from 1 */
} ls_line;

typedef struct ls_lines {
    int descriptor;
    const char *name; /* for error texts; borrowed */
    char *data;
    size_t start, used, capacity; /* unread bytes are data[start .. used) */
    bool ended;
    int64_t number;
} ls_lines;

/* NULL and "-" are standard input. */
ls_status ls_lines_open(ls_lines *lines, const char *path, ls_error *error);

/* Up to `most` lines into `batch`, valid until the next call; *count 0 is the end. Waits for the
 * first line only: what is typed or piped in slowly is answered line by line. LF and CRLF end a
 * line, a byte order mark before the first is left out. */
ls_status ls_lines_next(ls_lines *lines, ls_line *batch, size_t most, size_t *count,
                        ls_error *error);
void ls_lines_close(ls_lines *lines);

#endif

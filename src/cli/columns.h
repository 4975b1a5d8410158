/* Text in the columns of a terminal. */
#ifndef LS_CLI_COLUMNS_H
#define LS_CLI_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

enum { LS_NO_LIMIT = 1 << 30 };

/* Length in bytes of the UTF-8 character at `text`, 0 if there is none (or NUL). */
size_t ls_utf8_character(const char *text, size_t left);
bool ls_utf8_is_valid(const char *text, size_t length);

/* Columns that `text` takes: 2 for East Asian wide characters, 0 for combining marks. */
int ls_columns_of(const char *text);

/* Copy as much of `text` as fits into `columns`, with a final "…" where it was cut. What could
 * steer a terminal, and bytes that are not UTF-8, become '?'. Returns the columns used. */
int ls_columns_fit(char *into, size_t bytes, const char *text, int columns);

/* The terminal's width, asked anew each time, as it may change; 80 where there is none. Under
 * `lockstep launch` standard error is a pipe that ends at a terminal: LOCKSTEP_TERMINAL_COLUMNS has
 * that one's width, as it was at the start. */
int ls_terminal_columns(int descriptor);
/* A terminal on which a line can be redrawn. */
bool ls_terminal_is_live(int descriptor);

#endif

/* Numbers as people read them. Each writes and returns `into`. */
#ifndef LS_CLI_FORMAT_H
#define LS_CLI_FORMAT_H

#include <stdint.h>

enum { LS_FORMAT_BYTES = 32 };

const char *ls_format_count(char into[LS_FORMAT_BYTES], int64_t count);     /* "1,234,567" */
const char *ls_format_bytes(char into[LS_FORMAT_BYTES], int64_t bytes);     /* "612.4 MiB" */
const char *ls_format_duration(char into[LS_FORMAT_BYTES], double seconds); /* "1:02:03" */

#endif

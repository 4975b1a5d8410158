/* XXH3-128 as text: 32 hexadecimal digits, as xxh128sum prints them. */
#ifndef LS_BASE_CHECKSUM_H
#define LS_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

#include "base/files.h"
#include "base/status.h"

enum { LS_CHECKSUM_CHARACTERS = 33 };

/* Consecutive bytes of a file. */
typedef struct ls_checksum_part {
    uint64_t offset, bytes;
    char text[LS_CHECKSUM_CHARACTERS]; /* the result */
} ls_checksum_part;

/* Of a whole file, and in the same reading of `count` parts of it, which are in the order of their
 * offsets and do not overlap. */
ls_status ls_checksum_file(const ls_file *file, char text[LS_CHECKSUM_CHARACTERS],
                           ls_checksum_part *parts, size_t count, ls_error *error) LS_MUST_CHECK;

#endif

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

/* A checksum of bytes that come one after the other, and of `count` parts of them, which are in the
 * order of their offsets and do not overlap; their texts are set as they end. */
typedef struct ls_checksum ls_checksum;
ls_status ls_checksum_new(ls_checksum **out, ls_error *error) LS_MUST_CHECK;
void ls_checksum_free(ls_checksum *checksum); /* NULL is allowed */
/* Begin anew. `parts` is borrowed until the end. */
void ls_checksum_begin(ls_checksum *checksum, ls_checksum_part *parts, size_t count);
void ls_checksum_add(ls_checksum *checksum, const void *bytes, size_t count);
void ls_checksum_end(const ls_checksum *checksum, char text[LS_CHECKSUM_CHARACTERS]);

/* Of a whole file, and in the same reading of `count` parts of it, which are in the order of their
 * offsets and do not overlap. */
ls_status ls_checksum_file(const ls_file *file, char text[LS_CHECKSUM_CHARACTERS],
                           ls_checksum_part *parts, size_t count, ls_error *error) LS_MUST_CHECK;

#endif

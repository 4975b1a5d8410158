#define XXH_STATIC_LINKING_ONLY /* the hash state lies in our own memory */
#include "base/checksum.h"

#include <stdio.h>
#include <xxhash.h>

/* The widest instructions that the machine has: the usual functions keep to SSE2. */
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>
#endif

#include "base/alloc.h"

enum { PIECE_BYTES = 1 << 19 };

struct ls_checksum {
    XXH3_state_t whole, part;
    ls_checksum_part *parts;
    size_t count, at;
    uint64_t offset; /* bytes so far */
    uint64_t done;   /* bytes of the part that it is at */
};

static void put_text(char text[LS_CHECKSUM_CHARACTERS], const XXH3_state_t *state)
{
    XXH128_hash_t hash = XXH3_128bits_digest(state);
    snprintf(text, LS_CHECKSUM_CHARACTERS, "%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
}

/* End all parts that are complete, empty ones included. */
static void end_parts(ls_checksum *checksum)
{
    while (checksum->at < checksum->count &&
           checksum->done == checksum->parts[checksum->at].bytes) {
        put_text(checksum->parts[checksum->at++].text, &checksum->part);
        checksum->done = 0;
        XXH3_128bits_reset(&checksum->part);
    }
}

ls_status ls_checksum_new(ls_checksum **out, ls_error *error)
{
    return LS_NEW(*out, 1, "checksum", error);
}

void ls_checksum_free(ls_checksum *checksum)
{
    ls_free(checksum);
}

void ls_checksum_begin(ls_checksum *checksum, ls_checksum_part *parts, size_t count)
{
    checksum->parts = parts;
    checksum->count = count;
    checksum->at = 0;
    checksum->offset = checksum->done = 0;
    XXH3_128bits_reset(&checksum->whole);
    XXH3_128bits_reset(&checksum->part);
    end_parts(checksum);
}

void ls_checksum_add(ls_checksum *checksum, const void *bytes, size_t count)
{
    const unsigned char *from = bytes;
    uint64_t begin = checksum->offset, end = begin + count;
    XXH3_128bits_update(&checksum->whole, from, count);
    checksum->offset = end;
    while (checksum->at < checksum->count) {
        const ls_checksum_part *part = &checksum->parts[checksum->at];
        uint64_t next = part->offset + checksum->done, left = part->bytes - checksum->done;
        if (next >= end) return;
        uint64_t here = end - next < left ? end - next : left;
        XXH3_128bits_update(&checksum->part, from + (next - begin), (size_t)here);
        checksum->done += here;
        if (here < left) return;
        end_parts(checksum);
    }
}

void ls_checksum_end(const ls_checksum *checksum, char text[LS_CHECKSUM_CHARACTERS])
{
    put_text(text, &checksum->whole);
}

ls_status ls_checksum_file(const ls_file *file, char text[LS_CHECKSUM_CHARACTERS],
                           ls_checksum_part *parts, size_t count, ls_error *error)
{
    ls_checksum *checksum = NULL;
    unsigned char *piece = NULL;
    ls_status status;
    LS_TRY_GOTO(status, ls_checksum_new(&checksum, error), done);
    LS_TRY_GOTO(status, LS_NEW(piece, PIECE_BYTES, "checksum", error), done);
    ls_checksum_begin(checksum, parts, count);
    for (uint64_t offset = 0; offset < file->bytes;) {
        uint64_t left = file->bytes - offset;
        size_t bytes = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        LS_TRY_GOTO(status, ls_file_read_at(file, piece, bytes, offset, error), done);
        ls_checksum_add(checksum, piece, bytes);
        offset += bytes;
    }
    ls_checksum_end(checksum, text);
done:
    ls_checksum_free(checksum);
    ls_free(piece);
    return status;
}

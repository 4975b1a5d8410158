#define XXH_STATIC_LINKING_ONLY /* the hash state lies in our own memory */
#include "base/checksum.h"

#include <stdio.h>
#include <xxhash.h>

#include "base/alloc.h"

enum { PIECE_BYTES = 1 << 20 };

typedef struct work {
    XXH3_state_t *whole, *part;
    unsigned char *piece; /* [PIECE_BYTES] */
    ls_checksum_part *parts;
    size_t count, at;
    uint64_t done; /* bytes of the part that it is at */
} work;

static void put_text(char text[LS_CHECKSUM_CHARACTERS], const XXH3_state_t *state)
{
    XXH128_hash_t hash = XXH3_128bits_digest(state);
    snprintf(text, LS_CHECKSUM_CHARACTERS, "%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
}

/* End all parts that are complete, empty ones included. */
static void end_parts(work *w)
{
    while (w->at < w->count && w->done == w->parts[w->at].bytes) {
        put_text(w->parts[w->at++].text, w->part);
        w->done = 0;
        XXH3_128bits_reset(w->part);
    }
}

/* `bytes` of the file that begin at `offset`. */
static void add_piece(work *w, uint64_t offset, size_t bytes)
{
    XXH3_128bits_update(w->whole, w->piece, bytes);
    while (w->at < w->count) {
        const ls_checksum_part *part = &w->parts[w->at];
        uint64_t from = part->offset + w->done, left = part->bytes - w->done;
        if (from >= offset + bytes) return;
        uint64_t here = offset + bytes - from;
        if (here > left) here = left;
        XXH3_128bits_update(w->part, w->piece + (from - offset), (size_t)here);
        w->done += here;
        if (here < left) return;
        end_parts(w);
    }
}

ls_status ls_checksum_file(const ls_file *file, char text[LS_CHECKSUM_CHARACTERS],
                           ls_checksum_part *parts, size_t count, ls_error *error)
{
    work w = {.parts = parts, .count = count};
    ls_status status;
    LS_TRY_GOTO(status, LS_NEW(w.whole, 1, "checksum", error), done);
    LS_TRY_GOTO(status, LS_NEW(w.part, 1, "checksum", error), done);
    LS_TRY_GOTO(status, LS_NEW(w.piece, PIECE_BYTES, "checksum", error), done);
    XXH3_128bits_reset(w.whole);
    XXH3_128bits_reset(w.part);
    end_parts(&w);
    for (uint64_t offset = 0; offset < file->bytes;) {
        uint64_t left = file->bytes - offset;
        size_t bytes = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        LS_TRY_GOTO(status, ls_file_read_at(file, w.piece, bytes, offset, error), done);
        add_piece(&w, offset, bytes);
        offset += bytes;
    }
    put_text(text, w.whole);
done:
    ls_free(w.whole);
    ls_free(w.part);
    ls_free(w.piece);
    return status;
}

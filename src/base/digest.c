#include "base/digest.h"

#include <nettle/sha2.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/files.h"

enum { PIECE = 1 << 20 };

ls_status ls_file_sha256(const char *path, char text[LS_SHA256_CHARACTERS], ls_error *error)
{
    ls_file file;
    unsigned char *piece = NULL;
    LS_TRY(ls_file_open(&file, path, error));
    ls_status status = LS_NEW(piece, PIECE, "digest buffer", error);
    struct sha256_ctx context;
    sha256_init(&context);
    for (uint64_t at = 0; status == LS_OK && at < file.bytes; at += PIECE) {
        size_t count = file.bytes - at < PIECE ? (size_t)(file.bytes - at) : PIECE;
        status = ls_file_read_at(&file, piece, count, at, error);
        sha256_update(&context, count, piece);
    }
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_digest(&context, sizeof digest, digest);
    for (int i = 0; i < SHA256_DIGEST_SIZE; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    ls_free(piece);
    ls_file_close(&file);
    return status;
}

/* The file that holds a dataset's token ids. It loses its name as soon as it is open, so that its
 * room is given back when the process ends, however it ends. Read by position, never mapped. */
#ifndef LS_DATA_TOKEN_CACHE_H
#define LS_DATA_TOKEN_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct ls_token_cache {
    int descriptor;
    char *path;       /* for error texts */
    bool named;       /* the name could not be removed at once: done at close */
    uint64_t written; /* elements in the file */
    int32_t *buffer;  /* while writing */
    size_t used;
} ls_token_cache;

ls_status ls_token_cache_create(ls_token_cache *cache, const char *folder,
                                ls_error *error) LS_MUST_CHECK;
void ls_token_cache_close(ls_token_cache *cache); /* safe on a closed one */

/* Through a buffer; finish writes it out and frees it. A full disk is LS_IO. */
ls_status ls_token_cache_append(ls_token_cache *cache, const int32_t *values, size_t count,
                                ls_error *error) LS_MUST_CHECK;
ls_status ls_token_cache_finish(ls_token_cache *cache, ls_error *error) LS_MUST_CHECK;

/* Exactly the values [position, position + count). Safe from several threads. */
ls_status ls_token_cache_read(const ls_token_cache *cache, uint64_t position, int32_t *values,
                              size_t count, ls_error *error) LS_MUST_CHECK;

#endif

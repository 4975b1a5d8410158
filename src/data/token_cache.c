#include "data/token_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/files.h"

enum { BUFFER_VALUES = 1 << 18 };

ls_status ls_token_cache_create(ls_token_cache *cache, const char *folder, ls_error *error)
{
    *cache = (ls_token_cache){.descriptor = -1};
    ls_status status;
    LS_TRY_GOTO(status, ls_path_join(&cache->path, folder, "lockstep-tokens-XXXXXX", error), fail);
    LS_TRY_GOTO(status, LS_NEW(cache->buffer, BUFFER_VALUES, "token cache", error), fail);
    cache->descriptor = mkostemp(cache->path, O_CLOEXEC);
    if (cache->descriptor < 0) {
        status = ls_fail(error, LS_IO,
                         "%s: cannot create the token cache: %s; choose a folder that exists and "
                         "can be written",
                         folder, strerror(errno));
        goto fail;
    }
    cache->named = unlink(cache->path) != 0;
    return LS_OK;
fail:
    ls_token_cache_close(cache);
    return status;
}

void ls_token_cache_close(ls_token_cache *cache)
{
    if (cache->path && cache->descriptor >= 0) {
        close(cache->descriptor);
        if (cache->named) unlink(cache->path);
    }
    ls_free(cache->path);
    ls_free(cache->buffer);
    *cache = (ls_token_cache){.descriptor = -1};
}

static ls_status write_out(ls_token_cache *cache, const int32_t *values, size_t count,
                           ls_error *error)
{
    const char *from = (const char *)values;
    size_t left = count * sizeof *values;
    while (left) {
        ssize_t wrote = write(cache->descriptor, from, left);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0)
            return ls_fail(error, LS_IO,
                           "%s: cannot write the token cache after %llu bytes: %s; it takes 4 "
                           "bytes a token: make room, or choose another folder",
                           cache->path, (unsigned long long)(cache->written * sizeof *values),
                           strerror(errno));
        from += wrote;
        left -= (size_t)wrote;
    }
    cache->written += count;
    return LS_OK;
}

ls_status ls_token_cache_append(ls_token_cache *cache, const int32_t *values, size_t count,
                                ls_error *error)
{
    while (count) {
        size_t room = BUFFER_VALUES - cache->used, part = count < room ? count : room;
        memcpy(cache->buffer + cache->used, values, part * sizeof *values);
        cache->used += part;
        values += part;
        count -= part;
        if (cache->used < BUFFER_VALUES) continue;
        cache->used = 0;
        LS_TRY(write_out(cache, cache->buffer, BUFFER_VALUES, error));
    }
    return LS_OK;
}

ls_status ls_token_cache_finish(ls_token_cache *cache, ls_error *error)
{
    LS_TRY(write_out(cache, cache->buffer, cache->used, error));
    ls_free(cache->buffer);
    cache->buffer = NULL;
    cache->used = 0;
    return LS_OK;
}

ls_status ls_token_cache_read(const ls_token_cache *cache, uint64_t position, int32_t *values,
                              size_t count, ls_error *error)
{
    /* The descriptor is lent to base/files.h, which knows how to read at a position. */
    ls_file file = {.descriptor = cache->descriptor, .path = cache->path};
    return ls_file_read_at(&file, values, count * sizeof *values, position * sizeof *values, error);
}

#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/alloc.h"

enum { BLOCK_BYTES = 64 * 1024 };

typedef struct ls_arena_block {
    struct ls_arena_block *older;
    size_t used, capacity;
    alignas(16) unsigned char bytes[];
} ls_arena_block;

ls_status ls_arena_take(ls_arena *arena, void **out, size_t bytes, ls_error *error)
{
    bytes = (bytes + 15) / 16 * 16;
    ls_arena_block *block = arena->newest;
    if (!block || block->capacity - block->used < bytes) {
        size_t capacity = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
        block = NULL;
        LS_TRY(ls_new((void **)&block, 1, sizeof *block + capacity, "arena block", error));
        block->older = arena->newest;
        block->capacity = capacity;
        arena->newest = block;
    }
    *out = block->bytes + block->used;
    block->used += bytes;
    return LS_OK;
}

ls_status ls_arena_text(ls_arena *arena, const char **out, ls_error *error, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = NULL;
    ls_status status = LS_OK;
    if (length < 0)
        status = ls_fail(error, LS_INTERNAL, "text cannot be formatted");
    else
        status = ls_arena_take(arena, (void **)&text, (size_t)length + 1, error);
    if (status == LS_OK) vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    *out = text;
    return status;
}

void ls_arena_deinit(ls_arena *arena)
{
    while (arena->newest) {
        ls_arena_block *older = arena->newest->older;
        ls_free(arena->newest);
        arena->newest = older;
    }
}

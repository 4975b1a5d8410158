/* Memory that is freed whole: one arena for one program's ops, values and names. */
#ifndef LS_BASE_ARENA_H
#define LS_BASE_ARENA_H

#include <stddef.h>

#include "base/status.h"

typedef struct ls_arena {
    struct ls_arena_block *newest;
} ls_arena; /* all zero is an empty arena */

/* Zeroed, 16-byte aligned. */
ls_status ls_arena_take(ls_arena *arena, void **out, size_t bytes, ls_error *error) LS_MUST_CHECK;
#define LS_ARENA_NEW(arena, pointer, count, error)                                                 \
    ls_arena_take(arena, (void **)&(pointer), (size_t)(count) * sizeof *(pointer), error)

/* printf into the arena. */
ls_status ls_arena_text(ls_arena *arena, const char **out, ls_error *error, const char *format, ...)
    LS_PRINTF(4, 5) LS_MUST_CHECK;

void ls_arena_deinit(ls_arena *arena);

#endif

/* The words of a command line, as exec takes them. All zero is an empty one. */
#ifndef LS_LAUNCH_WORDS_H
#define LS_LAUNCH_WORDS_H

#include "base/status.h"
#include "base/text.h"

typedef struct ls_words {
    char **list; /* [count], then NULL; NULL while empty */
    size_t count, capacity;
} ls_words;

ls_status ls_words_add(ls_words *words, ls_error *error, const char *format, ...)
    LS_PRINTF(3, 4) LS_MUST_CHECK;
ls_status ls_words_add_all(ls_words *words, char *const *list, size_t count,
                           ls_error *error) LS_MUST_CHECK;
void ls_words_deinit(ls_words *words);

/* One line that a shell reads as these words, without the line's end. */
ls_status ls_words_print(const ls_words *words, ls_text *text, ls_error *error) LS_MUST_CHECK;

#endif

#include "launch/words.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

/* Takes over `word`. */
static ls_status take(ls_words *words, char *word, ls_error *error)
{
    ls_status status =
        LS_GROW(words->list, words->capacity, words->count + 2, "command line", error);
    if (status != LS_OK) {
        ls_free(word);
        return status;
    }
    words->list[words->count++] = word;
    words->list[words->count] = NULL;
    return LS_OK;
}

ls_status ls_words_add(ls_words *words, ls_error *error, const char *format, ...)
{
    char *word = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) return ls_fail(error, LS_INTERNAL, "a word of a command line does not print");
    LS_TRY(LS_NEW(word, length + 1, "command line", error));
    va_start(arguments, format);
    vsnprintf(word, (size_t)length + 1, format, arguments);
    va_end(arguments);
    return take(words, word, error);
}

ls_status ls_words_add_all(ls_words *words, char *const *list, size_t count, ls_error *error)
{
    for (size_t i = 0; i < count; i++)
        LS_TRY(ls_words_add(words, error, "%s", list[i]));
    return LS_OK;
}

void ls_words_deinit(ls_words *words)
{
    for (size_t i = 0; i < words->count; i++)
        ls_free(words->list[i]);
    ls_free(words->list);
    *words = (ls_words){0};
}

static ls_status print_word(ls_text *text, const char *word, ls_error *error)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./:=,+@%";
    if (*word && word[strspn(word, plain)] == '\0')
        return ls_text_append(text, word, strlen(word), error);
    LS_TRY(ls_text_append(text, "'", 1, error));
    for (; *word; word++) {
        const char *shown = *word == '\'' ? "'\\''" : word;
        LS_TRY(ls_text_append(text, shown, *word == '\'' ? 4 : 1, error));
    }
    return ls_text_append(text, "'", 1, error);
}

ls_status ls_words_print(const ls_words *words, ls_text *text, ls_error *error)
{
    for (size_t i = 0; i < words->count; i++) {
        if (i > 0) LS_TRY(ls_text_append(text, " ", 1, error));
        LS_TRY(print_word(text, words->list[i], error));
    }
    return LS_OK;
}

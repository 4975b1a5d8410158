/* Added tokens: texts such as [SEP] that are found before the words are cut, and never cut. */
#ifndef LS_TOKENIZER_ADDED_TOKENS_H
#define LS_TOKENIZER_ADDED_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct ls_added_token {
    char *content;
    size_t length;
    int32_t id;
    bool lstrip, rstrip; /* swallow the white space before, after */
} ls_added_token;

/* A set that is searched for together. All zero is an empty one. */
typedef struct ls_added_tokens {
    ls_added_token *tokens; /* [count] longest first, once finished */
    size_t count, capacity;
    bool starts[256]; /* bytes with which some token begins */
} ls_added_tokens;

/* `content` is not empty and not in the set (LS_INVALID). */
ls_status ls_added_tokens_add(ls_added_tokens *added, const char *content, size_t length,
                              int32_t id, bool lstrip, bool rstrip, ls_error *error) LS_MUST_CHECK;
void ls_added_tokens_finish(ls_added_tokens *added);
void ls_added_tokens_deinit(ls_added_tokens *added);

/* Where the search stands in one text: the state of ls_added_tokens_next. */
typedef struct ls_added_search {
    const unsigned char *text;
    size_t length;
    size_t searched; /* matches are sought from here */
    size_t consumed; /* pieces start here */
} ls_added_search;

/* The next part of the text: the plain text [*begin, *end) in front of a match (it may be empty)
 * and the match's token, or the rest of the text and NULL. Matches are leftmost, then longest. */
const ls_added_token *ls_added_tokens_next(const ls_added_tokens *added, ls_added_search *search,
                                           size_t *begin, size_t *end);

#endif

#include "tokenizer/added_tokens.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tokenizer/unicode.h"

ls_status ls_added_tokens_add(ls_added_tokens *added, const char *content, size_t length,
                              int32_t id, bool lstrip, bool rstrip, ls_error *error)
{
    if (length == 0) return ls_fail(error, LS_INVALID, "added token %d: its text is empty", id);
    for (size_t i = 0; i < added->count; i++) {
        const ls_added_token *other = &added->tokens[i];
        if (other->length == length && memcmp(other->content, content, length) == 0)
            return ls_fail(error, LS_INVALID, "added tokens %d and %d have the same text \"%s\"",
                           other->id, id, content);
    }
    LS_TRY(LS_GROW(added->tokens, added->capacity, added->count + 1, "added tokens", error));
    ls_added_token *token = &added->tokens[added->count];
    *token = (ls_added_token){.length = length, .id = id, .lstrip = lstrip, .rstrip = rstrip};
    LS_TRY(LS_NEW(token->content, length + 1, "added token", error));
    memcpy(token->content, content, length);
    added->starts[(unsigned char)content[0]] = true;
    added->count++;
    return LS_OK;
}

static int longer_first(const void *left, const void *right)
{
    const ls_added_token *a = left, *b = right;
    return (a->length < b->length) - (a->length > b->length);
}

void ls_added_tokens_finish(ls_added_tokens *added)
{
    if (added->count) qsort(added->tokens, added->count, sizeof *added->tokens, longer_first);
}

void ls_added_tokens_deinit(ls_added_tokens *added)
{
    for (size_t i = 0; i < added->count; i++)
        ls_free(added->tokens[i].content);
    ls_free(added->tokens);
    *added = (ls_added_tokens){0};
}

static const ls_added_token *match_at(const ls_added_tokens *added, const unsigned char *at,
                                      size_t length)
{
    for (size_t i = 0; i < added->count; i++) {
        const ls_added_token *token = &added->tokens[i];
        if (token->length <= length && memcmp(token->content, at, token->length) == 0) return token;
    }
    return NULL;
}

/* Length of text[0, end) without the white space at its end. */
static size_t without_space_at_end(const unsigned char *text, size_t end)
{
    while (end > 0) {
        size_t start = end - 1;
        while (start > 0 && end - start < 4 && (text[start] & 0xC0) == 0x80)
            start--;
        const unsigned char *at = text + start;
        uint32_t code_point = ls_utf8_decode(&at, text + end);
        if (at != text + end || !(ls_unicode_class(code_point) & LS_UNICODE_SPACE)) break;
        end = start;
    }
    return end;
}

static size_t skip_space(const unsigned char *text, size_t from, size_t length)
{
    const unsigned char *at = text + from, *end = text + length;
    while (at < end) {
        const unsigned char *next = at;
        if (!(ls_unicode_class(ls_utf8_decode(&next, end)) & LS_UNICODE_SPACE)) break;
        at = next;
    }
    return (size_t)(at - text);
}

const ls_added_token *ls_added_tokens_next(const ls_added_tokens *added, ls_added_search *search,
                                           size_t *begin, size_t *end)
{
    const ls_added_token *token = NULL;
    size_t at = search->searched;
    *begin = search->consumed;
    *end = search->length;
    for (; added->count && at < search->length; at++) {
        if (!added->starts[search->text[at]]) continue;
        token = match_at(added, search->text + at, search->length - at);
        if (token) break;
    }
    if (!token) {
        search->searched = search->consumed = search->length;
        return NULL;
    }
    size_t stop = at + token->length;
    search->searched = stop; /* not beyond the white space that rstrip swallows */
    *end = token->lstrip ? without_space_at_end(search->text, at) : at;
    if (*end < *begin) *end = *begin;
    search->consumed = token->rstrip ? skip_space(search->text, stop, search->length) : stop;
    return token;
}

#include "formats/json.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/files.h"
#include "formats/utf8.h"

/* --- jansson's memory --------------------------------------------------------------------------
 *
 * jansson's scanner does not look whether the buffer of its current token could grow: when it could
 * not, it reads past the buffer's end or stops the process by an assertion. So the first allocation
 * that fails while parsing is served from a reserve, large enough for any token, and the input ends
 * at the next byte: jansson then unwinds in its ordinary way and the result is thrown away. */
typedef struct parse_state {
    const unsigned char *bytes;
    size_t count, at;
    void *reserve;
    size_t reserve_bytes;
    bool out_of_memory;
} parse_state;

/* jansson's allocation functions have no argument of ours. */
static _Thread_local parse_state *parsing;

static void *json_allocate(size_t bytes)
{
    void *pointer = ls_allocate_plain(bytes);
    if (pointer || !parsing) return pointer;
    bool first = !parsing->out_of_memory;
    parsing->out_of_memory = true;
    return first && bytes <= parsing->reserve_bytes ? parsing->reserve : NULL;
}

static void json_release(void *pointer)
{
    if (!parsing || pointer != parsing->reserve) ls_free(pointer);
}

static void set_json_memory(void)
{
    json_set_alloc_funcs(json_allocate, json_release);
}

static pthread_once_t json_memory_once = PTHREAD_ONCE_INIT;

static void init_json(void)
{
    pthread_once(&json_memory_once, set_json_memory);
}

/* One byte a call, so that the input can end at once. */
static size_t next_byte(void *buffer, size_t capacity, void *context)
{
    parse_state *state = context;
    if (capacity == 0 || state->out_of_memory || state->at == state->count) return 0;
    *(unsigned char *)buffer = state->bytes[state->at++];
    return 1;
}

/* --- before jansson: depth, NUL bytes, the longest token ---------------------------------------
 */

static ls_status fail_at(ls_error *error, const char *name, const char *bytes, size_t at,
                         const char *what)
{
    size_t line = 1, start = 0;
    for (size_t i = 0; i < at; i++)
        if (bytes[i] == '\n') line++, start = i + 1;
    if (line == 1)
        return ls_fail(error, LS_INVALID, "%s: byte %zu: %s", name, at - start + 1, what);
    return ls_fail(error, LS_INVALID, "%s: line %zu, byte %zu: %s", name, line, at - start + 1,
                   what);
}

static ls_status scan(const char *bytes, size_t count, const char *name, size_t *longest_token,
                      ls_error *error)
{
    size_t depth = 0, start = 0;
    bool in_string = false;
    *longest_token = 0;
    for (size_t i = 0; i < count; i++) {
        char byte = bytes[i];
        if (byte == '\0') return fail_at(error, name, bytes, i, "a NUL byte; is this a text file?");
        bool token_ends = false;
        if (in_string) {
            if (byte == '\\' && i + 1 < count && bytes[i + 1] != '\0')
                i++;
            else if (byte == '"')
                in_string = false;
        } else if (byte == '"') {
            in_string = true;
        } else if (byte == '[' || byte == '{') {
            token_ends = true;
            if (++depth > LS_JSON_MAX_DEPTH)
                return fail_at(error, name, bytes, i,
                               "arrays and objects nest deeper than 64; no such file is read");
        } else if (byte == ']' || byte == '}') {
            token_ends = true;
            depth -= depth > 0;
        } else {
            token_ends = byte == ',' || byte == ':' || byte == ' ' || byte == '\n' ||
                         byte == '\r' || byte == '\t';
        }
        size_t length = i + 1 - start;
        if (length > *longest_token) *longest_token = length;
        if (token_ends) start = i + 1;
    }
    return LS_OK;
}

/* --- error texts -------------------------------------------------------------------------------
 */

/* The key that ends with the quote before `end`: jansson leaves longer ones out of its text. */
static ls_status fail_duplicate(ls_error *error, const char *name, const char *bytes, size_t end)
{
    size_t start = end > 0 ? end - 1 : 0;
    while (start > 0) {
        start--;
        size_t slashes = 0;
        while (slashes < start && bytes[start - slashes - 1] == '\\')
            slashes++;
        if (bytes[start] == '"' && slashes % 2 == 0) break;
    }
    size_t length = end > start + 2 ? end - start - 2 : 0;
    if (length > 300) length = ls_utf8_valid_prefix(bytes + start + 1, 300);
    return ls_fail(error, LS_INVALID,
                   "%s: duplicate key '%.*s'; each key may stand once in an object", name,
                   (int)length, bytes + start + 1);
}

/* jansson quotes the input: keep the text one line of valid UTF-8. */
static void make_one_line(char *text)
{
    size_t length = strlen(text);
    for (size_t at = 0; at < length;) {
        at += ls_utf8_valid_prefix(text + at, length - at);
        if (at < length) text[at] = '?';
    }
    for (char *at = text; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f) *at = ' ';
}

static ls_status fail_parse(ls_error *error, json_error_t *problem, const parse_state *state,
                            const char *name)
{
    const char *bytes = (const char *)state->bytes;
    size_t position = problem->position > 0 ? (size_t)problem->position : 0;
    if (position > state->count) position = state->count;
    enum json_error_code code = json_error_code(problem);
    if (code == json_error_duplicate_key) return fail_duplicate(error, name, bytes, position);
    make_one_line(problem->text);
    char what[400];
    if (code == json_error_null_character || code == json_error_null_byte_in_key)
        snprintf(what, sizeof what, "\\u0000: a NUL character is not allowed in text");
    else if (code == json_error_invalid_utf8)
        snprintf(what, sizeof what, "bad UTF-8 (%s)", problem->text);
    else if (strncmp(problem->text, "invalid Unicode '", 17) == 0)
        snprintf(what, sizeof what, "unpaired surrogate escape %.100s", problem->text + 16);
    else if (code == json_error_numeric_overflow)
        snprintf(what, sizeof what, "a number out of range: %s", problem->text);
    else
        snprintf(what, sizeof what, "not valid JSON: %s", problem->text);
    return fail_at(error, name, bytes, position > 0 ? position - 1 : 0, what);
}

/* --- parse ---------------------------------------------------------------------------------------
 */

static ls_status parse_with(json_t **out, parse_state *state, const char *name, ls_error *error)
{
    json_error_t problem = {0};
    parsing = state;
    json_t *root = json_load_callback(next_byte, state, JSON_REJECT_DUPLICATES, &problem);
    ls_status status = LS_OK;
    if (state->out_of_memory) {
        json_decref(root);
        root = NULL;
        status = ls_fail(error, LS_NO_MEMORY, "%s: out of memory while reading JSON", name);
    } else if (!root) {
        status = fail_parse(error, &problem, state, name);
    }
    parsing = NULL;
    *out = root;
    return status;
}

ls_status ls_json_parse(json_t **out, const char *bytes, size_t count, const char *name,
                        ls_error *error)
{
    enum { SMALL_RESERVE = 2048 };
    char small[SMALL_RESERVE];
    size_t longest = 0;
    *out = NULL;
    init_json();
    if (count >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0) bytes += 3, count -= 3;
    LS_TRY(scan(bytes, count, name, &longest, error));
    /* jansson doubles the buffer, which starts with 16 bytes. */
    size_t needed = 2 * (longest + 16);
    parse_state state = {.bytes = (const unsigned char *)bytes, .count = count};
    void *large = NULL;
    if (needed > sizeof small) LS_TRY(ls_new(&large, needed, 1, name, error));
    state.reserve = large ? large : small;
    state.reserve_bytes = large ? needed : sizeof small;
    ls_status status = parse_with(out, &state, name, error);
    ls_free(large);
    return status;
}

ls_status ls_json_load(json_t **out, const char *path, size_t cap, ls_error *error)
{
    char *bytes = NULL;
    size_t count = 0;
    *out = NULL;
    LS_TRY(ls_file_read(&bytes, &count, path, cap, error));
    ls_status status = ls_json_parse(out, bytes, count, path, error);
    ls_free(bytes);
    return status;
}

void ls_json_free(json_t *value)
{
    json_decref(value);
}

ls_status ls_json_new_object(json_t **out, ls_error *error)
{
    init_json();
    *out = json_object();
    return *out ? LS_OK : ls_fail(error, LS_NO_MEMORY, "out of memory for a JSON object");
}

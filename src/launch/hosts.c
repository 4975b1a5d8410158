#include "launch/hosts.h"

#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/files.h"

enum { MOST_BYTES = 1 << 20, SHOWN_BYTES = 80 };

static const char name_characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                      "0123456789.-_";

/* A piece of the file; what is left of a line. */
typedef struct span {
    const char *at;
    size_t length;
} span;

typedef struct file_line {
    const char *file;
    int line;
    span text; /* the whole line */
} file_line;

static ls_status fail_line(const file_line *place, const char *why, ls_error *error)
{
    size_t length = place->text.length;
    return ls_fail(error, LS_INVALID, "%s:%d: '%.*s%s': %s", place->file, place->line,
                   (int)(length < SHOWN_BYTES ? length : SHOWN_BYTES), place->text.at,
                   length < SHOWN_BYTES ? "" : "...", why);
}

static bool is_space(char byte)
{
    return byte == ' ' || byte == '\t';
}

static void skip_spaces(span *rest)
{
    while (rest->length > 0 && is_space(*rest->at)) {
        rest->at++;
        rest->length--;
    }
}

/* The bytes up to a space or the end. */
static span next_word(span *rest)
{
    skip_spaces(rest);
    span word = {rest->at, 0};
    while (word.length < rest->length && !is_space(word.at[word.length]))
        word.length++;
    rest->at += word.length;
    rest->length -= word.length;
    return word;
}

static bool is_name(span word)
{
    if (word.length == 0 || word.length >= LS_HOST_NAME_BYTES || *word.at == '-') return false;
    for (size_t i = 0; i < word.length; i++)
        if (!word.at[i] || !strchr(name_characters, word.at[i])) return false;
    return true;
}

/* 0 if it is not a whole number from 1 to LS_MOST_SLOTS. */
static int read_slots(span digits)
{
    int64_t slots = 0;
    if (digits.length == 0 || digits.length > 9) return 0;
    for (size_t i = 0; i < digits.length; i++) {
        if (digits.at[i] < '0' || digits.at[i] > '9') return 0;
        slots = slots * 10 + (digits.at[i] - '0');
    }
    return slots <= LS_MOST_SLOTS ? (int)slots : 0;
}

static ls_status add_host(ls_hosts *hosts, span name, int slots, const file_line *place,
                          ls_error *error)
{
    ls_host host = {.slots = slots, .line = place->line};
    memcpy(host.name, name.at, name.length);
    for (size_t i = 0; i < hosts->count; i++)
        if (strcmp(hosts->list[i].name, host.name) == 0)
            return ls_fail(error, LS_INVALID,
                           "%s:%d: host '%s' stands in line %d already: one line a host, with all "
                           "its slots",
                           place->file, place->line, host.name, hosts->list[i].line);
    if (ls_hosts_slots(hosts) + slots > LS_MOST_SLOTS)
        return fail_line(place, "more than 65536 slots in all", error);
    LS_TRY(LS_GROW(hosts->list, hosts->capacity, hosts->count + 1, "host file", error));
    hosts->list[hosts->count++] = host;
    return LS_OK;
}

static ls_status read_line(ls_hosts *hosts, const file_line *place, ls_error *error)
{
    static const char key[] = "slots=";
    const size_t key_length = sizeof key - 1;
    span rest = place->text;
    const char *comment = memchr(rest.at, '#', rest.length);
    if (comment) rest.length = (size_t)(comment - rest.at);
    span name = next_word(&rest), slots = next_word(&rest);
    if (name.length == 0) return LS_OK;
    if (!is_name(name))
        return fail_line(place, "a host's name has letters, digits, '.', '-' and '_' only", error);
    if (slots.length == 0)
        return fail_line(place, "how many processes it takes is missing: 'HOST slots=N'", error);
    if (slots.length < key_length || memcmp(slots.at, key, key_length) != 0 ||
        next_word(&rest).length > 0)
        return fail_line(place, "a line is 'HOST slots=N' and nothing else", error);
    int count = read_slots((span){slots.at + key_length, slots.length - key_length});
    if (count == 0) return fail_line(place, "slots is a whole number from 1 to 65536", error);
    return add_host(hosts, name, count, place, error);
}

ls_status ls_hosts_parse(ls_hosts *hosts, const char *text, size_t bytes, const char *name,
                         ls_error *error)
{
    *hosts = (ls_hosts){0};
    file_line place = {.file = name};
    for (size_t start = 0; start < bytes;) {
        const char *end = memchr(text + start, '\n', bytes - start);
        size_t length = end ? (size_t)(end - text) - start : bytes - start;
        place.line++;
        place.text = (span){text + start, length};
        start += length + 1;
        if (length > 0 && place.text.at[length - 1] == '\r') place.text.length--;
        LS_TRY(read_line(hosts, &place, error));
    }
    if (hosts->count == 0)
        return ls_fail(error, LS_INVALID, "%s: names no host: write 'HOST slots=N', one a line",
                       name);
    return LS_OK;
}

ls_status ls_hosts_read(ls_hosts *hosts, const char *path, ls_error *error)
{
    char *text = NULL;
    size_t bytes = 0;
    *hosts = (ls_hosts){0};
    LS_TRY(ls_file_read(&text, &bytes, path, MOST_BYTES, error));
    ls_status status = ls_hosts_parse(hosts, text, bytes, path, error);
    ls_free(text);
    return status;
}

void ls_hosts_deinit(ls_hosts *hosts)
{
    ls_free(hosts->list);
    *hosts = (ls_hosts){0};
}

int ls_hosts_slots(const ls_hosts *hosts)
{
    int slots = 0;
    for (size_t i = 0; i < hosts->count; i++)
        slots += hosts->list[i].slots;
    return slots;
}

bool ls_host_is_here(const char *name)
{
    char own[LS_HOST_NAME_BYTES] = "";
    if (strcmp(name, "localhost") == 0 || strcmp(name, "127.0.0.1") == 0) return true;
    if (gethostname(own, sizeof own - 1) != 0) return false;
    if (strcmp(name, own) == 0) return true;
    /* "alpha" and "alpha.cluster" are the same machine; "alpha.a" and "alpha.b" need not be. */
    size_t length = strcspn(name, "."), own_length = strcspn(own, ".");
    return length == own_length && memcmp(name, own, length) == 0 &&
           (!name[length] || !own[length]);
}

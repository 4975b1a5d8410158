/* Lines from standard input to token ids on standard output, for check_tokenizer.py.
 *
 * tokenize_lines FOLDER MAX_LENGTH REPEAT [pair]
 *
 * With `pair` lines 1 and 2 are a pair, 3 and 4, and so on. A line of output is the ids, and for a
 * pair a tab and the token types. MAX_LENGTH 0 is no limit. All is done REPEAT times (the output
 * once), and the speed goes to standard error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "tokenizer/tokenizer.h"

typedef struct lines {
    char *bytes;
    size_t count, capacity; /* of bytes */
    size_t at;
} lines;

static void read_all(lines *input)
{
    size_t got;
    do {
        if (input->capacity - input->count < 1 << 16) {
            input->capacity = 2 * input->capacity + (1 << 20);
            input->bytes = realloc(input->bytes, input->capacity);
            if (!input->bytes) abort();
        }
        got = fread(input->bytes + input->count, 1, input->capacity - input->count - 1, stdin);
        input->count += got;
    } while (got);
}

static int next_line(lines *input, const char **line, size_t *length)
{
    if (input->at >= input->count) return 0;
    *line = input->bytes + input->at;
    char *newline = memchr(*line, '\n', input->count - input->at);
    *length = newline ? (size_t)(newline - *line) : input->count - input->at;
    input->at += *length + 1;
    return 1;
}

static void print(const ls_encoding *encoding, int pair)
{
    for (int i = 0; i < encoding->length; i++)
        printf(i ? " %d" : "%d", encoding->ids[i]);
    if (pair) putchar('\t');
    for (int i = 0; pair && i < encoding->length; i++)
        putchar('0' + encoding->types[i]);
    putchar('\n');
}

int main(int count, char **arguments)
{
    ls_error error = {0};
    ls_tokenizer *tokenizer = NULL;
    ls_tokenizer_scratch *scratch = NULL;
    if (count < 4) return 2;
    int max_length = atoi(arguments[2]), repeat = atoi(arguments[3]), is_pair = count > 4;
    double start = ls_seconds();
    ls_status status = ls_tokenizer_open(&tokenizer, arguments[1], &error);
    if (status == LS_OK) status = ls_tokenizer_scratch_new(&scratch, &error);
    fprintf(stderr, "open: %.3f s\n", ls_seconds() - start);
    lines input = {0};
    read_all(&input);
    double tokens = 0, seconds = 0;
    for (int round = 0; status == LS_OK && round < repeat; round++) {
        const char *text, *pair = NULL;
        size_t length, pair_length = 0;
        for (input.at = 0; status == LS_OK && next_line(&input, &text, &length);) {
            ls_encoding encoding;
            if (is_pair && !next_line(&input, &pair, &pair_length)) break;
            start = ls_seconds();
            status = ls_tokenizer_encode(tokenizer, scratch, text, length, pair, pair_length,
                                         max_length, &encoding, &error);
            seconds += ls_seconds() - start;
            if (status != LS_OK) break;
            tokens += encoding.length;
            if (round == 0) print(&encoding, is_pair);
        }
    }
    if (status != LS_OK)
        fprintf(stderr, "%s\n", error.text);
    else
        fprintf(stderr, "%.0f tokens, %.0f a second\n", tokens, tokens / seconds);
    free(input.bytes);
    ls_tokenizer_scratch_free(scratch);
    ls_tokenizer_free(tokenizer);
    return status == LS_OK ? 0 : 1;
}

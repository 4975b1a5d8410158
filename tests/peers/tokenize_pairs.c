/* Pairs of texts to token ids and types, for check_tokenizer.py: what `lockstep tokenize`, which
 * takes single texts, cannot show.
 *
 * tokenize_pairs FOLDER MAX_LENGTH
 *
 * Lines 1 and 2 of standard input are a pair, 3 and 4, and so on. A line of output is the ids, a
 * tab, and a digit a token for its type. MAX_LENGTH 0 is no limit. */
#include <stdio.h>
#include <stdlib.h>

#include "tokenizer/tokenizer.h"

static ls_status tokenize(const ls_tokenizer *tokenizer, ls_tokenizer_scratch *scratch,
                          int max_length, ls_error *error)
{
    char *text = NULL, *pair = NULL;
    size_t text_room = 0, pair_room = 0;
    ssize_t length, pair_length;
    ls_status status = LS_OK;
    while (status == LS_OK && (length = getline(&text, &text_room, stdin)) > 0 &&
           (pair_length = getline(&pair, &pair_room, stdin)) > 0) {
        ls_encoding encoding;
        length -= text[length - 1] == '\n';
        pair_length -= pair[pair_length - 1] == '\n';
        status = ls_tokenizer_encode(tokenizer, scratch, text, (size_t)length, pair,
                                     (size_t)pair_length, max_length, &encoding, error);
        if (status != LS_OK) break;
        for (int i = 0; i < encoding.length; i++)
            printf("%d ", encoding.ids[i]);
        putchar('\t');
        for (int i = 0; i < encoding.length; i++)
            putchar('0' + encoding.types[i]);
        putchar('\n');
    }
    free(text);
    free(pair);
    return status;
}

int main(int count, char **arguments)
{
    ls_error error = {0};
    ls_tokenizer *tokenizer = NULL;
    ls_tokenizer_scratch *scratch = NULL;
    if (count != 3) return 2;
    ls_status status = ls_tokenizer_open(&tokenizer, arguments[1], &error);
    if (status == LS_OK) status = ls_tokenizer_scratch_new(&scratch, &error);
    if (status == LS_OK) status = tokenize(tokenizer, scratch, atoi(arguments[2]), &error);
    if (status != LS_OK) fprintf(stderr, "tokenize_pairs: %s\n", error.text);
    ls_tokenizer_scratch_free(scratch);
    ls_tokenizer_free(tokenizer);
    return status == LS_OK ? 0 : 1;
}

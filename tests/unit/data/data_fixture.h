/* A tokenizer of single letters and files of random words, so that tests know every id. */
#ifndef LS_TESTS_DATA_FIXTURE_H
#define LS_TESTS_DATA_FIXTURE_H

#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "data/dataset.h"

enum { ID_CLASS = 2, ID_SEPARATOR = 3, ID_LETTER = 5, ID_NEXT_LETTER = 31 };

/* Ids 0 to 4: special tokens; 5 to 30: a to z; 31 to 56: ##a to ##z. */
static inline ls_tokenizer *fixture_tokenizer(const char *folder)
{
    char vocab[1000] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
    for (char letter = 'a'; letter <= 'z'; letter++)
        snprintf(vocab + strlen(vocab), 8, "%c\n", letter);
    for (char letter = 'a'; letter <= 'z'; letter++)
        snprintf(vocab + strlen(vocab), 8, "##%c\n", letter);
    test_write_file(test_path(folder, "vocab.txt"), vocab, strlen(vocab));
    ls_error error;
    ls_tokenizer *tokenizer = NULL;
    assert_ok(ls_tokenizer_open(&tokenizer, folder, &error), error);
    return tokenizer;
}

static inline uint32_t fixture_draw(uint32_t row, uint32_t place, uint32_t bound)
{
    ls_philox_block block = ls_philox((ls_philox_key){{11, 3}}, (ls_philox_block){{row, place}});
    return block.word[0] % bound;
}

/* Row `row`'s text: 1 to 12 words of 1 to 4 letters. `part` tells the texts of a pair apart. */
static inline void fixture_text(uint32_t row, uint32_t part, char text[64])
{
    uint32_t place = part * 1000, words = 1 + fixture_draw(row, place++, 12);
    char *at = text;
    for (uint32_t word = 0; word < words; word++) {
        uint32_t letters = 1 + fixture_draw(row, place++, 4);
        if (word) *at++ = ' ';
        for (uint32_t letter = 0; letter < letters; letter++)
            *at++ = (char)('a' + fixture_draw(row, place++, 26));
    }
    *at = '\0';
}

/* Append a text's ids, one for each letter. */
static inline int fixture_ids(const char *text, int32_t *ids)
{
    int count = 0;
    for (const char *at = text; *at; at++)
        if (*at != ' ')
            ids[count++] = *at - 'a' + (at == text || at[-1] == ' ' ? ID_LETTER : ID_NEXT_LETTER);
    return count;
}

/* "text\tlabel" for rows 0 .. rows - 1, labels row % classes as class_names[...]. */
static inline void fixture_write_tsv(const char *path, uint32_t rows, const char *const *names,
                                     uint32_t classes)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("text\tlabel\n", file);
    for (uint32_t row = 0; row < rows; row++) {
        char text[64];
        fixture_text(row, 0, text);
        fprintf(file, "%s\t%s\n", text, names[row % classes]);
    }
    assert_int_equal(fclose(file), 0);
}

static inline ls_labels *fixture_labels(void)
{
    ls_error error;
    ls_labels *labels = NULL;
    assert_ok(ls_labels_new(&labels, &error), error);
    return labels;
}

#endif

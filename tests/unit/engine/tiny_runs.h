/* Short runs of the tiny models on generated texts, shared by the tests of whole runs. */
#ifndef LS_TESTS_TINY_RUNS_H
#define LS_TESTS_TINY_RUNS_H

#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "lockstep.h"

enum { TINY_ROWS = 50, TINY_BATCH = 16, TINY_STEPS_AN_EPOCH = 4 };

static inline const char *tiny_model(const char *name)
{
    static char path[2][4096];
    char *into = path[strcmp(name, "tiny-bert") == 0];
    snprintf(into, sizeof path[0], "%s/tests/data/%s", LS_TEST_SOURCE, name);
    return into;
}

static inline uint32_t tiny_draw(uint32_t row, uint32_t place, uint32_t bound)
{
    ls_philox_block block = ls_philox((ls_philox_key){{5, 23}}, (ls_philox_block){{row, place}});
    return block.word[0] % bound;
}

/* Words that the vocabularies have whole, and some that are cut into pieces. */
static inline void tiny_text(uint32_t row, char text[400])
{
    static const char *const words[] = {"the",  "star",  "of",     "a",    "match", "market",
                                        "is",   "great", "poor",   "film", "and",   "story",
                                        "goal", "game",  "played", "in",   "city",  "x9"};
    uint32_t count = 1 + tiny_draw(row, 0, 10);
    *text = '\0';
    for (uint32_t i = 1; i <= count; i++)
        snprintf(text + strlen(text), 400 - strlen(text), "%s%s", i > 1 ? " " : "",
                 words[tiny_draw(row, i, sizeof words / sizeof *words)]);
}

/* Rows with three labels, which the head of tiny-distilbert has too: TSV, or JSONL where the name
 * ends so. */
static inline const char *tiny_rows(const char *folder, const char *name)
{
    static const char *const labels[] = {"business", "science", "sport"};
    const char *path = test_path(folder, name);
    bool jsonl = strstr(name, ".jsonl") != NULL;
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    if (!jsonl) fputs("text\tlabel\n", file);
    for (uint32_t row = 0; row < TINY_ROWS; row++) {
        char text[400];
        tiny_text(row, text);
        fprintf(file, jsonl ? "{\"text\": \"%s\", \"label\": \"%s\"}\n" : "%s\t%s\n", text,
                labels[tiny_draw(row, 100, 3)]);
    }
    assert_int_equal(fclose(file), 0);
    return path;
}

/* Two epochs of four steps, the last one of an epoch on two rows; dropout as in config.json. */
static inline ls_options tiny_options(const char *model, const char *train, const char *output)
{
    ls_options options;
    ls_options_default(&options);
    options.model = tiny_model(model);
    options.train = train;
    options.output = output;
    options.epochs = 2;
    options.batch_size = TINY_BATCH;
    options.learning_rate = 1e-3;
    options.weight_decay = 0.01;
    options.warmup_ratio = 0.1;
    options.threads = 2;
    return options;
}

#endif

/* Short runs of the tiny models on generated texts, shared by the tests of whole runs. */
#ifndef LS_TESTS_TINY_RUNS_H
#define LS_TESTS_TINY_RUNS_H

#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/digest.h"
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

/* `rows` rows with three labels, which the head of tiny-distilbert has too: TSV, or JSONL where the
 * name ends so. */
static inline const char *tiny_file(const char *folder, const char *name, uint32_t rows)
{
    static const char *const labels[] = {"business", "science", "sport"};
    const char *path = test_path(folder, name);
    bool jsonl = strstr(name, ".jsonl") != NULL;
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    if (!jsonl) fputs("text\tlabel\n", file);
    for (uint32_t row = 0; row < rows; row++) {
        char text[400];
        tiny_text(row, text);
        fprintf(file, jsonl ? "{\"text\": \"%s\", \"label\": \"%s\"}\n" : "%s\t%s\n", text,
                labels[tiny_draw(row, 100, 3)]);
    }
    assert_int_equal(fclose(file), 0);
    return path;
}

/* Every text has the same words, so every pass is as long as it was planned for. */
static inline const char *tiny_alike(const char *folder, const char *name, int rows)
{
    const char *path = test_path(folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("text\tlabel\n", file);
    for (int row = 0; row < rows; row++)
        fprintf(file, "the great film\t%s\n", row % 2 ? "sport" : "science");
    assert_int_equal(fclose(file), 0);
    return path;
}

static inline const char *tiny_rows(const char *folder, const char *name)
{
    return tiny_file(folder, name, TINY_ROWS);
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

/* What must be equal however a run is laid out: the weights' hash, and the lines of metrics.jsonl
 * without their times: of each step the loss and the gradient norm, with all their digits. */
typedef struct tiny_outcome {
    char weights[65];
    char moments[65]; /* of optimizer.safetensors after the last step, if that was saved; else "" */
    char metrics[16384];
    ls_train_report report;
} tiny_outcome;

static inline void tiny_read_metrics(const char *output, char *into, size_t bytes)
{
    char line[1024];
    FILE *file = fopen(test_path(output, "metrics.jsonl"), "r");
    assert_non_null(file);
    *into = '\0';
    while (fgets(line, sizeof line, file)) {
        bool step = !strstr(line, "\"evaluation\"");
        char *times = strstr(line, step ? ", \"step_seconds\"" : ", \"seconds\"");
        assert_non_null(strstr(line, "\"loss\": "));
        if (step) assert_non_null(strstr(line, "\"gradient_norm\": "));
        assert_non_null(times);
        size_t after = strcspn(times + 2, ",}") + 2;
        /* What an evaluation counted stands behind its time. */
        if (step)
            *times = '\0';
        else
            memmove(times, times + after, strlen(times + after) + 1);
        assert_true(strlen(into) + strlen(line) + 2 < bytes);
        strcat(strcat(into, line), "\n");
    }
    fclose(file);
}

static inline void tiny_read_moments(const char *output, int64_t step, char into[65])
{
    char name[64];
    ls_error error;
    snprintf(name, sizeof name, "checkpoint-%lld", (long long)step);
    char *checkpoint = strdup(test_path(output, name));
    const char *path = test_path(checkpoint, "optimizer.safetensors");
    if (access(path, R_OK) == 0) assert_ok(ls_file_sha256(path, into, &error), error);
    test_folder_remove(checkpoint); /* the next run is a new one in the same folder */
}

/* Run it into a folder below `folder`. A checkpoint of the last step gives the optimizer state. */
static inline tiny_outcome tiny_run(const ls_options *options, const char *folder)
{
    tiny_outcome result = {0};
    ls_error error;
    ls_options own = *options;
    char *output = strdup(test_path(folder, "output"));
    own.output = output;
    assert_ok(ls_train(&own, NULL, NULL, &result.report, &error), error);
    memcpy(result.weights, result.report.weights_sha256, sizeof result.weights);
    tiny_read_metrics(output, result.metrics, sizeof result.metrics);
    tiny_read_moments(output, own.max_steps, result.moments);
    free(output);
    return result;
}

static inline void tiny_check_same(const tiny_outcome *got, const tiny_outcome *wanted,
                                   const char *what, int64_t value)
{
    if (strcmp(got->metrics, wanted->metrics) != 0)
        fail_msg("%s %lld: the steps differ\n%s\nfrom\n%s", what, (long long)value, got->metrics,
                 wanted->metrics);
    if (strcmp(got->weights, wanted->weights) != 0)
        fail_msg("%s %lld: weights %s, wanted %s", what, (long long)value, got->weights,
                 wanted->weights);
    if (strcmp(got->moments, wanted->moments) != 0)
        fail_msg("%s %lld: optimizer state %s, wanted %s", what, (long long)value, got->moments,
                 wanted->moments);
}

#endif

/* The tiny models' files, changed and written to a folder of their own, and one-step runs on it.
 * With learning rate 0 a run writes the weights that it read. */
#ifndef LS_TESTS_MODEL_VARIANTS_H
#define LS_TESTS_MODEL_VARIANTS_H

#include "tiny_runs.h"

#include <unistd.h>

#include "base/alloc.h"
#include "base/digest.h"
#include "base/files.h"
#include "formats/safetensors.h"

enum { MAX_TENSORS = 64, MAX_ELEMENTS = 8192 };

typedef struct tensor {
    char name[128];
    ls_safetensors_dtype dtype;
    int rank;
    int64_t shape[LS_SAFETENSORS_MAX_RANK];
    int64_t count;
    float *values;
} tensor;

/* A model's files, to be changed and written. */
typedef struct model {
    const char *source; /* name of the tiny model */
    tensor tensors[MAX_TENSORS];
    size_t count;
} model;

static ls_error error;
static char *folder, messages[4096];
static const char *train, *output, *changed;

static inline int variants_setup(void **state)
{
    (void)state;
    folder = test_folder();
    train = strdup(tiny_rows(folder, "train.tsv"));
    output = strdup(test_path(folder, "output"));
    changed = strdup(test_path(folder, "model"));
    return 0;
}

static inline int variants_teardown(void **state)
{
    (void)state;
    free((char *)train);
    free((char *)output);
    free((char *)changed);
    test_folder_remove(folder);
    return 0;
}

/* --- reading, changing and writing models ------------------------------------------------------
 */

static inline tensor *add(model *m, const char *name, int rank, const int64_t *shape)
{
    assert_true(m->count < MAX_TENSORS);
    tensor *t = &m->tensors[m->count++];
    *t = (tensor){.dtype = LS_SAFETENSORS_F32, .rank = rank, .count = 1};
    snprintf(t->name, sizeof t->name, "%s", name);
    for (int i = 0; i < rank; i++)
        t->count *= t->shape[i] = shape[i];
    t->values = calloc((size_t)t->count, sizeof *t->values);
    return t;
}

/* All float tensors of a file. */
static inline model load_file(const char *source, const char *path)
{
    model m = {.source = source};
    ls_safetensors *file;
    assert_ok(ls_safetensors_open(&file, path, &error), error);
    for (size_t i = 0; i < ls_safetensors_count(file); i++) {
        const ls_safetensors_tensor *from = ls_safetensors_at(file, i);
        if (from->dtype != LS_SAFETENSORS_F32) continue;
        tensor *t = add(&m, from->name, from->rank, from->shape);
        assert_ok(ls_safetensors_read_float(file, from, 0, t->count, t->values, &error), error);
    }
    ls_safetensors_free(file);
    return m;
}

static inline model load_model(const char *source)
{
    return load_file(source, test_path(tiny_model(source), "model.safetensors"));
}

static inline void free_model(model *m)
{
    for (size_t i = 0; i < m->count; i++)
        free(m->tensors[i].values);
}

static inline tensor *find(model *m, const char *name)
{
    for (size_t i = 0; i < m->count; i++)
        if (strcmp(m->tensors[i].name, name) == 0) return &m->tensors[i];
    fail_msg("no tensor %s", name);
    return NULL;
}

static inline void take_out(model *m, const char *name)
{
    tensor *t = find(m, name);
    free(t->values);
    *t = m->tensors[--m->count];
}

static inline void put_prefix(model *m, const char *prefix)
{
    for (size_t i = 0; i < m->count; i++) {
        char name[128];
        snprintf(name, sizeof name, "%s", m->tensors[i].name);
        snprintf(m->tensors[i].name, sizeof name, "%s%.100s", prefix, name);
    }
}

/* Every `from` in a tensor's name becomes `to`. */
static inline int rename_all(model *m, const char *from, const char *to)
{
    int renamed = 0;
    for (size_t i = 0; i < m->count; i++) {
        char *at = strstr(m->tensors[i].name, from), rest[128];
        if (!at) continue;
        snprintf(rest, sizeof rest, "%s", at + strlen(from));
        snprintf(at, (size_t)(m->tensors[i].name + sizeof rest - at), "%s%s", to, rest);
        renamed++;
    }
    return renamed;
}

/* Cut to what the dtype holds: the mantissa's lower bits off, and for F16 what is too small. */
static inline float cut(float value, ls_safetensors_dtype dtype)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (dtype == LS_SAFETENSORS_BF16) bits &= 0xffff0000u;
    if (dtype == LS_SAFETENSORS_F16) bits &= 0xffffe000u;
    if (dtype == LS_SAFETENSORS_F16 && (bits >> 23 & 255) < 127 - 14) bits &= 0x80000000u;
    memcpy(&value, &bits, sizeof bits);
    return value;
}

static inline uint16_t half_bits(float value, ls_safetensors_dtype dtype)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (dtype == LS_SAFETENSORS_BF16) return (uint16_t)(bits >> 16);
    uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    return (uint16_t)(magnitude ? sign | ((magnitude >> 13) - ((127 - 15) << 10)) : sign);
}

static inline void write_tensor(ls_safetensors_writer *writer, size_t index, const tensor *t)
{
    uint16_t halves[MAX_ELEMENTS];
    const void *bytes = t->values;
    size_t size = ls_safetensors_dtype_bytes(t->dtype);
    assert_true(t->count <= MAX_ELEMENTS);
    if (size == 2) {
        for (int64_t i = 0; i < t->count; i++)
            halves[i] = half_bits(t->values[i], t->dtype);
        bytes = halves;
    }
    assert_ok(ls_safetensors_writer_write(writer, index, bytes, (size_t)t->count * size, &error),
              error);
}

/* Tensors [begin, end) to a file of the changed folder. */
static inline void write_weights(const model *m, const char *name, size_t begin, size_t end)
{
    ls_safetensors_entry entries[MAX_TENSORS];
    ls_safetensors_writer *writer;
    size_t index;
    for (size_t i = begin; i < end; i++) {
        const tensor *t = &m->tensors[i];
        entries[i - begin] = (ls_safetensors_entry){t->name, t->dtype, t->rank, {0}};
        memcpy(entries[i - begin].shape, t->shape, sizeof t->shape);
    }
    assert_ok(
        ls_safetensors_writer_new(&writer, test_path(changed, name), entries, end - begin, &error),
        error);
    while (ls_safetensors_writer_next(writer, &index))
        write_tensor(writer, index, &m->tensors[begin + index]);
    assert_ok(ls_safetensors_writer_finish(writer, &error), error);
    ls_safetensors_writer_free(writer);
}

/* The changed folder anew, with all but the weights. */
static inline void write_rest(const model *m)
{
    static const char *const names[] = {"config.json", "tokenizer.json", "tokenizer_config.json",
                                        "vocab.txt"};
    static const char *const weights[] = {"model.safetensors", "model.safetensors.index.json"};
    assert_ok(ls_folder_make(changed, &error), error);
    for (int i = 0; i < 2; i++)
        unlink(test_path(changed, weights[i]));
    for (int i = 0; i < 4; i++)
        assert_ok(ls_file_copy(test_path(tiny_model(m->source), names[i]),
                               test_path(changed, names[i]), &error),
                  error);
}

static inline void write_model(const model *m)
{
    write_rest(m);
    write_weights(m, "model.safetensors", 0, m->count);
}

/* In the changed folder's config.json, `from` becomes `to`. */
static inline void change_config(const char *from, const char *to)
{
    char *text, larger[8192];
    size_t bytes;
    const char *path = test_path(changed, "config.json");
    assert_ok(ls_file_read(&text, &bytes, path, 4096, &error), error);
    char *at = strstr(text, from);
    if (!at) fail_msg("config.json has no %s", from);
    int count =
        snprintf(larger, sizeof larger, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    test_write_file(path, larger, (size_t)count);
    ls_free(text);
}

/* --- runs ------------------------------------------------------------------------------------- */

static inline void note_message(void *context, const char *line)
{
    (void)context;
    snprintf(messages + strlen(messages), sizeof messages - strlen(messages), "%s\n", line);
}

/* One step on the changed folder; with learning rate 0 the weights stay as they are. */
static inline ls_status run_folder(const char *path, const char *rows, double learning_rate,
                                   ls_train_report *report)
{
    ls_callbacks callbacks = {.message = note_message};
    ls_options options = tiny_options("tiny-bert", rows, output);
    options.model = path;
    options.max_steps = 1;
    options.learning_rate = learning_rate;
    options.warmup_ratio = 0;
    *messages = '\0';
    error = (ls_error){0};
    return ls_train(&options, &callbacks, NULL, report, &error);
}

/* The trained file has the model's tensors, under the names of the classifier. */
static inline void check_output(const model *m, const char *prefix)
{
    model trained = load_file(m->source, test_path(output, "model.safetensors"));
    for (size_t i = 0; i < m->count; i++) {
        char name[256];
        snprintf(name, sizeof name, "%s%s", prefix, m->tensors[i].name);
        const tensor *t = find(&trained, name);
        assert_int_equal(t->count, m->tensors[i].count);
        for (int64_t e = 0; e < t->count; e++)
            if (t->values[e] != m->tensors[i].values[e])
                fail_msg("%s, element %lld: %g, wanted %g", name, (long long)e,
                         (double)t->values[e], (double)m->tensors[i].values[e]);
    }
    free_model(&trained);
}

static inline void check_run(const model *wanted, const char *prefix)
{
    assert_ok(run_folder(changed, train, 0, NULL), error);
    check_output(wanted, prefix);
}

static inline void check_refused(const char *needle, const char *other)
{
    ls_status status = run_folder(changed, train, 0, NULL);
    bool refused = status == LS_INVALID || status == LS_NOT_FINITE;
    if (!refused || !strstr(error.text, needle) || !strstr(error.text, other))
        fail_msg("wanted '%s' and '%s', got %d: %s", needle, other, status, error.text);
}

#endif

#include "compare/facts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/files.h"
#include "formats/json.h"

enum { LARGEST_RECORD = 16 << 20, LARGEST_METRICS = 1 << 30 };

/* Sums over the steps after the warm-up. */
typedef struct speed_sums {
    double samples, tokens, seconds;
} speed_sums;

/* NaN for what is missing or no number: metrics.jsonl writes "NaN" and "Infinity" as text. */
static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* "a" or "a.b" in run.json's results, else at its root. */
static double find_number(const json_t *root, const char *key)
{
    char outer[64];
    const char *dot = strchr(key, '.');
    const json_t *results = json_object_get(root, "results");
    if (dot) {
        snprintf(outer, sizeof outer, "%.*s", (int)(dot - key), key);
        return number(json_object_get(results, outer), dot + 1);
    }
    double found = number(results, key);
    return isnan(found) ? number(root, key) : found;
}

static ls_status read_parts(ls_run_facts *facts, const json_t *root, ls_error *error)
{
    const json_t *memory = json_object_get(json_object_get(root, "results"), "memory");
    const char *name;
    json_t *bytes;
    json_object_foreach((json_t *)(uintptr_t)memory, name, bytes)
    {
        if (!json_is_number(bytes) || json_number_value(bytes) <= 0) continue;
        LS_TRY(LS_GROW(facts->parts, facts->part_capacity, facts->part_count + 1, "memory parts",
                       error));
        ls_compare_part *part = &facts->parts[facts->part_count++];
        snprintf(part->name, sizeof part->name, "%s", name);
        part->bytes = json_number_value(bytes);
    }
    return LS_OK;
}

static ls_status read_record(ls_run_facts *facts, const char *path, ls_error *error)
{
    json_t *root = NULL;
    LS_TRY(ls_json_load(&root, path, LARGEST_RECORD, error));
    for (int i = 0; i < LS_MEASURE_COUNT; i++)
        if (*ls_measure_table[i].run_key)
            facts->values[i] = find_number(root, ls_measure_table[i].run_key);
    const json_t *hash = json_object_get(json_object_get(root, "results"), "weights_sha256");
    if (!hash) hash = json_object_get(root, "weights_sha256");
    ls_status status = read_parts(facts, root, error);
    if (json_is_string(hash))
        snprintf(facts->weights_sha256, sizeof facts->weights_sha256, "%s",
                 json_string_value(hash));
    else if (status == LS_OK)
        status =
            ls_fail(error, LS_INVALID, "%s: no 'weights_sha256': the run is not complete", path);
    ls_json_free(root);
    return status;
}

static ls_status add_point(ls_compare_point **points, size_t *count, size_t *capacity, double x,
                           double y, ls_error *error)
{
    LS_TRY(LS_GROW(*points, *capacity, *count + 1, "points of a curve", error));
    (*points)[(*count)++] = (ls_compare_point){x, y};
    return LS_OK;
}

static ls_status read_evaluation(ls_run_facts *facts, const json_t *line, const char *name,
                                 ls_error *error)
{
    bool test = strcmp(name, "test") == 0;
    if (!test)
        LS_TRY(add_point(&facts->accuracies, &facts->accuracy_count, &facts->accuracy_capacity,
                         number(line, "step"), number(line, "accuracy"), error));
    if (!test && strcmp(facts->evaluated_on, "test") == 0) return LS_OK;
    facts->evaluated_on = test ? "test" : "validation";
    facts->loss = number(line, "loss");
    facts->accuracy = number(line, "accuracy");
    facts->macro_f1 = number(line, "macro_f1");
    return LS_OK;
}

static ls_status read_step(ls_run_facts *facts, const json_t *line, speed_sums *sums,
                           ls_error *error)
{
    double step = number(line, "step"), seconds = number(line, "step_seconds");
    LS_TRY(add_point(&facts->losses, &facts->loss_count, &facts->loss_capacity, step,
                     number(line, "loss"), error));
    if (strcmp(facts->evaluated_on, "training") == 0) facts->loss = number(line, "loss");
    if (!(step > (double)facts->warm_up)) return LS_OK;
    sums->samples += number(line, "samples");
    sums->tokens += number(line, "tokens");
    sums->seconds += seconds;
    LS_TRY(
        LS_GROW(facts->step_ms, facts->step_capacity, facts->step_count + 1, "step times", error));
    facts->step_ms[facts->step_count++] = 1e3 * seconds;
    return LS_OK;
}

static ls_status read_line(ls_run_facts *facts, const char *text, size_t length, const char *name,
                           speed_sums *sums, ls_error *error)
{
    json_t *line = NULL;
    LS_TRY(ls_json_parse(&line, text, length, name, error));
    const json_t *evaluation = json_object_get(line, "evaluation");
    ls_status status = LS_OK;
    if (json_is_string(evaluation))
        status = read_evaluation(facts, line, json_string_value(evaluation), error);
    else if (json_object_get(line, "step_seconds"))
        status = read_step(facts, line, sums, error);
    ls_json_free(line);
    return status;
}

static ls_status read_metrics(ls_run_facts *facts, const char *path, ls_error *error)
{
    char *bytes = NULL;
    size_t count = 0, number_of_line = 0;
    speed_sums sums = {0};
    LS_TRY(ls_file_read(&bytes, &count, path, LARGEST_METRICS, error));
    ls_status status = LS_OK;
    for (const char *at = bytes; status == LS_OK && at < bytes + count;) {
        char name[1100];
        const char *end = memchr(at, '\n', count - (size_t)(at - bytes));
        if (!end) end = bytes + count;
        snprintf(name, sizeof name, "%.1000s:%zu", path, ++number_of_line);
        if (end > at) status = read_line(facts, at, (size_t)(end - at), name, &sums, error);
        at = end + 1;
    }
    ls_free(bytes);
    if (sums.seconds > 0) {
        facts->values[LS_MEASURE_SAMPLES_PER_SECOND] = sums.samples / sums.seconds;
        facts->values[LS_MEASURE_REAL_TOKENS_PER_SECOND] = sums.tokens / sums.seconds;
    }
    return status;
}

static void copy_text(char *into, size_t bytes, const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    snprintf(into, bytes, "%s", text ? text : "");
}

/* Bytes that ops of all ranks read and wrote, by the time of the steps recorded. */
static double op_bytes_per_second(const json_t *root)
{
    double bytes = 0;
    size_t index;
    const json_t *ops = json_object_get(root, "ops");
    json_t *op;
    json_array_foreach((json_t *)(uintptr_t)ops, index, op) bytes += number(op, "bytes");
    return bytes / number(root, "seconds");
}

static ls_status read_summary(ls_run_facts *facts, const char *path, ls_error *error)
{
    json_t *root = NULL;
    if (!ls_path_exists(path)) return LS_OK;
    LS_TRY(ls_json_load(&root, path, LARGEST_RECORD, error));
    const json_t *bottleneck = json_object_get(root, "bottleneck");
    copy_text(facts->bottleneck, sizeof facts->bottleneck, bottleneck, "text");
    copy_text(facts->advice, sizeof facts->advice, bottleneck, "try");
    facts->peak_flops_per_second = number(root, "peak_flops_per_second");
    facts->values[LS_MEASURE_OP_BYTES_PER_SECOND] = op_bytes_per_second(root);
    ls_json_free(root);
    return LS_OK;
}

/* One of the run's files by its reader. */
static ls_status read_file(ls_run_facts *facts, const char *folder, const char *name,
                           ls_status (*read)(ls_run_facts *, const char *, ls_error *),
                           ls_error *error)
{
    char *path = NULL;
    LS_TRY(ls_path_join(&path, folder, name, error));
    ls_status status = read(facts, path, error);
    ls_free(path);
    return status;
}

ls_status ls_run_facts_read(ls_run_facts *facts, const char *folder, int64_t warm_up,
                            ls_error *error)
{
    *facts = (ls_run_facts){.warm_up = warm_up,
                            .evaluated_on = "training",
                            .loss = NAN,
                            .accuracy = NAN,
                            .macro_f1 = NAN,
                            .peak_flops_per_second = NAN};
    for (int i = 0; i < LS_MEASURE_COUNT; i++)
        facts->values[i] = NAN;
    LS_TRY(read_file(facts, folder, "run.json", read_record, error));
    LS_TRY(read_file(facts, folder, "metrics.jsonl", read_metrics, error));
    return read_file(facts, folder, "profile/summary.json", read_summary, error);
}

void ls_run_facts_deinit(ls_run_facts *facts)
{
    ls_free(facts->step_ms);
    ls_free(facts->losses);
    ls_free(facts->accuracies);
    ls_free(facts->parts);
    *facts = (ls_run_facts){0};
}

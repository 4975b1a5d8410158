/* trainer.json: where a run stood, and everything that decided its numbers. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/training_run.h"
#include "base/alloc.h"
#include "base/numbers.h"
#include "base/text.h"
#include "formats/json.h"

/* Settings that change numbers, beyond what the run finds in its files. */
static const char *const settings[] = {
    "seed",         "batch-size",    "leaf-size",         "max-length",         "learning-rate",
    "weight-decay", "adam-beta1",    "adam-beta2",        "adam-epsilon",       "weight-decay-all",
    "optimizer",    "max-grad-norm", "lr-scheduler-type", "lr-scheduler-steps", "warmup-steps",
    "warmup-type",  "warmup-min-lr", "warmup-min-ratio",  "cosine-min-ratio",   NULL};

/* Those that only say where it ran. */
static const char *const layout[] = {
    "strategy", "recompute",        "offload-optimizer", "offload-parameters", "devices",
    "threads",  "samples-per-pass", "bucket-size",       "device-memory",      NULL};

static ls_status set(json_t *object, const char *key, json_t *value, ls_error *error)
{
    if (json_object_set_new(object, key, value) == 0) return LS_OK;
    return ls_fail(error, LS_NO_MEMORY, "out of memory: " LS_CHECKPOINT_TRAINER);
}

static ls_status set_integer(json_t *object, const char *key, int64_t value, ls_error *error)
{
    return set(object, key, json_integer(value), error);
}

static ls_status set_number(json_t *object, const char *key, double value, ls_error *error)
{
    char digits[LS_NUMBER_BYTES];
    return set(object, key, json_string(ls_number_print(digits, value)), error);
}

/* Every value as text: numbers with all their digits, in one form. */
static ls_status set_settings(json_t *object, const ls_options *options, const char *const *names,
                              ls_error *error)
{
    char key[64], buffer[64];
    for (; *names; names++) {
        const char *value = ls_options_get(options, *names, buffer);
        size_t length = strlen(*names);
        for (size_t i = 0; i <= length && i < sizeof key; i++)
            key[i] = (*names)[i] == '-' ? '_' : (*names)[i];
        LS_TRY(set(object, key, value ? json_string(value) : json_null(), error));
    }
    return LS_OK;
}

static ls_status set_model(json_t *object, const ls_model_config *config, ls_error *error)
{
    LS_TRY(set(object, "model_type", json_string(config->family_name), error));
    LS_TRY(set_integer(object, "vocab_size", config->vocab_size, error));
    LS_TRY(set_integer(object, "hidden_size", config->hidden_size, error));
    LS_TRY(set_integer(object, "layers", config->layers, error));
    LS_TRY(set_integer(object, "heads", config->heads, error));
    LS_TRY(set_integer(object, "intermediate_size", config->intermediate_size, error));
    LS_TRY(set_integer(object, "max_positions", config->max_positions, error));
    LS_TRY(set_integer(object, "type_vocab_size", config->type_vocab_size, error));
    LS_TRY(set(object, "activation", json_string(ls_activation_name(config->activation)), error));
    LS_TRY(set_number(object, "layer_norm_epsilon", config->layer_norm_epsilon, error));
    LS_TRY(set_number(object, "hidden_dropout", config->hidden_dropout, error));
    LS_TRY(set_number(object, "attention_dropout", config->attention_dropout, error));
    return set_number(object, "classifier_dropout", config->classifier_dropout, error);
}

static ls_status set_data(json_t *object, const ls_training_run *run, ls_error *error)
{
    char digest[LS_DIGEST_CHARACTERS];
    json_t *labels = json_array();
    LS_TRY(set(object, "labels", labels, error));
    for (int i = 0; i < ls_labels_count(run->session.labels); i++)
        if (json_array_append_new(labels, json_string(ls_labels_name(run->session.labels, i))) != 0)
            return ls_fail(error, LS_NO_MEMORY, "out of memory: " LS_CHECKPOINT_TRAINER);
    LS_TRY(set_integer(object, "train_rows", ls_dataset_count(run->train), error));
    ls_dataset_digest(run->train, digest);
    LS_TRY(set(object, "train_digest", json_string(digest), error));
    if (!run->validation) return set(object, "validation_digest", json_null(), error);
    ls_dataset_digest(run->validation, digest);
    return set(object, "validation_digest", json_string(digest), error);
}

/* What must be the same for the numbers to go on as they would have. */
static ls_status set_same(json_t *object, const ls_training_run *run, ls_error *error)
{
    LS_TRY(set_settings(object, &run->used, settings, error));
    LS_TRY(set_integer(object, "total_steps", run->total_steps, error));
    LS_TRY(set_data(object, run, error));
    return set_model(object, &run->session.folder.config, error);
}

static ls_status set_schedule(json_t *object, const ls_training_run *run, ls_error *error)
{
    LS_TRY(set(object, "type", json_string(run->used.lr_scheduler_type), error));
    LS_TRY(set(object, "peak", json_real(run->used.learning_rate), error));
    LS_TRY(set_integer(object, "warmup_steps", run->used.warmup_steps, error));
    return set_integer(object, "total_steps", run->total_steps, error);
}

static ls_status set_best(json_t *object, const ls_training_run *run, ls_error *error)
{
    const ls_best *best = &run->checkpoints.best;
    LS_TRY(set(object, "metric", json_string(run->used.keep_best), error));
    LS_TRY(set(object, "value", json_real(best->value), error));
    LS_TRY(set_integer(object, "step", best->step, error));
    char text[64];
    const char *name = ls_checkpoints_best_name(run, text);
    return set(object, "checkpoint", name ? json_string(name) : json_null(), error);
}

/* Samples of the steps so far: the last batch of an epoch may be short. */
static int64_t consumed(const ls_training_run *run, int64_t step)
{
    int64_t rows = ls_dataset_count(run->train);
    int64_t inside = step % run->steps_per_epoch * run->used.batch_size;
    return step / run->steps_per_epoch * rows + (inside < rows ? inside : rows);
}

static ls_status set_position(json_t *object, const ls_training_run *run, ls_error *error)
{
    int64_t step = run->report.steps;
    LS_TRY(set_integer(object, "format_version", LS_TRAINER_VERSION, error));
    LS_TRY(set(object, "version", json_string(ls_version()), error));
    LS_TRY(set_integer(object, "step", step, error));
    LS_TRY(set_integer(object, "epoch", step / run->steps_per_epoch, error));
    LS_TRY(set_integer(object, "step_of_epoch", step % run->steps_per_epoch, error));
    LS_TRY(set_integer(object, "steps_per_epoch", run->steps_per_epoch, error));
    LS_TRY(set_integer(object, "total_steps", run->total_steps, error));
    LS_TRY(set_integer(object, "samples_consumed", consumed(run, step), error));
    LS_TRY(set_integer(object, "tokens_consumed", run->monitor.tokens, error));
    LS_TRY(set_integer(object, "skipped_steps", run->report.skipped_steps, error));
    LS_TRY(set(object, "seed", json_integer((json_int_t)run->used.seed), error));
    LS_TRY(set(object, "validation_done",
               json_boolean(!run->validation || run->checkpoints.evaluated == step), error));
    return set(object, "seconds", json_real(ls_training_run_seconds(run)), error);
}

ls_status ls_trainer_record_print(const ls_training_run *run, char **text, size_t *length,
                                  ls_error *error)
{
    json_t *document = NULL, *child;
    ls_text printed = {0};
    ls_status status;
    LS_TRY(ls_json_new_object(&document, error));
    LS_TRY_GOTO(status, set_position(document, run, error), done);
    child = json_object();
    LS_TRY_GOTO(status, set(document, "schedule", child, error), done);
    LS_TRY_GOTO(status, set_schedule(child, run, error), done);
    child = run->checkpoints.best.step >= 0 ? json_object() : json_null();
    LS_TRY_GOTO(status, set(document, "best", child, error), done);
    if (run->checkpoints.best.step >= 0) LS_TRY_GOTO(status, set_best(child, run, error), done);
    child = json_object();
    LS_TRY_GOTO(status, set(document, "same", child, error), done);
    LS_TRY_GOTO(status, set_same(child, run, error), done);
    child = json_object();
    LS_TRY_GOTO(status, set(document, "layout", child, error), done);
    LS_TRY_GOTO(status, set_settings(child, &run->used, layout, error), done);
    LS_TRY_GOTO(status, set_integer(child, "ranks", ls_session_ranks(&run->session), error), done);
    LS_TRY_GOTO(status, ls_json_print(document, &printed, error), done);
    *text = printed.data;
    *length = printed.length;
    printed = (ls_text){0};
done:
    ls_json_free(document);
    ls_text_deinit(&printed);
    return status;
}

/* --- comparing ------------------------------------------------------------------------------- */

static ls_status print_short(ls_text *text, const json_t *value, ls_error *error)
{
    if (!value || json_is_null(value)) return ls_text_print(text, error, "nothing");
    if (json_is_string(value)) return ls_text_print(text, error, "%.60s", json_string_value(value));
    if (json_is_integer(value))
        return ls_text_print(text, error, "%" PRId64, (int64_t)json_integer_value(value));
    return ls_text_print(text, error, "another list (%zu)", json_array_size(value));
}

static ls_status list_differences(const json_t *there, const json_t *here, ls_text *list,
                                  ls_error *error)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)here, key, value)
    {
        const json_t *other = json_object_get(there, key);
        if (json_equal(value, other)) continue;
        LS_TRY(ls_text_print(list, error, "%s%s is ", list->length ? "; " : "", key));
        LS_TRY(print_short(list, other, error));
        LS_TRY(ls_text_print(list, error, " there and "));
        LS_TRY(print_short(list, value, error));
        LS_TRY(ls_text_print(list, error, " here"));
    }
    return LS_OK;
}

ls_status ls_trainer_record_match(const ls_training_run *run, const json_t *document,
                                  const char *path, ls_error *error)
{
    json_t *here = NULL;
    ls_json_view root, there;
    ls_text list = {0};
    ls_status status;
    LS_TRY(ls_json_new_object(&here, error));
    LS_TRY_GOTO(status, ls_json_view_init(&root, document, path, error), done);
    LS_TRY_GOTO(status, ls_json_get_object(&root, "same", LS_JSON_REQUIRED, &there, error), done);
    LS_TRY_GOTO(status, set_same(here, run, error), done);
    LS_TRY_GOTO(status, list_differences(there.object, here, &list, error), done);
    if (list.length)
        status = ls_fail(error, LS_USAGE,
                         "%s: the run cannot go on with other numbers: %s. Use the same, or "
                         "--resume-weights-only for a new run that starts from this model",
                         path, list.data);
done:
    ls_json_free(here);
    ls_text_deinit(&list);
    return status;
}

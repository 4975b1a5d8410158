/* api/deepspeed: what a DeepSpeed file becomes as settings, and what it may not contradict. */
#include "testing.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/settings.h"
#include "base/alloc.h"

static ls_error error;
static char *folder;

typedef struct merged {
    ls_options options;
    ls_sources *sources;
    ls_deepspeed *file;
} merged;

/* `flags`: "--name value" pairs, in pairs of words, as given on the command line. */
static ls_status merge_into(merged *m, const char *text, const char *const *flags)
{
    const char *path = test_path(folder, "ds.json");
    test_write_file(path, text, strlen(text));
    *m = (merged){0};
    ls_options_default(&m->options);
    LS_TRY(ls_sources_new(&m->sources, &error));
    for (; flags && flags[0]; flags += 2) {
        assert_ok(ls_options_set(&m->options, flags[0], flags[1], &error), error);
        assert_ok(ls_sources_set(m->sources, flags[0], "command line", &error), error);
    }
    LS_TRY(ls_deepspeed_open(&m->file, path, &error));
    return ls_deepspeed_apply(m->file, &m->options, m->sources, &error);
}
#define FLAGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void close_merged(merged *m)
{
    ls_sources_free(m->sources);
    ls_deepspeed_free(m->file);
}

static void has(const merged *m, const char *setting, const char *value, const char *from)
{
    char buffer[64];
    const char *is = ls_options_get(&m->options, setting, buffer);
    const char *source = ls_sources_get(m->sources, &m->options, setting);
    if (!is || strcmp(is, value) != 0) fail_msg("%s is %s, not %s", setting, is, value);
    if (!strstr(source, from)) fail_msg("%s comes from '%s', not '%s'", setting, source, from);
}

static void refused(const char *text, const char *const *flags, ls_status code,
                    const char *const *says)
{
    merged m;
    ls_status status = merge_into(&m, text, flags);
    if (status != code) fail_msg("%s: %d instead of %d: %s", text, status, code, error.text);
    for (; *says; says++)
        if (!strstr(error.text, *says)) fail_msg("'%s' is not in '%s'", *says, error.text);
    close_merged(&m);
}
#define REFUSED(text, flags, code, ...)                                                            \
    refused(text, flags, code, (const char *const[]){__VA_ARGS__, NULL})

static bool notes_say(const merged *m, const char *text)
{
    for (size_t i = 0; ls_deepspeed_note(m->file, i); i++)
        if (strstr(ls_deepspeed_note(m->file, i), text)) return true;
    return false;
}

/* --- the batch rule -------------------------------------------------------------------------- */

static const struct {
    int batch, micro, passes, devices;     /* 0: not in the file */
    int want_batch, want_micro, want_leaf; /* 0: refused */
} triangles[] = {
    {64, 8, 4, 2, 64, 8, 4}, {64, 8, 0, 2, 64, 8, 4},   {64, 0, 4, 2, 64, 8, 4},
    {0, 8, 4, 2, 64, 8, 4},  {64, 0, 0, 2, 64, 32, 4},  {0, 6, 0, 3, 18, 6, 2},
    {0, 3, 2, 1, 6, 3, 1},   {96, 12, 8, 1, 96, 12, 4}, {0, 0, 2, 1, 32, 16, 4},
    {64, 8, 4, 3, 0, 0, 0},  {10, 3, 0, 1, 0, 0, 0},    {256, 2, 18, 7, 0, 0, 0},
    {10, 0, 0, 3, 0, 0, 0},  {10, 0, 4, 1, 0, 0, 0},    {1, 0, 0, 2, 0, 0, 0},
};

static void two_of_three_give_the_third(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof triangles / sizeof *triangles; i++) {
        static const char *const keys[] = {"train_batch_size", "train_micro_batch_size_per_gpu",
                                           "gradient_accumulation_steps"};
        int numbers[] = {triangles[i].batch, triangles[i].micro, triangles[i].passes};
        char text[300] = "{", digits[16], value[16];
        for (int k = 0; k < 3; k++) {
            size_t used = strlen(text);
            if (numbers[k])
                snprintf(text + used, sizeof text - used, "%s\"%s\": %d", used > 1 ? ", " : "",
                         keys[k], numbers[k]);
        }
        strncat(text, "}", sizeof text - strlen(text) - 1);
        snprintf(digits, sizeof digits, "%d", triangles[i].devices);
        if (triangles[i].want_batch == 0) {
            REFUSED(text, FLAGS("devices", digits), LS_USAGE, "train_batch_size", "nearest");
            continue;
        }
        merged m;
        assert_ok(merge_into(&m, text, FLAGS("devices", digits)), error);
        snprintf(value, sizeof value, "%d", triangles[i].want_batch);
        has(&m, "batch-size", value, numbers[1] || numbers[0] ? "ds.json: " : "ds.json");
        snprintf(value, sizeof value, "%d", triangles[i].want_micro);
        has(&m, "samples-per-pass", value, "ds.json: ");
        snprintf(value, sizeof value, "%d", triangles[i].want_leaf);
        has(&m, "leaf-size", value, "divides the micro batch");
        assert_true(notes_say(&m, "leaves of"));
        close_merged(&m);
    }
}

static void a_wrong_triangle_shows_its_numbers_and_near_ones(void **state)
{
    (void)state;
    REFUSED("{\"train_batch_size\": 256, \"train_micro_batch_size_per_gpu\": 2,"
            " \"gradient_accumulation_steps\": 18}",
            FLAGS("devices", "7"), LS_USAGE, "train_batch_size 256",
            "train_micro_batch_size_per_gpu 2", "gradient_accumulation_steps 18", "7 devices",
            "252 = 2 x 18 x 7");
    /* A number of the command line is named as its flag. */
    REFUSED("{\"train_micro_batch_size_per_gpu\": 5}", FLAGS("batch-size", "32"), LS_USAGE,
            "train_batch_size 32", "--batch-size given", "30 = 5 x 6 x 1", "35 = 5 x 7 x 1");
}

static void the_command_line_counts_where_the_file_is_silent(void **state)
{
    (void)state;
    merged m;
    assert_ok(merge_into(&m,
                         "{\"train_batch_size\": \"auto\", \"gradient_accumulation_steps\": 4,"
                         " \"train_micro_batch_size_per_gpu\": \"auto\"}",
                         FLAGS("batch-size", "16", "leaf-size", "2")),
              error);
    has(&m, "batch-size", "16", "command line");
    has(&m, "samples-per-pass", "4", "ds.json");
    has(&m, "leaf-size", "2", "command line");
    close_merged(&m);
    /* All "auto": nothing changes. */
    assert_ok(
        merge_into(&m,
                   "{\"train_batch_size\": \"auto\", \"gradient_accumulation_steps\": \"auto\","
                   " \"train_micro_batch_size_per_gpu\": \"auto\"}",
                   NULL),
        error);
    has(&m, "batch-size", "32", "train_batch_size is auto: default");
    has(&m, "samples-per-pass", "auto", "is auto");
    has(&m, "leaf-size", "4", "default");
    close_merged(&m);
    assert_ok(merge_into(&m, "{\"train_batch_size\": 32}", FLAGS("samples-per-pass", "5")), error);
    has(&m, "samples-per-pass", "5", "command line");
    close_merged(&m);
}

/* --- the rest -------------------------------------------------------------------------------- */

static const char full[] =
    "{\"optimizer\": {\"type\": \"adam\", \"params\": {\"lr\": 3e-4, \"betas\": [0.8, 0.95],"
    " \"eps\": 1e-6, \"weight_decay\": 0.01}},"
    " \"scheduler\": {\"type\": \"WarmupCosineLR\", \"params\": {\"warmup_num_steps\": 7,"
    " \"warmup_type\": \"linear\", \"total_num_steps\": 100, \"cos_min_ratio\": 0.01,"
    " \"warmup_min_ratio\": 0.2}},"
    " \"gradient_clipping\": 0.25, \"steps_per_print\": 10,"
    " \"zero_optimization\": {\"stage\": 0, \"reduce_bucket_size\": 2e6, \"sub_group_size\": 1e9}}";

static void each_key_sets_its_setting(void **state)
{
    (void)state;
    merged m;
    assert_ok(merge_into(&m, full, NULL), error);
    has(&m, "optimizer", "adamw", "optimizer.type");
    has(&m, "learning-rate", "0.0003", "optimizer.params.lr");
    has(&m, "adam-beta1", "0.8", "optimizer.params.betas");
    has(&m, "adam-beta2", "0.95", "optimizer.params.betas");
    has(&m, "adam-epsilon", "1e-06", "optimizer.params.eps");
    has(&m, "weight-decay", "0.01", "optimizer.params.weight_decay");
    has(&m, "weight-decay-all", "true", "all parameters decay");
    has(&m, "lr-scheduler-type", "warmup_cosine", "scheduler.type");
    has(&m, "lr-scheduler-steps", "100", "total_num_steps");
    has(&m, "warmup-steps", "7", "warmup_num_steps");
    has(&m, "warmup-type", "linear", "warmup_type");
    has(&m, "warmup-min-ratio", "0.2", "warmup_min_ratio");
    has(&m, "cosine-min-ratio", "0.01", "cos_min_ratio");
    has(&m, "max-grad-norm", "0.25", "gradient_clipping");
    has(&m, "log-every", "10", "steps_per_print");
    has(&m, "strategy", "ddp", "zero_optimization.stage");
    has(&m, "bucket-size", "8000000", "reduce_bucket_size");
    has(&m, "batch-size", "32", "default");
    assert_true(notes_say(&m, "keys without effect here: zero_optimization.sub_group_size"));
    assert_true(notes_say(&m, "clipped to norm 0.25"));
    close_merged(&m);
}

static void adam_is_adamw_unless_told_otherwise(void **state)
{
    (void)state;
    static const struct {
        const char *type, *mode, *want;
    } cases[] = {
        {"Adam", "", "adamw"},
        {"Adam", "\"adam_w_mode\": true", "adamw"},
        {"Adam", "\"adam_w_mode\": false", "adam"},
        {"AdamW", "", "adamw"},
        {"AdamW", "\"adam_w_mode\": false", "adamw"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[200];
        merged m;
        snprintf(text, sizeof text, "{\"optimizer\": {\"type\": \"%s\", \"params\": {%s}}}",
                 cases[i].type, cases[i].mode);
        assert_ok(merge_into(&m, text, NULL), error);
        has(&m, "optimizer", cases[i].want, "ds.json: optimizer");
        assert_true(notes_say(&m, "has no effect with the type AdamW") == (i == 4));
        close_merged(&m);
    }
}

static void auto_takes_what_is_there(void **state)
{
    (void)state;
    static const char text[] =
        "{\"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": \"auto\", \"betas\": \"auto\","
        " \"eps\": \"auto\", \"weight_decay\": \"auto\"}},"
        " \"scheduler\": {\"type\": \"WarmupDecayLR\", \"params\": {\"warmup_min_lr\": \"auto\","
        " \"warmup_max_lr\": \"auto\", \"warmup_num_steps\": \"auto\","
        " \"total_num_steps\": \"auto\"}}, \"gradient_clipping\": \"auto\","
        " \"zero_optimization\": {\"reduce_bucket_size\": \"auto\"}, \"fp16\": {\"enabled\": "
        "\"auto\"}}";
    merged m;
    assert_ok(merge_into(&m, text,
                         FLAGS("learning-rate", "0.001", "warmup-ratio", "0.1", "max-grad-norm",
                               "2", "model", LS_TEST_SOURCE "/tests/data/tiny-bert")),
              error);
    has(&m, "learning-rate", "0.001", "command line");
    has(&m, "warmup-ratio", "0.1", "command line");
    has(&m, "max-grad-norm", "2", "command line");
    has(&m, "adam-beta1", "0.9", "betas is auto: default");
    has(&m, "adam-beta2", "0.999", "betas is auto: default");
    has(&m, "weight-decay", "0", "weight_decay is auto: default");
    has(&m, "warmup-steps", "0", "warmup_num_steps is auto: default");
    has(&m, "lr-scheduler-type", "warmup_decay", "scheduler.type");
    /* Four bytes for each of hidden size squared, as Transformers takes elements. */
    has(&m, "bucket-size", "5184", "from the model's hidden size 36");
    close_merged(&m);
}

static void contradictions_are_told_together(void **state)
{
    (void)state;
    REFUSED(full, FLAGS("learning-rate", "0.001", "adam-beta2", "0.99", "epochs", "2"), LS_USAGE,
            "--learning-rate 0.001 (command line) and 'optimizer.params.lr' 0.0003",
            "--adam-beta2 0.99 (command line) and 'optimizer.params.betas' 0.95", "\"auto\"");
    REFUSED(full, FLAGS("warmup-ratio", "0.1"), LS_USAGE,
            "--warmup-ratio 0.1 (command line) and 'scheduler.params.warmup_num_steps' 7");
    REFUSED("{\"train_micro_batch_size_per_gpu\": 8}", FLAGS("samples-per-pass", "all"), LS_USAGE,
            "--samples-per-pass all (command line) and 'train_micro_batch_size_per_gpu' 8");
    /* Without sources what differs from the default was meant. */
    merged m;
    const char *path = test_path(folder, "ds.json");
    test_write_file(path, full, sizeof full - 1);
    m = (merged){0};
    ls_options_default(&m.options);
    m.options.learning_rate = 1;
    assert_ok(ls_deepspeed_open(&m.file, path, &error), error);
    assert_int_equal(ls_deepspeed_apply(m.file, &m.options, NULL, &error), LS_USAGE);
    assert_non_null(strstr(error.text, "--learning-rate 1 (program)"));
    assert_int_equal(m.options.warmup_steps, 0); /* a refused file changes nothing */
    m.options.learning_rate = 5e-5;
    assert_ok(ls_deepspeed_apply(m.file, &m.options, NULL, &error), error);
    assert_true(m.options.learning_rate == 3e-4);
    close_merged(&m);
}

static void agreement_is_none(void **state)
{
    (void)state;
    merged m;
    assert_ok(
        merge_into(&m, full,
                   FLAGS("learning-rate", "3e-4", "strategy", "single", "max-grad-norm", "0.25")),
        error);
    has(&m, "learning-rate", "0.0003", "command line");
    has(&m, "strategy", "single", "command line");
    close_merged(&m);
}

static void a_schedule_has_the_defaults_it_has_there(void **state)
{
    (void)state;
    merged m;
    assert_ok(merge_into(&m, "{\"scheduler\": {\"type\": \"WarmupLR\"}}", NULL), error);
    has(&m, "warmup-steps", "1000", "DeepSpeed's default");
    has(&m, "warmup-type", "log", "default");
    close_merged(&m);
    /* The schedule's rate stands in place of the optimizer's, and that is said. */
    assert_ok(merge_into(&m,
                         "{\"optimizer\": {\"type\": \"Adam\", \"params\": {\"lr\": 1e-5}},"
                         " \"scheduler\": {\"type\": \"WarmupLR\", \"params\":"
                         " {\"warmup_max_lr\": 1e-3, \"warmup_num_steps\": 5}}}",
                         NULL),
              error);
    has(&m, "learning-rate", "0.001", "warmup_max_lr");
    assert_true(notes_say(&m, "stands in place of 'optimizer.params.lr' 1e-05"));
    close_merged(&m);
}

static void stages_are_strategies(void **state)
{
    (void)state;
    merged m;
    assert_ok(merge_into(&m, "{}", FLAGS("devices", "2")), error);
    has(&m, "strategy", "ddp", "no zero_optimization.stage");
    close_merged(&m);
    assert_ok(merge_into(&m, "{\"zero_optimization\": {\"stage\": 0}}", NULL), error);
    has(&m, "strategy", "ddp", "zero_optimization.stage");
    close_merged(&m);
    static const char *const strategies[] = {"zero1", "zero2", "zero3"};
    for (int stage = 1; stage <= 3; stage++) {
        char text[200];
        snprintf(text, sizeof text,
                 "{\"zero_optimization\": {\"stage\": %d, \"cpu_offload\": true,"
                 " \"stage3_prefetch_bucket_size\": 5e7}}",
                 stage);
        assert_ok(merge_into(&m, text, FLAGS("devices", "2")), error);
        has(&m, "strategy", strategies[stage - 1], "zero_optimization.stage");
        has(&m, "offload-optimizer", "host", "zero_optimization.cpu_offload");
        assert_true(notes_say(&m, "'zero_optimization.cpu_offload' is an old name"));
        close_merged(&m);
    }
    /* What is behind a + is beside the stage. */
    assert_ok(merge_into(&m, "{\"zero_optimization\": {\"stage\": 2}}",
                         FLAGS("strategy", "zero2+recompute")),
              error);
    has(&m, "strategy", "zero2+recompute", "command line");
    close_merged(&m);
    REFUSED("{\"zero_optimization\": {\"stage\": 2}}", FLAGS("strategy", "ddp"), LS_USAGE,
            "--strategy ddp (command line) and 'zero_optimization.stage' zero2");
    /* Stage 3 has the defaults that it has there. */
    assert_ok(merge_into(&m, "{\"zero_optimization\": {\"stage\": 3}}", FLAGS("devices", "2")),
              error);
    has(&m, "prefetch-bucket-size", "50000000", "DeepSpeed's default");
    has(&m, "persistence-threshold", "100000", "DeepSpeed's default");
    close_merged(&m);
    assert_ok(merge_into(&m,
                         "{\"zero_optimization\": {\"stage\": 3,"
                         " \"stage3_prefetch_bucket_size\": 4e6,"
                         " \"stage3_param_persistence_threshold\": 0}}",
                         FLAGS("devices", "2")),
              error);
    has(&m, "prefetch-bucket-size", "4000000", "zero_optimization.stage3_prefetch_bucket_size");
    has(&m, "persistence-threshold", "0", "zero_optimization.stage3_param_persistence_threshold");
    close_merged(&m);
    assert_ok(merge_into(&m, "{\"zero_optimization\": {\"stage\": 2}}", FLAGS("devices", "2")),
              error);
    has(&m, "prefetch-bucket-size", "-1", "default");
    close_merged(&m);
    /* What a setting refuses is said with the key that asked for it. */
    REFUSED("{\"optimizer\": {\"type\": \"Adam\", \"params\": {\"betas\": [0.9, 1.0]}}}", NULL,
            LS_USAGE, "'optimizer.params.betas'", "--adam-beta2", "below 1");
}

static void the_listing_has_everything(void **state)
{
    (void)state;
    merged m;
    char *text;
    assert_ok(merge_into(&m, full, FLAGS("devices", "2", "model", "a\xff model")), error);
    assert_ok(ls_config_text(&m.options, m.sources, m.file, false, &text, &error), error);
    assert_non_null(strstr(text, "zero_optimization.sub_group_size"));
    assert_non_null(strstr(text, "no effect here: updates go block by block"));
    assert_non_null(strstr(text, "command line"));
    ls_text_free(text);
    assert_ok(ls_config_text(&m.options, m.sources, m.file, true, &text, &error), error);
    assert_non_null(strstr(text, "\"learning_rate\": {\"value\": 0.0003, \"from\": "));
    assert_non_null(strstr(text, "\"a? model\""));
    assert_non_null(strstr(text, "\"key\": \"gradient_clipping\", \"value\": \"0.25\", "
                                 "\"sets\": \"max-grad-norm\""));
    ls_text_free(text);
    close_merged(&m);
}

static int fail_in_turn(void *context, size_t bytes)
{
    (void)bytes;
    return (*(long *)context)-- == 0;
}

static ls_status merge_and_list(merged *m)
{
    char *text = NULL;
    LS_TRY(merge_into(m, full, FLAGS("model", LS_TEST_SOURCE "/tests/data/tiny-bert")));
    ls_status status = ls_config_text(&m->options, m->sources, m->file, true, &text, &error);
    ls_text_free(text);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    ls_status status = LS_NO_MEMORY;
    long turn = 0;
    for (; status != LS_OK; turn++) {
        long left = turn;
        merged m;
        size_t before = ls_allocated_bytes();
        ls_set_allocation_hook(fail_in_turn, &left);
        status = merge_and_list(&m);
        ls_set_allocation_hook(NULL, NULL);
        close_merged(&m);
        assert_int_equal(ls_allocated_bytes(), before);
        if (status != LS_OK && status != LS_NO_MEMORY) fail_msg("%ld: %s", turn, error.text);
        assert_true(turn < 5000);
    }
    assert_true(turn > 50);
}

static int make_folder(void **state)
{
    (void)state;
    folder = test_folder();
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    test_folder_remove(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_of_three_give_the_third),
        cmocka_unit_test(a_wrong_triangle_shows_its_numbers_and_near_ones),
        cmocka_unit_test(the_command_line_counts_where_the_file_is_silent),
        cmocka_unit_test(each_key_sets_its_setting),
        cmocka_unit_test(adam_is_adamw_unless_told_otherwise),
        cmocka_unit_test(auto_takes_what_is_there),
        cmocka_unit_test(contradictions_are_told_together),
        cmocka_unit_test(agreement_is_none),
        cmocka_unit_test(a_schedule_has_the_defaults_it_has_there),
        cmocka_unit_test(stages_are_strategies),
        cmocka_unit_test(the_listing_has_everything),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("deepspeed", tests, make_folder, remove_folder);
}

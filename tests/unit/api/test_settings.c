/* Settings by name: what a command line or a configuration may say, and what is refused. */
#include "testing.h"

#include <string.h>

#include "api/settings.h"
#include "api/strategy.h"
#include "base/alloc.h"

static ls_options fresh(void)
{
    ls_options options;
    ls_options_default(&options);
    return options;
}

static void defaults_are_those_of_the_trainer(void **state)
{
    (void)state;
    ls_options options = fresh();
    assert_null(options.model);
    assert_true(options.epochs == 3 && options.max_steps == -1);
    assert_int_equal(options.batch_size, 32);
    assert_int_equal(options.leaf_size, 4);
    assert_int_equal(options.samples_per_pass, LS_SAMPLES_AUTO);
    assert_int_equal(options.max_length, 0);
    assert_int_equal(options.seed, 42);
    assert_true(options.learning_rate == 5e-5 && options.weight_decay == 0);
    assert_true(options.adam_beta1 == 0.9 && options.adam_beta2 == 0.999);
    assert_true(options.adam_epsilon == 1e-8 && options.max_grad_norm == 1);
    assert_string_equal(options.lr_scheduler_type, "linear");
    assert_string_equal(options.strategy, "single");
    assert_true(options.warmup_steps == 0 && options.warmup_ratio == 0);
    assert_true(options.devices == 1 && options.threads == 0 && options.device_memory == 0);
    assert_false(options.weight_decay_all || options.skip_bad_rows || options.print_program);
}

/* The table says the same default in its help as the struct has, for every row. */
static void every_setting_prints_and_reads_back(void **state)
{
    (void)state;
    ls_error error;
    char text[64], fallback[64];
    ls_options options = fresh(), copy = fresh();
    for (const ls_setting *setting = ls_settings(); setting->name; setting++) {
        const char *value = ls_options_get(&options, setting->name, text);
        if (!*setting->fallback) {
            assert_null(value);
            continue;
        }
        if (setting->kind == LS_SETTING_BYTES) {
            /* The help may write them with a unit. */
            assert_ok(ls_options_set(&copy, setting->name, setting->fallback, &error), error);
            assert_string_equal(ls_options_get(&copy, setting->name, fallback), value);
        } else {
            assert_string_equal(value, setting->fallback);
        }
        if (setting->kind != LS_SETTING_TEXT)
            assert_ok(ls_options_set(&copy, setting->name, value, &error), error);
        assert_int_equal(ls_setting_find(setting->name), setting - ls_settings());
    }
    assert_memory_equal(&copy, &options, sizeof options);
}

static void names_take_underscores(void **state)
{
    (void)state;
    ls_error error;
    ls_options options = fresh();
    assert_ok(ls_options_set(&options, "learning_rate", "1e-3", &error), error);
    assert_ok(ls_options_set(&options, "max-grad_norm", "0.5", &error), error);
    assert_true(options.learning_rate == 1e-3 && options.max_grad_norm == 0.5);
}

static void an_unknown_name_gets_the_nearest(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"lerning-rate", "--learning-rate"},
                                           {"batchsize", "--batch-size"},
                                           {"warmup_step", "--warmup-steps"},
                                           {"lr-scheduler", "--lr-scheduler-type"},
                                           {"text-colum", "--text-column"}};
    ls_error error;
    ls_options options = fresh();
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        assert_int_equal(ls_options_set(&options, pairs[i][0], "1", &error), LS_USAGE);
        assert_non_null(strstr(error.text, pairs[i][0]));
        assert_non_null(strstr(error.text, pairs[i][1]));
    }
    char longest[2000];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(ls_options_set(&options, longest, "1", &error), LS_USAGE);
    assert_int_equal(ls_options_set(&options, "", "1", &error), LS_USAGE);
}

static void values_out_of_range_are_refused(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"epochs", "0"},
        {"epochs", "-1"},
        {"epochs", "many"},
        {"epochs", "nan"},
        {"epochs", "1e999"},
        {"max-steps", "-2"},
        {"max-steps", "1.5"},
        {"batch-size", "0"},
        {"batch-size", ""},
        {"batch-size", "4x"},
        {"batch-size", " 4"},
        {"batch-size", "0x4"},
        {"leaf-size", "-4"},
        {"samples-per-pass", "0"},
        {"samples-per-pass", "-1"},
        {"samples-per-pass", "some"},
        {"max-length", "99999999999999999999"},
        {"seed", "-1"},
        {"seed", "9223372036854775808"},
        {"adam-beta1", "1"},
        {"adam-beta2", "-0.1"},
        {"learning-rate", "-1e-5"},
        {"warmup-ratio", "1.01"},
        {"threads", "1000000"},
        {"devices", "0"},
        {"device-memory", "-1"},
        {"device-memory", "5 GB"},
        {"device-memory", "GB"},
        {"device-memory", "1e9"},
        {"device-memory", "9999999TiB"},
        {"skip-bad-rows", "yes"},
        {"model", ""},
    };
    ls_error error;
    ls_options options = fresh(), before = fresh();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (ls_options_set(&options, bad[i][0], bad[i][1], &error) != LS_USAGE)
            fail_msg("%s %s was not refused", bad[i][0], bad[i][1]);
        assert_non_null(strstr(error.text, bad[i][0]));
    }
    assert_memory_equal(&options, &before, sizeof options);
}

/* What a strategy's name ends in is a setting of its own, which may be given too. */
static void endings_of_strategies_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *strategy, *recompute;
        ls_recompute_what what;
    } good[] = {
        {"single", NULL, LS_RECOMPUTE_NONE},
        {"ddp", "attention", LS_RECOMPUTE_ATTENTION},
        {"single+recompute", NULL, LS_RECOMPUTE_LAYER},
        {"ddp+recompute", "layer", LS_RECOMPUTE_LAYER},
        {"ddp+recompute", "attention", LS_RECOMPUTE_ATTENTION},
        {"single+offload+recompute", NULL, LS_RECOMPUTE_LAYER},
        {"ddp+recompute+offload", NULL, LS_RECOMPUTE_LAYER},
        {"ddp+offload", NULL, LS_RECOMPUTE_NONE},
    };
    static const char *const bad[][3] = {
        {"ddp+", NULL, "'+'"},
        {"ddp+checkpoint", NULL, "+offload, +recompute"},
        {"single+offload+offload", NULL, "twice"},
        {"ddp+recompute+", NULL, "'+'"},
        {"ddp+recompute+recompute", NULL, "twice"},
        {"ddp+recompute", "none", "--recompute none"},
        {"ddp+recompute", "all", "layer, attention"},
        {"+recompute", NULL, "single, ddp"},
        {"dd+recompute", NULL, "single, ddp"},
        {"single ", NULL, "single, ddp"},
    };
    ls_error error;
    ls_strategy strategy;
    ls_options options = fresh();
    options.model = options.train = options.output = "x";
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_ok(ls_options_set(&options, "strategy", good[i].strategy, &error), error);
        options.recompute = good[i].recompute;
        assert_ok(ls_options_check(&options, LS_COMMAND_TRAIN, &error), error);
        assert_ok(ls_strategy_of(&strategy, &options, true, &error), error);
        assert_int_equal(strategy.recompute, good[i].what);
        bool offload = strstr(good[i].strategy, "+offload") != NULL;
        assert_int_equal(strategy.optimizer, offload ? LS_PLACE_HOST : LS_PLACE_DEVICE);
        assert_int_equal(strlen(strategy.kind->name), strcspn(good[i].strategy, "+"));
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        options.strategy = bad[i][0];
        options.recompute = bad[i][1];
        if (ls_options_check(&options, LS_COMMAND_TRAIN, &error) != LS_USAGE)
            fail_msg("%s was not refused", bad[i][0]);
        if (!strstr(error.text, bad[i][2])) fail_msg("should say %s: %s", bad[i][2], error.text);
    }
}

static void sizes_and_special_values_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t bytes;
    } sizes[] = {{"600MiB", 629145600},  {"2GB", 2000000000}, {"1048576", 1048576},
                 {"1.5GiB", 1610612736}, {"64kB", 64000},     {"12B", 12}};
    ls_error error;
    char text[64];
    ls_options options = fresh();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_ok(ls_options_set(&options, "device-memory", sizes[i].text, &error), error);
        assert_int_equal(options.device_memory, sizes[i].bytes);
    }
    assert_int_equal(options.bucket_size, LS_BUCKET_AUTO);
    assert_ok(ls_options_set(&options, "bucket-size", "4MiB", &error), error);
    assert_int_equal(options.bucket_size, 4 << 20);
    assert_ok(ls_options_set(&options, "bucket-size", "auto", &error), error);
    assert_string_equal(ls_options_get(&options, "bucket-size", text), "auto");
    assert_int_equal(ls_options_set(&options, "bucket-size", "0", &error), LS_USAGE);
    assert_int_equal(ls_options_set(&options, "offload-block-size", "auto", &error), LS_USAGE);
    assert_ok(ls_options_set(&options, "samples-per-pass", "all", &error), error);
    assert_int_equal(options.samples_per_pass, LS_SAMPLES_ALL);
    assert_string_equal(ls_options_get(&options, "samples-per-pass", text), "all");
    assert_ok(ls_options_set(&options, "samples-per-pass", "6", &error), error);
    assert_string_equal(ls_options_get(&options, "samples_per_pass", text), "6");
    assert_ok(ls_options_set(&options, "seed", "9223372036854775807", &error), error);
    assert_int_equal(options.seed, INT64_MAX);
    assert_ok(ls_options_set(&options, "skip-bad-rows", "true", &error), error);
    assert_true(options.skip_bad_rows);
}

static void what_is_not_built_is_named(void **state)
{
    (void)state;
    ls_error error;
    ls_options options = fresh();
    assert_int_equal(ls_options_set(&options, "strategy", "pipeline", &error), LS_USAGE);
    assert_non_null(strstr(error.text, "pipeline"));
    assert_non_null(strstr(error.text, "not built yet: known strategies are single"));
    for (int i = 0; i < LS_STRATEGY_KINDS; i++)
        assert_ok(ls_options_set(&options, "strategy", ls_strategy_kinds[i].name, &error), error);
    assert_int_equal(ls_options_set(&options, "lr-scheduler-type", "polynomial", &error), LS_USAGE);
    assert_non_null(strstr(error.text, "linear, cosine, constant, constant_with_warmup"));
    assert_ok(ls_options_set(&options, "lr-scheduler-type", "constant_with_warmup", &error), error);
}

/* Programs fill the struct by hand: the same rules hold there. */
static void options_filled_by_hand_are_checked(void **state)
{
    (void)state;
    ls_error error;
    ls_options good = fresh();
    good.model = "m", good.train = "t", good.output = "o";
    assert_ok(ls_options_check(&good, LS_COMMAND_TRAIN, &error), error);
    ls_options options = good;
    options.output = NULL;
    assert_int_equal(ls_options_check(&options, LS_COMMAND_TRAIN, &error), LS_USAGE);
    assert_non_null(strstr(error.text, "--output"));
    assert_ok(ls_options_check(&options, LS_COMMAND_PLAN, &error), error);
    options = good;
    options.learning_rate = 0.0 / 0.0;
    assert_int_equal(ls_options_check(&options, LS_COMMAND_TRAIN, &error), LS_USAGE);
    options = good;
    options.batch_size = 0;
    assert_int_equal(ls_options_check(&options, LS_COMMAND_TRAIN, &error), LS_USAGE);
    options = good;
    options.max_steps = 0;
    assert_int_equal(ls_options_check(&options, LS_COMMAND_TRAIN, &error), LS_USAGE);
    options = good;
    options.devices = 2;
    assert_int_equal(ls_options_check(&options, LS_COMMAND_TRAIN, &error), LS_USAGE);
    assert_non_null(strstr(error.text, "single"));
    options = good;
    options.strategy = "ddp";
    options.devices = 2;
    assert_ok(ls_options_check(&options, LS_COMMAND_PLAN, &error), error);
    options.strategy = "zero4";
    assert_int_equal(ls_options_check(&options, LS_COMMAND_PLAN, &error), LS_USAGE);
    assert_non_null(strstr(error.text, "single, ddp"));
    options.strategy = NULL;
    assert_int_equal(ls_options_check(&options, LS_COMMAND_PLAN, &error), LS_USAGE);
    options = (ls_options){.model = "m"};
    assert_ok(ls_options_check(&options, LS_COMMAND_TOKENIZE, &error), error);
}

static void sources_tell_what_was_mentioned(void **state)
{
    (void)state;
    ls_error error;
    ls_sources *sources = NULL;
    ls_options options = fresh();
    assert_ok(ls_sources_new(&sources, &error), error);
    assert_ok(ls_sources_set(sources, "batch_size", "command line", &error), error);
    assert_int_equal(ls_sources_set(sources, "batch", "command line", &error), LS_USAGE);
    options.seed = 7;
    assert_string_equal(ls_sources_get(sources, &options, "batch-size"), "command line");
    assert_string_equal(ls_sources_get(sources, &options, "seed"), "program");
    assert_string_equal(ls_sources_get(sources, &options, "epochs"), "default");
    assert_string_equal(ls_sources_get(NULL, &options, "model"), "default");
    ls_sources_free(sources);
    ls_sources_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_those_of_the_trainer),
        cmocka_unit_test(every_setting_prints_and_reads_back),
        cmocka_unit_test(names_take_underscores),
        cmocka_unit_test(an_unknown_name_gets_the_nearest),
        cmocka_unit_test(values_out_of_range_are_refused),
        cmocka_unit_test(endings_of_strategies_are_read),
        cmocka_unit_test(sizes_and_special_values_are_read),
        cmocka_unit_test(what_is_not_built_is_named),
        cmocka_unit_test(options_filled_by_hand_are_checked),
        cmocka_unit_test(sources_tell_what_was_mentioned),
    };
    return cmocka_run_group_tests_name("api/settings", tests, NULL, NULL);
}

/* formats/deepspeed_config: files as people have them, mistakes as people make them, and the table
 * of keys itself. */
#include "testing.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/files.h"
#include "base/numbers.h"
#include "formats/deepspeed_config.h"
#include "formats/relaxed_json.h"

static ls_error error;

static ls_status parse(ls_deepspeed_config *config, const char *text)
{
    error.text[0] = '\0';
    return ls_deepspeed_config_parse(config, text, strlen(text), "ds.json", &error);
}

static void assert_refused(const char *text, ls_status code, const char *const *says)
{
    ls_deepspeed_config config;
    size_t before = ls_allocated_bytes();
    ls_status status = parse(&config, text);
    if (status != code) fail_msg("%s: %d instead of %d: %s", text, status, code, error.text);
    for (; *says; says++)
        if (!strstr(error.text, *says))
            fail_msg("%s: '%s' is not in '%s'", text, *says, error.text);
    assert_null(config.entries);
    assert_int_equal(ls_allocated_bytes(), before);
}
#define REFUSED(text, code, ...)                                                                   \
    assert_refused(text, code, (const char *const[]){__VA_ARGS__, NULL})

static const ls_deepspeed_entry *find(const ls_deepspeed_config *config, const char *path)
{
    const ls_deepspeed_entry *entry = ls_deepspeed_config_find(config, path);
    if (!entry) fail_msg("no %s", path);
    return entry;
}

/* As the guides of Transformers have it: "auto" wherever the arguments say it. */
static const char transformers_guide[] =
    "{\n"
    "  \"fp16\": {\"enabled\": \"auto\", \"loss_scale\": 0, \"loss_scale_window\": 1000,\n"
    "           \"initial_scale_power\": 16, \"hysteresis\": 2, \"min_loss_scale\": 1},\n"
    "  \"bf16\": {\"enabled\": \"auto\"},\n"
    "  \"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": \"auto\", \"betas\": \"auto\",\n"
    "                \"eps\": \"auto\", \"weight_decay\": \"auto\"}},\n"
    "  \"scheduler\": {\"type\": \"WarmupDecayLR\", \"params\": {\"warmup_min_lr\": \"auto\",\n"
    "                \"warmup_max_lr\": \"auto\", \"warmup_num_steps\": \"auto\",\n"
    "                \"total_num_steps\": \"auto\"}},\n"
    "  \"zero_optimization\": {\n"
    "    \"stage\": 3,\n"
    "    \"offload_optimizer\": {\"device\": \"cpu\", \"pin_memory\": true},\n"
    "    \"offload_param\": {\"device\": \"nvme\", \"nvme_path\": \"/local_nvme\",\n"
    "                      \"pin_memory\": true, \"buffer_count\": 5, \"buffer_size\": 1e8},\n"
    "    \"overlap_comm\": true, \"contiguous_gradients\": true, \"sub_group_size\": 1e9,\n"
    "    \"reduce_bucket_size\": \"auto\", \"stage3_prefetch_bucket_size\": \"auto\",\n"
    "    \"stage3_param_persistence_threshold\": \"auto\", \"stage3_max_live_parameters\": 1e9,\n"
    "    \"stage3_max_reuse_distance\": 1e9, \"stage3_gather_16bit_weights_on_model_save\": true\n"
    "  },\n"
    "  \"gradient_accumulation_steps\": \"auto\", \"gradient_clipping\": \"auto\",\n"
    "  \"steps_per_print\": 2000, \"train_batch_size\": \"auto\",\n"
    "  \"train_micro_batch_size_per_gpu\": \"auto\", \"wall_clock_breakdown\": false\n"
    "}\n";

/* As a DeepSpeed example has it, with remarks. */
static const char raw_example[] =
    "# BERT, from the tutorial\n"
    "{\n"
    "  \"train_batch_size\": 64, // over all devices\n"
    "  \"train_micro_batch_size_per_gpu\": 1.6e1,\n"
    "  /* the rest\n"
    "     of it */ \"steps_per_print\": 10,\n"
    "  \"gradient_clipping\": 0.5,\n"
    "  \"prescale_gradients\": false,\n"
    "  \"optimizer\": {\"type\": \"Adam\", \"params\": {\"lr\": 4e-5, \"betas\": [0.8, 0.99],\n"
    "    \"eps\": 1e-6, \"weight_decay\": 3e-7, \"adam_w_mode\": false,}},\n"
    "  \"scheduler\": {\"type\": \"WarmupLR\", \"params\": {\"warmup_min_lr\": 0,\n"
    "    \"warmup_max_lr\": 0.001, \"warmup_num_steps\": 1000}},\n"
    "  \"zero_optimization\": {\"stage\": 2, \"reduce_bucket_size\": 2e8,\n"
    "    \"allgather_bucket_size\": 2e8, \"overlap_comm\": null, \"cpu_offload\": true},\n"
    "  \"fp16\": {\"enabled\": false},\n"
    "  \"tensorboard\": {\"enabled\": false, \"output_path\": \"a // b # c\", \"job_name\": "
    "\"x\"},\n"
    "}\n";

static void a_guide_of_transformers_is_read(void **state)
{
    (void)state;
    ls_deepspeed_config config;
    assert_ok(parse(&config, transformers_guide), error);
    assert_true(ls_deepspeed_is_auto(find(&config, "train_batch_size")));
    assert_true(ls_deepspeed_is_auto(find(&config, "optimizer.params.betas")));
    assert_int_equal(ls_deepspeed_integer(find(&config, "zero_optimization.stage"), 0), 3);
    assert_string_equal(
        ls_deepspeed_text(find(&config, "zero_optimization.offload_param.nvme_path"), ""),
        "/local_nvme");
    assert_int_equal(
        ls_deepspeed_integer(find(&config, "zero_optimization.offload_param.buffer_size"), 0),
        100000000);
    assert_int_equal(config.warning_count, 0);
    ls_deepspeed_config_deinit(&config);
}

static void a_file_with_remarks_is_read(void **state)
{
    (void)state;
    ls_deepspeed_config config;
    assert_ok(parse(&config, raw_example), error);
    assert_int_equal(ls_deepspeed_integer(find(&config, "train_batch_size"), 0), 64);
    assert_int_equal(ls_deepspeed_integer(find(&config, "train_micro_batch_size_per_gpu"), 0), 16);
    assert_true(ls_deepspeed_number(find(&config, "gradient_clipping"), 1) == 0.5);
    assert_false(ls_deepspeed_flag(find(&config, "optimizer.params.adam_w_mode"), true));
    assert_int_equal(ls_deepspeed_integer(find(&config, "zero_optimization.reduce_bucket_size"), 0),
                     200000000);
    assert_string_equal(ls_deepspeed_text(find(&config, "tensorboard.output_path"), ""),
                        "a // b # c");
    /* null is as not there. */
    assert_null(ls_deepspeed_config_find(&config, "zero_optimization.overlap_comm"));
    /* The old name is known, and said to be one. */
    const ls_deepspeed_entry *device = find(&config, "zero_optimization.offload_optimizer.device");
    assert_string_equal(ls_deepspeed_text(device, ""), "cpu");
    assert_string_equal(device->written, "zero_optimization.cpu_offload");
    assert_int_equal(config.warning_count, 1);
    assert_non_null(strstr(config.warnings[0], "cpu_offload"));
    ls_deepspeed_config_deinit(&config);
}

static void old_names_are_taken_with_a_warning(void **state)
{
    (void)state;
    static const struct {
        const char *text, *path, *warning;
        int64_t value;
    } cases[] = {
        {"{\"zero_optimization\": true}", "zero_optimization.stage", "{\"stage\": 1}", 1},
        {"{\"zero_optimization\": false}", "zero_optimization.stage", "{\"stage\": 0}", 0},
        {"{\"zero_optimization\": {\"stage3_gather_fp16_weights_on_model_save\": true}}",
         "zero_optimization.stage3_gather_16bit_weights_on_model_save",
         "write 'zero_optimization.stage3_gather_16bit_weights_on_model_save'", 1},
        {"{\"zero_optimization\": {\"gather_16bit_weights_on_model_save\": true}}",
         "zero_optimization.stage3_gather_16bit_weights_on_model_save", "is an old name", 1},
        {"{\"zero_optimization\": {\"prefetch_bucket_size\": 5e7}}",
         "zero_optimization.stage3_prefetch_bucket_size", "prefetch_bucket_size", 50000000},
        {"{\"bfloat16\": {\"enabled\": false}}", "bf16.enabled", "'bfloat16' is an old name", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ls_deepspeed_config config;
        assert_ok(parse(&config, cases[i].text), error);
        const ls_deepspeed_entry *entry = find(&config, cases[i].path);
        assert_true(ls_deepspeed_number(entry, -1) == (double)cases[i].value);
        assert_int_equal(config.warning_count, 1);
        if (!strstr(config.warnings[0], cases[i].warning)) fail_msg("%s", config.warnings[0]);
        ls_deepspeed_config_deinit(&config);
    }
    REFUSED(
        "{\"zero_optimization\": {\"stage3_max_live_parameters\": 1, \"max_live_parameters\": 2}}",
        LS_USAGE, "max_live_parameters", "says the same");
    REFUSED("{\"zero_optimization\": {\"cpu_offload\": \"true\", \"stage\": 1}}", LS_INVALID,
            "cpu_offload", "true or false, without quotes");
}

/* What stands in files that people asked for help with. */
static void public_mistakes_are_named(void **state)
{
    (void)state;
    REFUSED("{\"zero_optimization\": {\"stage\": 2,\n\"offload_optimizer\": {\"device\": \"cpu\",\n"
            "\"pim_memory\": true}}}",
            LS_INVALID, "ds.json: line 3: ", "'zero_optimization.offload_optimizer.pim_memory'",
            "'zero_optimization.offload_optimizer.pin_memory'");
    REFUSED("{\"zero_optimization\": {\"stage\": 3, \"offload_model\": {\"device\": \"cpu\"}}}",
            LS_INVALID, "'zero_optimization.offload_model'", "'zero_optimization.offload_param'");
    REFUSED("{\"fp16\": {\"enabled\": \"true\"}}", LS_INVALID, "'fp16.enabled'",
            "the text \"true\"", "wanted is true or false, without quotes");
    REFUSED("{\"activation_checkpointing\": {\"number_checkpoints\": false}}", LS_INVALID,
            "'activation_checkpointing.number_checkpoints'", "is false", "a whole number");
    REFUSED("{\"fp16\": {\"enabled\": false, \"min_loss_scale\": 1e-10}}", LS_INVALID,
            "'fp16.min_loss_scale'", "1e-10", "a whole number");
    REFUSED("{\"zero_optimization\": {\"stage\": 2, \"offload_param\": {\"device\": \"cpu\"}}}",
            LS_USAGE, "'zero_optimization.offload_param.device'", "'zero_optimization.stage' is 2",
            "it needs stage 3");
    /* Legal, and as good as never meant. */
    ls_deepspeed_config config;
    assert_ok(parse(&config, "{\"fp16\": {\"enabled\": false, \"initial_scale_power\": 32}}"),
              error);
    assert_int_equal(config.warning_count, 1);
    assert_non_null(strstr(config.warnings[0], "2^32"));
    ls_deepspeed_config_deinit(&config);
}

static void unknown_keys_are_named_at_any_depth(void **state)
{
    (void)state;
    REFUSED("{\"trian_batch_size\": 8}", LS_INVALID, "'trian_batch_size'", "'train_batch_size'");
    REFUSED("{\"optimizer\": {\"type\": \"Adam\", \"params\": {\"learning_rate\": 1}}}", LS_INVALID,
            "'optimizer.params.learning_rate'");
    REFUSED("{\"aio\": {\"queue_deph\": 8}}", LS_INVALID, "'aio.queue_depth'");
    /* Right names in wrong places. */
    REFUSED("{\"stage\": 2}", LS_INVALID, "'zero_optimization.stage'");
    REFUSED("{\"zero_optimization\": {\"gradient_clipping\": 1.0}}", LS_INVALID,
            "the nearest is 'gradient_clipping'");
    REFUSED("{\"zero_optimization.stage\": 2}", LS_INVALID, "no such key");
    REFUSED("{\"\": 2}", LS_INVALID, "no such key");
}

static void syntax_is_checked(void **state)
{
    (void)state;
    REFUSED("{\"train_batch_size\": 8,\n \"train_batch_size\": 8}", LS_INVALID, "duplicate key",
            "train_batch_size");
    REFUSED("{\"fp16\": {\"enabled\": false, \"enabled\": false}}", LS_INVALID, "duplicate");
    REFUSED("{\n/* no end\n", LS_INVALID, "line 2", "no end");
    REFUSED("{\n // c\n \"train_batch_size\" 8}", LS_INVALID, "line 3");
    REFUSED("[1]", LS_INVALID, "an object");
    REFUSED("", LS_INVALID, "ds.json");
    REFUSED("{\"train_batch_size\": 8,,}", LS_INVALID, "ds.json");
    ls_deepspeed_config config;
    assert_ok(parse(&config, "{}"), error);
    ls_deepspeed_config_deinit(&config);
    assert_ok(parse(&config, "{ # c\n \"aio\": {}, // d\n}"), error);
    ls_deepspeed_config_deinit(&config);
}

static void types_and_ranges_are_checked(void **state)
{
    (void)state;
    REFUSED("{\"train_batch_size\": 8.5}", LS_INVALID, "'train_batch_size'", "is 8.5",
            "a whole number", "\"auto\"");
    REFUSED("{\"train_batch_size\": \"8\"}", LS_INVALID, "the text \"8\"");
    REFUSED("{\"train_batch_size\": 0}", LS_INVALID, "out of range");
    REFUSED("{\"train_batch_size\": null, \"steps_per_print\": true}", LS_INVALID,
            "'steps_per_print'", "is true");
    REFUSED("{\"zero_optimization\": {\"stage\": 4}}", LS_INVALID, "from 0 to 3");
    REFUSED("{\"zero_optimization\": {\"stage\": \"auto\"}}", LS_INVALID,
            "'zero_optimization.stage'");
    REFUSED("{\"zero_optimization\": 2}", LS_INVALID, "is 2", "an object");
    REFUSED("{\"zero_optimization\": {\"stage\": null}}", LS_INVALID, "is null");
    REFUSED("{\"optimizer\": {\"type\": \"Adam\", \"params\": {\"betas\": [0.9]}}}", LS_INVALID,
            "two numbers");
    REFUSED("{\"optimizer\": {\"type\": \"Adam\", \"params\": {\"betas\": [0.9, 1.5]}}}",
            LS_INVALID, "[0.9, 1.5]", "out of range");
    REFUSED("{\"gradient_clipping\": -1}", LS_INVALID, "out of range: it goes from 0");
    REFUSED("{\"zero_optimization\": {\"overlap_comm\": 1}}", LS_INVALID, "true or false");
}

static void what_is_not_built_is_refused_by_name(void **state)
{
    (void)state;
    static const char *const texts[][2] = {
        {"{\"fp16\": {\"enabled\": true}}", "'fp16.enabled'"},
        {"{\"bf16\": {\"enabled\": true}}", "'bf16.enabled'"},
        {"{\"bfloat16\": {\"enabled\": true}}", "'bfloat16.enabled'"},
        {"{\"data_types\": {\"grad_accum_dtype\": \"bf16\"}}", "'data_types.grad_accum_dtype'"},
        {"{\"communication_data_type\": \"fp16\"}", "'communication_data_type'"},
        {"{\"zero_optimization\": {\"zero_quantized_weights\": true}}", "zero_quantized_weights"},
        {"{\"zero_optimization\": {\"zero_hpz_partition_size\": 8}}", "zero_hpz_partition_size"},
        {"{\"zero_optimization\": {\"zeropp_loco_param\": {\"err_beta\": 0.8}}}", "zeropp_loco"},
        {"{\"tensor_parallel\": {\"autotp_size\": 2}}", "'tensor_parallel.autotp_size'"},
        {"{\"pipeline\": {\"stages\": 2}}", "'pipeline'"},
        {"{\"compression_training\": {\"weight_quantization\": {}}}", "'compression_training'"},
        {"{\"activation_checkpointing\": {\"partition_activations\": true}}",
         "'activation_checkpointing.partition_activations'"},
        {"{\"activation_checkpointing\": {\"cpu_checkpointing\": true}}", "cpu_checkpointing"},
        {"{\"wandb\": {\"enabled\": true, \"project\": \"p\"}}", "'wandb.enabled'"},
        {"{\"autotuning\": {\"enabled\": true}}", "'autotuning.enabled'"},
        {"{\"elasticity\": {\"enabled\": true}}", "'elasticity.enabled'"},
        {"{\"checkpoint\": {\"load_universal\": true}}", "'checkpoint.load_universal'"},
        {"{\"optimizer\": {\"type\": \"OneBitAdam\", \"params\": {\"freeze_step\": 400}}}",
         "'optimizer.type': 'OneBitAdam' is not built: known are Adam and AdamW"},
        {"{\"optimizer\": {\"type\": \"Lamb\"}}", "'Lamb'"},
        {"{\"optimizer\": {\"type\": \"AdamW\", \"params\": {\"amsgrad\": true}}}", "amsgrad"},
        {"{\"scheduler\": {\"type\": \"OneCycle\", \"params\": {\"cycle_min_lr\": 1}}}",
         "'OneCycle' is not built: known are WarmupLR, WarmupDecayLR and WarmupCosineLR"},
        {"{\"scheduler\": {\"type\": \"LRRangeTest\"}}", "'LRRangeTest'"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        REFUSED(texts[i][0], LS_USAGE, texts[i][1]);
    /* Neutral values of the same are fine. */
    ls_deepspeed_config config;
    assert_ok(
        parse(&config,
              "{\"fp16\": {\"enabled\": false}, \"data_types\": {\"grad_accum_dtype\": \"fp32\"},"
              " \"zero_optimization\": {\"zero_hpz_partition_size\": 1,"
              " \"mics_shard_size\": -1}, \"amp\": {\"enabled\": false, \"opt_level\": \"O1\"},"
              " \"gradient_allreduce_op\": \"mean\", \"comet\": null}"),
        error);
    ls_deepspeed_config_deinit(&config);
}

static void keys_must_fit_together(void **state)
{
    (void)state;
    REFUSED("{\"optimizer\": {\"params\": {\"lr\": 1}}}", LS_INVALID, "'optimizer.type'",
            "missing");
    REFUSED("{\"scheduler\": {\"type\": \"WarmupLR\", \"params\": {\"total_num_steps\": 9}}}",
            LS_INVALID, "'scheduler.params.total_num_steps'", "WarmupLR has no such parameter");
    REFUSED("{\"scheduler\": {\"type\": \"WarmupCosineLR\", \"params\": {\"warmup_max_lr\": 1}}}",
            LS_INVALID, "WarmupCosineLR has no");
    REFUSED("{\"scheduler\": {\"type\": \"WarmupDecayLR\", \"params\": {\"cos_min_ratio\": 0}}}",
            LS_INVALID, "WarmupDecayLR has no");
    REFUSED("{\"scheduler\": {\"type\": \"WarmupLR\", \"params\": {\"warmup_type\": \"cubic\"}}}",
            LS_INVALID, "log or linear");
    REFUSED("{\"zero_optimization\": {\"offload_optimizer\": {\"device\": \"cpu\"}}}", LS_USAGE,
            "'zero_optimization.offload_optimizer.device'", "it needs stage 1 or more");
    REFUSED("{\"zero_optimization\": {\"stage\": 3, \"offload_param\": {\"device\": \"nvme\"}}}",
            LS_USAGE, "'zero_optimization.offload_param.nvme_path'");
    REFUSED("{\"zero_optimization\": {\"stage\": 3, \"offload_param\": {\"device\": \"gpu\"}}}",
            LS_INVALID, "none, cpu or nvme");
}

static void a_text_in_place_of_a_path_is_named(void **state)
{
    (void)state;
    ls_deepspeed_config config;
    assert_int_equal(ls_deepspeed_config_load(&config, "eyJ0cmFpbl9iYXRjaF9zaXplIjogOH0=", &error),
                     LS_USAGE);
    assert_non_null(strstr(error.text, "base64"));
    assert_int_equal(ls_deepspeed_config_load(&config, "{\"train_batch_size\": 8}", &error),
                     LS_USAGE);
    assert_int_equal(ls_deepspeed_config_load(&config, "no-such.json", &error), LS_IO);
    assert_non_null(strstr(error.text, "no-such.json"));
    char *folder = test_folder();
    const char *path = test_path(folder, "ds.json");
    test_write_file(path, raw_example, sizeof raw_example - 1);
    assert_ok(ls_deepspeed_config_load(&config, path, &error), error);
    ls_deepspeed_config_deinit(&config);
    test_folder_remove(folder);
}

/* The table: each section has a row before its keys, names stand once, old ones lead on, neutral
 * numbers are numbers, and each key is found as its own nearest. */
static void the_table_is_sound(void **state)
{
    (void)state;
    for (const ls_deepspeed_key *key = ls_deepspeed_keys(); key->path; key++) {
        char section[100];
        const char *dot = strrchr(key->path, '.');
        snprintf(section, sizeof section, "%.*s", dot ? (int)(dot - key->path) : 0, key->path);
        const ls_deepspeed_key *above = dot ? ls_deepspeed_key_find(section) : NULL;
        if (dot && (!above || above->kind != LS_DEEPSPEED_SECTION || above > key))
            fail_msg("%s has no section", key->path);
        assert_ptr_equal(ls_deepspeed_key_find(key->path), key);
        bool old = key->effect == LS_DEEPSPEED_OLD_NAME;
        const ls_deepspeed_key *target = old ? ls_deepspeed_key_find(key->target) : key;
        if (!target || (old && target->effect == LS_DEEPSPEED_OLD_NAME))
            fail_msg("%s leads nowhere", key->path);
        if (!old) assert_ptr_equal(ls_deepspeed_key_nearest(key->path), key);
        if ((key->effect == LS_DEEPSPEED_SETS) != (*key->target && !old))
            fail_msg("%s: target '%s'", key->path, key->target);
        assert_true(*key->help);
        double number;
        bool numeric = key->kind == LS_DEEPSPEED_INTEGER || key->kind == LS_DEEPSPEED_NUMBER;
        char first[40];
        snprintf(first, sizeof first, "%.*s", (int)strcspn(key->neutral, "|"), key->neutral);
        if (numeric && strcmp(first, "null") != 0 && !ls_number_parse(first, &number))
            fail_msg("%s: neutral %s", key->path, key->neutral);
    }
}

/* The page for users names every key. */
static void the_page_has_every_key(void **state)
{
    (void)state;
    char *page;
    size_t bytes;
    assert_ok(ls_file_read(&page, &bytes, LS_TEST_SOURCE "/docs/coming-from-deepspeed.md", 1 << 20,
                           &error),
              error);
    for (const ls_deepspeed_key *key = ls_deepspeed_keys(); key->path; key++) {
        char row[120];
        if (key->kind == LS_DEEPSPEED_SECTION && key->effect != LS_DEEPSPEED_OLD_NAME) continue;
        snprintf(row, sizeof row, "| `%s` |", key->path);
        if (!strstr(page, row)) fail_msg("no row %s", row);
    }
    ls_free(page);
}

static void lines_of_keys_are_found(void **state)
{
    (void)state;
    static const char text[] =
        "{\"b\": {\"c\": 1},\n\"a\": [{\"b\": 1}, \"b\"],\n\n\"a.b\": 2, \"x\":\n"
        "{\"c\" : \"b\",\n\"b\": 3}}";
    assert_int_equal(ls_json_line_of(text, sizeof text - 1, "b"), 1);
    assert_int_equal(ls_json_line_of(text, sizeof text - 1, "a"), 2);
    assert_int_equal(ls_json_line_of(text, sizeof text - 1, "x"), 4);
    assert_int_equal(ls_json_line_of(text, sizeof text - 1, "x.c"), 5);
    assert_int_equal(ls_json_line_of(text, sizeof text - 1, "x.b"), 6);
    assert_int_equal(ls_json_line_of(text, sizeof text - 1, "b.d"), 0);
    assert_int_equal(ls_json_line_of(text, sizeof text - 1, "y"), 0);
}

static int fail_in_turn(void *context, size_t bytes)
{
    (void)bytes;
    return (*(long *)context)-- == 0;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    ls_status status = LS_NO_MEMORY;
    long turn = 0;
    for (; status != LS_OK; turn++) {
        long left = turn;
        ls_deepspeed_config config;
        size_t before = ls_allocated_bytes();
        ls_set_allocation_hook(fail_in_turn, &left);
        status = parse(&config, raw_example);
        ls_set_allocation_hook(NULL, NULL);
        if (status == LS_OK) ls_deepspeed_config_deinit(&config);
        assert_int_equal(ls_allocated_bytes(), before);
        if (status != LS_OK && status != LS_NO_MEMORY) fail_msg("%ld: %s", turn, error.text);
        assert_true(turn < 5000);
    }
    assert_true(turn > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_guide_of_transformers_is_read),
        cmocka_unit_test(a_file_with_remarks_is_read),
        cmocka_unit_test(old_names_are_taken_with_a_warning),
        cmocka_unit_test(public_mistakes_are_named),
        cmocka_unit_test(unknown_keys_are_named_at_any_depth),
        cmocka_unit_test(syntax_is_checked),
        cmocka_unit_test(types_and_ranges_are_checked),
        cmocka_unit_test(what_is_not_built_is_refused_by_name),
        cmocka_unit_test(keys_must_fit_together),
        cmocka_unit_test(a_text_in_place_of_a_path_is_named),
        cmocka_unit_test(the_table_is_sound),
        cmocka_unit_test(the_page_has_every_key),
        cmocka_unit_test(lines_of_keys_are_found),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("deepspeed_config", tests, NULL, NULL);
}

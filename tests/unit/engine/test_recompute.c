/* Activations made again in the backward pass: the bits of a run that keeps them, on any layout and
 * instruction set; memory as planned, and less of it.
 *
 * LOCKSTEP_TEST_LONG=1 runs every combination of layouts. */
#include "tiny_runs.h"

#include "effort.h"
#include "engine/memory.h"

enum { ROWS = 102, BATCH = 32, STEPS = 12 };

static char *folder;
static const char *train, *validation;

static int setup(void **state)
{
    (void)state;
    folder = test_folder();
    train = strdup(tiny_file(folder, "train.tsv", ROWS));
    validation = strdup(tiny_file(folder, "validation.tsv", 41));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free((char *)train);
    free((char *)validation);
    test_folder_remove(folder);
    return 0;
}

static ls_options options_for(const char *model)
{
    ls_options options = tiny_options(model, train, NULL);
    options.validation = validation;
    options.batch_size = BATCH;
    options.max_steps = STEPS;
    options.threads = 1;
    return options;
}

/* --- the same bits ---------------------------------------------------------------------------- */

static const char *const models[] = {"tiny-bert", "tiny-distilbert"};
static const char *const ways[] = {"layer", "attention"};

static void check(const ls_options *options, const tiny_outcome *wanted, const char *what)
{
    tiny_outcome got = tiny_run(options, folder);
    tiny_check_same(&got, wanted, what, options->devices);
    if (got.report.planned_bytes != got.report.measured_bytes)
        fail_msg("%s: planned %lld bytes, measured %lld", what, (long long)got.report.planned_bytes,
                 (long long)got.report.measured_bytes);
}

static void layouts_do_not_matter(void **state)
{
    (void)state;
    bool all = test_all();
    int asked = 0;
    static const int64_t devices[] = {1, 2, 3};
    for (size_t m = 0; m < 2; m++) {
        ls_options options = options_for(models[m]);
        tiny_outcome wanted = tiny_run(&options, folder);
        for (int index = 0; index < 24; index++) {
            /* Of each number of devices one layout, then its opposite. */
            int d = index / 8, bits = index % 8;
            if (!all && bits != (m ? 7 - d : d)) continue;
            if (!test_takes(&asked)) continue;
            options.recompute = ways[bits & 1];
            options.strategy = "ddp";
            options.devices = devices[d];
            options.threads = 1 + (bits >> 1 & 1);
            options.samples_per_pass = bits & 4 ? 5 : LS_SAMPLES_ALL;
            check(&options, &wanted, options.recompute);
        }
    }
}

static void instruction_sets_do_not_matter(void **state)
{
    (void)state;
    static const char *const sets[] = {"ref", "avx2", "avx512"};
    ls_options options = options_for("tiny-bert");
    tiny_outcome wanted = tiny_run(&options, folder);
    for (int i = 0; i < 3; i++) {
        const char *name;
        ls_error error;
        assert_int_equal(setenv("LOCKSTEP_ISA", sets[i], 1), 0);
        options.recompute = ways[i & 1];
        if (ls_instruction_set(&name, &error) == LS_OK) check(&options, &wanted, sets[i]);
    }
    unsetenv("LOCKSTEP_ISA");
}

/* --- memory ----------------------------------------------------------------------------------- */

/* The shape of all-MiniLM-L6-v2. */
static const char mini_lm[] =
    "{\"model_type\": \"bert\", \"architectures\": [\"BertModel\"], \"hidden_size\": 384,"
    " \"num_hidden_layers\": 6, \"num_attention_heads\": 12, \"intermediate_size\": 1536,"
    " \"vocab_size\": 30522, \"max_position_embeddings\": 512, \"type_vocab_size\": 2,"
    " \"hidden_act\": \"gelu\"}";

static int64_t activation_bytes(const ls_model_config *config, ls_recompute_what what)
{
    ls_error error;
    ls_device *device;
    ls_assembly assembly;
    ls_assembly_options options = {.config = config,
                                   .classes = 2,
                                   .training = true,
                                   .optimizer = {.beta1 = 0.9f, .beta2 = 0.999f},
                                   .batch_size = 32,
                                   .leaf_size = 4,
                                   .samples_per_pass = 32,
                                   .longest_row = 128,
                                   .recompute = what};
    assert_ok(ls_cpu_device_new(&device, 1, 0, &error), error);
    assert_ok(ls_assembly_make(&assembly, &options, device, &error), error);
    int64_t bytes = assembly.plan.bytes[LS_PLAN_ACTIVATIONS];
    ls_assembly_deinit(&assembly);
    ls_device_free(device);
    return bytes;
}

static void most_activations_are_saved(void **state)
{
    (void)state;
    ls_error error;
    ls_model_config config;
    assert_ok(ls_model_config_parse(&config, mini_lm, strlen(mini_lm), "config.json", &error),
              error);
    int64_t kept = activation_bytes(&config, LS_RECOMPUTE_NONE);
    int64_t layer = activation_bytes(&config, LS_RECOMPUTE_LAYER);
    int64_t attention = activation_bytes(&config, LS_RECOMPUTE_ATTENTION);
    if (layer > kept * 4 / 10 || attention > kept * 8 / 10)
        fail_msg("%lld bytes, %lld with layers, %lld with attention made again", (long long)kept,
                 (long long)layer, (long long)attention);
    ls_model_config_deinit(&config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts_do_not_matter),
        cmocka_unit_test(instruction_sets_do_not_matter),
        cmocka_unit_test(most_activations_are_saved),
    };
    return cmocka_run_group_tests_name("engine/recompute", tests, setup, teardown);
}

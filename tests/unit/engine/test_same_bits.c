/* Same bits: a run's weights, losses and gradient norms do not depend on threads, passes, the
 * instruction set, the compiler, or when it runs; and what the rule of sums is needed for. */
#include "tiny_engine.h"

#include "base/digest.h"
#include "base/leaf_schedule.h"

/* Of model.safetensors after the run of tiny_options, on any machine and with any compiler. */
static const struct {
    const char *model, *weights;
} golden[] = {
    {"tiny-bert", "81344c3dad328312175a129f76d997c92885040d109358a0c0e8c3304b76ec05"},
    {"tiny-distilbert", "2764c5578b1663f065331982cbe073c737c45f297cf4f227260eb32cb94b3158"},
};

static char *folder;
static const char *train;

static int setup(void **state)
{
    (void)state;
    folder = test_folder();
    train = strdup(tiny_rows(folder, "train.tsv"));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free((char *)train);
    test_folder_remove(folder);
    return 0;
}

/* --- whole runs ------------------------------------------------------------------------------- */

static tiny_outcome run(const ls_options *options)
{
    tiny_outcome result = tiny_run(options, folder);
    assert_int_equal(result.report.steps, 2 * TINY_STEPS_AN_EPOCH);
    return result;
}

static void layouts_do_not_matter(void **state)
{
    (void)state;
    static const int64_t passes[] = {LS_SAMPLES_ALL, LS_SAMPLES_AUTO, 2, 3, 4, 6, 16, 1000};
    for (size_t m = 0; m < sizeof golden / sizeof *golden; m++) {
        ls_options options = tiny_options(golden[m].model, train, NULL);
        tiny_outcome first = run(&options);
        assert_string_equal(first.weights, golden[m].weights);
        tiny_outcome again = run(&options);
        tiny_check_same(&again, &first, "run again", 1);
        for (options.threads = 1; options.threads <= 4; options.threads++) {
            tiny_outcome other = run(&options);
            tiny_check_same(&other, &first, "threads", options.threads);
        }
        options.threads = 2;
        for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
            options.samples_per_pass = passes[i];
            options.threads = 1 + (int64_t)i % 3;
            tiny_outcome other = run(&options);
            tiny_check_same(&other, &first, "samples per pass", passes[i]);
        }
    }
}

static void instruction_sets_do_not_matter(void **state)
{
    (void)state;
    static const char *const sets[] = {"ref", "avx2", "avx512"};
    tiny_outcome first[2];
    int ran = 0;
    for (int i = 0; i < 3; i++) {
        const char *name;
        ls_error error;
        assert_int_equal(setenv("LOCKSTEP_ISA", sets[i], 1), 0);
        if (ls_instruction_set(&name, &error) != LS_OK) {
            printf("skipped: %s\n", error.text);
            continue;
        }
        assert_string_equal(name, sets[i]);
        for (size_t m = 0; m < sizeof golden / sizeof *golden; m++) {
            ls_options options = tiny_options(golden[m].model, train, NULL);
            options.samples_per_pass = i == 0 ? 6 : LS_SAMPLES_ALL;
            tiny_outcome result = run(&options);
            if (strcmp(result.weights, golden[m].weights) != 0)
                fail_msg("%s on %s: weights %s, wanted %s", golden[m].model, sets[i],
                         result.weights, golden[m].weights);
            if (ran == 0) first[m] = result;
            tiny_check_same(&result, &first[m], sets[i], (int64_t)m);
        }
        ran++;
    }
    unsetenv("LOCKSTEP_ISA");
    assert_true(ran >= 1);
}

static void file_formats_do_not_matter(void **state)
{
    (void)state;
    ls_options options = tiny_options("tiny-bert", tiny_rows(folder, "train.jsonl"), NULL);
    tiny_outcome result = run(&options);
    assert_string_equal(result.weights, golden[0].weights);
}

/* What is meant to change the bits does: otherwise the tests above would prove nothing. */
static void leaf_size_and_seed_matter(void **state)
{
    (void)state;
    ls_options options = tiny_options("tiny-bert", train, NULL);
    tiny_outcome first = run(&options);
    options.leaf_size = 2;
    tiny_outcome other_leaves = run(&options);
    assert_string_not_equal(other_leaves.weights, first.weights);
    options = tiny_options("tiny-bert", train, NULL);
    options.seed = 43;
    tiny_outcome other_seed = run(&options);
    assert_string_not_equal(other_seed.weights, first.weights);
    assert_string_not_equal(other_seed.metrics, first.metrics);
}

/* --- the rule switched off -------------------------------------------------------------------- */

static const ls_device_operations *cpu; /* what the operations below stand in front of */

/* Sums over samples as they are usually made: a pass is one chain, passes are added in order. The
 * op gets this schedule instead of its own. */
static void run_without_tree(ls_device *device, const ls_op_call *call, int schedule_input)
{
    const ls_leaf_schedule *own = call->inputs[schedule_input].data;
    bool first_pass = own->depth == 0 && !own->resume;
    const int32_t offsets[] = {0, own->offsets[own->pieces]};
    const uint8_t merges[] = {first_pass ? 0 : 1};
    ls_leaf_schedule chain = {
        .pieces = 1, .offsets = offsets, .merges = merges, .depth = first_pass ? 0 : 1};
    ls_op_call changed = *call;
    changed.inputs[schedule_input].data = &chain;
    cpu->function(device, call->op->kind)(device, &changed);
}

static void weight_gradient_without_tree(ls_device *device, const ls_op_call *call)
{
    run_without_tree(device, call, 2);
}

static void column_sums_without_tree(ls_device *device, const ls_op_call *call)
{
    run_without_tree(device, call, 1);
}

static void layer_norm_sums_without_tree(ls_device *device, const ls_op_call *call)
{
    run_without_tree(device, call, 4);
}

static ls_device_function function_without_tree(const ls_device *device, ls_op_kind kind)
{
    if (kind == LS_OP_WEIGHT_GRADIENT) return weight_gradient_without_tree;
    if (kind == LS_OP_COLUMN_SUMS) return column_sums_without_tree;
    if (kind == LS_OP_LAYER_NORM_SUMS) return layer_norm_sums_without_tree;
    return cpu->function(device, kind);
}

/* A digest of all parameters after one epoch. */
static void train_by_hand(int64_t samples_per_pass, bool tree, char weights[65])
{
    ls_error error;
    ls_device *device;
    assert_ok(ls_cpu_device_new(&device, 1, 0, &error), error);
    cpu = device->operations;
    ls_device_operations operations = *cpu;
    operations.function = function_without_tree;
    ls_device_free(device);

    tiny_engine engine;
    tiny_engine_open(&engine, "tiny-bert", train, folder, samples_per_pass,
                     tree ? NULL : &operations);
    for (int64_t step = 1; step <= TINY_STEPS_AN_EPOCH; step++)
        tiny_engine_step(&engine, step);
    const char *path = test_path(folder, "weights.safetensors");
    ls_tensor_reader reader = {tiny_engine_read, &engine};
    assert_ok(ls_parameters_save(&reader, &engine.assembly, path, &error), error);
    tiny_engine_close(&engine);
    assert_ok(ls_file_sha256(path, weights, &error), error);
}

static void without_the_tree_passes_matter(void **state)
{
    (void)state;
    static const int64_t passes[] = {16, 8, 6, 4};
    char with[4][65], without[4][65], again[65];
    for (int i = 0; i < 4; i++) {
        train_by_hand(passes[i], true, with[i]);
        train_by_hand(passes[i], false, without[i]);
        assert_string_equal(with[i], with[0]);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(without[i], without[j]);
    }
    /* Only that: the same passes give the same bits, whatever the order of sums. */
    train_by_hand(6, false, again);
    assert_string_equal(again, without[2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts_do_not_matter),
        cmocka_unit_test(instruction_sets_do_not_matter),
        cmocka_unit_test(file_formats_do_not_matter),
        cmocka_unit_test(leaf_size_and_seed_matter),
        cmocka_unit_test(without_the_tree_passes_matter),
    };
    return cmocka_run_group_tests_name("same_bits", tests, setup, teardown);
}

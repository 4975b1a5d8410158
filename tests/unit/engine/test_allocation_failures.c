/* Whole commands with an allocation failing, each in turn: a clean error, nothing held, no file
 * left open, and no half-written file in the output folder. */
#include "tiny_runs.h"

#include <dirent.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/files.h"
#include "base/staging.h"
#include "effort.h"
#include "formats/json.h"
#include "formats/safetensors.h"

static char *folder;
static const char *train, *output, *predictions, *started;

static int setup(void **state)
{
    (void)state;
    folder = test_folder();
    train = strdup(tiny_rows(folder, "train.tsv"));
    output = strdup(test_path(folder, "output"));
    predictions = strdup(test_path(folder, "predictions.jsonl"));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free((char *)train);
    free((char *)output);
    free((char *)predictions);
    test_folder_remove(folder);
    return 0;
}

/* --- failing in turn -------------------------------------------------------------------------- */

typedef struct countdown {
    _Atomic long left; /* allocations that succeed */
    bool all_after;    /* not this one only, but every later one as well */
} countdown;

/* Any thread may come here. */
static int fail_in_turn(void *context, size_t bytes)
{
    countdown *count = context;
    (void)bytes;
    long left = atomic_fetch_sub(&count->left, 1);
    return left == 0 || (left < 0 && count->all_after);
}

static int open_files(void)
{
    int count = 0;
    DIR *files = opendir("/proc/self/fd");
    assert_non_null(files);
    while (readdir(files))
        count++;
    closedir(files);
    return count;
}

typedef ls_status command(ls_error *error);

static ls_status run_failing(command *run, long turn, bool all_after, ls_error *error)
{
    countdown count = {.left = turn, .all_after = all_after};
    size_t bytes = ls_allocated_bytes();
    int files = open_files();
    *error = (ls_error){0};
    ls_set_allocation_hook(fail_in_turn, &count);
    ls_status status = run(error);
    ls_set_allocation_hook(NULL, NULL);
    if (ls_allocated_bytes() != bytes)
        fail_msg("allocation %ld: %zu bytes are still held", turn, ls_allocated_bytes() - bytes);
    assert_int_equal(open_files(), files);
    if (status != LS_OK && (status != LS_NO_MEMORY || !strstr(error->text, "out of memory")))
        fail_msg("allocation %ld: %d '%s'", turn, status, error->text);
    if (status == LS_OK && count.left < 0) fail_msg("allocation %ld: nobody noticed", turn);
    return status;
}

/* With the n-th allocation failing, n = 0, every, 2 every, ..., until the command succeeds, where
 * LOCKSTEP_TEST_LONG=1 has its own `every_long`; under a sanitizer fewer. Of a prime number of them
 * no loop shows the same one each time. `check` looks at what a failure has left. */
static void fail_some(command *run, int every, int every_long, void (*check)(long turn))
{
    ls_error error;
    long turn = 0;
    every = (test_all() ? every_long : every) * test_slowness();
    /* The first call of all may make what is made once. */
    assert_ok(run(&error), error);
    for (int all_after = 0; all_after < 2; all_after++) {
        int stride = all_after ? 11 * every : every;
        for (turn = 0; run_failing(run, turn, all_after, &error) != LS_OK; turn += stride) {
            if (check) check(turn);
            assert_true(turn < 100000);
        }
    }
    printf("%ld allocations\n", turn);
    assert_true(turn > 50);
}

static void fail_usual(command *run, void (*check)(long turn))
{
    fail_some(run, 23, 1, check);
}

/* --- what a failed run may leave ----------------------------------------------------------------
 */

static bool ends_with(const char *name, const char *ending)
{
    size_t length = strlen(name), size = strlen(ending);
    return length >= size && strcmp(name + length - size, ending) == 0;
}

static void check_whole(const char *name, long turn)
{
    ls_error error;
    const char *path = test_path(output, name);
    if (strcmp(name, "model.safetensors") == 0) {
        ls_safetensors *file;
        assert_ok(ls_safetensors_open(&file, path, &error), error);
        ls_safetensors_free(file);
    } else if (ends_with(name, ".json")) {
        json_t *document;
        assert_ok(ls_json_load(&document, path, 1 << 20, &error), error);
        ls_json_free(document);
    } else if (!ends_with(name, ".jsonl") && !ends_with(name, ".txt")) {
        fail_msg("allocation %ld left %s", turn, name);
    }
}

/* The folder is gone, or holds whole files; then it is emptied for the next turn. */
static void check_output(long turn)
{
    DIR *files = opendir(output);
    if (!files) return;
    for (const struct dirent *entry; (entry = readdir(files));) {
        if (entry->d_name[0] == '.' && strlen(entry->d_name) <= 2) continue;
        check_whole(entry->d_name, turn);
        assert_int_equal(unlink(test_path(output, entry->d_name)), 0);
    }
    closedir(files);
    /* A folder that the run made and wrote nothing to is taken away again. */
    assert_int_equal(rmdir(output), 0);
}

static void check_predictions(long turn)
{
    DIR *files = opendir(folder);
    assert_non_null(files);
    for (const struct dirent *entry; (entry = readdir(files));)
        if (strstr(entry->d_name, "predictions"))
            fail_msg("allocation %ld left %s", turn, entry->d_name);
    closedir(files);
}

/* --- the commands -------------------------------------------------------------------------------
 */

/* With every kind of file that a run writes beside its model; a profile has a test of its own. */
static ls_status train_bert(ls_error *error)
{
    ls_options options = tiny_options("tiny-bert", train, output);
    options.max_steps = 1;
    options.threads = 1;
    options.validation = train;
    options.samples_per_pass = 6;
    options.tensorboard = test_path(folder, "board");
    options.csv = test_path(folder, "csv");
    options.prometheus = test_path(folder, "run.prom");
    return ls_train(&options, NULL, NULL, NULL, error);
}

static ls_status train_distilbert(ls_error *error)
{
    ls_options options = tiny_options("tiny-distilbert", train, output);
    options.max_steps = 1;
    options.threads = 1;
    options.validation = train;
    options.samples_per_pass = 6;
    return ls_train(&options, NULL, NULL, NULL, error);
}

/* Three ranks: one that fails must not leave the others waiting. */
static ls_status train_spread(const char *strategy, int64_t samples_per_pass, ls_error *error)
{
    ls_options options = tiny_options("tiny-distilbert", train, output);
    options.strategy = strategy;
    options.devices = 3;
    options.max_steps = 1;
    options.threads = 1;
    options.test = train;
    options.samples_per_pass = samples_per_pass;
    return ls_train(&options, NULL, NULL, NULL, error);
}

/* Going on after the first step of two, with the second one saved beside what follows. */
static ls_status resume_and_save(ls_error *error)
{
    ls_options options = tiny_options("tiny-bert", train, output);
    options.max_steps = 2;
    options.threads = 1;
    options.validation = train;
    options.strategy = "ddp";
    options.devices = 2;
    options.save_every = 1;
    options.save_total_limit = 10;
    options.audit_every = 2;
    options.keep_best = "loss";
    options.resume = started;
    return ls_train(&options, NULL, NULL, NULL, error);
}

/* Its start; *started is its first checkpoint. */
static void start_run(void)
{
    ls_error error;
    ls_options options = tiny_options("tiny-bert", train, test_path(folder, "start"));
    options.max_steps = 2;
    options.threads = 1;
    options.validation = train;
    options.save_every = 1;
    assert_ok(ls_train(&options, NULL, NULL, NULL, &error), error);
    started = strdup(test_path(test_path(folder, "start"), "checkpoint-1"));
}

/* A checkpoint is whole or not there, and nothing half-written lies about. */
static void check_checkpoint(long turn)
{
    ls_error error;
    DIR *files = opendir(output);
    if (!files) return;
    for (const struct dirent *entry; (entry = readdir(files));)
        if (strstr(entry->d_name, ".tmp-")) fail_msg("allocation %ld left %s", turn, entry->d_name);
    closedir(files);
    const char *checkpoint = test_path(output, "checkpoint-2");
    if (ls_path_exists(checkpoint)) {
        assert_ok(ls_verify(checkpoint, NULL, NULL, &error), error);
        assert_ok(ls_folder_remove(checkpoint, &error), error);
    }
    check_output(turn);
}

static ls_status verify(ls_error *error)
{
    LS_TRY(ls_verify(started, NULL, NULL, error));
    LS_TRY(ls_verify(started, started, NULL, error));
    return ls_audit_record(test_path(folder, "start"), NULL, error);
}

static ls_status train_parallel(ls_error *error)
{
    return train_spread("ddp+recompute", 3, error);
}

static ls_status train_divided(ls_error *error)
{
    return train_spread("zero3", 4, error);
}

/* Moments, or all that an update changes, in a file or in host memory. */
static ls_status train_offloaded(const char *strategy, const char *place, ls_error *error)
{
    ls_options options = tiny_options("tiny-distilbert", train, output);
    options.strategy = strategy;
    options.devices = 2;
    options.max_steps = 2;
    options.threads = 1;
    options.offload_optimizer = place;
    options.offload_path = strcmp(place, "disk") == 0 ? folder : NULL;
    options.offload_block_size = 16384;
    return ls_train(&options, NULL, NULL, NULL, error);
}

static ls_status train_from_disk(ls_error *error)
{
    return train_offloaded("ddp+recompute", "disk", error);
}

static ls_status train_from_host(ls_error *error)
{
    return train_offloaded("zero3+offload", "host", error);
}

static ls_status plan(ls_error *error)
{
    ls_options options = tiny_options("tiny-bert", train, NULL);
    char *text = NULL;
    options.strategy = "zero1";
    options.devices = 2;
    options.threads = 1;
    options.print_program = true;
    LS_TRY(ls_plan_text(&options, &text, error));
    ls_text_free(text);
    return LS_OK;
}

/* A table of every strategy, with rows that are refused and rows that do not fit. */
static ls_status plan_all(ls_error *error)
{
    ls_options options = tiny_options("tiny-distilbert", train, NULL);
    char *text = NULL;
    options.device_list = "1,2,5";
    options.threads = 1;
    options.device_memory = 3000000;
    options.samples_per_pass = 4;
    LS_TRY(ls_plan_table_text(&options, true, true, &text, error));
    ls_text_free(text);
    return LS_OK;
}

/* A run that is refused because it does not fit is refused in other words when memory ends. */
static ls_status refuse(ls_error *error)
{
    ls_options options = tiny_options("tiny-distilbert", train, NULL);
    ls_error refusal = {0};
    char *text = NULL;
    options.devices = 2;
    options.strategy = "zero1";
    options.threads = 1;
    options.device_memory = 3000000;
    options.samples_per_pass = 16;
    ls_status status = ls_plan_text(&options, &text, &refusal);
    if (status == LS_NO_MEMORY && strstr(refusal.text, "--device-memory allows")) return LS_OK;
    *error = refusal;
    ls_text_free(text);
    return status;
}

/* Each turn measures the machine. */
static ls_status plan_chosen(ls_error *error)
{
    ls_options options = tiny_options("tiny-distilbert", NULL, NULL);
    char *text = NULL;
    options.strategy = "auto";
    options.recompute = "none";
    options.threads = 1;
    LS_TRY(ls_plan_table_text(&options, true, false, &text, error));
    ls_text_free(text);
    return LS_OK;
}

static ls_status train_partly_whole(ls_error *error)
{
    ls_options options = tiny_options("tiny-distilbert", train, output);
    options.strategy = "zero3+offload";
    options.devices = 2;
    options.max_steps = 1;
    options.threads = 1;
    options.offload_block_size = 16384;
    options.prefetch_bucket_size = 20000;
    options.persistence_threshold = 100;
    return ls_train(&options, NULL, NULL, NULL, error);
}

static ls_status train_zero1(ls_error *error)
{
    return train_spread("zero1", 3, error);
}

static ls_status train_zero2(ls_error *error)
{
    return train_spread("zero2+recompute", 4, error);
}

static ls_status evaluate(ls_error *error)
{
    ls_options options = tiny_options("tiny-distilbert", NULL, NULL);
    options.threads = 1;
    options.data = train;
    options.predictions = predictions;
    LS_TRY(ls_evaluate(&options, NULL, error));
    assert_int_equal(unlink(predictions), 0);
    return LS_OK;
}

static ls_status predict(ls_error *error)
{
    ls_options options = tiny_options("tiny-distilbert", NULL, NULL);
    options.threads = 2;
    options.data = train;
    return ls_predict(&options, NULL, error);
}

static ls_status classify(ls_error *error)
{
    ls_options options = tiny_options("tiny-distilbert", NULL, NULL);
    ls_classifier *classifier = NULL;
    static const char *const texts[] = {"Great star", "a poor market"};
    float probabilities[2 * 4];
    options.threads = 2;
    LS_TRY(ls_classifier_open(&classifier, &options, error));
    ls_status status = ls_classifier_predict(classifier, texts, 2, probabilities, error);
    ls_classifier_free(classifier);
    return status;
}

static ls_status encode(ls_error *error)
{
    ls_options options = tiny_options("tiny-bert", NULL, NULL);
    ls_text_encoder *encoder = NULL;
    const int32_t *ids;
    int64_t count;
    LS_TRY(ls_text_encoder_open(&encoder, &options, error));
    ls_status status = ls_text_encoder_encode(encoder, "a good film", 11, &ids, &count, error);
    ls_text_encoder_free(encoder);
    return status;
}

static void take_tensor(void *context, const ls_tensor_report *tensor)
{
    (void)tensor;
    ++*(int *)context;
}

static ls_status inspect(ls_error *error)
{
    int tensors = 0;
    return ls_inspect(tiny_model("tiny-bert"), take_tensor, &tensors, error);
}

static void training_survives(void **state)
{
    (void)state;
    fail_usual(train_bert, check_output);
    fail_usual(train_distilbert, check_output);
}

static void data_parallel_survives(void **state)
{
    (void)state;
    fail_usual(train_parallel, check_output);
}

static void checkpoints_survive(void **state)
{
    (void)state;
    start_run();
    /* Each turn waits for a disk dozens of times. */
    fail_some(resume_and_save, 37, 23, check_checkpoint);
    fail_some(verify, 11, 7, NULL);
    free((char *)started);
}

static void offload_survives(void **state)
{
    (void)state;
    fail_usual(train_from_disk, check_output);
    fail_usual(train_from_host, check_output);
}

static void zero_survives(void **state)
{
    (void)state;
    fail_usual(train_divided, check_output);
    /* Most of it is as above. */
    fail_some(train_zero1, 53, 17, check_output);
    fail_some(train_zero2, 53, 17, check_output);
    fail_some(train_partly_whole, 53, 17, check_output);
}

static void planning_survives(void **state)
{
    (void)state;
    fail_usual(plan, NULL);
    /* They plan dozens of layouts in each turn. */
    fail_some(plan_all, 97, 61, NULL);
    fail_some(refuse, 211, 17, NULL);
    /* Each turn measures the machine, which takes seconds under a sanitizer. */
    if (test_slowness() == 1) fail_some(plan_chosen, 251, 251, NULL);
}

static void inference_survives(void **state)
{
    (void)state;
    fail_usual(evaluate, check_predictions);
    fail_usual(predict, NULL);
    fail_usual(classify, NULL);
}

static void looking_survives(void **state)
{
    (void)state;
    fail_usual(encode, NULL);
    fail_usual(inspect, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_survives), cmocka_unit_test(data_parallel_survives),
        cmocka_unit_test(offload_survives),  cmocka_unit_test(zero_survives),
        cmocka_unit_test(planning_survives), cmocka_unit_test(inference_survives),
        cmocka_unit_test(looking_survives),  cmocka_unit_test(checkpoints_survive),
    };
    return cmocka_run_group_tests_name("engine/allocation_failures", tests, setup, teardown);
}

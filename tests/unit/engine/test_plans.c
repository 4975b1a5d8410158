/* Plans against runs: a row of the table has the bytes and the elements that a run comes to, what
 * is too large is refused with a change that does fit, and auto takes what trains to the same bits.
 */
#include "tiny_ranks.h"
#include "tiny_runs.h"

#include <ctype.h>

#include "effort.h"
#include "engine/forecast.h"

enum { ROWS = 64, BATCH = 32, STEPS = 3 };

static ls_error error;
static char *folder;
static const char *train;

static int setup(void **state)
{
    (void)state;
    folder = test_folder();
    train = strdup(tiny_file(folder, "train.tsv", ROWS));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free((char *)train);
    test_folder_remove(folder);
    return 0;
}

static ls_options plan_options(const char *strategy, int64_t devices)
{
    ls_options options = tiny_options("tiny-bert", train, NULL);
    options.batch_size = BATCH;
    options.max_steps = STEPS;
    options.threads = 1;
    options.strategy = strategy;
    options.devices = devices;
    options.offload_block_size = 8192;
    return options;
}

/* --- bytes ------------------------------------------------------------------------------------ */

/* From `from` up to the next '}' or, with `one`, the next ',' or '}', without white space. */
static void cut_out(char *into, size_t bytes, const char *text, const char *from, bool one)
{
    const char *at = strstr(text, from);
    size_t length = 0;
    assert_non_null(at);
    for (; *at && *at != '}' && !(one && *at == ','); at++) {
        assert_true(length + 1 < bytes);
        if (!isspace((unsigned char)*at)) into[length++] = *at;
    }
    into[length] = '\0';
}

static void read_file(char *into, size_t bytes, const char *path)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    into[fread(into, 1, bytes - 1, file)] = '\0';
    fclose(file);
}

static void check_row(const ls_options *options)
{
    static const char *const keys[] = {
        "\"planned_bytes\": ", "\"planned_host_bytes\": ", "\"planned_file_bytes\": "};
    static char run[65536];
    char *plan = NULL, planned[2000], recorded[2000];
    tiny_outcome got = tiny_run(options, folder);
    ls_options own = *options;
    assert_int_equal(got.report.planned_bytes, got.report.measured_bytes);
    assert_int_equal(got.report.planned_host_bytes, got.report.measured_host_bytes);
    assert_int_equal(got.report.planned_file_bytes, got.report.measured_file_bytes);
    assert_ok(ls_plan_table_text(&own, false, true, &plan, &error), error);
    read_file(run, sizeof run, test_path(folder, "output/run.json"));
    cut_out(planned, sizeof planned, plan, "\"memory\": {", false);
    cut_out(recorded, sizeof recorded, run, "\"memory\": {", false);
    assert_string_equal(planned, recorded);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        cut_out(planned, sizeof planned, plan, keys[i], true);
        cut_out(recorded, sizeof recorded, run, keys[i], true);
        assert_string_equal(planned, recorded);
    }
    ls_text_free(plan);
}

static void a_row_is_what_a_run_takes(void **state)
{
    (void)state;
    static const struct {
        const char *strategy;
        int64_t devices, samples_per_pass, threshold, prefetch;
        const char *place;
    } cells[] = {
        {"single", 1, LS_SAMPLES_ALL, 0, -1, NULL},
        {"single+offload+recompute", 1, 8, 0, -1, NULL},
        {"ddp", 3, 6, 0, -1, NULL},
        {"ddp+offload", 2, LS_SAMPLES_ALL, 0, -1, "disk"},
        {"zero1+recompute", 2, LS_SAMPLES_ALL, 0, -1, NULL},
        {"zero2", 3, 4, 0, -1, NULL},
        {"zero2+offload", 2, LS_SAMPLES_ALL, 0, -1, NULL},
        {"zero3", 4, 4, 0, -1, NULL},
        {"zero3+recompute", 2, LS_SAMPLES_ALL, 1000, 0, NULL},
        {"zero3+offload", 2, LS_SAMPLES_ALL, 100, 9000, NULL},
        {"zero3+offload", 3, 4, 0, 1 << 30, "disk"},
    };
    int asked = 0;
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
        if (!test_takes(&asked)) continue;
        ls_options options = plan_options(cells[i].strategy, cells[i].devices);
        options.samples_per_pass = cells[i].samples_per_pass;
        options.persistence_threshold = cells[i].threshold;
        options.prefetch_bucket_size = cells[i].prefetch;
        options.offload_optimizer = cells[i].place;
        options.offload_path = cells[i].place ? folder : NULL;
        check_row(&options);
    }
}

/* --- elements --------------------------------------------------------------------------------- */

/* One text in all rows, no word of it twice: every root has every touched row. */
static const char *same_texts(void)
{
    const char *path = test_path(folder, "same.tsv");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("text\tlabel\n", file);
    for (int row = 0; row < ROWS; row++)
        fprintf(file, "the film is great and poor\t%s\n", row % 2 ? "a" : "b");
    assert_int_equal(fclose(file), 0);
    return path;
}

static int64_t forecast(const tiny_ranks *r, const ls_touched_capacity *touched)
{
    ls_assembly_options options = {.batch_size = BATCH, .leaf_size = 4};
    return ls_forecast_elements(&r->programs.training, &options, touched);
}

static void a_forecast_is_what_a_step_moves(void **state)
{
    (void)state;
    static const char *const strategies[] = {"ddp", "zero1", "zero2", "zero3"};
    char *rows = strdup(same_texts());
    int asked = 0;
    for (int s = 0; s < 4; s++)
        for (int count = 1; count <= 8; count *= 2)
            for (int64_t pass = 4; pass <= BATCH; pass *= 8) {
                if (!test_takes(&asked)) continue;
                tiny_ranks_options options = {.rows = rows,
                                              .folder = folder,
                                              .strategy = strategies[s],
                                              .count = count,
                                              .batch_size = BATCH,
                                              .samples_per_pass = pass};
                tiny_ranks r;
                tiny_ranks_open(&r, &options);
                int64_t length = ls_dataset_longest(r.data.dataset);
                ls_touched_capacity touched = {length, length, 1};
                tiny_ranks_steps(&r, 1);
                int64_t moved = ls_ranks_elements(r.ranks);
                if (moved != forecast(&r, &touched))
                    fail_msg("%s on %d, %lld a pass: %lld elements moved, %lld forecast",
                             strategies[s], count, (long long)pass, (long long)moved,
                             (long long)forecast(&r, &touched));
                assert_true(forecast(&r, NULL) >= moved);
                assert_int_equal(moved == 0, count == 1);
                tiny_ranks_close(&r);
            }
    free(rows);
}

/* P of the dense parameters, and what the formulas make of it. */
static void a_forecast_is_the_formula(void **state)
{
    (void)state;
    static const char *const strategies[] = {"ddp", "zero1", "zero2", "zero3"};
    int64_t ranks = 4, passes = 2, moved[4];
    ls_touched_capacity none = {0};
    tiny_ranks r;
    int64_t dense = 0, tables = 0;
    for (int s = 0; s < 4; s++) {
        tiny_ranks_options options = {.rows = train,
                                      .folder = folder,
                                      .strategy = strategies[s],
                                      .count = (int)ranks,
                                      .batch_size = BATCH,
                                      .samples_per_pass = 4};
        tiny_ranks_plan(&r, &options);
        const ls_program *program = r.programs.training.program;
        dense = tables = 0;
        for (ls_value_id id = 0; id < program->value_count; id++) {
            const ls_value *value = ls_value_of(program, id);
            if (value->role == LS_ROLE_PARAMETER)
                *(value->row_sparse ? &tables : &dense) +=
                    ls_value_elements(value, &ls_fixed_extents);
        }
        moved[s] = forecast(&r, &none) / (ranks - 1);
        tiny_ranks_close(&r);
    }
    /* The rest: the loss, the blocks of the norm; and the second root of a rank with two leaves in
     * passes of one. */
    int64_t little = dense / 100 + 200;
    assert_in_range(moved[0], 2 * dense, 2 * dense + little);
    assert_in_range(moved[1], 2 * dense + tables, 2 * dense + tables + little);
    assert_in_range(moved[2], (1 + passes) * dense + tables,
                    (1 + passes) * dense + tables + little);
    assert_in_range(moved[3], 3 * passes * dense, 3 * passes * dense + little);
}

/* --- what does not fit ------------------------------------------------------------------------ */

static int64_t bytes_of(const char *strategy, int64_t devices)
{
    ls_options options = plan_options(strategy, devices);
    char *plan = NULL;
    options.samples_per_pass = 4;
    assert_ok(ls_plan_table_text(&options, false, true, &plan, &error), error);
    int64_t bytes = strtoll(strstr(plan, "\"planned_bytes\": ") + 17, NULL, 10);
    ls_text_free(plan);
    return bytes;
}

/* Between what data parallel and what the others need. */
static void what_is_refused_trains_when_it_is_divided(void **state)
{
    (void)state;
    int64_t refused = bytes_of("ddp", 1), divided = bytes_of("zero3", 4);
    int64_t offloaded = bytes_of("zero3+offload+recompute", 1);
    ls_options options = plan_options("ddp", 1);
    tiny_outcome wanted = tiny_run(&options, folder), got;
    int64_t least = divided > offloaded ? divided : offloaded;
    assert_true(least < refused);
    options.samples_per_pass = 4;
    options.device_memory = least;
    options.output = test_path(folder, "refused");
    assert_int_equal(ls_train(&options, NULL, NULL, NULL, &error), LS_NO_MEMORY);
    assert_non_null(strstr(error.text, "ddp on 1 device has "));
    assert_non_null(strstr(error.text, "the smallest change that fits: --"));
    options.strategy = "zero3";
    options.devices = 4;
    got = tiny_run(&options, folder);
    tiny_check_same(&got, &wanted, "zero3, devices", 4);
    assert_in_range(got.report.measured_bytes, 1, options.device_memory);
    options.strategy = "zero3+offload+recompute";
    options.devices = 1;
    got = tiny_run(&options, folder);
    tiny_check_same(&got, &wanted, "zero3+offload, devices", 1);
    assert_in_range(got.report.measured_bytes, 1, options.device_memory);
}

/* Put the flags of a refusal into the options. */
static int follow(ls_options *options, char *advice)
{
    int flags = 0;
    for (char *word = strtok(advice, " "); word && strncmp(word, "--", 2) == 0;
         word = strtok(NULL, " ")) {
        char *value = strtok(NULL, " ");
        assert_non_null(value);
        assert_ok(ls_options_set(options, word + 2, value, &error), error);
        flags++;
    }
    return flags;
}

static void the_change_that_is_named_fits(void **state)
{
    (void)state;
    static const struct {
        const char *strategy;
        int64_t devices;
        int percent; /* of what it needs */
    } cases[] = {{"single", 1, 97}, {"ddp", 2, 95}, {"zero1", 2, 97}, {"ddp", 2, 98}};
    int asked = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!test_takes(&asked)) continue;
        ls_options options = plan_options(cases[i].strategy, cases[i].devices);
        char advice[1000];
        options.samples_per_pass = BATCH;
        options.device_memory = 1;
        options.output = test_path(folder, "refused");
        assert_int_equal(ls_train(&options, NULL, NULL, NULL, &error), LS_NO_MEMORY);
        int64_t needs = strtoll(strstr(error.text, "needs ") + 6, NULL, 10);
        assert_non_null(strstr(error.text, "no change of up to"));
        options.device_memory = needs * cases[i].percent / 100;
        assert_int_equal(ls_train(&options, NULL, NULL, NULL, &error), LS_NO_MEMORY);
        const char *flags = strstr(error.text, "that fits: ");
        assert_non_null(flags);
        snprintf(advice, sizeof advice, "%s", flags + 11);
        ls_options changed = options;
        assert_in_range(follow(&changed, advice), 1, 4);
        (void)tiny_run(&changed, folder);
    }
}

/* --- auto ------------------------------------------------------------------------------------- */

static void auto_trains_to_the_same_bits(void **state)
{
    (void)state;
    static char run[65536];
    char chosen[200];
    ls_options options = plan_options("single", 1);
    tiny_outcome wanted = tiny_run(&options, folder), got;
    options.strategy = "auto";
    options.devices = 2;
    got = tiny_run(&options, folder);
    tiny_check_same(&got, &wanted, "auto, devices", 2);
    /* One that fits where most do not. */
    options.device_memory = bytes_of("zero3+recompute", 2) + 4096;
    options.samples_per_pass = 4;
    got = tiny_run(&options, folder);
    tiny_check_same(&got, &wanted, "auto with a budget, devices", 2);
    assert_in_range(got.report.measured_bytes, 1, options.device_memory);
    read_file(run, sizeof run, test_path(folder, "output/run.json"));
    cut_out(chosen, sizeof chosen, run, "\"chosen\": ", true);
    assert_true(strncmp(chosen, "\"chosen\":\"zero", 14) == 0);
    assert_non_null(strstr(run, "\"given\": \"auto\""));
    assert_non_null(strstr(run, "\"fits\": \"no\""));
}

static void auto_leaves_what_is_given(void **state)
{
    (void)state;
    static char run[65536];
    ls_options options = plan_options("auto", 2);
    options.recompute = "attention";
    options.offload_optimizer = "host";
    (void)tiny_run(&options, folder);
    read_file(run, sizeof run, test_path(folder, "output/run.json"));
    assert_non_null(strstr(run, "\"recompute\": {\"value\": \"attention\""));
    assert_non_null(strstr(run, "\"offload_optimizer\": {\"value\": \"host\""));
    options.strategy = "auto+offload";
    options.output = test_path(folder, "output");
    assert_int_equal(ls_train(&options, NULL, NULL, NULL, &error), LS_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_what_a_run_takes),
        cmocka_unit_test(a_forecast_is_what_a_step_moves),
        cmocka_unit_test(a_forecast_is_the_formula),
        cmocka_unit_test(what_is_refused_trains_when_it_is_divided),
        cmocka_unit_test(the_change_that_is_named_fits),
        cmocka_unit_test(auto_trains_to_the_same_bits),
        cmocka_unit_test(auto_leaves_what_is_given),
    };
    return cmocka_run_group_tests_name("engine/plans", tests, setup, teardown);
}

/* A profile of real runs: the trace opens, its totals are the summary's, it names what it shows and
 * keeps its size; and run.json's results add up. */
#include "../engine/tiny_engine.h"

#include <errno.h>
#include <math.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/files.h"
#include "formats/json.h"
#include "monitor/profile.h"

static char *folder;
static const char *train, *output;

static int setup(void **state)
{
    (void)state;
    folder = test_folder();
    train = strdup(tiny_rows(folder, "train.tsv"));
    output = strdup(test_path(folder, "output"));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free((char *)train);
    free((char *)output);
    test_folder_remove(folder);
    return 0;
}

static json_t *load(const char *from, const char *name)
{
    ls_error error;
    json_t *document = NULL;
    char path[8192];
    snprintf(path, sizeof path, "%s/%s", from, name);
    assert_ok(ls_json_load(&document, path, 32 << 20, &error), error);
    return document;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static double number_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value)) fail_msg("no number '%s'", key);
    return json_number_value(value);
}

/* --- the trace's totals are the summary's ------------------------------------------------------
 */

typedef struct total {
    int64_t calls;
    double microseconds, flops, bytes;
} total;

/* Of all events of that name; of ops where `ops`, else of what is no op. */
static total total_of(const json_t *trace, const char *name, const char *layer, bool ops)
{
    total sum = {0};
    size_t i;
    const json_t *event;
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event)
    {
        const json_t *arguments = json_object_get(event, "args");
        const char *at = text_of(arguments, "layer");
        bool is_op = json_object_get(arguments, "flops") != NULL;
        if (strcmp(text_of(event, "ph"), "X") != 0 || is_op != ops) continue;
        if (name && strcmp(text_of(event, "name"), name) != 0) continue;
        size_t length = layer ? strlen(layer) : 0;
        if (layer && (strncmp(at, layer, length) != 0 || (at[length] && at[length] != '.')))
            continue;
        sum.calls++;
        sum.microseconds += number_of(event, "dur");
        if (is_op) sum.flops += number_of(arguments, "flops");
        sum.bytes += number_of(arguments, "bytes");
    }
    return sum;
}

static void check_row(const json_t *row, total sum, const char *name)
{
    /* Events have whole FLOPs. */
    if (sum.calls == 0 || number_of(row, "calls") != (double)sum.calls ||
        fabs(number_of(row, "seconds") - 1e-6 * sum.microseconds) > 1e-9 ||
        fabs(number_of(row, "bytes") - sum.bytes) > (double)sum.calls ||
        fabs(number_of(row, "flops") - sum.flops) > (double)sum.calls)
        fail_msg("%s: %g calls of %g s in the summary, %lld of %g s in the trace", name,
                 number_of(row, "calls"), number_of(row, "seconds"), (long long)sum.calls,
                 1e-6 * sum.microseconds);
}

static void check_totals(const json_t *trace, const json_t *summary)
{
    size_t i;
    const json_t *row;
    int64_t in_ops = 0, in_layers = 0;
    json_array_foreach(json_object_get(summary, "ops"), i, row)
    {
        check_row(row, total_of(trace, text_of(row, "op"), NULL, true), text_of(row, "op"));
        in_ops += (int64_t)number_of(row, "calls");
    }
    json_array_foreach(json_object_get(summary, "layers"), i, row)
    {
        check_row(row, total_of(trace, NULL, text_of(row, "layer"), true), text_of(row, "layer"));
        in_layers += (int64_t)number_of(row, "calls");
    }
    json_array_foreach(json_object_get(summary, "spans"), i, row)
        check_row(row, total_of(trace, text_of(row, "what"), NULL, false), text_of(row, "what"));
    assert_int_equal(in_ops, total_of(trace, NULL, NULL, true).calls);
    assert_int_equal(in_layers, in_ops);
}

/* --- what is in the trace ----------------------------------------------------------------------
 */

static int count_events(const json_t *trace, const char *phase, const char *name, int pid, int tid)
{
    int count = 0;
    size_t i;
    const json_t *event;
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event)
    {
        if (strcmp(text_of(event, "ph"), phase) != 0) continue;
        if (name && strncmp(text_of(event, "name"), name, strlen(name)) != 0) continue;
        if (pid >= 0 && (int)number_of(event, "pid") != pid) continue;
        count += tid < 0 || (int)number_of(event, "tid") == tid;
    }
    return count;
}

/* Thread ids of the trace. */
enum { COMPUTE = 1, COMMUNICATION, COPIES, DATA };

/* Spans of a thread do not overlap, but for the step's around its ops. */
static void check_order(const json_t *trace, int pid, int tid)
{
    double end = -1e300;
    size_t i;
    const json_t *event;
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event)
    {
        if (strcmp(text_of(event, "ph"), "X") != 0 || (int)number_of(event, "pid") != pid ||
            (int)number_of(event, "tid") != tid || strcmp(text_of(event, "cat"), "step") == 0)
            continue;
        assert_true(number_of(event, "dur") >= 0);
        assert_true(number_of(event, "ts") >= end - 0.0005);
        end = number_of(event, "ts") + number_of(event, "dur");
    }
}

static void check_trace(const json_t *trace, int ranks)
{
    for (int rank = 0; rank < ranks; rank++) {
        assert_int_equal(count_events(trace, "M", "process_name", rank, -1), 1);
        assert_int_equal(count_events(trace, "M", "thread_name", rank, -1), rank ? 3 : 4);
        assert_int_equal(count_events(trace, "X", "step ", rank, COMPUTE), 3);
        assert_true(count_events(trace, "X", "weight_gradient", rank, COMPUTE) >= 3 * 10);
        assert_int_equal(count_events(trace, "X", "write inputs", rank, COPIES), ranks > 1 ? 3 : 6);
        assert_true(count_events(trace, "C", "device memory", rank, -1) > 50);
        assert_int_equal(count_events(trace, "X", "sum bucket", rank, COMMUNICATION) > 0,
                         ranks > 1);
        assert_int_equal(count_events(trace, "X", "wait for exchanges", rank, COMPUTE),
                         ranks > 1 ? 3 : 0);
        for (int tid = COMPUTE; tid <= DATA; tid++)
            check_order(trace, rank, tid);
    }
    assert_int_equal(count_events(trace, "X", "wait for data", 0, COMPUTE), 3);
    assert_int_equal(count_events(trace, "C", "host memory", 0, -1), 3);
    size_t i;
    const json_t *event;
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event)
    {
        const json_t *arguments = json_object_get(event, "args");
        if (strcmp(text_of(event, "name"), "linear") != 0) continue;
        assert_non_null(strstr(text_of(arguments, "shapes"), "] -> ["));
        assert_true(number_of(arguments, "flops") > 0 && number_of(arguments, "bytes") > 0);
        assert_string_equal(text_of(event, "cat"), "forward");
    }
}

static ls_options profiled(int ranks)
{
    ls_options options = tiny_options("tiny-bert", train, output);
    options.profile = true;
    options.profile_steps = "1:3"; /* full batches */
    options.samples_per_pass = 8;
    options.threads = 1;
    options.devices = ranks;
    options.strategy = ranks > 1 ? "ddp" : "single";
    return options;
}

static void check_summary(const json_t *summary, int ranks)
{
    static const char *const bottlenecks[] = {"compute", "memory bandwidth", "communication",
                                              "data", "imbalance"};
    const json_t *bottleneck = json_object_get(summary, "bottleneck");
    const json_t *share = json_object_get(summary, "share");
    bool known = false;
    for (int i = 0; i < 5; i++) {
        known |= strcmp(text_of(bottleneck, "name"), bottlenecks[i]) == 0;
        assert_true(number_of(bottleneck, bottlenecks[i]) >= 0);
        assert_true(number_of(bottleneck, bottlenecks[i]) <=
                    number_of(bottleneck, text_of(bottleneck, "name")));
    }
    assert_true(known && strlen(text_of(bottleneck, "try")) > 10);
    double sum = number_of(share, "forward") + number_of(share, "backward") +
                 number_of(share, "exchange") + number_of(share, "optimizer") +
                 number_of(share, "data");
    assert_true(fabs(sum - 1) < 0.02);
    assert_int_equal(json_array_size(json_object_get(summary, "ranks")), ranks);
    assert_true(number_of(summary, "peak_flops_per_second") > 1e7);
    assert_true(number_of(summary, "peak_bytes_per_second") > 1e7);
}

static void a_run_is_profiled_on_any_number_of_ranks(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 3; ranks += 2) {
        ls_error error;
        ls_train_report plain, report;
        size_t bytes;
        ls_options options = profiled(ranks);
        if (ranks == 3) options.batch_size = 24;
        options.profile = false;
        assert_ok(ls_train(&options, NULL, NULL, &plain, &error), error);
        assert_false(ls_path_exists(test_path(output, "profile")));
        options.profile = true;
        assert_ok(ls_train(&options, NULL, NULL, &report, &error), error);
        assert_string_equal(report.weights_sha256, plain.weights_sha256);
        json_t *trace = load(output, "profile/trace.json");
        json_t *summary = load(output, "profile/summary.json");
        assert_true(number_of(summary, "first_step") == 1 && number_of(summary, "last_step") == 3);
        check_totals(trace, summary);
        if (ranks == 1) check_trace(trace, ranks);
        check_summary(summary, ranks);
        char *text = NULL;
        assert_ok(
            ls_file_read(&text, &bytes, test_path(output, "profile/summary.txt"), 1 << 20, &error),
            error);
        assert_non_null(strstr(text, "\nbottleneck: "));
        assert_non_null(strstr(text, "\nweight_gradient "));
        assert_non_null(strstr(text, "\nbert.encoder.layer.1 "));
        ls_free(text);
        ls_json_free(trace);
        ls_json_free(summary);
    }
}

static void two_ranks_are_two_processes_of_the_trace(void **state)
{
    (void)state;
    ls_error error;
    ls_options options = profiled(2);
    assert_ok(ls_train(&options, NULL, NULL, NULL, &error), error);
    json_t *trace = load(output, "profile/trace.json");
    check_trace(trace, 2);
    ls_json_free(trace);
}

/* --- steps -------------------------------------------------------------------------------------
 */

static void note_message(void *context, const char *line)
{
    if (strncmp(line, "profile: the run has", 20) == 0) snprintf(context, 400, "%s", line);
}

/* Three batches may have been read before the first step. */
static void reading_ahead_is_shown(void **state)
{
    (void)state;
    ls_error error;
    ls_options options = profiled(1);
    options.profile_steps = "1:8";
    assert_ok(ls_train(&options, NULL, NULL, NULL, &error), error);
    json_t *trace = load(output, "profile/trace.json");
    assert_true(count_events(trace, "X", "read batch", 0, DATA) >= 8 - 3);
    check_order(trace, 0, DATA);
    ls_json_free(trace);
}

/* A measured peak that the steps exceed, as one has it that was measured while others had the
 * cores: no share is above 1, and what caches give is no share of memory. */
static void check_shares_of_peak(const json_t *summary)
{
    static const char *const lists[] = {"ops", "layers"};
    bool cached = false, whole = false;
    for (int i = 0; i < 2; i++) {
        size_t at;
        const json_t *row;
        json_array_foreach(json_object_get(summary, lists[i]), at, row)
        {
            const json_t *moved = json_object_get(row, "share_of_peak_bytes");
            double computed = number_of(row, "share_of_peak_flops");
            assert_true(computed >= 0 && computed <= 1 + 1e-9);
            whole |= computed > 1 - 1e-9;
            assert_true(json_is_null(moved) || json_number_value(moved) <= 1);
            cached |= json_is_null(moved);
        }
    }
    assert_true(whole && cached);
    const char *text = text_of(json_object_get(summary, "bottleneck"), "text");
    const char *rate = strstr(text, "runs at ");
    assert_true(!rate || atoi(rate + strlen("runs at ")) <= 100);
}

static void a_shorter_run_has_its_last_steps_recorded(void **state)
{
    (void)state;
    ls_error error;
    char said[400] = "";
    ls_callbacks callbacks = {.context = said, .message = note_message};
    ls_options options = profiled(1);
    options.profile_steps = "10:12";
    options.max_steps = 5;
    assert_ok(ls_train(&options, &callbacks, NULL, NULL, &error), error);
    json_t *summary = load(output, "profile/summary.json");
    assert_true(number_of(summary, "first_step") == 3 && number_of(summary, "last_step") == 5);
    assert_non_null(strstr(said, "3:5 are recorded instead of 10:12"));
    ls_json_free(summary);
}

static void steps_are_two_numbers(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      ":",
                                      "0:3",
                                      "3:2",
                                      "1:",
                                      "a",
                                      "1:b",
                                      "-1:2",
                                      "1:2x",
                                      "1 :2",
                                      "1::2",
                                      "1:2:3",
                                      "99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ls_error error;
        ls_options options = profiled(1);
        options.profile_steps = bad[i];
        assert_int_equal(ls_train(&options, NULL, NULL, NULL, &error), LS_USAGE);
        assert_non_null(strstr(error.text, "--profile-steps"));
    }
}

/* --- size --------------------------------------------------------------------------------------
 */

static void record_steps(ls_profile *profile, tiny_engine *engine, int64_t steps)
{
    uint64_t allocations = ls_allocation_count();
    ls_trainer_tracks tracks = {
        ls_trace_track(ls_profile_trace(profile), 0, LS_TRACE_COMPUTE),
        ls_trace_track(ls_profile_trace(profile), 0, LS_TRACE_COMMUNICATION),
        ls_trace_track(ls_profile_trace(profile), 0, LS_TRACE_GATHERS),
        ls_trace_track(ls_profile_trace(profile), 0, LS_TRACE_COPIES)};
    ls_trainer_trace(engine->trainer, &tracks);
    for (int64_t step = 1; step <= steps; step++) {
        double begin = ls_seconds();
        ls_profile_step_begin(profile, step);
        ls_step_result result = tiny_engine_step(engine, step);
        ls_profile_step_end(profile, &result, &result.times, begin, 1);
    }
    assert_int_equal(ls_allocation_count(), allocations);
}

static ls_profile_options options_of(const tiny_engine *engine, int64_t limit)
{
    return (ls_profile_options){.folder = test_path(folder, "limited"),
                                .assembly = &engine->assembly,
                                .first_step = 1,
                                .last_step = 8,
                                .devices = 1,
                                .threads = 2,
                                .cores = 2,
                                .peak = {1e6, 1e6},
                                .limit_bytes = limit};
}

/* What bounds the ops follows from their costs and the machine's peaks: each name has its advice.
 */
static void a_bottleneck_is_named_with_what_to_try(void **state)
{
    (void)state;
    static const struct {
        ls_machine_peak peak;
        const char *name, *advice;
    } cases[] = {{{1, 1e18}, "compute", "--max-length"},
                 {{1e18, 1}, "memory bandwidth", "--batch-size"}};
    for (int i = 0; i < 2; i++) {
        tiny_engine engine;
        ls_error error;
        ls_profile *profile = NULL;
        char notes[400];
        tiny_engine_open(&engine, "tiny-bert", train, folder, 16, NULL);
        ls_profile_options options = options_of(&engine, 0);
        options.peak = cases[i].peak;
        assert_ok(ls_profile_new(&profile, &options, &error), error);
        record_steps(profile, &engine, 9);
        assert_ok(ls_profile_write(profile, notes, &error), error);
        json_t *summary = load(options.folder, "summary.json");
        const json_t *bottleneck = json_object_get(summary, "bottleneck");
        assert_string_equal(text_of(bottleneck, "name"), cases[i].name);
        assert_non_null(strstr(text_of(bottleneck, "try"), cases[i].advice));
        assert_true(number_of(bottleneck, cases[i].name) >
                    number_of(bottleneck, cases[1 - i].name));
        ls_json_free(summary);
        ls_profile_free(profile);
        tiny_engine_close(&engine);
    }
}

/* Whole steps are left out until it fits; of a single step, spans. What the summary counts is what
 * the trace holds in every case. */
static void a_trace_keeps_its_size(void **state)
{
    (void)state;
    static const int64_t limits[] = {30000, 150000, 300000, 0};
    int64_t last_step = 0;
    for (int i = 0; i < 4; i++) {
        tiny_engine engine;
        ls_error error;
        ls_profile *profile = NULL;
        char notes[400];
        size_t bytes;
        char *text = NULL;
        tiny_engine_open(&engine, "tiny-bert", train, folder, 16, NULL);
        ls_profile_options options = options_of(&engine, limits[i]);
        assert_ok(ls_profile_new(&profile, &options, &error), error);
        record_steps(profile, &engine, 9);
        assert_true(ls_profile_is_due(profile));
        assert_false(ls_profile_is_due(profile));
        assert_ok(ls_profile_write(profile, notes, &error), error);
        assert_ok(
            ls_file_read(&text, &bytes, test_path(options.folder, "trace.json"), 32 << 20, &error),
            error);
        ls_free(text);
        assert_true((int64_t)bytes <= (limits[i] ? limits[i] : LS_TRACE_FILE_BYTES));
        json_t *trace = load(options.folder, "trace.json");
        json_t *summary = load(options.folder, "summary.json");
        check_totals(trace, summary);
        check_shares_of_peak(summary);
        assert_int_equal(number_of(summary, "spans_left_out") > 0, i == 0);
        assert_int_equal(*notes != '\0', i < 3);
        assert_true(number_of(summary, "last_step") > (double)last_step || i == 0);
        last_step = (int64_t)number_of(summary, "last_step");
        ls_json_free(trace);
        ls_json_free(summary);
        ls_profile_free(profile);
        tiny_engine_close(&engine);
    }
    assert_int_equal(last_step, 8);
}

static int fail_at(void *context, size_t bytes)
{
    long *left = context;
    (void)bytes;
    return (*left)-- == 0;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    tiny_engine engine;
    ls_error error;
    ls_profile *profile = NULL;
    char notes[400];
    tiny_engine_open(&engine, "tiny-bert", train, folder, 16, NULL);
    ls_profile_options options = options_of(&engine, 0);
    size_t bytes = ls_allocated_bytes();
    ls_status status = LS_NO_MEMORY;
    for (long turn = 0; status != LS_OK; turn++) {
        long left = turn;
        assert_int_equal(ls_allocated_bytes(), bytes);
        ls_set_allocation_hook(fail_at, &left);
        status = ls_profile_new(&profile, &options, &error);
        ls_set_allocation_hook(NULL, NULL);
    }
    record_steps(profile, &engine, 8);
    bytes = ls_allocated_bytes();
    status = LS_NO_MEMORY;
    for (long turn = 0; status != LS_OK; turn++) {
        long left = turn;
        ls_set_allocation_hook(fail_at, &left);
        status = ls_profile_write(profile, notes, &error);
        ls_set_allocation_hook(NULL, NULL);
        assert_int_equal(ls_allocated_bytes(), bytes);
    }
    json_t *trace = load(options.folder, "trace.json");
    json_t *summary = load(options.folder, "summary.json");
    check_totals(trace, summary);
    ls_json_free(trace);
    ls_json_free(summary);
    ls_profile_free(profile);
    tiny_engine_close(&engine);
}

/* --- run.json ----------------------------------------------------------------------------------
 */

static void check_results(const ls_options *options, const ls_train_report *report)
{
    json_t *record = load(options->output, "run.json");
    const json_t *results = json_object_get(record, "results");
    const json_t *share = json_object_get(results, "share");
    const json_t *part;
    const char *key;
    double sum = 0, parts = 0;
    json_object_foreach((json_t *)share, key, part) sum += json_number_value(part);
    assert_int_equal(json_object_size(share), 5);
    assert_true(fabs(sum - 1) < 0.02);
    json_object_foreach(json_object_get(results, "memory"), key, part) parts +=
        json_number_value(part);
    assert_true(parts == (double)report->planned_bytes);
    assert_true(number_of(results, "planned_bytes") == (double)report->planned_bytes);
    assert_true(number_of(results, "measured_bytes") == (double)report->measured_bytes);
    assert_true(number_of(json_object_get(results, "memory"), "optimizer_state") >
                number_of(json_object_get(results, "memory"), "parameters"));
    assert_string_equal(text_of(results, "weights_sha256"), report->weights_sha256);
    assert_true(number_of(results, "step_ms_p95") >= number_of(results, "step_ms_median"));
    assert_true(number_of(results, "flops_per_second") > 0);
    assert_true(number_of(results, "flops_per_step") > 0);
    assert_true(number_of(results, "host_peak_bytes") > 1e6);
    assert_true(number_of(results, "bytes_sent_per_step") ==
                4 * number_of(results, "elements_sent_per_step"));
    assert_int_equal(number_of(results, "elements_sent_per_step") > 0, options->devices > 1);
    assert_int_equal(json_is_null(json_object_get(results, "share_of_peak")),
                     !options->measure_peak);
    assert_true(number_of(json_object_get(json_object_get(results, "evaluations"), "test"),
                          "accuracy") <= 1);
    ls_json_free(record);
}

/* Each step's parts are the step, too. */
static void check_lines(void)
{
    char line[2048];
    int steps = 0;
    FILE *file = fopen(test_path(output, "metrics.jsonl"), "r");
    if (!file) fail_msg("%s: %s", output, strerror(errno));
    while (fgets(line, sizeof line, file)) {
        json_t *object = NULL;
        ls_error error;
        assert_ok(ls_json_parse(&object, line, strlen(line), "line", &error), error);
        if (!json_object_get(object, "evaluation")) {
            static const char *const parts[] = {"data_seconds", "forward_seconds",
                                                "backward_seconds", "exchange_seconds",
                                                "optimizer_seconds"};
            double sum = 0, whole = number_of(object, "step_seconds");
            for (int i = 0; i < 5; i++)
                sum += number_of(object, parts[i]);
            /* Each is rounded to a microsecond. */
            assert_true(fabs(sum - whole) <= 0.02 * whole + 3e-6);
            assert_true(number_of(object, "device_bytes") > 0);
            steps++;
        }
        ls_json_free(object);
    }
    fclose(file);
    assert_int_equal(steps, 8);
}

static void a_run_tells_where_its_time_and_memory_went(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 2; ranks++) {
        ls_error error;
        ls_train_report report;
        ls_options options = profiled(ranks);
        options.profile = false;
        options.measure_peak = ranks == 2;
        options.test = train;
        assert_ok(ls_train(&options, NULL, NULL, &report, &error), error);
        check_results(&options, &report);
        check_lines();
    }
}

/* N ranks of one root each read everything 2 (N - 1) times, but for a table's rows that a rank's
 * samples do not touch. */
static void elements_are_those_of_the_counters(void **state)
{
    (void)state;
    ls_error error;
    double elements[2];
    for (int i = 0; i < 2; i++) {
        ls_options options = profiled(i ? 4 : 2);
        options.profile = false;
        options.max_steps = 3; /* full batches alone */
        assert_ok(ls_train(&options, NULL, NULL, NULL, &error), error);
        json_t *record = load(output, "run.json");
        elements[i] = number_of(json_object_get(record, "results"), "elements_sent_per_step");
        ls_json_free(record);
    }
    assert_true(elements[1] < 3 * elements[0] && elements[1] > 2.8 * elements[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_profiled_on_any_number_of_ranks),
        cmocka_unit_test(two_ranks_are_two_processes_of_the_trace),
        cmocka_unit_test(reading_ahead_is_shown),
        cmocka_unit_test(a_shorter_run_has_its_last_steps_recorded),
        cmocka_unit_test(steps_are_two_numbers),
        cmocka_unit_test(a_bottleneck_is_named_with_what_to_try),
        cmocka_unit_test(a_trace_keeps_its_size),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_run_tells_where_its_time_and_memory_went),
        cmocka_unit_test(elements_are_those_of_the_counters),
    };
    return cmocka_run_group_tests_name("monitor/profile", tests, setup, teardown);
}

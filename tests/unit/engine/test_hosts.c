/* Ranks on several hosts: threads that are kept out of each other's memory, so that what travels
 * between hosts runs as it does over a network. The bits of one rank, for any layout; what is sent;
 * and a rank that fails while others wait for its messages. */
#include "tiny_engine.h"

#include "base/alloc.h"
#include "engine/collectives.h"
#include "engine/ranks.h"

/* Eight leaves; the last batch of an epoch has two of them. */
enum { ROWS = 102, BATCH = 32, STEPS_AN_EPOCH = 4, MOST_RANKS = 8, MOST_HOSTS = 8 };

static char *folder;
static const char *train, *alike;

/* Every text has the same words. */
static void write_alike(const char *path)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("text\tlabel\n", file);
    for (int row = 0; row < ROWS; row++)
        fprintf(file, "the great film\t%s\n", row % 2 ? "sport" : "science");
    assert_int_equal(fclose(file), 0);
}

static int setup(void **state)
{
    (void)state;
    folder = test_folder();
    train = strdup(tiny_file(folder, "train.tsv", ROWS));
    alike = strdup(test_path(folder, "alike.tsv"));
    write_alike(alike);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free((char *)train);
    free((char *)alike);
    test_folder_remove(folder);
    return 0;
}

/* --- a run by hand ---------------------------------------------------------------------------- */

typedef struct host_layout {
    int hosts, ranks[MOST_HOSTS];
} host_layout;

typedef struct host_run {
    tiny_engine data;
    ls_device *devices[MOST_RANKS];
    int count;
    ls_run_programs programs;
    ls_ranks *ranks;
} host_run;

static void open_run(host_run *r, const char *rows, const host_layout *layout, int64_t pass)
{
    ls_error error;
    ls_comm *comms[MOST_RANKS];
    int begin[MOST_HOSTS + 1] = {0};
    *r = (host_run){0};
    for (int host = 0; host < layout->hosts; host++)
        begin[host + 1] = r->count += layout->ranks[host];
    tiny_engine_open_data(&r->data, "tiny-bert", rows, folder, BATCH);
    for (int i = 0; i < r->count; i++)
        assert_ok(ls_cpu_device_new(&r->devices[i], 1, 0, &error), error);
    ls_run_memory_options memory = {
        .training =
            {.config = &r->data.folder.config,
             .classes = ls_labels_count(r->data.labels),
             .training = true,
             .optimizer = {.beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f, .max_norm = 1.0f},
             .batch_size = BATCH,
             .leaf_size = 4,
             .ranks = r->count,
             .bucket_bytes = 16 << 10,
             .staging_bytes = ls_collectives_staging_bytes(begin, layout->hosts),
             .longest_row = ls_dataset_longest(r->data.dataset)},
        .samples_per_pass = pass,
        .evaluation_longest_row = ls_dataset_longest(r->data.dataset)};
    assert_ok(ls_run_programs_make(&r->programs, &memory, r->devices[0], &error), error);
    assert_ok(ls_comm_threads_apart_new(comms, layout->ranks, layout->hosts, &error), error);
    ls_ranks_options options = {
        .programs = &r->programs,
        .devices = r->devices,
        .comms = comms,
        .count = r->count,
        .trainer = {.leaf_size = 4,
                    .seed = 42,
                    .schedule = {.kind = LS_SCHEDULE_CONSTANT, .peak = 1e-3, .total_steps = 100},
                    .beta1 = 0.9,
                    .beta2 = 0.999}};
    assert_ok(ls_ranks_new(&r->ranks, &options, &error), error);
    ls_parameters_notes notes = {0};
    assert_ok(ls_ranks_load(r->ranks, r->data.folder.weights, 42, &notes, &error), error);
    ls_parameters_notes_deinit(&notes);
}

static const ls_batch *next_batch(host_run *r)
{
    ls_error error;
    const ls_batch *batch;
    bool more;
    assert_ok(ls_reader_next(r->data.reader, &batch, &more, &error), error);
    return batch;
}

static void run_steps(host_run *r, int64_t steps)
{
    ls_error error;
    ls_step_result result;
    for (int64_t step = 1; step <= steps; step++)
        assert_ok(ls_ranks_step(r->ranks, step, next_batch(r), &result, &error), error);
}

static void close_run(host_run *r)
{
    ls_ranks_free(r->ranks);
    ls_run_programs_deinit(&r->programs);
    for (int i = 0; i < r->count; i++)
        ls_device_free(r->devices[i]);
    tiny_engine_close(&r->data);
}

/* --- the same bits ---------------------------------------------------------------------------- */

/* Parameters and moments after two epochs, of rank 0. */
static unsigned char *train_on(const host_layout *layout, int64_t pass, size_t *bytes)
{
    host_run r;
    open_run(&r, train, layout, pass);
    run_steps(&r, 2 * STEPS_AN_EPOCH);
    const ls_plan *plan = &r.programs.training.plan;
    size_t parameters = (size_t)plan->bytes[LS_PLAN_PARAMETERS];
    size_t moments = (size_t)plan->bytes[LS_PLAN_OPTIMIZER_STATE];
    ls_executor *executor = ls_ranks_executor(r.ranks);
    unsigned char *held = malloc(parameters + moments);
    assert_non_null(held);
    memcpy(held, ls_executor_arena(executor, LS_PLAN_PARAMETERS), parameters);
    memcpy(held + parameters, ls_executor_arena(executor, LS_PLAN_OPTIMIZER_STATE), moments);
    *bytes = parameters + moments;
    close_run(&r);
    return held;
}

static void hosts_do_not_matter(void **state)
{
    (void)state;
    static const host_layout layouts[] = {
        {2, {1, 1}},
        {2, {2, 2}},
        {2, {1, 3}},
        {2, {3, 1}},
        {3, {2, 1, 1}},
        {3, {1, 2, 3}},
        {4, {1, 1, 1, 1}},
        {3, {3, 3, 1}},
        {2, {4, 4}},
        {4, {2, 2, 2, 2}},
        {8, {1, 1, 1, 1, 1, 1, 1, 1}},
    };
    static const int64_t passes[] = {LS_SAMPLES_ALL, 6};
    const host_layout one = {1, {1}};
    size_t bytes, wanted_bytes;
    unsigned char *wanted = train_on(&one, LS_SAMPLES_ALL, &wanted_bytes);
    for (size_t i = 0; i < 2 * sizeof layouts / sizeof *layouts; i++) {
        const host_layout *layout = &layouts[i / 2];
        unsigned char *got = train_on(layout, passes[i % 2], &bytes);
        assert_int_equal(bytes, wanted_bytes);
        if (memcmp(got, wanted, bytes) != 0)
            fail_msg("layout %zu (%d hosts), %lld samples a pass: other bits", i / 2, layout->hosts,
                     (long long)passes[i % 2]);
        free(got);
    }
    free(wanted);
}

/* --- what is sent ----------------------------------------------------------------------------- */

enum { MOST_TABLE_ROWS = 2048 };

/* Elements of a table's rows. On the owner's host: it reads the ranks that have touched the row. On
 * another: the agent reads its neighbours that have, and sends one sum if anyone has. Then all
 * ranks get all rows. */
static int64_t table_elements(const ls_batch *batch, const int32_t *row_of_token,
                              const host_layout *layout, int64_t hidden, int64_t *touched)
{
    static bool touches[MOST_TABLE_ROWS][MOST_RANKS];
    int ranks = layout->hosts * layout->ranks[0], near = layout->ranks[0];
    int share = batch->samples / ranks;
    int64_t index = 0, rows = 0;
    memset(touches, 0, sizeof touches);
    *touched = 0;
    for (int32_t sample = 0; sample < batch->samples; sample++)
        for (int32_t t = batch->offsets[sample]; t < batch->offsets[sample + 1]; t++)
            touches[row_of_token[t]][sample / share] = true;
    for (int row = 0; row < MOST_TABLE_ROWS; row++)
        for (int rank = 0, any = 0; rank < ranks && !any; rank++)
            *touched += any = touches[row][rank];
    for (int row = 0; row < MOST_TABLE_ROWS; row++) {
        int any = 0, owner = 0;
        for (int rank = 0; rank < ranks; rank++)
            any |= touches[row][rank];
        if (!any) continue;
        while (index >= *touched * (owner + 1) / ranks)
            owner++;
        for (int host = 0; host < layout->hosts; host++) {
            int worker = host * near + owner % near, sums = 0;
            for (int rank = host * near; rank < (host + 1) * near; rank++) {
                sums |= touches[row][rank];
                rows += touches[row][rank] && rank != worker;
            }
            rows += sums && host != owner / near;
        }
        rows += ranks - 1;
        index++;
    }
    return rows * hidden;
}

static int64_t expected_elements(const host_run *r, const host_layout *layout,
                                 const ls_batch *batch, int64_t *formula)
{
    static int32_t words[BATCH * 64], positions[BATCH * 64], types[BATCH * 64];
    static const ls_extents fixed = {{1}};
    const ls_assembly *assembly = &r->programs.training;
    int64_t others = r->count - 1, elements = 2 * others; /* the loss */
    *formula = elements;
    for (int32_t sample = 0; sample < batch->samples; sample++)
        for (int32_t t = batch->offsets[sample]; t < batch->offsets[sample + 1]; t++) {
            words[t] = batch->ids[t];
            positions[t] = t - batch->offsets[sample];
            types[t] = batch->types[t];
        }
    for (size_t i = 0; i < assembly->model.parameter_count; i++) {
        const ls_value *parameter =
            ls_value_of(assembly->program, assembly->model.parameters[i].value);
        int64_t own = 2 * others * ls_value_elements(parameter, &fixed), part = own, touched;
        if (parameter->row_sparse) {
            const int32_t *rows = strstr(parameter->name, "word")       ? words
                                  : strstr(parameter->name, "position") ? positions
                                                                        : types;
            int64_t hidden = parameter->shape[1].constant;
            own = table_elements(batch, rows, layout, hidden, &touched);
            part = 2 * others * touched * hidden;
        }
        elements += own;
        *formula += part;
    }
    return elements;
}

/* 2 (N - 1) elements a parameter, as on one host; embedding tables by their touched rows. */
static void hosts_send_what_the_formula_says(void **state)
{
    (void)state;
    static const host_layout layouts[] = {
        {2, {1, 1}}, {2, {2, 2}}, {4, {1, 1, 1, 1}}, {4, {2, 2, 2, 2}}, {2, {4, 4}}};
    for (size_t i = 0; i < 2 * sizeof layouts / sizeof *layouts; i++) {
        const host_layout *layout = &layouts[i / 2];
        bool all_touch_all = i % 2;
        host_run r;
        ls_error error;
        ls_step_result result;
        int64_t before = 0, formula;
        open_run(&r, all_touch_all ? alike : train, layout, LS_SAMPLES_ALL);
        for (int64_t step = 1; step < STEPS_AN_EPOCH; step++) {
            const ls_batch *batch = next_batch(&r);
            assert_ok(ls_ranks_step(r.ranks, step, batch, &result, &error), error);
            int64_t sent = ls_ranks_elements(r.ranks) - before;
            assert_int_equal(sent, expected_elements(&r, layout, batch, &formula));
            if (all_touch_all) assert_int_equal(sent, formula);
            before += sent;
        }
        close_run(&r);
    }
}

/* --- memory ----------------------------------------------------------------------------------- */

static int refuse(void *context, size_t bytes)
{
    (void)context, (void)bytes;
    return 1;
}

static void steps_allocate_nothing_and_buffers_are_planned(void **state)
{
    (void)state;
    const host_layout layout = {3, {1, 2, 1}}, one = {1, {4}};
    host_run r;
    open_run(&r, train, &layout, 6);
    assert_true(r.programs.training.plan.bytes[LS_PLAN_STAGING] > 0);
    for (int i = 0; i < r.count; i++)
        assert_int_equal(r.devices[i]->allocated_bytes, ls_run_programs_bytes(&r.programs));
    uint64_t count = ls_allocation_count();
    ls_set_allocation_hook(refuse, NULL);
    run_steps(&r, 2 * STEPS_AN_EPOCH);
    ls_set_allocation_hook(NULL, NULL);
    assert_true(ls_allocation_count() == count);
    close_run(&r);
    open_run(&r, train, &one, 6);
    assert_int_equal(r.programs.training.plan.bytes[LS_PLAN_STAGING], 0);
    close_run(&r);
}

/* --- a rank that fails ------------------------------------------------------------------------ */

static void a_failing_rank_stops_those_that_wait_for_its_messages(void **state)
{
    (void)state;
    const host_layout layout = {2, {1, 2}};
    const ls_error why = {.code = LS_INVALID, .text = "has had enough"};
    host_run r;
    ls_error error;
    ls_step_result result;
    open_run(&r, train, &layout, LS_SAMPLES_ALL);
    const ls_batch *batch = next_batch(&r);
    assert_ok(ls_ranks_step(r.ranks, 1, batch, &result, &error), error);
    ls_ranks_abort(r.ranks, &why);
    assert_int_equal(ls_ranks_step(r.ranks, 2, batch, &result, &error), LS_INTERRUPTED);
    assert_non_null(strstr(error.text, "because rank 0 has failed"));
    close_run(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_do_not_matter),
        cmocka_unit_test(hosts_send_what_the_formula_says),
        cmocka_unit_test(steps_allocate_nothing_and_buffers_are_planned),
        cmocka_unit_test(a_failing_rank_stops_those_that_wait_for_its_messages),
    };
    return cmocka_run_group_tests_name("hosts", tests, setup, teardown);
}

/* Ranks on several hosts: threads that are kept out of each other's memory, so that what travels
 * between hosts runs as it does over a network. The bits of one rank, for any layout; what is sent;
 * and a rank that fails while others wait for its messages. */
#include "tiny_ranks.h"

#include "base/alloc.h"
#include "effort.h"

/* Eight leaves; the last batch of an epoch has two of them. */
enum { ROWS = 102, BATCH = 32, STEPS_AN_EPOCH = 4 };

static char *folder;
static const char *train, *alike;

static int setup(void **state)
{
    (void)state;
    folder = test_folder();
    train = strdup(tiny_file(folder, "train.tsv", ROWS));
    alike = strdup(tiny_alike(folder, "alike.tsv", ROWS));
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

typedef struct host_layout {
    int hosts, ranks[TINY_MOST_RANKS];
} host_layout;

static void open_run(tiny_ranks *r, const char *rows, const host_layout *layout, int64_t pass,
                     const char *strategy)
{
    tiny_ranks_options options = {.rows = rows,
                                  .folder = folder,
                                  .strategy = strategy,
                                  .hosts = layout->hosts,
                                  .batch_size = BATCH,
                                  .samples_per_pass = pass,
                                  .poison = true};
    memcpy(options.host_ranks, layout->ranks, sizeof layout->ranks);
    tiny_ranks_open(r, &options);
}

/* --- the same bits ---------------------------------------------------------------------------- */

/* Parameters and moments after two epochs, and an evaluation's loss. */
static tiny_held train_on(const host_layout *layout, int64_t pass, const char *strategy,
                          double *loss)
{
    tiny_ranks r;
    ls_error error;
    open_run(&r, train, layout, pass, strategy);
    tiny_ranks_steps(&r, 2 * STEPS_AN_EPOCH);
    tiny_held held = tiny_ranks_held(&r);
    int64_t confusion[9];
    ls_evaluation evaluation = {.confusion = confusion};
    assert_ok(ls_ranks_evaluate(r.ranks, r.data.dataset, 4, &evaluation, &error), error);
    *loss = evaluation.loss;
    tiny_ranks_close(&r);
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
    static const int64_t passes[] = {LS_SAMPLES_ALL, 4};
    static const char *const strategies[] = {"ddp", "zero1", "zero2", "zero3"};
    enum { LAYOUTS = sizeof layouts / sizeof *layouts };
    bool all = test_all();
    int asked = 0;
    const host_layout one = {1, {1}};
    double loss, wanted_loss;
    tiny_held wanted = train_on(&one, LS_SAMPLES_ALL, "ddp", &wanted_loss);
    for (int i = 0; i < 8 * LAYOUTS; i++) {
        const host_layout *layout = &layouts[i / 8];
        const char *strategy = strategies[i % 4];
        int64_t pass = passes[i / 4 % 2];
        /* Each layout with each strategy, both sizes of pass with each strategy. */
        if (!all && i / 4 % 2 != (i / 8 + i) % 2) continue;
        if (!test_takes(&asked)) continue;
        tiny_held got = train_on(layout, pass, strategy, &loss);
        if (!tiny_same(&got, &wanted) || loss != wanted_loss)
            fail_msg("%s, layout %d (%d hosts), %lld samples a pass: other bits", strategy, i / 8,
                     layout->hosts, (long long)pass);
        free(got.elements);
    }
    free(wanted.elements);
}

/* --- what is sent ----------------------------------------------------------------------------- */

enum { MOST_TABLE_ROWS = 2048 };

/* Elements of a table's rows. On the owner's host: it reads the ranks that have touched the row. On
 * another: the agent reads its neighbours that have, and sends one sum if anyone has. Then all
 * ranks get all rows. */
static int64_t table_elements(const ls_batch *batch, const int32_t *row_of_token,
                              const host_layout *layout, int64_t hidden, int64_t *touched)
{
    static bool touches[MOST_TABLE_ROWS][TINY_MOST_RANKS];
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

static int64_t expected_elements(const tiny_ranks *r, const host_layout *layout,
                                 const ls_batch *batch, int64_t *formula)
{
    static int32_t words[BATCH * 64], positions[BATCH * 64], types[BATCH * 64];
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
        int64_t own = 2 * others * ls_value_elements(parameter, &ls_fixed_extents), part = own,
                touched;
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
        tiny_ranks r;
        ls_error error;
        ls_step_result result;
        int64_t before = 0, formula;
        open_run(&r, all_touch_all ? alike : train, layout, LS_SAMPLES_ALL, "ddp");
        for (int64_t step = 1; step < STEPS_AN_EPOCH; step++) {
            const ls_batch *batch = tiny_ranks_batch(&r);
            assert_ok(ls_ranks_step(r.ranks, step, batch, &result, &error), error);
            int64_t sent = ls_ranks_elements(r.ranks) - before;
            assert_int_equal(sent, expected_elements(&r, layout, batch, &formula));
            if (all_touch_all) assert_int_equal(sent, formula);
            before += sent;
        }
        tiny_ranks_close(&r);
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
    tiny_ranks r;
    open_run(&r, train, &layout, 6, "ddp");
    assert_true(r.programs.training.plan.bytes[LS_PLAN_MESSAGES] > 0);
    for (int i = 0; i < r.count; i++)
        assert_int_equal(r.devices[i]->allocated_bytes, ls_run_programs_bytes(&r.programs));
    uint64_t count = ls_allocation_count();
    ls_set_allocation_hook(refuse, NULL);
    tiny_ranks_steps(&r, 2 * STEPS_AN_EPOCH);
    ls_set_allocation_hook(NULL, NULL);
    assert_true(ls_allocation_count() == count);
    tiny_ranks_close(&r);
    open_run(&r, train, &one, 6, "ddp");
    assert_int_equal(r.programs.training.plan.bytes[LS_PLAN_MESSAGES], 0);
    tiny_ranks_close(&r);
}

/* --- a rank that fails ------------------------------------------------------------------------ */

static void a_failing_rank_stops_those_that_wait_for_its_messages(void **state)
{
    (void)state;
    const host_layout layout = {2, {1, 2}};
    const ls_error why = {.code = LS_INVALID, .text = "has had enough"};
    tiny_ranks r;
    ls_error error;
    ls_step_result result;
    open_run(&r, train, &layout, LS_SAMPLES_ALL, "ddp");
    const ls_batch *batch = tiny_ranks_batch(&r);
    assert_ok(ls_ranks_step(r.ranks, 1, batch, &result, &error), error);
    ls_ranks_abort(r.ranks, &why);
    assert_int_equal(ls_ranks_step(r.ranks, 2, batch, &result, &error), LS_INTERRUPTED);
    assert_non_null(strstr(error.text, "because rank 0 has failed"));
    tiny_ranks_close(&r);
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

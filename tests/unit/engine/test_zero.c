/* Optimizer state, gradients and parameters divided among ranks: the bits of one device in weights,
 * moments and norms, with values that are not alive poisoned; and what is sent, to the element. */
#include "tiny_ranks.h"

#include "effort.h"

/* Eight leaves; the last batch of an epoch has two of them. */
enum { ROWS = 102, BATCH = 32, STEPS_AN_EPOCH = 4, LEAVES = 8 };

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

static const char *const strategies[] = {"zero1", "zero2", "zero3"};

static tiny_ranks_options options_of(const char *strategy, int count, int64_t samples_per_pass)
{
    return (tiny_ranks_options){.rows = train,
                                .folder = folder,
                                .strategy = strategy,
                                .count = count,
                                .batch_size = BATCH,
                                .samples_per_pass = samples_per_pass,
                                .poison = true};
}

/* --- the same bits ---------------------------------------------------------------------------- */

typedef struct outcome {
    tiny_held held;
    double loss[2 * STEPS_AN_EPOCH], norm[2 * STEPS_AN_EPOCH];
} outcome;

static outcome train_by_hand(const tiny_ranks_options *options)
{
    tiny_ranks r;
    outcome result = {0};
    ls_error error;
    tiny_ranks_open(&r, options);
    for (int step = 0; step < 2 * STEPS_AN_EPOCH; step++) {
        ls_step_result got;
        assert_ok(ls_ranks_step(r.ranks, step + 1, tiny_ranks_batch(&r), &got, &error), error);
        result.loss[step] = got.loss;
        result.norm[step] = got.gradient_norm;
    }
    result.held = tiny_ranks_held(&r);
    tiny_ranks_close(&r);
    return result;
}

static void check_outcome(const tiny_ranks_options *options, const outcome *wanted)
{
    outcome got = train_by_hand(options);
    if (memcmp(got.loss, wanted->loss, sizeof got.loss) != 0 ||
        memcmp(got.norm, wanted->norm, sizeof got.norm) != 0 ||
        !tiny_same(&got.held, &wanted->held))
        fail_msg("%s, %s on %d ranks, %lld samples a pass: other bits",
                 options->model ? options->model : "tiny-bert", options->strategy, options->count,
                 (long long)options->samples_per_pass);
    free(got.held.elements);
}

static void weights_moments_and_norms_are_those_of_one_rank(void **state)
{
    (void)state;
    static const int64_t passes[] = {LS_SAMPLES_ALL, 8, 4};
    bool all = test_all();
    int asked = 0;
    tiny_ranks_options single = options_of("single", 1, LS_SAMPLES_ALL);
    outcome wanted = train_by_hand(&single);
    for (int s = 0; s < 3; s++)
        for (int count = 1; count <= TINY_MOST_RANKS; count++)
            for (int pass = 0; pass < 3; pass++) {
                /* Of each number of ranks one pass size, another one for each strategy. */
                if (!all && (s + count) % 3 != pass) continue;
                if (!test_takes(&asked)) continue;
                tiny_ranks_options options = options_of(strategies[s], count, passes[pass]);
                check_outcome(&options, &wanted);
            }
    free(wanted.held.elements);
}

static void other_models_too(void **state)
{
    (void)state;
    tiny_ranks_options single = options_of("single", 1, LS_SAMPLES_ALL);
    single.model = "tiny-distilbert";
    outcome wanted = train_by_hand(&single);
    for (int s = 0; s < 3; s++) {
        tiny_ranks_options options = options_of(strategies[s], 3, 4);
        options.model = "tiny-distilbert";
        check_outcome(&options, &wanted);
    }
    free(wanted.held.elements);
}

/* --- what is sent ----------------------------------------------------------------------------- */

enum { MOST_TABLE_ROWS = 2048 };

typedef struct traffic {
    const tiny_ranks *ranks;
    const ls_batch *batch;
    int stage, count, passes;
    int64_t leaves; /* of a rank in a pass */
} traffic;

static int pass_of(const traffic *t, int32_t sample)
{
    return t->stage == 1 ? 0 : (int)(sample / 4 / (t->leaves * t->count));
}

static int rank_of(const traffic *t, int32_t sample)
{
    return t->stage == 1 ? sample * t->count / BATCH : (int)(sample / 4 / t->leaves) % t->count;
}

/* Elements of a table that are read from other ranks: in each pass an owner reads a row's sums of
 * those that touch it; zero3 gathers touched rows in each pass, the others all rows once. */
static int64_t table_elements(const traffic *t, ls_value_id table, const int32_t *row_of_token)
{
    static bool touches[MOST_TABLE_ROWS][TINY_MOST_RANKS];
    const ls_program *program = t->ranks->programs.training.program;
    const ls_value *value = ls_value_of(program, table);
    int64_t rows = value->shape[0].constant, columns = value->shape[1].constant;
    int64_t elements = t->stage < 3 ? (t->count - 1) * rows * columns : 0;
    for (int pass = 0; pass < (t->stage == 1 ? 1 : t->passes); pass++) {
        memset(touches, 0, sizeof touches);
        for (int32_t sample = 0; sample < BATCH; sample++)
            for (int32_t token = t->batch->offsets[sample]; token < t->batch->offsets[sample + 1];
                 token++)
                if (pass_of(t, sample) == pass)
                    touches[row_of_token[token]][rank_of(t, sample)] = true;
        for (int64_t row = 0; row < rows; row++) {
            int from = 0;
            for (int rank = 0; rank < t->count; rank++)
                from += touches[row][rank];
            if (from && t->stage == 3) elements += (t->count - 1) * columns;
            for (int owner = 0; from && owner < t->count; owner++) {
                ls_range owned = ls_layout_owned(program, table, owner);
                int64_t begin = owned.begin > row * columns ? owned.begin : row * columns;
                int64_t end = owned.end < (row + 1) * columns ? owned.end : (row + 1) * columns;
                if (begin < end) elements += (end - begin) * (from - touches[row][owner]);
            }
        }
    }
    return elements;
}

/* Of a full batch where every rank has the same power of two of leaves in each pass: 2P, (1 +
 * passes) P and 3P x passes, times the other ranks. */
static int64_t expected_elements(const traffic *t)
{
    static int32_t words[BATCH * 64], positions[BATCH * 64], types[BATCH * 64];
    const ls_assembly *assembly = &t->ranks->programs.training;
    const int64_t others = t->count - 1;
    const int64_t times[] = {0, 2, 1 + t->passes, 3 * t->passes};
    for (int32_t sample = 0; sample < BATCH; sample++)
        for (int32_t token = t->batch->offsets[sample]; token < t->batch->offsets[sample + 1];
             token++) {
            words[token] = t->batch->ids[token];
            positions[token] = token - t->batch->offsets[sample];
            types[token] = t->batch->types[token];
        }
    /* The loss is exchanged and gathered; the norm's blocks are doubles. */
    int64_t elements = others * ((t->stage == 1 ? 1 : t->passes) + 1);
    for (size_t i = 0; i < assembly->model.parameter_count; i++) {
        ls_value_id id = assembly->model.parameters[i].value;
        const ls_value *parameter = ls_value_of(assembly->program, id);
        int64_t own = ls_value_elements(parameter, &ls_fixed_extents);
        elements += others * 2 * ((own + LS_BLOCK - 1) / LS_BLOCK);
        if (!parameter->row_sparse)
            elements += others * times[t->stage] * own;
        else
            elements += table_elements(t, id,
                                       strstr(parameter->name, "word")       ? words
                                       : strstr(parameter->name, "position") ? positions
                                                                             : types);
    }
    return elements;
}

static void check_traffic(int stage, int count, int passes)
{
    tiny_ranks r;
    ls_error error;
    ls_step_result result;
    int64_t leaves = LEAVES / count / passes, before = 0;
    tiny_ranks_options options = options_of(strategies[stage - 1], count, 4 * leaves);
    tiny_ranks_open(&r, &options);
    for (int64_t step = 1; step < STEPS_AN_EPOCH; step++) {
        traffic t = {&r, tiny_ranks_batch(&r), stage, count, passes, leaves};
        assert_int_equal(t.batch->samples, BATCH);
        assert_ok(ls_ranks_step(r.ranks, step, t.batch, &result, &error), error);
        int64_t sent = ls_ranks_elements(r.ranks) - before;
        before += sent;
        if (sent != expected_elements(&t))
            fail_msg("zero%d on %d ranks, %d passes: %lld elements, wanted %lld", stage, count,
                     passes, (long long)sent, (long long)expected_elements(&t));
    }
    tiny_ranks_close(&r);
}

static void ranks_send_what_the_formula_says(void **state)
{
    (void)state;
    for (int stage = 1; stage <= 3; stage++)
        for (int count = 2; count <= 8; count *= 2)
            for (int passes = 1; passes <= LEAVES / count; passes *= 2)
                check_traffic(stage, count, passes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_moments_and_norms_are_those_of_one_rank),
        cmocka_unit_test(other_models_too),
        cmocka_unit_test(ranks_send_what_the_formula_says),
    };
    return cmocka_run_group_tests_name("zero", tests, setup, teardown);
}

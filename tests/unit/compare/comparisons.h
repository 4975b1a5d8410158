/* A comparison made by hand, whose numbers a reader can check, shared by the tests of this folder.
 */
#ifndef LS_TESTS_COMPARE_COMPARISONS_H
#define LS_TESTS_COMPARE_COMPARISONS_H

#include "testing.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compare/rows.h"

enum { MADE_ROWS = 4, MADE_ROUNDS = 3, MADE_STEPS = 2 };

typedef struct made_comparison {
    ls_comparison comparison;
    ls_compare_options options;
    ls_compare_strategy strategies[2];
    ls_compare_row rows[MADE_ROWS];
    ls_compare_seed seeds[MADE_ROWS][2];
    ls_run_facts rounds[MADE_ROWS][MADE_ROUNDS];
    double step_ms[MADE_ROWS][MADE_ROUNDS][MADE_STEPS];
    ls_compare_point accuracies[2], losses[2];
    int64_t seed_numbers[2];
} made_comparison;

static inline void make_row(made_comparison *made, int index, const char *name, bool several,
                            int64_t threads, int64_t batch_size, double speed, double mebibytes)
{
    ls_compare_row *row = &made->rows[index];
    *row = (ls_compare_row){.strategy = &made->strategies[several],
                            .devices = several ? 2 : 1,
                            .threads = threads,
                            .batch_size = batch_size,
                            .seeds = made->seeds[index],
                            .seed_count = 2,
                            .rounds = made->rounds[index],
                            .round_count = MADE_ROUNDS};
    snprintf(row->name, sizeof row->name, "%s", name);
    for (int i = 0; i < LS_MEASURE_COUNT; i++)
        row->full.values[i] = NAN;
    row->full.values[LS_MEASURE_PLANNED_DEVICE_BYTES] = mebibytes * (1 << 20);
    row->full.values[LS_MEASURE_PEAK_DEVICE_BYTES] = mebibytes * (1 << 20);
    row->full.evaluated_on = "test";
    row->full.peak_flops_per_second = NAN;
    row->full.accuracies = made->accuracies;
    row->full.accuracy_count = 2;
    row->full.losses = made->losses;
    row->full.loss_count = 2;
    for (int s = 0; s < 2; s++) {
        made->seeds[index][s] = (ls_compare_seed){.seed = s + 1,
                                                  .final_loss = 0.5 + 0.1 * s,
                                                  .accuracy = 0.8 + 0.02 * s,
                                                  .macro_f1 = 0.7};
        snprintf(made->seeds[index][s].weights_sha256, 65, "%064d", (int)batch_size + s);
    }
    for (int r = 0; r < MADE_ROUNDS; r++) {
        static const double drift[MADE_ROUNDS] = {1.5, 0.5, 1};
        ls_run_facts *round = &made->rounds[index][r];
        for (int i = 0; i < LS_MEASURE_COUNT; i++)
            round->values[i] = NAN;
        round->values[LS_MEASURE_SAMPLES_PER_SECOND] = speed * drift[r];
        round->values[LS_MEASURE_REAL_TOKENS_PER_SECOND] = 20 * speed * drift[r];
        round->step_ms = made->step_ms[index][r];
        round->step_count = MADE_STEPS;
        for (int k = 0; k < MADE_STEPS; k++)
            made->step_ms[index][r][k] = 100 * (r + 1) + k;
    }
}

/* single (10 samples/s), "single, all cores" (19), ddp on 2 devices (18), and ddp at batch size 64
 * (20), which has no single beside it. Each has three rounds around its speed, two seeds with the
 * same bits in all rows of a batch size, an accuracy of 0.6 after step 4 and of 0.8 after step 8.
 */
static inline void make_comparison(made_comparison *made)
{
    *made = (made_comparison){.strategies = {{.name = "single", .single = true}, {.name = "ddp"}},
                              .accuracies = {{4, 0.6}, {8, 0.8}},
                              .losses = {{1, 0.7}, {2, 0.6}},
                              .seed_numbers = {1, 2}};
    make_row(made, 0, "single", false, 1, 32, 10, 400);
    make_row(made, 1, "single, all cores", false, 2, 32, 19, 410);
    make_row(made, 2, "ddp", true, 1, 32, 18, 360);
    make_row(made, 3, "ddp", true, 1, 64, 20, 500);
    made->options = (ls_compare_options){.strategies = made->strategies,
                                         .strategy_count = 2,
                                         .seeds = made->seed_numbers,
                                         .seed_count = 2,
                                         .model = "model",
                                         .train = "train.tsv",
                                         .devices = 2,
                                         .threads = 1,
                                         .cores = 2,
                                         .batch_size = 32,
                                         .max_steps = 8,
                                         .epochs = 3,
                                         .rounds = MADE_ROUNDS,
                                         .round_steps = MADE_STEPS,
                                         .version = "1.2.3",
                                         .instruction_set = "ref",
                                         .command = "lockstep compare"};
    made->comparison = (ls_comparison){.options = &made->options,
                                       .machine = {.cores = 2, .bytes_per_second = 14e9},
                                       .rows = made->rows,
                                       .row_count = MADE_ROWS,
                                       .strategy_rows = MADE_ROWS - 1};
}

/* Its numbers and verdicts. */
static inline void finish_comparison(made_comparison *made)
{
    ls_error error;
    assert_ok(ls_compare_rows_finish(&made->comparison, &error), error);
    ls_compare_judge(&made->comparison);
}

#endif

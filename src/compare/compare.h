/* A comparison of strategies: every run is a process of its own, the numbers are what the runs
 * wrote into run.json and metrics.jsonl.
 *
 * A row is a strategy at the base batch size, a study row one at another batch size. Each has a
 * full run a seed, for accuracy, memory and bits, and then takes part in rounds of short timing
 * runs: one of each row a round, in an order that moves on by one from round to round, so that a
 * machine that becomes slower or faster meanwhile favours none. A row's speed and what belongs to
 * it are those of its round of median speed; times of steps are pooled over all rounds. */
#ifndef LS_COMPARE_COMPARE_H
#define LS_COMPARE_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "compare/facts.h"

/* The strategy on one device, which all others are held against. */
#define LS_COMPARE_BASE "single"

enum { LS_COMPARE_NAME_BYTES = 80, LS_COMPARE_REASON_BYTES = 600 };

typedef struct ls_compare_strategy {
    char name[LS_COMPARE_NAME_BYTES]; /* as --strategy takes it: "zero3+offload" */
    bool single;                      /* runs on one device */
    const char *const *flags;         /* those of the options that this strategy takes */
    size_t flag_count;
} ls_compare_strategy;

/* Everything borrowed until the comparison is freed. */
typedef struct ls_compare_options {
    const char *program; /* `lockstep` itself */
    const char *output;
    /* Flags of every run: all but the strategy, devices, threads, seed, batch size, number of
     * steps, evaluation files and output; a strategy takes those that it lists itself. */
    const char *const *flags;
    size_t flag_count;
    const ls_compare_strategy *strategies;
    size_t strategy_count;
    const int64_t *seeds, *batch_sizes; /* batch_sizes: those of the study */
    size_t seed_count, batch_size_count;
    const char *model, *train, *validation, *test; /* model, train: for the report only */
    int64_t devices, threads, cores;               /* threads: of a device */
    int64_t batch_size, max_steps;                 /* max_steps -1: as many as `epochs` has */
    double epochs, target_accuracy;                /* 0: none */
    int64_t rounds, round_steps;                   /* timing: steps that count */
    const char *version, *instruction_set, *command;
    /* May be NULL. `running`: "ddp, timing round 2", the `done`th of `total` runs begins. */
    void (*running)(void *context, const char *what, int64_t done, int64_t total);
    /* The last line that the run has written so far; asked for twice a second. */
    void (*progress)(void *context, const char *line);
    void (*message)(void *context, const char *line);
    bool (*should_stop)(void *context);
    void *context;
} ls_compare_options;

/* How a row ended. */
typedef enum ls_compare_state {
    LS_COMPARE_DONE,
    LS_COMPARE_REFUSED, /* exit status 2: a combination that there is not */
    LS_COMPARE_FAILED,
    LS_COMPARE_KILLED, /* by a signal */
} ls_compare_state;

/* "done", "refused", "failed", "killed". */
const char *ls_compare_state_name(ls_compare_state state);

/* What a full run with one seed found. */
typedef struct ls_compare_seed {
    int64_t seed;
    char weights_sha256[65]; /* "" if there is none */
    int same_bits;           /* as `single` with this seed: 1 yes, 0 no, -1 not known */
    double final_loss, accuracy, macro_f1;
} ls_compare_seed;

typedef struct ls_compare_row {
    char name[LS_COMPARE_NAME_BYTES]; /* "single, all cores" */
    const ls_compare_strategy *strategy;
    int64_t devices, threads, batch_size;
    ls_compare_state state;
    char reason[LS_COMPARE_REASON_BYTES]; /* "" when done */
    double values[LS_MEASURE_COUNT];      /* NaN: not known */
    ls_compare_seed *seeds;               /* [options.seed_count] */
    size_t seed_count;                    /* that ended well */
    int same_bits;        /* as `single` with every seed: 1 yes, 0 no, -1 not known */
    ls_run_facts *rounds; /* [options.rounds], timing runs */
    size_t round_count;
    ls_run_facts full; /* of the first seed */
} ls_compare_row;

typedef struct ls_compare_machine {
    char processor[128], system[160], date[32];
    int64_t cores, memory_bytes;
    int64_t bandwidth_threads;
    double bytes_per_second; /* main memory, all threads of the comparison together; NaN: unknown */
} ls_compare_machine;

enum { LS_COMPARE_VERDICTS = 16, LS_COMPARE_VERDICT_BYTES = 700 };
typedef struct ls_compare_verdict {
    const char
        *kind; /* "fastest", "smallest", "devices", "bits", "failed", "target", "batch", ... */
    char text[LS_COMPARE_VERDICT_BYTES];
} ls_compare_verdict;

typedef struct ls_comparison {
    const ls_compare_options *options;
    ls_compare_machine machine;
    ls_compare_row *rows; /* the strategies, then the study's */
    size_t row_count, strategy_rows;
    ls_compare_verdict verdicts[LS_COMPARE_VERDICTS];
    size_t verdict_count;
    bool judged;                    /* rows and verdicts are complete, if the documents are not */
    bool any_failed, any_different; /* rows without a result; with other bits than the base */
} ls_comparison;

/* Run everything and write OUTPUT/compare.json, compare.csv, report.html and runs/. Rows that fail
 * do not stop the others; if none is left, the first one's reason is the error. Documents that
 * cannot be written are an error, but the rows are there (`judged`), and so is a former comparison.
 * LS_INTERRUPTED: should_stop ended it, and the folder is as it was. Free *out with
 * ls_comparison_free, also after a failure. */
ls_status ls_compare(ls_comparison **out, const ls_compare_options *options,
                     ls_error *error) LS_MUST_CHECK;
void ls_comparison_free(ls_comparison *comparison); /* NULL is allowed */

#endif

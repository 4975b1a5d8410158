/* A comparison from its plan of rows to its documents. */
#include "compare/compare.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "compare/documents.h"
#include "compare/folder.h"
#include "compare/machine.h"
#include "compare/report.h"
#include "compare/rows.h"
#include "compare/runs.h"

/* --- the rows ------------------------------------------------------------------------------------
 */

static ls_status add_row(ls_comparison *comparison, const char *name,
                         const ls_compare_strategy *strategy, int64_t threads, int64_t batch_size,
                         ls_error *error)
{
    const ls_compare_options *options = comparison->options;
    ls_compare_row *row = &comparison->rows[comparison->row_count++];
    *row = (ls_compare_row){.strategy = strategy,
                            .devices = strategy->single ? 1 : options->devices,
                            .threads = threads,
                            .batch_size = batch_size};
    snprintf(row->name, sizeof row->name, "%s", name);
    LS_TRY(LS_NEW(row->seeds, options->seed_count, "seeds", error));
    return LS_NEW(row->rounds, options->rounds, "timing rounds", error);
}

/* All threads of the comparison on one device, as far as there are cores. */
static int64_t all_threads(const ls_compare_options *options)
{
    int64_t all = options->devices * options->threads;
    return all < options->cores || options->cores < options->threads ? all : options->cores;
}

static ls_status add_rows(ls_comparison *comparison, ls_error *error)
{
    const ls_compare_options *options = comparison->options;
    size_t most = options->strategy_count * (1 + options->batch_size_count) + 1;
    LS_TRY(LS_NEW(comparison->rows, most, "rows", error));
    for (size_t i = 0; i < options->strategy_count; i++) {
        const ls_compare_strategy *strategy = &options->strategies[i];
        LS_TRY(add_row(comparison, strategy->name, strategy, options->threads, options->batch_size,
                       error));
        if (strcmp(strategy->name, LS_COMPARE_BASE) == 0 && all_threads(options) > options->threads)
            LS_TRY(add_row(comparison, LS_COMPARE_BASE ", all cores", strategy,
                           all_threads(options), options->batch_size, error));
    }
    comparison->strategy_rows = comparison->row_count;
    for (size_t b = 0; b < options->batch_size_count; b++)
        for (size_t i = 0; i < options->strategy_count; i++)
            if (options->batch_sizes[b] != options->batch_size)
                LS_TRY(add_row(comparison, options->strategies[i].name, &options->strategies[i],
                               options->threads, options->batch_sizes[b], error));
    return LS_OK;
}

/* --- the runs ------------------------------------------------------------------------------------
 */

typedef struct run_counter {
    int64_t done, total;
} run_counter;

static void announce(const ls_comparison *comparison, const ls_compare_row *row, const char *what,
                     int64_t number, run_counter *counter)
{
    char text[200], batch[40] = "";
    const ls_compare_options *options = comparison->options;
    if (row >= comparison->rows + comparison->strategy_rows)
        snprintf(batch, sizeof batch, ", batch size %" PRId64, row->batch_size);
    snprintf(text, sizeof text, "%s%s, %s %" PRId64, row->name, batch, what, number);
    counter->done++;
    if (options->running && row->state == LS_COMPARE_DONE)
        options->running(options->context, text, counter->done, counter->total);
}

/* A reason that another row had before is not told again. */
static void tell_failure(const ls_comparison *comparison, const ls_compare_row *row)
{
    const ls_compare_options *options = comparison->options;
    char text[LS_COMPARE_REASON_BYTES + 200];
    if (row->state == LS_COMPARE_DONE || !options->message) return;
    for (size_t i = 0; i < comparison->row_count; i++)
        if (&comparison->rows[i] != row && strcmp(comparison->rows[i].reason, row->reason) == 0)
            return;
    snprintf(text, sizeof text, "%s %s: %s", row->name, ls_compare_state_name(row->state),
             row->reason);
    options->message(options->context, text);
}

static ls_status run_full(ls_comparison *comparison, const ls_compare_folder *folder,
                          run_counter *counter, ls_error *error)
{
    const ls_compare_options *options = comparison->options;
    for (size_t s = 0; s < options->seed_count; s++) {
        for (size_t i = 0; i < comparison->row_count; i++) {
            ls_compare_row *row = &comparison->rows[i];
            announce(comparison, row, "seed", options->seeds[s], counter);
            if (row->state != LS_COMPARE_DONE) continue;
            LS_TRY(ls_compare_run_full(options, folder, row, options->seeds[s], error));
            tell_failure(comparison, row);
        }
    }
    return LS_OK;
}

static ls_status run_rounds(ls_comparison *comparison, const ls_compare_folder *folder,
                            run_counter *counter, ls_error *error)
{
    const ls_compare_options *options = comparison->options;
    for (int64_t round = 0; round < options->rounds; round++) {
        for (size_t i = 0; i < comparison->row_count; i++) {
            size_t turn = (i + (size_t)round) % comparison->row_count;
            ls_compare_row *row = &comparison->rows[turn];
            announce(comparison, row, "timing round", round + 1, counter);
            if (row->state != LS_COMPARE_DONE) continue;
            LS_TRY(ls_compare_run_timing(options, folder, row, error));
            tell_failure(comparison, row);
        }
    }
    return LS_OK;
}

static ls_status check_any_left(const ls_comparison *comparison, ls_error *error)
{
    for (size_t i = 0; i < comparison->row_count; i++)
        if (comparison->rows[i].state == LS_COMPARE_DONE) return LS_OK;
    const ls_compare_row *first = &comparison->rows[0];
    ls_status code = first->state == LS_COMPARE_REFUSED ? LS_USAGE : LS_INVALID;
    return ls_fail(error, code, "no strategy could run; %s %s: %s", first->name,
                   ls_compare_state_name(first->state), first->reason);
}

/* --- the documents -------------------------------------------------------------------------------
 */

static ls_status write_documents(const ls_comparison *comparison, ls_compare_folder *folder,
                                 ls_error *error)
{
    ls_text json = {0}, csv = {0}, report = {0};
    ls_status status;
    LS_TRY_GOTO(status, ls_compare_json(comparison, &json, error), done);
    LS_TRY_GOTO(status, ls_compare_csv(comparison, &csv, error), done);
    LS_TRY_GOTO(status, ls_compare_report(json.data, folder, comparison, &report, error), done);
    const ls_compare_documents documents = {json.data, csv.data, report.data};
    status = ls_compare_folder_finish(folder, &documents, error);
done:
    ls_text_deinit(&json);
    ls_text_deinit(&csv);
    ls_text_deinit(&report);
    return status;
}

static ls_status run_and_write(ls_comparison *comparison, ls_compare_folder *folder,
                               ls_error *error)
{
    const ls_compare_options *options = comparison->options;
    run_counter counter = {.total = (int64_t)comparison->row_count *
                                    ((int64_t)options->seed_count + options->rounds)};
    LS_TRY(run_full(comparison, folder, &counter, error));
    LS_TRY(check_any_left(comparison, error));
    ls_compare_machine_look(&comparison->machine, options->cores, all_threads(options));
    /* Before and after, as someone else may use the machine at one of these times. */
    ls_compare_machine_measure(&comparison->machine);
    LS_TRY(run_rounds(comparison, folder, &counter, error));
    ls_compare_machine_measure(&comparison->machine);
    LS_TRY(check_any_left(comparison, error));
    LS_TRY(ls_compare_rows_finish(comparison, error));
    ls_compare_judge(comparison);
    comparison->judged = true;
    return write_documents(comparison, folder, error);
}

ls_status ls_compare(ls_comparison **out, const ls_compare_options *options, ls_error *error)
{
    ls_compare_folder folder;
    LS_TRY(LS_NEW(*out, 1, "comparison", error));
    (*out)->options = options;
    LS_TRY(add_rows(*out, error));
    LS_TRY(ls_compare_folder_open(&folder, options->output, options->command, error));
    ls_status status = run_and_write(*out, &folder, error);
    ls_compare_folder_close(&folder);
    if (status == LS_INTERRUPTED)
        return ls_fail(error, status, "stopped by request; nothing was written to %s",
                       options->output);
    return status;
}

void ls_comparison_free(ls_comparison *comparison)
{
    if (!comparison) return;
    for (size_t i = 0; i < comparison->row_count; i++) {
        ls_compare_row *row = &comparison->rows[i];
        for (size_t k = 0; k < row->round_count; k++)
            ls_run_facts_deinit(&row->rounds[k]);
        ls_run_facts_deinit(&row->full);
        ls_free(row->rounds);
        ls_free(row->seeds);
    }
    ls_free(comparison->rows);
    ls_free(comparison);
}

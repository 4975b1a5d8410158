#include "api/auto_strategy.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/block_file.h"
#include "base/clock.h"
#include "base/text.h"
#include "engine/machine_peak.h"

enum { DISK_BYTES = 16 << 20, DISK_BLOCK = 1 << 20 };

/* A later candidate must be faster by this factor. */
static const double margin = 0.99;

static double mebibytes(int64_t bytes)
{
    return (double)bytes / (1024.0 * 1024.0);
}

/* --- the machine ------------------------------------------------------------------------------ */

static ls_status write_and_read(const ls_block_file *file, void *block, ls_error *error)
{
    for (int64_t at = 0; at < DISK_BYTES; at += DISK_BLOCK)
        LS_TRY(ls_block_file_write(file, block, DISK_BLOCK, at, error));
    for (int64_t at = 0; at < DISK_BYTES; at += DISK_BLOCK)
        LS_TRY(ls_block_file_read(file, block, DISK_BLOCK, at, error));
    return LS_OK;
}

static ls_status measure_disk(double *bytes_per_second, const char *folder, ls_error *error)
{
    ls_block_file file = {0};
    void *block = NULL;
    ls_error cause = {0};
    ls_status status;
    LS_TRY_GOTO(status, ls_block_file_open(&file, folder, DISK_BYTES, &cause), done);
    block = ls_allocate_pages(DISK_BLOCK, true);
    if (!block) {
        status =
            ls_fail(&cause, LS_NO_MEMORY, "out of memory: %d bytes to measure it with", DISK_BLOCK);
        goto done;
    }
    double begin = ls_seconds();
    LS_TRY_GOTO(status, write_and_read(&file, block, &cause), done);
    *bytes_per_second = 2.0 * DISK_BYTES / (ls_seconds() - begin);
done:
    ls_free_pages(block, DISK_BLOCK);
    ls_block_file_close(&file);
    return status == LS_OK ? LS_OK : ls_fail(error, status, "--offload-path %s", cause.text);
}

static ls_status measure(ls_machine_rates *rates, const ls_planner *planner, ls_error *error)
{
    const ls_options *options = planner->session->options;
    const ls_model_config *config = planner->base.training.config;
    int processes = ls_session_place(planner->session)->count;
    int threads = ls_cpu_device_threads(planner->session->device) * (int)options->devices;
    int64_t tokens = (int64_t)((double)planner->base.training.batch_size * planner->row_tokens);
    ls_machine_peak peak;
    tokens = tokens / processes > 0 ? tokens / processes : 1;
    LS_TRY(ls_machine_peak_measure(&peak, threads, tokens, config->intermediate_size,
                                   config->hidden_size, error));
    *rates = (ls_machine_rates){.flops_per_second = peak.flops_per_second,
                                .bytes_per_second = peak.bytes_per_second};
    if (!options->offload_path) return LS_OK;
    return measure_disk(&rates->disk_bytes_per_second, options->offload_path, error);
}

/* --- several processes ------------------------------------------------------------------------ */

static double least(double a, double b)
{
    return a < b ? a : b;
}

/* They work in step: all together are as fast as the slowest of them, once for each. */
static ls_status agree_on_rates(ls_machine_rates *rates, const ls_session *session, ls_error *error)
{
    int count = ls_session_place(session)->count;
    ls_machine_rates own = *rates, *all = NULL;
    if (count == 1) return LS_OK;
    LS_TRY(LS_NEW(all, count, "rates of all processes", error));
    ls_status status = ls_processes_gather(session->processes, &own, sizeof own, all,
                                           "the measuring of the machine", error);
    for (int i = 0; i < count && status == LS_OK; i++) {
        own.flops_per_second = least(own.flops_per_second, all[i].flops_per_second);
        own.bytes_per_second = least(own.bytes_per_second, all[i].bytes_per_second);
        own.disk_bytes_per_second = least(own.disk_bytes_per_second, all[i].disk_bytes_per_second);
    }
    rates->flops_per_second = count * own.flops_per_second;
    rates->bytes_per_second = count * own.bytes_per_second;
    rates->disk_bytes_per_second = count * own.disk_bytes_per_second;
    ls_free(all);
    return status;
}

static bool is_worse(const ls_plan_row *row, const ls_plan_row *than)
{
    if (!*row->refused != !*than->refused) return *row->refused;
    if (row->fits != than->fits) return !row->fits;
    if (row->total != than->total) return row->total > than->total;
    return ls_plan_row_seconds(row) > ls_plan_row_seconds(than);
}

/* Hosts may differ in cores, and with them in the scratch of a device. */
static ls_status agree_on_rows(ls_plan_row *rows, int count, const ls_session *session,
                               ls_error *error)
{
    int processes = ls_session_place(session)->count;
    int64_t bytes = (int64_t)sizeof *rows * count;
    ls_plan_row *all = NULL;
    if (processes == 1) return LS_OK;
    LS_TRY(LS_NEW(all, (int64_t)processes * count + 1, "plans of all processes", error));
    ls_status status = ls_processes_gather(session->processes, rows, bytes, all,
                                           "the choice of a strategy", error);
    for (int i = 0; i < processes * count && status == LS_OK; i++)
        if (is_worse(&all[i], &rows[i % count])) rows[i % count] = all[i];
    ls_free(all);
    return status;
}

/* --- the choice ------------------------------------------------------------------------------- */

static ls_status print_why(char **line, const ls_plan_row *row, ls_text *why, ls_error *error)
{
    double seconds = ls_plan_row_seconds(row);
    ls_text_clear(why);
    LS_TRY(ls_text_print(why, error, "auto: %-24s ", row->candidate.name));
    if (*row->refused)
        LS_TRY(ls_text_print(why, error, "refused: %s", row->refused));
    else
        LS_TRY(ls_text_print(why, error,
                             "%s, %.1f MiB a device, %lld pass%s; %.1f ms a step: %.1f computing, "
                             "%.1f exchanging, %.1f copying",
                             row->fits ? "fits" : "does not fit", mebibytes(row->total),
                             (long long)row->passes, row->passes == 1 ? "" : "es", 1e3 * seconds,
                             1e3 * row->seconds.compute, 1e3 * row->seconds.exchange,
                             1e3 * row->seconds.offload));
    return ls_copy_string(line, why->data, error);
}

static const ls_plan_row *best_of(const ls_plan_row *rows, int count)
{
    const ls_plan_row *best = NULL, *smallest = NULL;
    for (int i = 0; i < count; i++) {
        const ls_plan_row *row = &rows[i];
        if (*row->refused) continue;
        if (!smallest || row->total < smallest->total) smallest = row;
        if (!row->fits) continue;
        if (!best || ls_plan_row_seconds(row) < margin * ls_plan_row_seconds(best)) best = row;
    }
    return best ? best : smallest;
}

static ls_status conclude(ls_auto_choice *choice, const ls_plan_row *best, ls_text *why,
                          ls_error *error)
{
    ls_text_clear(why);
    LS_TRY(ls_text_print(
        why, error, "auto: takes %s: %s (this machine: %.1f GFLOP/s, %.1f GB/s)",
        best->candidate.name,
        best->fits ? "the fastest that fits" : "nothing fits, this is the smallest",
        1e-9 * choice->rates.flops_per_second, 1e-9 * choice->rates.bytes_per_second));
    choice->chosen = best->candidate;
    LS_TRY(ls_copy_string(&choice->lines[choice->count], why->data, error));
    choice->count++;
    return LS_OK;
}

static ls_status look_at(ls_auto_choice *choice, ls_planner *planner,
                         const ls_candidate *candidates, int count, ls_text *why, ls_error *error)
{
    const ls_session *session = planner->session;
    ls_status status = LS_OK;
    for (int i = 0; i < count && status == LS_OK; i++)
        status = ls_planner_row(planner, &choice->rows[i], &candidates[i], error);
    LS_TRY(ls_session_agree(session, status, "the plans of the strategies", error));
    LS_TRY(agree_on_rows(choice->rows, count, session, error));
    for (; choice->count < count; choice->count++)
        LS_TRY(print_why(&choice->lines[choice->count], &choice->rows[choice->count], why, error));
    const ls_plan_row *best = best_of(choice->rows, count);
    if (best) return conclude(choice, best, why, error);
    return ls_fail(error, LS_USAGE, "--strategy auto: %s",
                   count ? choice->rows[0].refused : "no strategy goes with the other settings");
}

static ls_status prepare(ls_auto_choice *choice, const ls_planner *planner, int count,
                         ls_error *error)
{
    LS_TRY(LS_NEW(choice->rows, count + 1, "strategies", error));
    LS_TRY(LS_NEW(choice->lines, count + 1, "strategies", error));
    return measure(&choice->rates, planner, error);
}

ls_status ls_auto_choose(ls_auto_choice *choice, const ls_session *session,
                         const ls_run_memory_options *base, double row_tokens, ls_error *error)
{
    ls_candidate candidates[LS_MOST_CANDIDATES];
    const ls_options *options = session->options;
    ls_planner planner;
    ls_text why = {0};
    ls_status status;
    int count = ls_candidates_list(candidates, options, ls_session_ranks(session),
                                   options->offload_path != NULL);
    *choice = (ls_auto_choice){0};
    ls_planner_init(&planner, session, base);
    planner.row_tokens = row_tokens;
    planner.rates = &choice->rates;
    status = ls_session_agree(session, prepare(choice, &planner, count, error),
                              "the measuring of the machine", error);
    if (status != LS_OK) goto done;
    LS_TRY_GOTO(status, agree_on_rates(&choice->rates, session, error), done);
    status = look_at(choice, &planner, candidates, count, &why, error);
done:
    ls_text_deinit(&why);
    ls_planner_deinit(&planner);
    return status;
}

static ls_run_fact number(const char *key, double value)
{
    return (ls_run_fact){.key = key, .kind = LS_RUN_NUMBER, .number = value};
}

static ls_run_fact integer(const char *key, int64_t value)
{
    return (ls_run_fact){.key = key, .kind = LS_RUN_INTEGER, .integer = value};
}

static ls_run_fact text(const char *key, const char *value)
{
    return (ls_run_fact){.key = key, .kind = LS_RUN_TEXT, .text = value};
}

static ls_run_fact object(const char *key, const ls_run_fact *facts, size_t count)
{
    return (ls_run_fact){.key = key, .kind = LS_RUN_OBJECT, .facts = facts, .count = count};
}

static ls_run_fact candidate_fact(const ls_plan_row *row, ls_run_fact *at)
{
    const ls_run_fact *first = at;
    if (*row->refused) *at++ = text("refused", row->refused);
    if (!*row->refused) {
        *at++ = integer("planned_bytes", row->total);
        *at++ = text("fits", row->fits ? "yes" : "no");
        *at++ = integer("passes", row->passes);
        *at++ = number("seconds", ls_plan_row_seconds(row));
        *at++ = number("compute_seconds", row->seconds.compute);
        *at++ = number("exchange_seconds", row->seconds.exchange);
        *at++ = number("offload_seconds", row->seconds.offload);
    }
    return object(row->candidate.name, first, (size_t)(at - first));
}

ls_run_fact ls_auto_choice_fact(const ls_auto_choice *choice, ls_auto_facts *memory)
{
    const char *key = "auto_strategy";
    int rows = choice->count - 1;
    if (choice->count == 0) return text(key, NULL);
    for (int i = 0; i < rows; i++)
        memory->candidates[i] = candidate_fact(&choice->rows[i], memory->figures[i]);
    memory->facts[0] = text("chosen", choice->chosen.name);
    memory->facts[1] = number("flops_per_second", choice->rates.flops_per_second);
    memory->facts[2] = number("bytes_per_second", choice->rates.bytes_per_second);
    memory->facts[3] = number("disk_bytes_per_second", choice->rates.disk_bytes_per_second);
    memory->facts[4] = object("candidates", memory->candidates, (size_t)rows);
    return object(key, memory->facts, LS_AUTO_FACTS);
}

void ls_auto_choice_deinit(ls_auto_choice *choice)
{
    for (int i = 0; i < choice->count; i++)
        ls_free(choice->lines[i]);
    ls_free(choice->lines);
    ls_free(choice->rows);
    *choice = (ls_auto_choice){0};
}

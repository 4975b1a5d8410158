/* ls_plan_table_text: layouts side by side, and how one of them is written. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/auto_strategy.h"
#include "api/plan_data.h"
#include "api/planner.h"
#include "api/training_memory.h"
#include "base/alloc.h"
#include "base/numbers.h"
#include "formats/utf8.h"

/* --- one row ---------------------------------------------------------------------------------- */

static double mebibytes(int64_t bytes)
{
    return (double)bytes / (1024.0 * 1024.0);
}

static ls_status print_heading(ls_text *text, ls_error *error)
{
    return ls_text_print(text, error, "%7s  %-24s %9s %9s %9s %9s %9s %8s %9s %9s %13s %6s  %s",
                         "devices", "strategy", "params", "gradients", "optimizer", "activ.",
                         "commun.", "others", "total", "elsewhere", "elements", "passes", "fits");
}

static ls_status print_figures(const ls_plan_row *row, int64_t budget, ls_text *text,
                               ls_error *error)
{
    const int64_t *bytes = row->bytes;
    LS_TRY(ls_text_print(text, error, "%7d  %-24s ", row->candidate.devices, row->candidate.name));
    if (*row->refused) return ls_text_print(text, error, "refused: %s", row->refused);
    return ls_text_print(
        text, error,
        "%9.1f %9.1f %9.1f %9.1f %9.1f %8.1f %9.1f %9.1f %13" PRId64 " %6" PRId64 "  %s",
        mebibytes(bytes[LS_PLAN_PARAMETERS]), mebibytes(bytes[LS_PLAN_GRADIENTS]),
        mebibytes(bytes[LS_PLAN_OPTIMIZER_STATE]), mebibytes(bytes[LS_PLAN_ACTIVATIONS]),
        mebibytes(bytes[LS_PLAN_COMMUNICATION]), mebibytes(ls_plan_row_others(row)),
        mebibytes(row->total), mebibytes(bytes[LS_PLAN_HOST_MEMORY] + bytes[LS_PLAN_FILE]),
        row->elements, row->passes,
        budget == 0 ? "-"
        : row->fits ? "yes"
                    : "no");
}

/* "optimizer state" as a key: "optimizer_state". */
static ls_status print_key(ls_text *text, const char *name, ls_error *error)
{
    LS_TRY(ls_text_print(text, error, "\""));
    for (; *name; name++)
        LS_TRY(ls_text_print(text, error, "%c", isalnum((unsigned char)*name) ? *name : '_'));
    return ls_text_print(text, error, "\": ");
}

static ls_status print_seconds(const ls_plan_row *row, ls_text *text, ls_error *error)
{
    const struct {
        const char *key;
        double seconds;
    } parts[] = {{"compute_seconds", row->seconds.compute},
                 {"exchange_seconds", row->seconds.exchange},
                 {"offload_seconds", row->seconds.offload}};
    if (ls_plan_row_seconds(row) == 0) return LS_OK;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char digits[LS_NUMBER_BYTES];
        LS_TRY(ls_text_print(text, error, ", \"%s\": %s", parts[i].key,
                             ls_number_print(digits, parts[i].seconds)));
    }
    return LS_OK;
}

static ls_status print_object(const ls_plan_row *row, ls_text *text, ls_error *error)
{
    LS_TRY(ls_text_print(text, error, "{\"strategy\": \"%s\", \"devices\": %d, \"refused\": ",
                         row->candidate.name, row->candidate.devices));
    LS_TRY(ls_utf8_json(text, *row->refused ? row->refused : NULL, error));
    if (*row->refused) return ls_text_print(text, error, "}");
    LS_TRY(ls_text_print(text, error, ", \"memory\": {"));
    for (ls_plan_arena arena = 0; arena < LS_PLAN_ARENA_COUNT; arena++) {
        LS_TRY(print_key(text, ls_plan_arena_name(arena), error));
        LS_TRY(ls_text_print(text, error, "%" PRId64 ", ", row->bytes[arena]));
    }
    LS_TRY(
        ls_text_print(text, error, "\"evaluation_inputs\": %" PRId64 "}", row->evaluation_bytes));
    LS_TRY(ls_text_print(
        text, error,
        ", \"planned_bytes\": %" PRId64 ", \"planned_host_bytes\": %" PRId64
        ", \"planned_file_bytes\": %" PRId64 ", \"elements_sent_per_step\": %" PRId64
        ", \"samples_per_pass\": %" PRId64 ", \"passes\": %" PRId64 ", \"fits\": %s",
        row->total, row->bytes[LS_PLAN_HOST_MEMORY], row->bytes[LS_PLAN_FILE], row->elements,
        row->samples_per_pass, row->passes, row->fits ? "true" : "false"));
    LS_TRY(print_seconds(row, text, error));
    return ls_text_print(text, error, "}");
}

/* --- all of them ------------------------------------------------------------------------------ */

typedef struct table {
    ls_session session;
    ls_plan_data data;
    ls_planner planner;
    ls_auto_choice choice; /* with --strategy auto */
    bool every, json;
    int rows;
    ls_text *text;
} table;

static ls_status print_row(table *t, const ls_candidate *candidate, ls_error *error)
{
    ls_plan_row row;
    LS_TRY(ls_planner_row(&t->planner, &row, candidate, error));
    if (t->json) {
        LS_TRY(ls_text_print(t->text, error, "%s    ", t->rows++ ? ",\n" : ""));
        return print_object(&row, t->text, error);
    }
    LS_TRY(print_figures(&row, t->session.options->device_memory, t->text, error));
    return ls_text_print(t->text, error, "\n");
}

static ls_status print_devices(table *t, int devices, ls_error *error)
{
    ls_candidate candidates[LS_MOST_CANDIDATES];
    int count = 1;
    if (t->every) {
        count = ls_candidates_list(candidates, t->session.options, devices, false);
    } else {
        *candidates = (ls_candidate){.strategy = t->session.strategy, .devices = devices};
        ls_candidate_name(candidates);
    }
    /* What refuses the first one for its devices refuses all. */
    if (count > 1 && devices > ls_assembly_leaves(&t->planner.base.training)) {
        count = 1;
        snprintf(candidates->name, sizeof candidates->name, "any");
    }
    for (int i = 0; i < count; i++)
        LS_TRY(print_row(t, &candidates[i], error));
    return LS_OK;
}

static ls_status print_rows(table *t, ls_error *error)
{
    int *counts = NULL, count = 0;
    /* Without a list: as many as are started. */
    if (!t->session.options->device_list)
        return print_devices(t, ls_session_ranks(&t->session), error);
    LS_TRY(ls_device_counts(&counts, &count, t->session.options, error));
    ls_status status = LS_OK;
    for (int i = 0; i < count && status == LS_OK; i++)
        status = print_devices(t, counts[i], error);
    ls_free(counts);
    return status;
}

static ls_status print_table(table *t, ls_error *error)
{
    const ls_assembly_options *training = &t->planner.base.training;
    LS_TRY(ls_text_print(t->text, error,
                         "A batch of %" PRId64 " samples of up to %" PRId64
                         " tokens, leaves of %" PRId64
                         ". MiB of a device (elsewhere: of the host's memory or of a file, each "
                         "rank); elements moved between devices in a step; passes of a step.\n\n",
                         training->batch_size, training->longest_row, training->leaf_size));
    LS_TRY(print_heading(t->text, error));
    LS_TRY(ls_text_print(t->text, error, "\n"));
    return print_rows(t, error);
}

static ls_status print_json(table *t, ls_error *error)
{
    const ls_assembly_options *training = &t->planner.base.training;
    LS_TRY(ls_text_print(t->text, error,
                         "{\n  \"batch_size\": %" PRId64 ",\n  \"leaf_size\": %" PRId64
                         ",\n  \"longest_row\": %" PRId64 ",\n  \"device_memory\": %" PRId64
                         ",\n  \"rows\": [\n",
                         training->batch_size, training->leaf_size, training->longest_row,
                         t->session.options->device_memory));
    LS_TRY(print_rows(t, error));
    LS_TRY(ls_text_print(t->text, error, "\n  ]"));
    if (*t->choice.chosen.name)
        LS_TRY(ls_text_print(t->text, error, ",\n  \"chosen\": \"%s\"", t->choice.chosen.name));
    return ls_text_print(t->text, error, "\n}\n");
}

/* What --strategy auto would take now, and why. */
static ls_status choose(table *t, ls_error *error)
{
    const ls_options *options = t->session.options;
    if (strcmp(options->strategy, "auto") != 0) return LS_OK;
    if (options->device_list)
        return ls_fail(error, LS_USAGE,
                       "--strategy auto chooses for one number of --devices, not for a list");
    t->every = true;
    LS_TRY(ls_auto_choose(&t->choice, &t->session, &t->planner.base, t->planner.row_tokens, error));
    t->planner.rates = &t->choice.rates;
    return LS_OK;
}

static ls_status open_data(table *t, ls_error *error)
{
    ls_run_memory_options memory;
    LS_TRY(ls_plan_data_open(&t->data, &t->session, &memory, error));
    LS_TRY(ls_session_message_bytes(&t->session, &memory.training.message_bytes, error));
    ls_planner_init(&t->planner, &t->session, &memory);
    t->planner.row_tokens = ls_training_row_tokens(t->data.train, &memory);
    return LS_OK;
}

static ls_status describe(table *t, ls_error *error)
{
    LS_TRY(choose(t, error));
    if (t->json) return print_json(t, error);
    LS_TRY(print_table(t, error));
    for (int i = 0; i < t->choice.count; i++)
        LS_TRY(ls_text_print(t->text, error, "%s%s\n", i ? "" : "\n", t->choice.lines[i]));
    return LS_OK;
}

ls_status ls_plan_table_text(const ls_options *options, bool every_strategy, bool json, char **text,
                             ls_error *error)
{
    ls_text plan = {0};
    table t = {.every = every_strategy, .json = json, .text = &plan};
    *text = NULL;
    ls_status status =
        ls_session_open(&t.session, options, NULL, LS_COMMAND_PLAN, LS_TRAINING_LENGTH, error);
    if (status == LS_OK) status = open_data(&t, error);
    status = ls_session_agree(&t.session, status, "the reading of the data", error);
    if (status == LS_OK) status = describe(&t, error);
    status = ls_session_agree(&t.session, status, "the plan", error);
    bool first = ls_session_is_first(&t.session);
    if (!first && error && status != LS_OK) error->text[0] = '\0';
    ls_planner_deinit(&t.planner);
    ls_auto_choice_deinit(&t.choice);
    ls_plan_data_close(&t.data);
    ls_session_close(&t.session);
    if (status == LS_OK && first) /* one process prints it */
        *text = plan.data;
    else
        ls_text_deinit(&plan);
    return status;
}

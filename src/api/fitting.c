#include "api/fitting.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/planner.h"
#include "base/text.h"

enum {
    MOST_DEVICES = 64, /* of a run */
    MOST_CHANGES = 4,
    MOST_TRIALS = 300,
    SHORTEST_ROW = 8,
};

/* What can be changed, in the order in which it is tried. */
typedef enum dimension {
    SAMPLES,
    RECOMPUTE,
    STRATEGY,
    OFFLOAD,
    DEVICES,
    LENGTH,
    DIMENSIONS
} dimension;

/* How far each is from what was asked for: 0 is as asked. */
typedef struct change {
    int steps[DIMENSIONS];
} change;

typedef struct search {
    const ls_session *session;
    const ls_run_memory_options *asked;
    ls_planner planner;
    /* That was asked for, as an index of ls_strategy_kinds; for one of a single device the first
     * that takes more. */
    int strategy;
    int devices, leaves, trials;
    change now, found;
    ls_plan_row row; /* of `found` */
} search;

static int64_t row_length(const search *s, const change *c)
{
    int64_t length = s->asked->training.longest_row;
    for (int i = 0; i < c->steps[LENGTH]; i++)
        length /= 2;
    return length;
}

static int device_count(const search *s, const change *c)
{
    return s->devices << c->steps[DEVICES];
}

/* Steps that a dimension has. */
static int steps_of(const search *s, dimension d)
{
    int steps = 0;
    switch (d) {
    case SAMPLES:
        return s->asked->samples_per_pass != LS_SAMPLES_AUTO;
    case RECOMPUTE:
        return s->session->strategy.recompute == LS_RECOMPUTE_NONE;
    case STRATEGY:
        return LS_STRATEGY_KINDS - 1 - s->strategy;
    case OFFLOAD:
        return 1;
    case DEVICES:
        while (s->devices << (steps + 1) <= MOST_DEVICES && s->devices << (steps + 1) <= s->leaves)
            steps++;
        return steps;
    case LENGTH:
        while (s->asked->training.longest_row >> (steps + 1) >= SHORTEST_ROW)
            steps++;
        return steps;
    case DIMENSIONS:
        break;
    }
    return 0;
}

/* The layout after a change; false: there is none, or it is as before. */
static bool describe(const search *s, const change *c, ls_candidate *candidate)
{
    ls_strategy *strategy = &candidate->strategy;
    candidate->devices = device_count(s, c);
    *strategy = s->session->strategy;
    if (c->steps[RECOMPUTE]) strategy->recompute = LS_RECOMPUTE_LAYER;
    int level = s->strategy + c->steps[STRATEGY];
    if (c->steps[STRATEGY] || candidate->devices > 1) strategy->kind = &ls_strategy_kinds[level];
    bool divided = strategy->kind->shard.parameters;
    if (c->steps[OFFLOAD]) {
        bool had = strategy->optimizer && (strategy->parameters || !divided);
        if (had) return false;
        if (!strategy->optimizer) strategy->optimizer = LS_PLACE_HOST;
        if (!strategy->parameters && divided) strategy->parameters = strategy->optimizer;
    }
    /* On one device nothing is divided but what lies elsewhere. */
    if (candidate->devices == 1 && c->steps[STRATEGY] && !strategy->parameters) return false;
    ls_candidate_name(candidate);
    return true;
}

static bool is_too_much_for_host(const ls_plan_row *row)
{
    double pages = (double)sysconf(_SC_PHYS_PAGES), bytes = (double)sysconf(_SC_PAGE_SIZE);
    return (double)row->bytes[LS_PLAN_HOST_MEMORY] * row->candidate.devices > pages * bytes;
}

static ls_status look_at(search *s, const change *c, ls_plan_row *row, ls_error *error)
{
    ls_candidate candidate;
    ls_run_memory_options *memory = &s->planner.base;
    int64_t length = row_length(s, c);
    *row = (ls_plan_row){0};
    if (!describe(s, c, &candidate)) return LS_OK;
    *memory = *s->asked;
    memory->training.longest_row = length;
    if (memory->evaluation_longest_row > length) memory->evaluation_longest_row = length;
    if (c->steps[SAMPLES]) memory->samples_per_pass = LS_SAMPLES_AUTO;
    s->trials++;
    return ls_planner_row(&s->planner, row, &candidate, error);
}

/* Change `left` dimensions from `d` on. */
static ls_status try_changes(search *s, dimension d, int left, bool *found, ls_error *error)
{
    if (*found || s->trials >= MOST_TRIALS) return LS_OK;
    if (left == 0) {
        LS_TRY(look_at(s, &s->now, &s->row, error));
        *found = !*s->row.refused && s->row.fits;
        s->found = s->now;
        return LS_OK;
    }
    if (d == DIMENSIONS) return LS_OK;
    for (int step = 1, steps = steps_of(s, d); step <= steps && !*found; step++) {
        s->now.steps[d] = step;
        LS_TRY(try_changes(s, d + 1, left - 1, found, error));
    }
    s->now.steps[d] = 0;
    return try_changes(s, d + 1, left, found, error);
}

/* --- what is said ----------------------------------------------------------------------------- */

static ls_status print_flags(const search *s, ls_text *text, ls_error *error)
{
    const ls_strategy *strategy = &s->row.candidate.strategy;
    const change *c = &s->found;
    bool disk = is_too_much_for_host(&s->row);
    const char *place = disk ? "disk" : "host";
    if (c->steps[SAMPLES])
        LS_TRY(ls_text_print(text, error, " --samples-per-pass %lld",
                             (long long)s->row.samples_per_pass));
    if (c->steps[RECOMPUTE]) LS_TRY(ls_text_print(text, error, " --recompute layer"));
    if (strategy->kind != s->session->strategy.kind)
        LS_TRY(ls_text_print(text, error, " --strategy %s", strategy->kind->name));
    if (strategy->optimizer != s->session->strategy.optimizer)
        LS_TRY(ls_text_print(text, error, " --offload-optimizer %s", place));
    if (strategy->parameters != s->session->strategy.parameters)
        LS_TRY(ls_text_print(text, error, " --offload-parameters %s", place));
    if (c->steps[OFFLOAD] && disk) LS_TRY(ls_text_print(text, error, " --offload-path FOLDER"));
    if (c->steps[DEVICES])
        LS_TRY(ls_text_print(text, error, " --devices %d", s->row.candidate.devices));
    if (c->steps[LENGTH])
        LS_TRY(ls_text_print(text, error, " --max-length %lld", (long long)row_length(s, c)));
    return ls_text_print(text, error, " (then it needs %lld bytes)", (long long)s->row.total);
}

static ls_status print_advice(search *s, ls_text *text, ls_error *error)
{
    bool found = false;
    for (int changes = 1; changes <= MOST_CHANGES && !found; changes++) {
        s->now = (change){0};
        LS_TRY(try_changes(s, 0, changes, &found, error));
    }
    if (!found)
        return ls_text_print(text, error,
                             "no change of up to %d settings that was tried makes it fit: raise "
                             "--device-memory, or lower --batch-size per --devices",
                             MOST_CHANGES);
    LS_TRY(ls_text_print(text, error, "the smallest change that fits:"));
    return print_flags(s, text, error);
}

static ls_status print_asked(const ls_plan_row *row, int64_t budget, ls_text *text, ls_error *error)
{
    const int64_t *bytes = row->bytes;
    return ls_text_print(
        text, error,
        "the run needs %lld bytes of device memory with %lld samples a pass, --device-memory "
        "allows %lld: %s on %d device%s has %lld bytes of parameters, %lld of gradients, %lld of "
        "optimizer state, %lld of activations, %lld of communication buffers and %lld of others; ",
        (long long)row->total, (long long)row->samples_per_pass, (long long)budget,
        row->candidate.name, row->candidate.devices, row->candidate.devices == 1 ? "" : "s",
        (long long)bytes[LS_PLAN_PARAMETERS], (long long)bytes[LS_PLAN_GRADIENTS],
        (long long)bytes[LS_PLAN_OPTIMIZER_STATE], (long long)bytes[LS_PLAN_ACTIVATIONS],
        (long long)bytes[LS_PLAN_COMMUNICATION], (long long)ls_plan_row_others(row));
}

ls_status ls_fitting_refuse(const ls_session *session, const ls_run_memory_options *memory,
                            ls_error *error)
{
    const ls_assembly_options *training = &memory->training;
    int64_t leaves = (training->batch_size + training->leaf_size - 1) / training->leaf_size;
    search s = {.session = session,
                .asked = memory,
                .devices = training->ranks,
                .leaves = (int)(leaves < MOST_DEVICES ? leaves : MOST_DEVICES)};
    ls_text text = {0};
    change asked = {0};
    ls_status status;
    if (session->strategy.kind) s.strategy = (int)(session->strategy.kind - ls_strategy_kinds);
    while (ls_strategy_kinds[s.strategy].one_device)
        s.strategy++;
    ls_planner_init(&s.planner, session, memory);
    LS_TRY_GOTO(status, look_at(&s, &asked, &s.row, error), done);
    LS_TRY_GOTO(status, print_asked(&s.row, session->options->device_memory, &text, error), done);
    LS_TRY_GOTO(status, print_advice(&s, &text, error), done);
    status = ls_fail(error, LS_NO_MEMORY, "%s", text.data);
done:
    ls_text_deinit(&text);
    ls_planner_deinit(&s.planner);
    return status;
}

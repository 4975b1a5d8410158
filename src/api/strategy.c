#include "api/strategy.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"

static const char *const recompute_names[] = {
    [LS_RECOMPUTE_NONE] = "none",
    [LS_RECOMPUTE_LAYER] = "layer",
    [LS_RECOMPUTE_ATTENTION] = "attention",
};

/* Index of `name` among `count` names, or the one that stands for a setting that was not given. */
static int index_of(const char *name, const char *const *names, int count)
{
    for (int i = 0; name && i < count; i++)
        if (strcmp(names[i], name) == 0) return i;
    return 0;
}

typedef struct endings {
    bool recompute;
} endings;

static ls_status read_ending(endings *found, const char *strategy, const char *ending,
                             size_t length, ls_error *error)
{
    const struct {
        const char *name;
        bool *said;
    } known[] = {{"recompute", &found->recompute}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strlen(known[i].name) != length || memcmp(known[i].name, ending, length) != 0) continue;
        if (*known[i].said)
            return ls_fail(error, LS_USAGE, "--strategy %s: +%s stands there twice", strategy,
                           known[i].name);
        *known[i].said = true;
        return LS_OK;
    }
    return ls_fail(error, LS_USAGE,
                   "--strategy %s: '+%.*s' is not known: a strategy's name may end in +recompute",
                   strategy, (int)length, ending);
}

static ls_status read_name(ls_strategy *strategy, endings *found, const char *name, ls_error *error)
{
    size_t length = strcspn(name, "+");
    snprintf(strategy->name, sizeof strategy->name, "%.*s", (int)length, name);
    while (name[length] == '+') {
        const char *ending = name + length + 1;
        size_t size = strcspn(ending, "+");
        LS_TRY(read_ending(found, name, ending, size, error));
        length += 1 + size;
    }
    return LS_OK;
}

static ls_status contradiction(const ls_options *options, const char *setting, const char *value,
                               ls_error *error)
{
    return ls_fail(error, LS_USAGE,
                   "--strategy %s and --%s %s contradict each other: leave one out",
                   options->strategy, setting, value);
}

ls_status ls_strategy_of(ls_strategy *strategy, const ls_options *options, ls_error *error)
{
    endings found = {0};
    *strategy = (ls_strategy){0};
    LS_TRY(read_name(strategy, &found, options->strategy, error));
    strategy->recompute = (ls_recompute_what)index_of(options->recompute, recompute_names, 3);
    if (!found.recompute) return LS_OK;
    if (!options->recompute) strategy->recompute = LS_RECOMPUTE_LAYER;
    if (strategy->recompute == LS_RECOMPUTE_NONE)
        return contradiction(options, "recompute", options->recompute, error);
    return LS_OK;
}

void ls_strategy_used(ls_options *options, const ls_strategy *strategy)
{
    options->recompute = recompute_names[strategy->recompute];
}

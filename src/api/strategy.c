#include "api/strategy.h"

#include <stdio.h>
#include <string.h>

#include "base/block_file.h"
#include "base/status.h"
#include "lockstep.h"

enum { CHOICES = 3 };

/* The one that stands for any of the others. */
#define CHOSEN_LATER "auto"

static const char *const recompute_names[CHOICES] = {
    [LS_RECOMPUTE_NONE] = "none",
    [LS_RECOMPUTE_LAYER] = "layer",
    [LS_RECOMPUTE_ATTENTION] = "attention",
};

static const char *const place_names[CHOICES] = {
    [LS_PLACE_DEVICE] = "none",
    [LS_PLACE_HOST] = "host",
    [LS_PLACE_DISK] = "disk",
};

/* Index of `name`; 0, which is "none", where the setting was not given. */
static int index_of(const char *name, const char *const names[CHOICES])
{
    for (int i = 0; name && i < CHOICES; i++)
        if (strcmp(names[i], name) == 0) return i;
    return 0;
}

/* --- the name -----------------------------------------------------------------------------------
 */

typedef struct endings {
    bool offload, recompute;
} endings;

static ls_status read_ending(endings *found, const char *strategy, const char *ending,
                             size_t length, ls_error *error)
{
    const struct {
        const char *name;
        bool *said;
    } known[] = {{"offload", &found->offload}, {"recompute", &found->recompute}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strlen(known[i].name) != length || memcmp(known[i].name, ending, length) != 0) continue;
        if (*known[i].said)
            return ls_fail(error, LS_USAGE, "--strategy %s: +%s stands there twice", strategy,
                           known[i].name);
        *known[i].said = true;
        return LS_OK;
    }
    return ls_fail(error, LS_USAGE,
                   "--strategy %s: '+%.*s' is not known: known endings are +offload, +recompute",
                   strategy, (int)length, ending);
}

static ls_status read_name(ls_strategy *strategy, endings *found, const char *name, ls_error *error)
{
    size_t length = strcspn(name, "+");
    char base[32];
    snprintf(base, sizeof base, "%.*s", (int)length, name);
    strategy->kind = ls_strategy_kind_of(base);
    if (!strategy->kind && strcmp(base, CHOSEN_LATER) != 0)
        return ls_fail(error, LS_USAGE, "--strategy %s is not built", base);
    while (name[length] == '+') {
        const char *ending = name + length + 1;
        size_t size = strcspn(ending, "+");
        LS_TRY(read_ending(found, name, ending, size, error));
        length += 1 + size;
    }
    return LS_OK;
}

ls_status ls_strategy_check_endings(const char *name, ls_error *error)
{
    ls_strategy strategy;
    endings found = {0};
    return read_name(&strategy, &found, name, error);
}

/* What an ending stands for, unless the setting itself says it: then not "none". */
static ls_status apply(const ls_options *options, const char *setting, const char *value,
                       int *choice, int meaning, ls_error *error)
{
    if (!value) *choice = meaning;
    if (*choice) return LS_OK;
    return ls_fail(error, LS_USAGE,
                   "--strategy %s and --%s %s contradict each other: leave one out",
                   options->strategy, setting, value);
}

/* --- the settings beside it ----------------------------------------------------------------------
 */

static ls_status check_disk(const ls_strategy *strategy, const ls_options *options, bool run,
                            ls_error *error)
{
    bool optimizer = strategy->optimizer == LS_PLACE_DISK;
    bool parameters = strategy->parameters == LS_PLACE_DISK;
    const char *setting = optimizer ? "--offload-optimizer" : "--offload-parameters";
    if ((optimizer || parameters) && run && !options->offload_path)
        return ls_fail(error, LS_USAGE, "%s disk needs --offload-path: the folder for its file",
                       setting);
    if (optimizer || parameters || !options->offload_path) return LS_OK;
    return ls_fail(error, LS_USAGE,
                   "--offload-path %s is of no use without --offload-optimizer disk or "
                   "--offload-parameters disk",
                   options->offload_path);
}

/* The first strategy whose parameters are in parts, which can lie elsewhere. */
static const char *divides_parameters(void)
{
    int i = 0;
    while (!ls_strategy_kinds[i].shard.parameters)
        i++;
    return ls_strategy_kinds[i].name;
}

/* What counts only where parameters are divided. */
static ls_status check_gathers(const ls_strategy *strategy, const ls_options *options,
                               ls_error *error)
{
    bool prefetch = options->prefetch_bucket_size >= 0;
    bool given = prefetch || options->persistence_threshold != 0;
    if (!given || strategy->kind->shard.parameters) return LS_OK;
    return ls_fail(
        error, LS_USAGE,
        "--%s %lld needs --strategy %s: with --strategy %s each device has all parameters",
        prefetch ? "prefetch-bucket-size" : "persistence-threshold",
        (long long)(prefetch ? options->prefetch_bucket_size : options->persistence_threshold),
        divides_parameters(), options->strategy);
}

bool ls_strategy_takes(const char *strategy, const ls_options *options, const char *setting)
{
    static const char *const of_parts[] = {"prefetch-bucket-size", "persistence-threshold",
                                           "offload-parameters"};
    ls_strategy said = {0};
    endings found = {0};
    bool known = read_name(&said, &found, strategy, NULL) == LS_OK && said.kind;
    bool divides = known && said.kind->shard.parameters;
    for (size_t i = 0; i < sizeof of_parts / sizeof *of_parts; i++)
        if (strcmp(setting, of_parts[i]) == 0) return divides;
    bool moments = index_of(options->offload_optimizer, place_names) == LS_PLACE_DISK;
    return divides || moments || strcmp(setting, "offload-path") != 0;
}

/* Where gradients are divided each pass has exchanges, which the next one waits for. */
static ls_status check_overlap(const ls_strategy *strategy, const ls_options *options,
                               ls_error *error)
{
    const ls_strategy_kind *kind = strategy->kind;
    if (options->overlap_communication || !(kind->one_device || kind->shard.gradients))
        return LS_OK;
    return ls_fail(error, LS_USAGE,
                   "--overlap-communication false needs --strategy ddp or zero1: with --strategy "
                   "%s there is nothing that could be exchanged after the backward pass instead",
                   options->strategy);
}

static ls_status check_blocks(const ls_options *options, ls_error *error)
{
    if (options->offload_block_size % LS_BLOCK_PAGE == 0) return LS_OK;
    return ls_fail(error, LS_USAGE, "--offload-block-size: %lld is no multiple of %d",
                   (long long)options->offload_block_size, LS_BLOCK_PAGE);
}

static ls_status check_offload(const ls_strategy *strategy, const ls_options *options, bool run,
                               ls_error *error)
{
    if (strategy->parameters && !strategy->kind->shard.parameters)
        return ls_fail(error, LS_USAGE,
                       "--offload-parameters %s needs --strategy %s: with --strategy %s each "
                       "device has all parameters",
                       options->offload_parameters, divides_parameters(), options->strategy);
    LS_TRY(check_gathers(strategy, options, error));
    LS_TRY(check_overlap(strategy, options, error));
    LS_TRY(check_disk(strategy, options, run, error));
    return check_blocks(options, error);
}

static ls_status apply_endings(const endings *found, const ls_options *options,
                               const ls_strategy_kind *kind, int *recompute, int *optimizer,
                               int *parameters, ls_error *error)
{
    if (found->recompute)
        LS_TRY(
            apply(options, "recompute", options->recompute, recompute, LS_RECOMPUTE_LAYER, error));
    if (!found->offload) return LS_OK;
    LS_TRY(apply(options, "offload-optimizer", options->offload_optimizer, optimizer, LS_PLACE_HOST,
                 error));
    if (!kind || !kind->shard.parameters) return LS_OK;
    return apply(options, "offload-parameters", options->offload_parameters, parameters,
                 LS_PLACE_HOST, error);
}

/* What goes with the other settings is found when it is chosen. */
static ls_status check_auto(const endings *found, const ls_options *options, ls_error *error)
{
    if (found->offload || found->recompute)
        return ls_fail(error, LS_USAGE,
                       "--strategy %s: auto chooses what stands behind a + too; to have it so, use "
                       "--offload-optimizer, --offload-parameters and --recompute",
                       options->strategy);
    return check_blocks(options, error);
}

ls_status ls_strategy_of(ls_strategy *strategy, const ls_options *options, bool run,
                         ls_error *error)
{
    endings found = {0};
    *strategy = (ls_strategy){0};
    LS_TRY(read_name(strategy, &found, options->strategy, error));
    int recompute = index_of(options->recompute, recompute_names);
    int optimizer = index_of(options->offload_optimizer, place_names);
    int parameters = index_of(options->offload_parameters, place_names);
    LS_TRY(
        apply_endings(&found, options, strategy->kind, &recompute, &optimizer, &parameters, error));
    strategy->recompute = (ls_recompute_what)recompute;
    strategy->optimizer = (ls_place)optimizer;
    strategy->parameters = (ls_place)parameters;
    if (!strategy->kind) return check_auto(&found, options, error);
    return check_offload(strategy, options, run, error);
}

void ls_strategy_used(ls_options *options, const ls_strategy *strategy)
{
    options->recompute = recompute_names[strategy->recompute];
    options->offload_optimizer = place_names[strategy->optimizer];
    options->offload_parameters = place_names[strategy->parameters];
}

ls_status ls_strategy_check_devices(const ls_strategy *strategy, int64_t devices, ls_error *error)
{
    if (devices == 1 || !strategy->kind || !strategy->kind->one_device) return LS_OK;
    return ls_fail(error, LS_USAGE, "--devices: %lld devices with --strategy %s, which runs on one",
                   (long long)devices, strategy->kind->name);
}

ls_space ls_strategy_space(ls_place place)
{
    static const ls_space spaces[CHOICES] = {
        [LS_PLACE_DEVICE] = LS_SPACE_DEVICE,
        [LS_PLACE_HOST] = LS_SPACE_HOST_MEMORY,
        [LS_PLACE_DISK] = LS_SPACE_FILE,
    };
    return spaces[place];
}

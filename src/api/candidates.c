#include "api/candidates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { PLACES = 3, MOST_DEVICES = 4096 };

static const char *const places[PLACES] = {"none", "host", "disk"};

void ls_candidate_name(ls_candidate *candidate)
{
    const ls_strategy *strategy = &candidate->strategy;
    bool disk = strategy->optimizer == LS_PLACE_DISK || strategy->parameters == LS_PLACE_DISK;
    bool offload = strategy->optimizer || strategy->parameters;
    snprintf(candidate->name, sizeof candidate->name, "%s%s%s%s", strategy->kind->name,
             offload ? "+offload" : "", offload && disk ? "=disk" : "",
             strategy->recompute == LS_RECOMPUTE_LAYER       ? "+recompute"
             : strategy->recompute == LS_RECOMPUTE_ATTENTION ? "+recompute=attention"
                                                             : "");
}

/* A program for one device divides nothing, unless parameters that lie elsewhere are gathered. */
static bool is_of_use(const ls_strategy *strategy, int devices)
{
    if (devices > 1) return !strategy->kind->one_device;
    return strategy->kind->one_device || strategy->parameters != LS_PLACE_DEVICE;
}

static bool make(ls_candidate *candidate, const ls_options *options, int devices,
                 const ls_strategy_kind *kind, const char *place, const char *recompute)
{
    ls_options own = *options;
    own.strategy = kind->name;
    if (!options->recompute) own.recompute = recompute;
    if (!options->offload_optimizer) own.offload_optimizer = place;
    if (!options->offload_parameters)
        own.offload_parameters = kind->shard.parameters ? place : "none";
    bool disk =
        strcmp(own.offload_optimizer, "disk") == 0 || strcmp(own.offload_parameters, "disk") == 0;
    if (!disk) own.offload_path = NULL;
    if (!kind->shard.parameters) {
        own.prefetch_bucket_size = -1;
        own.persistence_threshold = 0;
    }
    *candidate = (ls_candidate){.devices = devices};
    if (ls_strategy_of(&candidate->strategy, &own, false, NULL) != LS_OK) return false;
    ls_candidate_name(candidate);
    return is_of_use(&candidate->strategy, devices);
}

int ls_candidates_list(ls_candidate candidates[LS_MOST_CANDIDATES], const ls_options *options,
                       int devices, bool disk)
{
    bool placed = options->offload_optimizer && options->offload_parameters;
    int count = 0;
    for (int kind = 0; kind < LS_STRATEGY_KINDS; kind++)
        for (int place = 0; place < (placed ? 1 : disk ? PLACES : PLACES - 1); place++)
            for (int again = 0; again < (options->recompute ? 1 : 2); again++) {
                ls_candidate *next = &candidates[count];
                if (!make(next, options, devices, &ls_strategy_kinds[kind], places[place],
                          again ? "layer" : "none"))
                    continue;
                /* A setting that is given may make two of them the same. */
                if (count && strcmp(next->name, next[-1].name) == 0) continue;
                count++;
            }
    return count;
}

/* --- a list of devices ------------------------------------------------------------------------ */

typedef struct device_list {
    int *counts;
    int count;
    size_t capacity;
} device_list;

static ls_status add(device_list *list, int devices, ls_error *error)
{
    LS_TRY(LS_GROW(list->counts, list->capacity, list->count + 1, "devices", error));
    list->counts[list->count++] = devices;
    return LS_OK;
}

static ls_status fail_list(const char *text, ls_error *error)
{
    return ls_fail(error, LS_USAGE,
                   "--devices: '%.100s' is no list of rising numbers up to %d, such as 1,2,4,8 or "
                   "1,2,4,...,%d",
                   text, MOST_DEVICES, MOST_DEVICES);
}

/* What stands for the dots before `last`: twice as many each time, or as many more as before. */
static ls_status fill(device_list *list, int last, const char *text, ls_error *error)
{
    if (list->count < 2) return fail_list(text, error);
    int former = list->counts[list->count - 2], latest = list->counts[list->count - 1];
    bool doubles = former * 2 == latest;
    for (int step = latest - former;; latest = list->counts[list->count - 1]) {
        int next = doubles ? 2 * latest : latest + step;
        if (next >= last) return LS_OK;
        LS_TRY(add(list, next, error));
    }
}

static ls_status read_list(device_list *list, const char *text, ls_error *error)
{
    bool dots = false;
    for (const char *at = text;; at++) {
        char *end = NULL;
        size_t length = strcspn(at, ",");
        if (length == 3 && memcmp(at, "...", 3) == 0 && !dots && at[3]) {
            dots = true;
            at += 3;
            continue;
        }
        long value = *at >= '0' && *at <= '9' ? strtol(at, &end, 10) : 0;
        if (value < 1 || value > MOST_DEVICES || end != at + length) return fail_list(text, error);
        if (list->count && value <= list->counts[list->count - 1]) return fail_list(text, error);
        if (dots) LS_TRY(fill(list, (int)value, text, error));
        dots = false;
        LS_TRY(add(list, (int)value, error));
        at = end;
        if (!*at) return LS_OK;
    }
}

ls_status ls_device_counts(int **counts, int *count, const ls_options *options, ls_error *error)
{
    device_list list = {0};
    ls_status status = options->device_list ? read_list(&list, options->device_list, error)
                                            : add(&list, (int)options->devices, error);
    if (status != LS_OK) ls_free(list.counts);
    *counts = status == LS_OK ? list.counts : NULL;
    *count = status == LS_OK ? list.count : 0;
    return status;
}

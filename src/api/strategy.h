/* What --strategy NAME[+offload][+recompute] and the settings beside it say together. */
#ifndef LS_API_STRATEGY_H
#define LS_API_STRATEGY_H

#include "lockstep/options.h"
#include "lockstep/status.h"
#include "strategies/strategy.h"

typedef enum ls_place { LS_PLACE_DEVICE, LS_PLACE_HOST, LS_PLACE_DISK } ls_place;

typedef struct ls_strategy {
    const ls_strategy_kind *kind; /* NULL: auto, which stands for any of them */
    ls_recompute_what recompute;
    ls_place optimizer, parameters;
} ls_strategy;

/* LS_USAGE where the name has an unknown ending, or one that another setting contradicts, or where
 * a setting misses or lacks the one that it needs: the text names both. `run`: what is only needed
 * to run it, and not to plan it, is looked at too. */
ls_status ls_strategy_of(ls_strategy *strategy, const ls_options *options, bool run,
                         ls_error *error);
/* The name alone, its base being known: LS_USAGE where an ending is unknown or there twice. */
ls_status ls_strategy_check_endings(const char *name, ls_error *error);
/* Write into options what was said by the strategy's name. */
void ls_strategy_used(ls_options *options, const ls_strategy *strategy);

/* LS_USAGE unless the strategy runs on so many devices. */
ls_status ls_strategy_check_devices(const ls_strategy *strategy, int64_t devices, ls_error *error);

ls_space ls_strategy_space(ls_place place);

#endif

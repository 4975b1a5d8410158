/* What --strategy NAME[+recompute] and the settings beside it say together. */
#ifndef LS_API_STRATEGY_H
#define LS_API_STRATEGY_H

#include "lockstep/options.h"
#include "lockstep/status.h"
#include "strategies/strategy.h"

typedef struct ls_strategy {
    char name[16]; /* without what stands behind a + */
    ls_recompute_what recompute;
} ls_strategy;

/* LS_USAGE where the name has an unknown ending, or one that another setting contradicts: the text
 * names both. */
ls_status ls_strategy_of(ls_strategy *strategy, const ls_options *options, ls_error *error);
/* Write into options what was said by the strategy's name. */
void ls_strategy_used(ls_options *options, const ls_strategy *strategy);

#endif

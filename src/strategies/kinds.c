#include <string.h>

#include "strategies/strategy.h"

const ls_strategy_kind ls_strategy_kinds[LS_STRATEGY_KINDS] = {
    {.name = "single", .one_device = true},
    {.name = "ddp"},
    {.name = "zero1", .shard = {.optimizer_state = true}},
    {.name = "zero2", .shard = {.optimizer_state = true, .gradients = true}},
    {.name = "zero3", .shard = {.optimizer_state = true, .gradients = true, .parameters = true}},
};

const ls_strategy_kind *ls_strategy_kind_of(const char *name)
{
    for (int i = 0; i < LS_STRATEGY_KINDS; i++)
        if (strcmp(ls_strategy_kinds[i].name, name) == 0) return &ls_strategy_kinds[i];
    return NULL;
}

#include "engine/faults.h"

#ifdef LS_FAIL_POINTS

#include <stdio.h>

#include "base/fail_point.h"

static void flip(ls_executor *executor, ls_value_id value, const char *what)
{
    char site[64];
    uint32_t word;
    ls_device *device = ls_executor_device(executor);
    uint32_t *data = ls_executor_address(executor, value);
    snprintf(site, sizeof site, "%s.rank%d", what, ls_executor_rank(executor));
    if (!data || ls_fail_point(site) != LS_FAIL_FLIP) return;
    device->operations->download(device, &word, data, sizeof word);
    device->operations->wait(device);
    word ^= 1u << 13;
    device->operations->upload(device, data, &word, sizeof word);
    device->operations->wait(device);
}

void ls_fault_weights(ls_executor *executor, const ls_assembly *assembly)
{
    flip(executor, assembly->model.parameters[0].value, "weights");
}

void ls_fault_gradient(ls_executor *executor, const ls_assembly *assembly)
{
    for (ls_value_id id = 0; id < assembly->program->value_count; id++) {
        const ls_value *value = ls_value_of(assembly->program, id);
        if (value->role != LS_ROLE_GRADIENT || value->row_sparse) continue;
        flip(executor, id, "gradient");
        return;
    }
}

#else

/* ISO C wants something in every file. */
typedef int nothing_is_changed_here;

#endif

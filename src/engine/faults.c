#include "engine/faults.h"

#ifdef LS_FAIL_POINTS

#include <stdio.h>
#include <string.h>

#include "base/fail_point.h"

static bool is_due(const ls_executor *executor, const char *what)
{
    char site[64];
    snprintf(site, sizeof site, "%s.rank%d", what, ls_executor_rank(executor));
    return ls_fail_point(site) == LS_FAIL_FLIP;
}

static void flip(float *number)
{
    uint32_t word;
    memcpy(&word, number, sizeof word);
    word ^= 1u << 13;
    memcpy(number, &word, sizeof word);
}

ls_status ls_fault_weights(ls_executor *executor, const ls_assembly *assembly, const char *site,
                           ls_error *error)
{
    float number;
    ls_value_id first = assembly->model.parameters[0].value;
    ls_range held = ls_executor_held(executor, first);
    if (held.begin == held.end || !is_due(executor, site)) return LS_OK;
    LS_TRY(ls_executor_get(executor, first, held.begin, 1, &number, error));
    flip(&number);
    return ls_executor_put(executor, first, held.begin, 1, &number, error);
}

void ls_fault_gradient(ls_executor *executor, const ls_assembly *assembly)
{
    ls_device *device = ls_executor_device(executor);
    for (ls_value_id id = 0; id < assembly->program->value_count; id++) {
        const ls_value *value = ls_value_of(assembly->program, id);
        float number, *data = ls_executor_address(executor, id);
        if (value->role != LS_ROLE_GRADIENT || value->row_sparse || !data) continue;
        if (!is_due(executor, "gradient")) return;
        device->operations->download(device, &number, data, sizeof number);
        device->operations->wait(device);
        flip(&number);
        device->operations->upload(device, data, &number, sizeof number);
        device->operations->wait(device);
        return;
    }
}

#else

/* ISO C wants something in every file. */
typedef int nothing_is_changed_here;

#endif

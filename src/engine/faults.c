#include "engine/faults.h"

#ifdef LS_FAIL_POINTS

#include <stdio.h>
#include <string.h>

#include "base/fail_point.h"

int ls_fault_point(const ls_executor *executor, const char *what)
{
    char site[64];
    snprintf(site, sizeof site, "%s.rank%d", what, ls_executor_rank(executor));
    return ls_fail_point(site);
}

static void change(float *number, int how)
{
    uint32_t word;
    memcpy(&word, number, sizeof word);
    word ^= 1u << 13;
    if (how == LS_FAIL_FLIP) memcpy(number, &word, sizeof word);
    if (how == LS_FAIL_NAN) *number = __builtin_nanf("");
    if (how == LS_FAIL_INFINITY) *number = __builtin_inff();
}

ls_status ls_fault_weights(ls_executor *executor, const ls_assembly *assembly, const char *site,
                           ls_error *error)
{
    float number;
    ls_value_id first = assembly->model.parameters[0].value;
    ls_range held = ls_executor_held(executor, first);
    int how = held.begin == held.end ? 0 : ls_fault_point(executor, site);
    if (how >= 0) return LS_OK;
    LS_TRY(ls_executor_get(executor, first, held.begin, 1, &number, error));
    change(&number, how);
    return ls_executor_put(executor, first, held.begin, 1, &number, error);
}

void ls_fault_gradient(ls_executor *executor, const ls_assembly *assembly)
{
    ls_device *device = ls_executor_device(executor);
    for (ls_value_id id = 0; id < assembly->program->value_count; id++) {
        const ls_value *value = ls_value_of(assembly->program, id);
        float number, *data = ls_executor_address(executor, id);
        if (value->role != LS_ROLE_GRADIENT || value->row_sparse || !data) continue;
        int how = ls_fault_point(executor, "gradient");
        if (how >= 0) return;
        device->operations->download(device, &number, data, sizeof number);
        device->operations->wait(device);
        change(&number, how);
        device->operations->upload(device, data, &number, sizeof number);
        device->operations->wait(device);
        return;
    }
}

#else

/* ISO C wants something in every file. */
typedef int nothing_is_changed_here;

#endif

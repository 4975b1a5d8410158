#include "engine/state.h"

#include <string.h>

#include "base/alloc.h"

static int64_t elements_of(const ls_assembly *assembly, ls_value_id tensor)
{
    return ls_value_elements(ls_value_of(assembly->program, tensor), &ls_fixed_extents);
}

ls_range ls_state_saved(const ls_assembly *assembly, ls_value_id tensor, int rank)
{
    const ls_program *program = assembly->program;
    if (ls_value_of(program, tensor)->layout != LS_LAYOUT_WHOLE)
        return ls_layout_owned(program, ls_layout_parameter(program, tensor), rank);
    int64_t elements = elements_of(assembly, tensor), ranks = assembly->ranks;
    return (ls_range){elements / ranks * rank + elements % ranks * rank / ranks,
                      elements / ranks * (rank + 1) + elements % ranks * (rank + 1) / ranks};
}

/* "first_moment.<parameter>" of the program is "<parameter>.first_moment" in a file. */
static ls_status name_moment(ls_state *state, const ls_value *moment, const char **out,
                             ls_error *error)
{
    const char *parameter = ls_value_of(state->assembly->program, moment->parameter)->name;
    int length = (int)strcspn(moment->name, ".");
    return ls_arena_text(&state->names, out, error, "%s.%.*s", parameter, length, moment->name);
}

static ls_status list(ls_state *state, ls_error *error)
{
    const ls_assembly *assembly = state->assembly;
    const ls_program *program = assembly->program;
    state->parameters = assembly->model.parameter_count;
    LS_TRY(LS_NEW(state->tensors, program->value_count + 1, "list of tensors", error));
    for (size_t i = 0; i < state->parameters; i++) {
        ls_value_id id = assembly->model.parameters[i].value;
        state->tensors[state->count++] =
            (ls_state_tensor){ls_value_of(program, id)->name, id, elements_of(assembly, id)};
    }
    for (ls_value_id id = 0; id < program->value_count; id++) {
        const ls_value *value = ls_value_of(program, id);
        if (value->role != LS_ROLE_OPTIMIZER_STATE || value->storage != id) continue;
        ls_state_tensor *tensor = &state->tensors[state->count++];
        *tensor = (ls_state_tensor){.value = id, .elements = elements_of(assembly, id)};
        LS_TRY(name_moment(state, value, &tensor->name, error));
    }
    return LS_OK;
}

ls_status ls_state_list(ls_state *state, const ls_assembly *assembly, ls_error *error)
{
    *state = (ls_state){.assembly = assembly};
    ls_status status = list(state, error);
    if (status != LS_OK) ls_state_deinit(state);
    return status;
}

void ls_state_deinit(ls_state *state)
{
    ls_arena_deinit(&state->names);
    ls_free(state->tensors);
    *state = (ls_state){0};
}

int64_t ls_state_snapshot_bytes(const ls_assembly *assembly)
{
    const ls_program *program = assembly->program;
    int64_t most = 0;
    for (int rank = 0; rank < assembly->ranks; rank++) {
        int64_t bytes = 0;
        for (ls_value_id id = 0; id < program->value_count; id++) {
            const ls_value *value = ls_value_of(program, id);
            bool kept = value->role == LS_ROLE_PARAMETER || value->role == LS_ROLE_OPTIMIZER_STATE;
            if (!kept || value->storage != id) continue;
            ls_range range = ls_state_saved(assembly, id, rank);
            int64_t own = (range.end - range.begin) * (int64_t)sizeof(float);
            bytes += (own + LS_PLAN_ALIGNMENT - 1) / LS_PLAN_ALIGNMENT * LS_PLAN_ALIGNMENT;
        }
        if (bytes > most) most = bytes;
    }
    return most;
}

#include "engine/moved_rows.h"

#include <string.h>

static ls_status look_at(ls_executor *executor, const ls_program *program, ls_value_id moment,
                         uint8_t *moved, ls_error *error)
{
    enum { PIECE = 4096 };
    const ls_value *value = ls_value_of(program, moment);
    const ls_range held = ls_executor_held(executor, moment);
    const int64_t hidden = value->shape[value->rank - 1].constant;
    float piece[PIECE];
    uint32_t bits[PIECE];
    for (int64_t first = held.begin; first < held.end; first += PIECE) {
        int64_t count = held.end - first < PIECE ? held.end - first : PIECE;
        LS_TRY(ls_executor_get(executor, moment, first, count, piece, error));
        memcpy(bits, piece, (size_t)count * sizeof *bits);
        for (int64_t e = 0; e < count; e++)
            if (bits[e] != 0) moved[(first + e) / hidden] = 1;
    }
    return LS_OK;
}

ls_status ls_moved_rows_find(ls_executor *executor, const ls_program *program, ls_value_id touched,
                             uint8_t *moved, ls_error *error)
{
    for (ls_value_id id = 0; id < program->value_count; id++) {
        const ls_value *value = ls_value_of(program, id);
        if (value->role != LS_ROLE_OPTIMIZER_STATE || value->storage != id) continue;
        if (ls_value_of(program, value->parameter)->touched != touched) continue;
        if (ls_value_is_offloaded(value)) /* its blocks travel whichever rows they hold */
            memset(moved, 1, (size_t)value->shape[0].constant);
        else
            LS_TRY(look_at(executor, program, id, moved, error));
    }
    return LS_OK;
}

#include "program/layout.h"

static const ls_extents fixed = {{1}}; /* parameters have no symbolic sizes */

static int64_t elements_of(const ls_program *program, ls_value_id parameter)
{
    return ls_value_elements(ls_value_of(program, parameter), &fixed);
}

ls_status ls_layout_divide(ls_program *program, int ranks, ls_error *error)
{
    int units = 0;
    int64_t *elements = NULL;
    for (ls_value_id id = 0; id < program->value_count; id++) {
        const ls_value *value = ls_value_of(program, id);
        if (value->role == LS_ROLE_PARAMETER && value->unit >= units) units = value->unit + 1;
    }
    LS_TRY(LS_ARENA_NEW(&program->arena, elements, units + 1, error));
    for (ls_value_id id = 0; id < program->value_count; id++) {
        ls_value *value = &program->values[id];
        if (value->role != LS_ROLE_PARAMETER) continue;
        value->unit_offset = elements[value->unit];
        elements[value->unit] += elements_of(program, id);
    }
    program->unit_elements = elements;
    program->ranks = ranks;
    return LS_OK;
}

/* First element of the parameter that rank `rank` or a later one owns. */
static int64_t cut(const ls_program *program, ls_value_id parameter, int rank)
{
    const ls_value *value = ls_value_of(program, parameter);
    int64_t elements = elements_of(program, parameter);
    int64_t even = program->unit_elements[value->unit] * rank / program->ranks - value->unit_offset;
    if (even <= 0) return 0;
    int64_t border = (even + LS_BLOCK - 1) / LS_BLOCK * LS_BLOCK;
    return border < elements ? border : elements;
}

ls_range ls_layout_owned(const ls_program *program, ls_value_id parameter, int rank)
{
    if (program->ranks == 0) return (ls_range){0, elements_of(program, parameter)};
    return (ls_range){cut(program, parameter, rank), cut(program, parameter, rank + 1)};
}

ls_value_id ls_layout_parameter(const ls_program *program, ls_value_id value)
{
    const ls_value *held = ls_value_of(program, value);
    return held->role == LS_ROLE_PARAMETER ? value : held->parameter;
}

/* Elements that the rank owns of the run's values in [run, end). */
static int64_t owned_before(const ls_program *program, ls_value_id run, ls_value_id end, int rank)
{
    int64_t elements = 0;
    for (ls_value_id id = run; id < end; id++) {
        if (ls_value_of(program, id)->run != run) continue;
        ls_range range = ls_layout_owned(program, ls_layout_parameter(program, id), rank);
        elements += range.end - range.begin;
    }
    return elements;
}

int64_t ls_layout_place(const ls_program *program, ls_value_id value, int rank)
{
    const ls_value *held = ls_value_of(program, value);
    if (held->role == LS_ROLE_OFFLOAD) /* as in the runs of all units */
        return ls_layout_position(program, held->parameter, rank) -
               ls_layout_position(program, ls_value_of(program, held->run)->parameter, rank);
    return owned_before(program, ls_value_of(program, value)->run, value, rank);
}

/* Where `stop` begins in the rank's runs of all units, or their end, and all that lie before. */
static int64_t walk(const ls_program *program, ls_value_id stop, int rank, int64_t *positions)
{
    const ls_value *former = NULL;
    int64_t at = 0;
    for (ls_value_id id = 0; id < program->value_count; id++) {
        const ls_value *value = ls_value_of(program, id);
        if (value->role != LS_ROLE_PARAMETER) continue;
        if (former && (former->unit != value->unit || former->row_sparse))
            at = (at + LS_BLOCK - 1) / LS_BLOCK * LS_BLOCK;
        if (id == stop) return at;
        if (positions) positions[id] = at;
        ls_range owned = ls_layout_owned(program, id, rank);
        at += owned.end - owned.begin;
        former = value;
    }
    return (at + LS_BLOCK - 1) / LS_BLOCK * LS_BLOCK;
}

int64_t ls_layout_position(const ls_program *program, ls_value_id parameter, int rank)
{
    return walk(program, parameter, rank, NULL);
}

void ls_layout_positions(const ls_program *program, int rank, int64_t *positions)
{
    walk(program, LS_NO_VALUE, rank, positions);
}

ls_range ls_layout_part(const ls_program *program, ls_value_id parameter, int rank, int64_t first,
                        int64_t count)
{
    ls_range part = ls_layout_owned(program, parameter, rank);
    int64_t begin = part.begin + first - ls_layout_position(program, parameter, rank);
    int64_t end = begin + count;
    if (part.begin < begin) part.begin = begin;
    if (part.end > end) part.end = end;
    if (part.end < part.begin) part.end = part.begin;
    return part;
}

int64_t ls_layout_home_elements(const ls_program *program)
{
    int64_t largest = 0;
    for (int rank = 0; rank == 0 || rank < program->ranks; rank++) {
        int64_t elements = walk(program, LS_NO_VALUE, rank, NULL);
        if (elements > largest) largest = elements;
    }
    return largest;
}

/* The last value of a run. */
static ls_value_id run_end(const ls_program *program, ls_value_id run)
{
    ls_value_id last = run;
    for (ls_value_id id = run; id < program->value_count; id++)
        if (ls_value_of(program, id)->run == run) last = id;
    return last;
}

ls_range ls_layout_run_part(const ls_program *program, ls_value_id run, int rank)
{
    ls_value_id first = ls_value_of(program, run)->parameter;
    ls_value_id last = ls_value_of(program, run_end(program, run))->parameter;
    ls_range owned = ls_layout_owned(program, last, rank);
    ls_range part = {ls_layout_position(program, first, rank),
                     ls_layout_position(program, last, rank) + owned.end - owned.begin};
    part.end = part.begin + (part.end - part.begin + LS_BLOCK - 1) / LS_BLOCK * LS_BLOCK;
    return part;
}

static int64_t slice_elements(const ls_program *program, ls_value_id run, int rank)
{
    if (ls_value_of(program, run)->role != LS_ROLE_OFFLOAD)
        return owned_before(program, run, program->value_count, rank);
    ls_range part = ls_layout_run_part(program, run, rank);
    return part.end - part.begin;
}

int64_t ls_layout_run_elements(const ls_program *program, ls_value_id run)
{
    int64_t largest = 0;
    for (int rank = 0; rank < program->ranks; rank++) {
        int64_t elements = slice_elements(program, run, rank);
        if (elements > largest) largest = elements;
    }
    return largest;
}

int64_t ls_layout_rows(const ls_program *program, ls_value_id table)
{
    int64_t columns = ls_value_of(program, table)->shape[1].constant, most = 0;
    for (int rank = 0; rank < program->ranks; rank++) {
        ls_range range = ls_layout_owned(program, table, rank);
        if (range.begin == range.end) continue;
        int64_t rows = (range.end + columns - 1) / columns - range.begin / columns;
        if (rows > most) most = rows;
    }
    return most;
}

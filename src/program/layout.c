#include "program/layout.h"

static int64_t elements_of(const ls_program *program, ls_value_id parameter)
{
    return ls_value_elements(ls_value_of(program, parameter), &ls_fixed_extents);
}

ls_status ls_layout_divide(ls_program *program, int ranks, ls_error *error)
{
    int units = 0;
    int32_t count = 0;
    int64_t *elements = NULL;
    ls_value_id *parameters = NULL;
    for (ls_value_id id = 0; id < program->value_count; id++) {
        const ls_value *value = ls_value_of(program, id);
        count += value->role == LS_ROLE_PARAMETER;
        if (value->role == LS_ROLE_PARAMETER && value->unit >= units) units = value->unit + 1;
    }
    LS_TRY(LS_ARENA_NEW(&program->arena, elements, units + 1, error));
    LS_TRY(LS_ARENA_NEW(&program->arena, parameters, count + 1, error));
    count = 0;
    for (ls_value_id id = 0; id < program->value_count; id++) {
        ls_value *value = &program->values[id];
        if (value->role != LS_ROLE_PARAMETER) continue;
        parameters[count++] = id;
        value->unit_offset = elements[value->unit];
        elements[value->unit] += elements_of(program, id);
    }
    program->unit_elements = elements;
    program->parameters = parameters;
    program->parameter_count = count;
    program->ranks = ranks;
    return LS_OK;
}

/* Where the slice of `rank` would begin in a unit without blocks. */
static int64_t even_cut(const ls_program *program, int unit, int rank)
{
    return program->unit_elements[unit] * rank / program->ranks;
}

/* First element of the parameter behind an even cut of its unit. */
static int64_t cut(const ls_program *program, ls_value_id parameter, int64_t even)
{
    int64_t elements = elements_of(program, parameter);
    even -= ls_value_of(program, parameter)->unit_offset;
    if (even <= 0) return 0;
    if (even >= elements) return elements;
    int64_t border = (even + LS_BLOCK - 1) / LS_BLOCK * LS_BLOCK;
    return border < elements ? border : elements;
}

ls_range ls_layout_owned(const ls_program *program, ls_value_id parameter, int rank)
{
    if (program->ranks == 0) return (ls_range){0, elements_of(program, parameter)};
    int unit = ls_value_of(program, parameter)->unit;
    return (ls_range){cut(program, parameter, even_cut(program, unit, rank)),
                      cut(program, parameter, even_cut(program, unit, rank + 1))};
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

static int64_t whole_blocks(int64_t elements)
{
    return (elements + LS_BLOCK - 1) / LS_BLOCK * LS_BLOCK;
}

/* A walk along what one rank owns, parameter by parameter. */
typedef struct walker {
    const ls_program *program;
    int rank, unit;     /* unit: -1 before the first parameter */
    bool after_table;   /* what follows begins at a block */
    int64_t begin, end; /* even cuts of the unit around the rank's slice */
    int64_t at;         /* position in the rank's runs */
} walker;

/* Go to where `parameter` begins; its elements that the rank owns. */
static int64_t arrive(walker *w, ls_value_id parameter)
{
    const ls_value *value = ls_value_of(w->program, parameter);
    bool divided = w->program->ranks > 0;
    if (w->unit != value->unit || w->after_table) w->at = whole_blocks(w->at);
    if (divided && w->unit != value->unit) {
        w->begin = even_cut(w->program, value->unit, w->rank);
        w->end = even_cut(w->program, value->unit, w->rank + 1);
    }
    w->unit = value->unit;
    w->after_table = value->row_sparse;
    int64_t elements = elements_of(w->program, parameter);
    if (!divided) return elements;
    if (value->unit_offset >= w->end || value->unit_offset + elements <= w->begin) return 0;
    return cut(w->program, parameter, w->end) - cut(w->program, parameter, w->begin);
}

/* Where `stop` begins in the rank's runs of all units, or their end, and all that lie before. */
static int64_t walk(const ls_program *program, ls_value_id stop, int rank, int64_t *positions,
                    int64_t *counts)
{
    walker w = {.program = program, .rank = rank, .unit = -1};
    bool divided = program->ranks > 0;
    int32_t count = divided ? program->parameter_count : program->value_count;
    for (int32_t i = 0; i < count; i++) {
        ls_value_id id = divided ? program->parameters[i] : i;
        if (ls_value_of(program, id)->role != LS_ROLE_PARAMETER) continue;
        int64_t owned = arrive(&w, id);
        if (id == stop) return w.at;
        if (positions) positions[id] = w.at;
        if (counts) counts[id] = owned;
        w.at += owned;
    }
    return whole_blocks(w.at);
}

int64_t ls_layout_position(const ls_program *program, ls_value_id parameter, int rank)
{
    return walk(program, parameter, rank, NULL, NULL);
}

void ls_layout_positions(const ls_program *program, int rank, int64_t *positions, int64_t *counts)
{
    walk(program, LS_NO_VALUE, rank, positions, counts);
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
        int64_t elements = walk(program, LS_NO_VALUE, rank, NULL, NULL);
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

/* Whether the run holds what belongs to a parameter. */
static bool is_in_run(const ls_program *program, ls_value_id run, ls_value_id end,
                      ls_value_id parameter)
{
    if (ls_value_of(program, run)->role == LS_ROLE_PARAMETER)
        return ls_value_of(program, parameter)->run == run;
    for (ls_value_id id = run; id <= end; id++) {
        const ls_value *value = ls_value_of(program, id);
        if (value->run == run && value->parameter == parameter) return true;
    }
    return false;
}

/* Parameters of a unit, as they lie in the program's list. */
static ls_range list_of_unit(const ls_program *program, int unit)
{
    ls_range list = {0, 0};
    while (ls_value_of(program, program->parameters[list.begin])->unit != unit)
        list.begin++;
    list.end = list.begin;
    while (list.end < program->parameter_count &&
           ls_value_of(program, program->parameters[list.end])->unit == unit)
        list.end++;
    return list;
}

/* Slices follow each other, so that one walk over the unit meets them all. */
static int64_t largest_slice(const ls_program *program, ls_value_id run, ls_range list)
{
    ls_value_id end = run_end(program, run);
    int unit = ls_value_of(program, program->parameters[list.begin])->unit;
    int64_t largest = 0, before = 0; /* of the parameter, what earlier ranks own */
    bool held = is_in_run(program, run, end, program->parameters[list.begin]);
    for (int rank = 0; rank < program->ranks; rank++) {
        int64_t even = even_cut(program, unit, rank + 1), slice = 0;
        for (; list.begin < list.end; list.begin++) {
            ls_value_id parameter = program->parameters[list.begin];
            int64_t border = cut(program, parameter, even);
            if (before == 0) held = is_in_run(program, run, end, parameter);
            if (held) slice += border - before;
            before = border;
            if (border < elements_of(program, parameter)) break;
            before = 0;
        }
        if (slice > largest) largest = slice;
    }
    return largest;
}

/* The same of a run as it lies in the runs of all units. */
static int64_t largest_part(const ls_program *program, ls_value_id run, ls_range list)
{
    ls_value_id first = ls_value_of(program, run)->parameter;
    ls_value_id last = ls_value_of(program, run_end(program, run))->parameter;
    int64_t largest = 0;
    for (int rank = 0; rank < program->ranks; rank++) {
        walker w = {.program = program, .rank = rank, .unit = -1};
        int64_t begin = 0;
        for (int64_t i = list.begin; i < list.end; i++) {
            ls_value_id parameter = program->parameters[i];
            int64_t owned = arrive(&w, parameter);
            if (parameter == first) begin = w.at;
            w.at += owned;
            if (parameter == last) break;
        }
        if (whole_blocks(w.at - begin) > largest) largest = whole_blocks(w.at - begin);
    }
    return largest;
}

int64_t ls_layout_run_elements(const ls_program *program, ls_value_id run)
{
    ls_value_id parameter = ls_layout_parameter(program, run);
    if (program->ranks == 0) return 0;
    ls_range list = list_of_unit(program, ls_value_of(program, parameter)->unit);
    return ls_value_of(program, run)->role == LS_ROLE_OFFLOAD ? largest_part(program, run, list)
                                                              : largest_slice(program, run, list);
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

#include "engine/exchange/pieces.h"

#include "base/alloc.h"

/* Of one value's elements a rank owns up to three pieces: the end of a row, rows, the beginning of
 * a row. */
enum { PIECES_A_VALUE = 3, ELEMENT = sizeof(float) };

static void add(ls_piece_list *list, ls_piece piece)
{
    list->items[list->count++] = piece;
}

static ls_place place_of(const ls_piece_list *list, ls_value_id id, int64_t element)
{
    return (ls_place){list->plan->arena[id], list->plan->offset[id] + element * ELEMENT};
}

/* Where element `element` of a value that belongs to a parameter lies on `rank`, which owns it. */
static ls_place place_on(const ls_piece_list *list, ls_value_id id, ls_range owned, int64_t element,
                         int rank)
{
    if (ls_value_of(list->program, id)->layout != LS_LAYOUT_RUN) return place_of(list, id, element);
    return place_of(list, id, ls_layout_place(list->program, id, rank) + element - owned.begin);
}

/* Elements from a slot of partial sums to the next. */
static int64_t slot_stride(const ls_piece_list *list, ls_value_id id)
{
    const ls_value *value = ls_value_of(list->program, id);
    if (value->layout == LS_LAYOUT_RUN) return ls_layout_run_elements(list->program, value->run);
    return ls_value_elements(value, &ls_fixed_extents) / value->shape[0].constant;
}

/* --- ownership without a layout: even parts of each value ------------------------------------- */

/* Units of which `rank` owns an even part, as elements below `size`. */
static ls_range even_part(int64_t size, int64_t unit, int ranks, int rank)
{
    int64_t units = (size + unit - 1) / unit;
    ls_range range = {units * rank / ranks * unit, units * (rank + 1) / ranks * unit};
    if (range.end > size) range.end = size;
    if (range.begin > range.end) range.begin = range.end;
    return range;
}

/* Whole blocks of a gradient, whole touched rows of a table's, or the loss. */
static void add_even_part(ls_piece_list *list, ls_value_id id, int rank, const ls_step_roots *roots)
{
    const ls_value *value = ls_value_of(list->program, id);
    const ls_touched_rows *touched = NULL;
    int64_t unit = LS_BLOCK, size = slot_stride(list, id);
    ls_piece piece = {.from_stride = size, .to_stride = size};
    if (value->row_sparse) {
        touched = ls_executor_bound(list->executor, value->touched);
        unit = value->shape[2].constant;
        size = touched->count * unit;
    }
    ls_range part = even_part(size, unit, list->ranks, rank);
    piece.from = piece.to = place_of(list, id, part.begin);
    piece.rows = part.begin < part.end;
    piece.row_elements = part.end - part.begin;
    if (touched) {
        piece.rows = piece.row_elements / unit;
        piece.row_elements = unit;
        piece.present = touched->present + part.begin / unit * roots->count;
    }
    add(list, piece);
}

/* --- ownership by layout ---------------------------------------------------------------------- */

/* A table's touched rows that a rank owns at least in part: those of the list from `begin` to
 * `end`, the first without its first `skip` elements, the last without its last `cut`. */
typedef struct owned_rows {
    const ls_touched_rows *touched;
    int64_t columns, skip, cut;
    int32_t begin, end;
} owned_rows;

static owned_rows rows_owned(const ls_piece_list *list, ls_value_id table, ls_range owned)
{
    const ls_value *value = ls_value_of(list->program, table);
    owned_rows rows = {.touched = ls_executor_bound(list->executor, value->touched),
                       .columns = value->shape[1].constant};
    if (owned.begin == owned.end) return rows;
    int64_t row = owned.begin / rows.columns, last = (owned.end - 1) / rows.columns;
    rows.begin = ls_touched_from(rows.touched, row);
    rows.end = ls_touched_from(rows.touched, last + 1);
    if (rows.begin == rows.end) return rows;
    if (rows.touched->rows[rows.begin] == row) rows.skip = owned.begin - row * rows.columns;
    if (rows.touched->rows[rows.end - 1] == last) rows.cut = (last + 1) * rows.columns - owned.end;
    return rows;
}

/* Add list entries [begin, end), columns [from, to) of each. `whole` is the piece as it would be
 * for all of the list and all columns. */
static void add_rows(ls_piece_list *list, const owned_rows *rows, ls_piece whole, int32_t begin,
                     int32_t end, ls_range columns, int64_t roots)
{
    if (begin >= end) return;
    ls_piece piece = whole;
    bool by_row = whole.source_rows != NULL;
    piece.rows = end - begin;
    piece.row_elements = columns.end - columns.begin;
    piece.to.offset += (begin * rows->columns + columns.begin) * ELEMENT;
    if (piece.present) piece.present += begin * roots;
    if (piece.wanted) piece.wanted += begin;
    if (by_row && piece.row_elements < rows->columns) {
        /* Part of a row: its elements begin where they begin. */
        piece.source_rows = NULL;
        piece.from.offset += (rows->touched->rows[begin] * rows->columns + columns.begin) * ELEMENT;
    } else if (by_row) {
        piece.source_rows += begin;
    } else {
        piece.from.offset += (begin * rows->columns + columns.begin) * ELEMENT;
    }
    add(list, piece);
}

static void add_owned_rows(ls_piece_list *list, const owned_rows *rows, ls_piece whole,
                           int64_t roots)
{
    int32_t begin = rows->begin, end = rows->end;
    int64_t columns = rows->columns;
    if (end - begin == 1) {
        add_rows(list, rows, whole, begin, end, (ls_range){rows->skip, columns - rows->cut}, roots);
        return;
    }
    if (begin < end && rows->skip)
        add_rows(list, rows, whole, begin++, rows->begin + 1, (ls_range){rows->skip, columns},
                 roots);
    if (begin < end && rows->cut)
        add_rows(list, rows, whole, --end, rows->end, (ls_range){0, columns - rows->cut}, roots);
    add_rows(list, rows, whole, begin, end, (ls_range){0, columns}, roots);
}

/* A table's sums: `from` has all touched rows, `to` as well or, as a shard, the rank's own. */
static void add_table_sum(ls_piece_list *list, ls_value_id from, ls_value_id to, ls_range owned,
                          const ls_step_roots *roots)
{
    ls_value_id table = ls_value_of(list->program, from)->parameter;
    owned_rows rows = rows_owned(list, table, owned);
    ls_piece piece = {.from = place_of(list, from, 0),
                      .to = place_of(list, to, 0),
                      .from_stride = slot_stride(list, from),
                      .to_stride = slot_stride(list, to),
                      .present = rows.touched->present};
    if (ls_value_of(list->program, to)->layout == LS_LAYOUT_ROWS)
        piece.to.offset -= rows.begin * rows.columns * ELEMENT;
    add_owned_rows(list, &rows, piece, roots->count);
}

/* A table's touched rows, out of the owner's part of the whole table. */
static void add_table_gather(ls_piece_list *list, ls_value_id from, ls_value_id to, ls_range owned,
                             int rank)
{
    owned_rows rows = rows_owned(list, from, owned);
    ls_piece piece = {.from = place_on(list, from, owned, 0, rank),
                      .to = place_of(list, to, 0),
                      .wanted = rows.touched->in_pass,
                      .source_rows = rows.touched->rows};
    add_owned_rows(list, &rows, piece, 0);
}

static void add_dense(ls_piece_list *list, ls_value_id from, ls_value_id to, ls_range owned,
                      int rank, bool sum)
{
    ls_piece piece = {.from = place_on(list, from, owned, owned.begin, rank),
                      .to = place_on(list, to, owned, owned.begin, rank),
                      .rows = owned.begin < owned.end,
                      .row_elements = owned.end - owned.begin};
    if (sum) {
        piece.from_stride = slot_stride(list, from);
        piece.to_stride = slot_stride(list, to);
    }
    add(list, piece);
}

/* The loss: one element of each slot, which rank 0 owns. */
static void add_scalar(ls_piece_list *list, ls_value_id from, ls_value_id to, int rank)
{
    if (rank) return;
    add(list, (ls_piece){.from = place_of(list, from, 0),
                         .to = place_of(list, to, 0),
                         .rows = 1,
                         .row_elements = 1,
                         .from_stride = 1,
                         .to_stride = 1});
}

/* The norm's blocks: each double is two elements. */
static void add_blocks(ls_piece_list *list, ls_value_id blocks, int rank)
{
    for (int32_t i = 0; i < list->program->op_count; i++) {
        const ls_op *op = &list->program->ops[i];
        if (op->kind != LS_OP_SQUARED_NORM || op->outputs[0] != blocks) continue;
        ls_range owned =
            ls_layout_owned(list->program, ls_layout_parameter(list->program, op->inputs[0]), rank);
        int64_t first = op->attributes.first_block + owned.begin / LS_BLOCK;
        int64_t last = op->attributes.first_block + (owned.end + LS_BLOCK - 1) / LS_BLOCK;
        if (owned.begin == owned.end) continue;
        ls_place place = place_of(list, blocks, 2 * first);
        add(list,
            (ls_piece){.from = place, .to = place, .rows = 1, .row_elements = 2 * (last - first)});
    }
}

/* --- buckets ---------------------------------------------------------------------------------- */

static void add_sum(ls_piece_list *list, ls_value_id from, ls_value_id to, int rank,
                    const ls_step_roots *roots)
{
    const ls_value *value = ls_value_of(list->program, from);
    if (list->program->ranks == 0) {
        add_even_part(list, from, rank, roots);
    } else if (value->role == LS_ROLE_SCALAR) {
        add_scalar(list, from, to, rank);
    } else {
        ls_range owned = ls_layout_owned(list->program, value->parameter, rank);
        if (value->row_sparse)
            add_table_sum(list, from, to, owned, roots);
        else
            add_dense(list, from, to, owned, rank, true);
    }
}

static void add_gather(ls_piece_list *list, ls_value_id from, ls_value_id to, int rank)
{
    const ls_value *value = ls_value_of(list->program, from);
    if (value->role == LS_ROLE_SCALAR) {
        add_scalar(list, from, to, rank);
    } else if (ls_layout_parameter(list->program, from) == LS_NO_VALUE) {
        add_blocks(list, from, rank);
    } else {
        ls_range owned =
            ls_layout_owned(list->program, ls_layout_parameter(list->program, from), rank);
        if (from != to && value->row_sparse)
            add_table_gather(list, from, to, owned, rank);
        else
            add_dense(list, from, to, owned, rank, false);
    }
}

ls_pieces ls_pieces_to_sum(ls_piece_list *list, const ls_bucket *bucket, const ls_step_roots *roots)
{
    list->count = 0;
    for (int rank = 0; rank < list->ranks; rank++) {
        list->begin[rank] = list->count;
        for (int32_t i = 0; i < bucket->count; i++)
            add_sum(list, bucket->values[i], ls_bucket_result(bucket, i), rank, roots);
    }
    list->begin[list->ranks] = list->count;
    return (ls_pieces){list->items, list->begin};
}

ls_pieces ls_pieces_to_gather(ls_piece_list *list, const ls_bucket *bucket)
{
    list->count = 0;
    for (int rank = 0; rank < list->ranks; rank++) {
        list->begin[rank] = list->count;
        for (int32_t i = 0; i < bucket->count; i++)
            add_gather(list, bucket->values[i], ls_bucket_result(bucket, i), rank);
    }
    list->begin[list->ranks] = list->count;
    return (ls_pieces){list->items, list->begin};
}

ls_status ls_piece_list_init(ls_piece_list *list, const ls_program *program, const ls_plan *plan,
                             const ls_executor *executor, int ranks, ls_error *error)
{
    int32_t values = 0, norms = 0;
    for (int32_t i = 0; i < program->bucket_count; i++)
        if (program->buckets[i].count > values) values = program->buckets[i].count;
    for (int32_t i = 0; i < program->op_count; i++)
        norms += program->ops[i].kind == LS_OP_SQUARED_NORM;
    *list = (ls_piece_list){.program = program, .plan = plan, .executor = executor, .ranks = ranks};
    LS_TRY(LS_NEW(list->items, ranks * (PIECES_A_VALUE * values + norms), "pieces", error));
    ls_status status = LS_NEW(list->begin, ranks + 1, "pieces", error);
    if (status != LS_OK) ls_piece_list_deinit(list);
    return status;
}

void ls_piece_list_deinit(ls_piece_list *list)
{
    ls_free(list->items);
    ls_free(list->begin);
    *list = (ls_piece_list){0};
}

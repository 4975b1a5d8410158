/* The update: squared norms, the clip factor, AdamW. A rank works on the elements of each parameter
 * that it owns: all of them, or a range that begins at a block. */
#include "devices/cpu/cpu.h"

enum { UPDATE_GRAIN = 4096 };

/* A row-sparse gradient as the rank has it: the rows of the list from `rows` on. */
typedef struct sparse_gradient {
    const float *values; /* [count][hidden] */
    const int32_t *rows; /* NULL: the gradient is dense */
    int64_t count;
    const uint8_t *moved; /* of ls_touched_rows */
} sparse_gradient;

static sparse_gradient sparse_of(const ls_operand *gradient, const ls_touched_rows *touched,
                                 int64_t hidden)
{
    sparse_gradient sparse = {.values = gradient->data};
    if (!touched) return sparse;
    int32_t first = gradient->first ? ls_touched_from(touched, gradient->first / hidden) : 0;
    sparse.rows = touched->rows + first;
    sparse.count = touched->count - first;
    sparse.moved = touched->moved;
    return sparse;
}

typedef struct norm_work {
    ls_cpu *cpu;
    double *blocks;
    const float *values;
    sparse_gradient sparse;
    int64_t first_block; /* sparse: of the range */
    int64_t count, hidden;
} norm_work;

static void squared_norm(void *context, int64_t begin, int64_t end, void *scratch)
{
    const norm_work *work = context;
    (void)scratch;
    if (work->sparse.rows)
        work->cpu->kernels->squared_sums_rows(work->blocks, work->values, work->sparse.rows,
                                              work->sparse.count, work->hidden,
                                              work->first_block + begin, work->first_block + end);
    else
        work->cpu->kernels->squared_sums(work->blocks, work->values, work->count, begin, end);
}

/* gradient slots (slot 0 is the sum), touched rows -> blocks */
void ls_cpu_SQUARED_NORM(ls_device *device, const ls_op_call *call)
{
    const ls_operand *gradient = &call->inputs[0];
    double *blocks = (double *)call->outputs[0].data + call->op->attributes.first_block;
    int64_t first = call->owned.begin / LS_BLOCK, count = call->owned.end - call->owned.begin;
    norm_work work = {.cpu = ls_cpu_of(device), .blocks = blocks, .values = gradient->data};
    if (count <= 0) return;
    work.hidden = ls_size(call, gradient, gradient->value->rank - 1);
    work.sparse = sparse_of(gradient, call->inputs[1].data, work.hidden);
    work.first_block = first;
    if (!work.sparse.rows) {
        work.blocks += first;
        work.values += call->owned.begin - gradient->first;
        work.count = count;
    }
    ls_cpu_run_ranges(work.cpu, (count + LS_BLOCK - 1) / LS_BLOCK, 8, squared_norm, &work);
}

/* The perfect binary tree over block indices, absent blocks skipped. */
static double tree_sum(const double *blocks, int64_t count)
{
    double open[64];
    int depth = 0;
    for (int64_t i = 0; i < count; i++) {
        double sum = blocks[i];
        for (int64_t bits = i; bits & 1; bits >>= 1)
            sum = open[--depth] + sum;
        open[depth++] = sum;
    }
    double sum = depth ? open[--depth] : 0.0;
    while (depth)
        sum = open[--depth] + sum;
    return sum;
}

void ls_cpu_GRADIENT_NORM(ls_device *device, const ls_op_call *call)
{
    (void)device;
    double norm =
        __builtin_sqrt(tree_sum(call->inputs[0].data, ls_size(call, &call->inputs[0], 0)));
    double max_norm = (double)call->op->attributes.max_norm;
    double clip = max_norm > 0 && norm > 0 ? max_norm / (norm + 1e-6) : 1.0;
    *(float *)call->outputs[0].data = (float)norm;
    *(float *)call->outputs[1].data = clip < 1.0 ? (float)clip : 1.0f;
    const float *loss = call->inputs[1].data;
    bool finite = __builtin_isfinite((float)norm) && (!loss || __builtin_isfinite(*loss));
    *(float *)call->outputs[2].data = finite ? 1.0f : 0.0f;
}

typedef struct update_work {
    ls_cpu *cpu;
    ls_adamw arguments; /* of the owned elements */
    sparse_gradient sparse;
    int64_t first, hidden; /* sparse: where in the table the owned elements begin */
} update_work;

static ls_adamw at(const ls_adamw *whole, int64_t first, int64_t count, const float *gradient)
{
    ls_adamw part = *whole;
    part.parameter += first;
    if (part.first_moment) {
        part.first_moment += first;
        part.second_moment += first;
    }
    part.gradient = gradient;
    part.count = count;
    return part;
}

static void update_range(void *context, int64_t begin, int64_t end, void *scratch)
{
    const update_work *work = context;
    (void)scratch;
    ls_adamw part = at(&work->arguments, begin, end - begin, work->arguments.gradient + begin);
    work->cpu->kernels->adamw(&part);
}

/* A run of untouched rows, elements from .. end-1 of the table: those whose moments are zeros
 * without them, which saves two thirds of the memory's work. */
static void update_untouched(const update_work *work, int64_t from, int64_t end)
{
    const ls_adamw *whole = &work->arguments;
    const uint8_t *moved = whole->l2 || whole->epsilon == 0.0f ? NULL : work->sparse.moved;
    ls_adamw still = *whole;
    still.first_moment = still.second_moment = NULL;
    while (from < end) {
        int64_t row = from / work->hidden, last = (end - 1) / work->hidden, next = row + 1;
        bool at_rest = moved && !moved[row];
        while (next <= last && (moved && !moved[next]) == at_rest)
            next++;
        int64_t stop = next > last ? end : next * work->hidden;
        ls_adamw part = at(at_rest ? &still : whole, from - work->first, stop - from, NULL);
        work->cpu->kernels->adamw(&part);
        from = stop;
    }
}

/* Elements begin .. end-1 of a table: touched rows with their gradient, the runs between with
 * none. */
static void update_rows(void *context, int64_t begin, int64_t end, void *scratch)
{
    const update_work *work = context;
    const ls_touched_rows touched = {.count = (int32_t)work->sparse.count,
                                     .rows = work->sparse.rows};
    int64_t hidden = work->hidden;
    int64_t from = work->first + begin, last = work->first + end;
    int32_t next = ls_touched_from(&touched, from / hidden);
    (void)scratch;
    while (from < last) {
        int64_t row = next < touched.count ? touched.rows[next] * hidden : last;
        if (row > from) {
            int64_t stop = row < last ? row : last;
            update_untouched(work, from, stop);
            from = stop;
            continue;
        }
        const float *gradient = work->sparse.values + next++ * hidden + (from - row);
        int64_t stop = row + hidden < last ? row + hidden : last;
        ls_adamw part = at(&work->arguments, from - work->first, stop - from, gradient);
        work->cpu->kernels->adamw(&part);
        from = stop;
    }
}

static float scalar(const ls_op_call *call, int input)
{
    return *(const float *)call->inputs[input].data;
}

static float *owned_data(const ls_op_call *call, int input)
{
    return (float *)call->inputs[input].data + (call->owned.begin - call->inputs[input].first);
}

/* parameter, gradient slots, moments, learning rate, corrections, clip factor, proceed, touched */
void ls_cpu_ADAMW(ls_device *device, const ls_op_call *call)
{
    const ls_attributes *attributes = &call->op->attributes;
    const ls_touched_rows *touched = call->inputs[9].data;
    int64_t count = call->owned.end - call->owned.begin;
    if (scalar(call, 8) == 0.0f || count <= 0) return;
    update_work work = {.cpu = ls_cpu_of(device), .first = call->owned.begin};
    work.arguments = (ls_adamw){
        .parameter = owned_data(call, 0),
        .first_moment = owned_data(call, 2),
        .second_moment = owned_data(call, 3),
        .beta1 = attributes->beta1,
        .beta2 = attributes->beta2,
        .epsilon = attributes->epsilon,
        .weight_decay = attributes->weight_decay,
        .learning_rate = scalar(call, 4),
        .correction1 = scalar(call, 5),
        .correction2_root = scalar(call, 6),
        .clip_factor = scalar(call, 7),
        .l2 = attributes->l2,
    };
    if (touched) {
        work.hidden = ls_size(call, &call->inputs[1], call->inputs[1].value->rank - 1);
        work.sparse = sparse_of(&call->inputs[1], touched, work.hidden);
        ls_cpu_run_ranges(work.cpu, count, UPDATE_GRAIN, update_rows, &work);
    } else {
        work.arguments.gradient = owned_data(call, 1);
        ls_cpu_run_ranges(work.cpu, count, UPDATE_GRAIN, update_range, &work);
    }
}

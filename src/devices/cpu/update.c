/* The update: squared norms, the clip factor, AdamW. */
#include "devices/cpu/cpu.h"

enum { NORM_BLOCK = 1024, UPDATE_GRAIN = 4096 };

typedef struct norm_work {
    ls_cpu *cpu;
    double *blocks;
    const float *values;
    const ls_touched_rows *touched; /* NULL: the whole tensor is there */
    int64_t count, hidden;
} norm_work;

static void squared_norm(void *context, int64_t begin, int64_t end, void *scratch)
{
    const norm_work *work = context;
    (void)scratch;
    if (work->touched)
        work->cpu->kernels->squared_sums_rows(work->blocks, work->values, work->touched->rows,
                                              work->touched->count, work->hidden, begin, end);
    else
        work->cpu->kernels->squared_sums(work->blocks, work->values, work->count, begin, end);
}

/* gradient slots (slot 0 is the sum), touched rows -> blocks */
void ls_cpu_SQUARED_NORM(ls_device *device, const ls_op_call *call)
{
    const ls_value *gradient = call->inputs[0].value;
    norm_work work = {.cpu = ls_cpu_of(device),
                      .blocks = (double *)call->outputs[0].data + call->op->attributes.first_block,
                      .values = call->inputs[0].data,
                      .touched = call->inputs[1].data};
    int64_t elements = call->op->attributes.elements;
    work.count = elements;
    work.hidden = ls_size(call, &call->inputs[0], gradient->rank - 1);
    ls_cpu_run_ranges(work.cpu, (elements + NORM_BLOCK - 1) / NORM_BLOCK, 8, squared_norm, &work);
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
    ls_adamw arguments; /* of the whole parameter */
    const ls_touched_rows *touched;
    int64_t hidden;
} update_work;

static ls_adamw at(const ls_adamw *whole, int64_t first, int64_t count, const float *gradient)
{
    ls_adamw part = *whole;
    part.parameter += first;
    part.first_moment += first;
    part.second_moment += first;
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

/* First index in the ascending list whose row is at least `row`. */
static int32_t first_touched(const ls_touched_rows *touched, int64_t row)
{
    int32_t low = 0, high = touched->count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (touched->rows[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Rows begin .. end-1 of a table: touched ones with their gradient, the runs between with none. */
static void update_rows(void *context, int64_t begin, int64_t end, void *scratch)
{
    const update_work *work = context;
    int64_t hidden = work->hidden;
    int32_t next = first_touched(work->touched, begin);
    (void)scratch;
    for (int64_t row = begin; row < end;) {
        int64_t stop = next < work->touched->count ? work->touched->rows[next] : end;
        if (stop > end) stop = end;
        const float *gradient = NULL;
        if (stop == row) {
            gradient = work->arguments.gradient + next++ * hidden;
            stop = row + 1;
        }
        ls_adamw part = at(&work->arguments, row * hidden, (stop - row) * hidden, gradient);
        work->cpu->kernels->adamw(&part);
        row = stop;
    }
}

static float scalar(const ls_op_call *call, int input)
{
    return *(const float *)call->inputs[input].data;
}

/* parameter, gradient slots, moments, learning rate, corrections, clip factor, proceed, touched */
void ls_cpu_ADAMW(ls_device *device, const ls_op_call *call)
{
    const ls_attributes *attributes = &call->op->attributes;
    if (scalar(call, 8) == 0.0f) return;
    const ls_operand *parameter = &call->inputs[0];
    update_work work = {.cpu = ls_cpu_of(device), .touched = call->inputs[9].data};
    work.arguments = (ls_adamw){
        .parameter = parameter->data,
        .gradient = call->inputs[1].data,
        .first_moment = call->inputs[2].data,
        .second_moment = call->inputs[3].data,
        .beta1 = attributes->beta1,
        .beta2 = attributes->beta2,
        .epsilon = attributes->epsilon,
        .weight_decay = attributes->weight_decay,
        .learning_rate = scalar(call, 4),
        .correction1 = scalar(call, 5),
        .correction2_root = scalar(call, 6),
        .clip_factor = scalar(call, 7),
    };
    int64_t rows = ls_size(call, parameter, 0);
    work.hidden = parameter->value->rank == 2 ? ls_size(call, parameter, 1) : 1;
    if (work.touched)
        ls_cpu_run_ranges(work.cpu, rows, 16, update_rows, &work);
    else
        ls_cpu_run_ranges(work.cpu, rows * work.hidden, UPDATE_GRAIN, update_range, &work);
}

/* Layer normalisation (Ba, Kiros and Hinton 2016): rows forward and backward, and the gradients of
 * gamma and beta over samples. */
#include "kernels/functions.h"
#include "kernels/leaf_stack.h"

/* Part `part` of the group of 16 elements at `e`: whole, or what the row still holds, then zeros.
 */
LS_INLINE vec load_part(const float *row, int64_t hidden, int64_t e, int part, bool whole)
{
    int64_t at = e + part * LS_LANES;
    if (whole) return vec_load(row + at);
    int64_t left = lanes_left(hidden, at);
    return left ? vec_load_first(row + at, left) : vec_set(0.0f);
}

LS_INLINE vec16 add_group(vec16 sum, const float *row, int64_t hidden, int64_t e, bool whole)
{
    for (int part = 0; part < VEC16_PARTS; part++)
        sum.part[part] = sum.part[part] + load_part(row, hidden, e, part, whole);
    return sum;
}

LS_INLINE vec16 add_group_squares(vec16 sum, const float *row, int64_t hidden, int64_t e, vec mean,
                                  bool whole)
{
    for (int part = 0; part < VEC16_PARTS; part++) {
        vec centred = load_part(row, hidden, e, part, whole) - mean;
        if (!whole) centred = vec_keep_first(centred, lanes_left(hidden, e + part * LS_LANES));
        sum.part[part] = vec_fma(centred, centred, sum.part[part]);
    }
    return sum;
}

static inline vec normalise(vec x, vec mean, vec inverse, vec gamma, vec beta)
{
    return vec_fma((x - mean) * inverse, gamma, beta);
}

void LS_KERNEL(layer_norm)(float *out, float *mean, float *inverse_deviation, const float *input,
                           const float *gamma, const float *beta, float epsilon, int64_t hidden,
                           int64_t begin, int64_t end)
{
    const int64_t whole = hidden / 16 * 16;
    for (int64_t row = begin; row < end; row++) {
        const float *x = input + row * hidden;
        vec16 sum = vec16_set(0.0f);
        for (int64_t e = 0; e < whole; e += 16)
            sum = add_group(sum, x, hidden, e, true);
        if (whole < hidden) sum = add_group(sum, x, hidden, whole, false);
        const float row_mean = vec16_sum(sum) / (float)hidden;
        const vec m = vec_set(row_mean);
        sum = vec16_set(0.0f);
        for (int64_t e = 0; e < whole; e += 16)
            sum = add_group_squares(sum, x, hidden, e, m, true);
        if (whole < hidden) sum = add_group_squares(sum, x, hidden, whole, m, false);
        const float variance = vec16_sum(sum) / (float)hidden;
        const float inverse = 1.0f / __builtin_sqrtf(variance + epsilon);
        const vec i = vec_set(inverse);
        float *to = out + row * hidden;
        int64_t e = 0;
        for (; e + LS_LANES <= hidden; e += LS_LANES)
            vec_store(to + e,
                      normalise(vec_load(x + e), m, i, vec_load(gamma + e), vec_load(beta + e)));
        int64_t left = hidden - e;
        if (left)
            vec_store_first(to + e,
                            normalise(vec_load_first(x + e, left), m, i,
                                      vec_load_first(gamma + e, left),
                                      vec_load_first(beta + e, left)),
                            left);
        mean[row] = row_mean;
        inverse_deviation[row] = inverse;
    }
}

/* What a row's backward pass reads. */
typedef struct backward_row {
    const float *output_gradient, *x, *gamma;
    int64_t hidden;
    vec mean, inverse;
} backward_row;

/* Adds g = dout * gamma to *sum and g * (x - mean) * inverse to *sum_x. */
LS_INLINE void add_backward(const backward_row *r, int64_t e, bool whole, vec16 *sum, vec16 *sum_x)
{
    for (int part = 0; part < VEC16_PARTS; part++) {
        /* Zeros beyond the row make g zero there, whatever x - mean is. */
        vec g = load_part(r->output_gradient, r->hidden, e, part, whole) *
                load_part(r->gamma, r->hidden, e, part, whole);
        vec normal = (load_part(r->x, r->hidden, e, part, whole) - r->mean) * r->inverse;
        sum->part[part] = sum->part[part] + g;
        sum_x->part[part] = vec_fma(g, normal, sum_x->part[part]);
    }
}

/* dx = inverse * (g - mean(g) - normal * mean(g * normal)) */
void LS_KERNEL(layer_norm_backward)(float *input_gradient, const float *output_gradient,
                                    const float *input, const float *mean,
                                    const float *inverse_deviation, const float *gamma,
                                    int64_t hidden, int64_t begin, int64_t end)
{
    const int64_t whole = hidden / 16 * 16;
    for (int64_t row = begin; row < end; row++) {
        const backward_row r = {
            output_gradient + row * hidden, input + row * hidden, gamma, hidden, vec_set(mean[row]),
            vec_set(inverse_deviation[row])};
        vec16 sum = vec16_set(0.0f), sum_x = vec16_set(0.0f);
        for (int64_t e = 0; e < whole; e += 16)
            add_backward(&r, e, true, &sum, &sum_x);
        if (whole < hidden) add_backward(&r, whole, false, &sum, &sum_x);
        const vec mean_g = vec_set(vec16_sum(sum) / (float)hidden);
        const vec mean_gx = vec_set(vec16_sum(sum_x) / (float)hidden);
        float *to = input_gradient + row * hidden;
        for (int64_t e = 0; e < hidden; e += LS_LANES) {
            const int64_t left = hidden - e;
            const bool full = left >= LS_LANES;
            vec d = full ? vec_load(r.output_gradient + e)
                         : vec_load_first(r.output_gradient + e, left);
            vec x = full ? vec_load(r.x + e) : vec_load_first(r.x + e, left);
            vec w = full ? vec_load(gamma + e) : vec_load_first(gamma + e, left);
            vec normal = (x - r.mean) * r.inverse;
            vec dx = vec_fma(-normal, mean_gx, d * w - mean_g) * r.inverse;
            if (full)
                vec_store(to + e, dx);
            else
                vec_store_first(to + e, dx, left);
        }
    }
}

enum { WIDE = 4 }; /* vecs of a strip, two sums each */

LS_INLINE void sum_strip(const ls_layer_norm_sums *g, int64_t column, int64_t columns, int vectors)
{
    const ls_leaf_schedule *schedule = g->schedule;
    const bool whole = columns == vectors * LS_LANES;
    leaf_stack gamma_stack =
        leaf_stack_begin(g->gamma_slots + column, g->slot_stride, columns, schedule->depth);
    leaf_stack beta_stack =
        leaf_stack_begin(g->beta_slots + column, g->slot_stride, columns, schedule->depth);
    vec gamma_entries[LS_MAX_SLOTS * WIDE], beta_entries[LS_MAX_SLOTS * WIDE];
    vec gamma_sum[WIDE], beta_sum[WIDE];
    for (int32_t piece = 0; piece < schedule->pieces; piece++) {
        const bool resume = piece == 0 && schedule->resume;
        leaf_stack_start(&gamma_stack, gamma_sum, vectors, resume);
        leaf_stack_start(&beta_stack, beta_sum, vectors, resume);
        for (int64_t t = schedule->offsets[piece]; t < schedule->offsets[piece + 1]; t++) {
            const float *d = g->output_gradient + t * g->hidden + column;
            const float *x = g->input + t * g->hidden + column;
            const vec mean = vec_set(g->mean[t]), inverse = vec_set(g->inverse_deviation[t]);
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++) {
                vec gradient = whole ? vec_load(d + v * LS_LANES) : vec_load_first(d, columns);
                vec value = whole ? vec_load(x + v * LS_LANES) : vec_load_first(x, columns);
                gamma_sum[v] = vec_fma(gradient, (value - mean) * inverse, gamma_sum[v]);
                beta_sum[v] = beta_sum[v] + gradient;
            }
        }
        if (schedule->leave_open && piece == schedule->pieces - 1) {
            leaf_stack_park(&gamma_stack, gamma_sum, vectors);
            leaf_stack_park(&beta_stack, beta_sum, vectors);
        } else {
            leaf_stack_push(&gamma_stack, gamma_entries, gamma_sum, vectors,
                            schedule->merges[piece]);
            leaf_stack_push(&beta_stack, beta_entries, beta_sum, vectors, schedule->merges[piece]);
        }
    }
    leaf_stack_end(&gamma_stack, gamma_entries, vectors);
    leaf_stack_end(&beta_stack, beta_entries, vectors);
}

void LS_KERNEL(layer_norm_sums)(const ls_layer_norm_sums *g)
{
    int64_t column = g->begin;
    for (; column + WIDE * LS_LANES <= g->end; column += WIDE * LS_LANES)
        sum_strip(g, column, WIDE * LS_LANES, WIDE);
    for (; column + LS_LANES <= g->end; column += LS_LANES)
        sum_strip(g, column, LS_LANES, 1);
    if (column < g->end) sum_strip(g, column, g->end - column, 1);
}

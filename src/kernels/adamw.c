/* AdamW and Adam: each parameter and moment is read and written once. */
#include "kernels/functions.h"
#include "kernels/vector.h"

/* What the formula needs of the step, spread over lanes. `decay`: with L2 what is added to the
 * gradient, else what is added to the parameter, negative or +0: no decay leaves each parameter as
 * it is, also -0. */
typedef struct step {
    vec clip, one_minus_beta1, beta2, one_minus_beta2, root, epsilon, decay, size;
} step;

/* `l2` is a constant in each call: the decay of the gradient, else of the parameter. */
LS_INLINE void update_lanes(const step *s, bool l2, vec gradient, vec *p, vec *m, vec *v)
{
    vec g = gradient * s->clip;
    vec decayed = *p;
    if (l2)
        g = vec_fma(s->decay, *p, g);
    else
        decayed = vec_fma(s->decay, *p, *p);
    *m = vec_fma(s->one_minus_beta1, g - *m, *m);
    *v = vec_fma(s->one_minus_beta2 * g, g, s->beta2 * *v);
    vec denominator = vec_sqrt(*v) / s->root + s->epsilon;
    *p = vec_fma(-s->size, *m / denominator, decayed);
}

/* `l2` and `has_gradient` are constants in each call. */
LS_INLINE void update_all(const ls_adamw *update, const step *s, bool l2, bool has_gradient)
{
    const int64_t count = update->count;
    float *parameter = update->parameter;
    float *first = update->first_moment, *second = update->second_moment;
    int64_t e = 0;
    for (; e + LS_LANES <= count; e += LS_LANES) {
        vec p = vec_load(parameter + e), m = vec_load(first + e), v = vec_load(second + e);
        update_lanes(s, l2, has_gradient ? vec_load(update->gradient + e) : vec_set(0.0f), &p, &m,
                     &v);
        vec_store(parameter + e, p);
        vec_store(first + e, m);
        vec_store(second + e, v);
    }
    const int64_t left = count - e;
    if (left <= 0) return;
    vec p = vec_load_first(parameter + e, left);
    vec m = vec_load_first(first + e, left), v = vec_load_first(second + e, left);
    update_lanes(s, l2, has_gradient ? vec_load_first(update->gradient + e, left) : vec_set(0.0f),
                 &p, &m, &v);
    vec_store_first(parameter + e, p, left);
    vec_store_first(first + e, m, left);
    vec_store_first(second + e, v, left);
}

/* Where moments and gradient are zeros. */
static void decay_all(const ls_adamw *update)
{
    const vec decay = vec_set(0.0f - update->learning_rate * update->weight_decay);
    if (update->weight_decay == 0) return;
    float *parameter = update->parameter;
    int64_t e = 0;
    for (; e + LS_LANES <= update->count; e += LS_LANES) {
        vec p = vec_load(parameter + e);
        vec_store(parameter + e, vec_fma(decay, p, p));
    }
    const int64_t left = update->count - e;
    if (left <= 0) return;
    vec p = vec_load_first(parameter + e, left);
    vec_store_first(parameter + e, vec_fma(decay, p, p), left);
}

void LS_KERNEL(adamw)(const ls_adamw *update)
{
    if (!update->first_moment) {
        decay_all(update);
        return;
    }
    const step s = {
        .clip = vec_set(update->clip_factor),
        .one_minus_beta1 = vec_set(1.0f - update->beta1),
        .beta2 = vec_set(update->beta2),
        .one_minus_beta2 = vec_set(1.0f - update->beta2),
        .root = vec_set(update->correction2_root),
        .epsilon = vec_set(update->epsilon),
        .decay = vec_set(update->l2 ? update->weight_decay
                                    : 0.0f - update->learning_rate * update->weight_decay),
        .size = vec_set(update->learning_rate / update->correction1),
    };
    if (update->l2 && update->gradient)
        update_all(update, &s, true, true);
    else if (update->l2)
        update_all(update, &s, true, false);
    else if (update->gradient)
        update_all(update, &s, false, true);
    else
        update_all(update, &s, false, false);
}

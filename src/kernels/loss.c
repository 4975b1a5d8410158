/* Softmax cross-entropy of a classifier's logits. */
#include "kernels/functions.h"
#include "kernels/math.h"

/* exp(x[c .. c + LS_LANES - 1] - shift), zero beyond the row. */
static inline vec load_exp(const float *x, int64_t classes, int64_t c, vec shift)
{
    int64_t left = lanes_left(classes, c);
    return vec_keep_first(vec_exp(vec_load_first(x + c, left) - shift), left);
}

static float row_maximum(const float *x, int64_t classes)
{
    float maximum = x[0];
    for (int64_t c = 1; c < classes; c++)
        maximum = x[c] > maximum ? x[c] : maximum;
    return maximum;
}

static float first_lane(vec value)
{
    float lanes[LS_LANES];
    vec_store(lanes, value);
    return lanes[0];
}

void LS_KERNEL(classifier_loss)(const ls_classifier_loss *loss, int64_t begin, int64_t end)
{
    const int64_t classes = loss->classes;
    const vec scale = vec_set(loss->scale);
    for (int64_t row = begin; row < end; row++) {
        const float *x = loss->logits + row * classes;
        const int32_t label = loss->labels[row];
        const float maximum = row_maximum(x, classes);
        const vec shift = vec_set(maximum);
        vec16 sum = vec16_set(0.0f);
        for (int64_t c = 0; c < classes; c += 16)
            for (int part = 0; part < VEC16_PARTS && c + part * LS_LANES < classes; part++)
                sum.part[part] = sum.part[part] + load_exp(x, classes, c + part * LS_LANES, shift);
        const float total = vec16_sum(sum);
        loss->loss[row] =
            first_lane(vec_log(vec_set(total))) - (x[label < 0 ? 0 : label] - maximum);
        for (int64_t c = 0; c < classes; c += LS_LANES) {
            const int64_t left = lanes_left(classes, c);
            vec p = load_exp(x, classes, c, shift) / vec_set(total);
            if (loss->probabilities)
                vec_store_first(loss->probabilities + row * classes + c, p, left);
            if (loss->logits_gradient)
                vec_store_first(loss->logits_gradient + row * classes + c, p * scale, left);
            if (loss->logits_gradient && c <= label && label < c + LS_LANES) {
                float lanes[LS_LANES];
                vec_store(lanes, p);
                loss->logits_gradient[row * classes + label] =
                    (lanes[label - c] - 1.0f) * loss->scale;
            }
        }
    }
}

/* Exact attention of one head over one sequence, forward and backward.
 *
 * Queries go by in blocks of QUERY_BLOCK rows, each with its whole row of scores in scratch memory,
 * so memory grows with the length, not with its square. All products are ls_gemm: scores have their
 * lanes along keys, context along head_size; sums over queries continue one chain from block to
 * block. Backward makes the probabilities again from the saved row maximum and 1 / sum: the same
 * operations, so the same bits. */
#include <math.h>

#include "kernels/dropout_factors.h"
#include "kernels/functions.h"
#include "kernels/math.h"
#include "kernels/scratch.h"
#include "kernels/tile.h"

/* One head of one sequence. */
typedef struct attention_head {
    const ls_attention *a;
    int64_t head;
    int64_t keys, queries; /* rows */
    int64_t key_at;        /* offset of the first key in key and value */
    int64_t query_row;     /* first row of query */
    int64_t stride;        /* between rows of query, key, value: heads * head_size */
    int64_t width;         /* keys padded to groups of 16: the row of a block */
    gemm_scratch *gemm;
    float *probability, *gradient; /* blocks [QUERY_BLOCK][width] */
    float *mask;                   /* [MASK_ROWS][mask_width] */
    int64_t mask_width;
} attention_head;

static attention_head head_begin(const ls_attention *a, int64_t sequence, int64_t head,
                                 void *scratch)
{
    int64_t first = a->offsets[sequence], keys = a->offsets[sequence + 1] - first;
    int64_t stride = a->heads * a->head_size, width = round_up(keys, 16);
    gemm_scratch *gemm = scratch_align(scratch);
    float *probability = (float *)(gemm + 1);
    return (attention_head){
        .a = a,
        .head = head,
        .keys = keys,
        .queries = a->first_query_only ? 1 : keys,
        .key_at = first * stride + head * a->head_size,
        .query_row = a->first_query_only ? sequence : first,
        .stride = stride,
        .width = width,
        .gemm = gemm,
        .probability = probability,
        .gradient = probability + QUERY_BLOCK * width,
        .mask = probability + 2 * QUERY_BLOCK * width,
        .mask_width = round_up(keys, MASK_GROUP),
    };
}

/* Where row `query` of this head lies in query, context and their gradients. */
static int64_t query_at(const attention_head *h, int64_t query)
{
    return (h->query_row + query) * h->stride + h->head * h->a->head_size;
}

static float *softmax_at(const attention_head *h, int64_t query)
{
    return h->a->softmax + ((h->query_row + query) * h->a->heads + h->head) * 2;
}

/* block[i][j] = sum over e of rows[i][e] * keys[j][e]: scores, and gradients of probabilities. */
static void products_with_keys(const attention_head *h, float *block, const float *rows,
                               int64_t count, const float *keys)
{
    ls_gemm g = {
        .rows = count,
        .columns = h->keys,
        .depth = h->a->head_size,
        .a = rows,
        .a_row = h->stride,
        .a_depth = 1,
        .b = keys,
        .b_depth = 1,
        .b_column = h->stride,
        .c = block,
        .c_row = h->width,
    };
    LS_KERNEL(gemm)(&g, h->gemm);
}

/* out[i][e] = sum over j of block[i][j] * keys[j][e]: context, and gradients of queries. */
static void sums_over_keys(const attention_head *h, float *out, const float *block, int64_t count,
                           const float *keys)
{
    ls_gemm g = {
        .rows = count,
        .columns = h->a->head_size,
        .depth = h->keys,
        .a = block,
        .a_row = h->width,
        .a_depth = 1,
        .b = keys,
        .b_depth = h->stride,
        .b_column = 1,
        .c = out,
        .c_row = h->stride,
    };
    LS_KERNEL(gemm)(&g, h->gemm);
}

/* out[j][e] = sum over i of block[i][j] * rows[i][e], added to by later blocks: gradients of keys
 * and values. */
static void sums_over_queries(const attention_head *h, float *out, const float *block,
                              int64_t count, const float *rows, bool accumulate)
{
    ls_gemm g = {
        .rows = h->keys,
        .columns = h->a->head_size,
        .depth = count,
        .a = block,
        .a_row = 1,
        .a_depth = h->width,
        .b = rows,
        .b_depth = h->stride,
        .b_column = 1,
        .c = out,
        .c_row = h->stride,
        .accumulate = accumulate,
    };
    LS_KERNEL(gemm)(&g, h->gemm);
}

/* Rows of a block are worked on in whole groups of 16: what lies beyond the keys is whatever was in
 * memory until it is set aside here. */
LS_INLINE vec known(const attention_head *h, vec values, int64_t at, vec other)
{
    return at + LS_LANES <= h->keys ? values
                                    : vec_first_else(values, lanes_left(h->keys, at), other);
}

/* The maximum of scale * row, NaN where a score is NaN only by way of the sum that follows. */
static float row_maximum(const attention_head *h, const float *row)
{
    const vec scale = vec_set(h->a->scale), least = vec_set(-INFINITY);
    vec16 lanes = vec16_set(-INFINITY);
    for (int64_t j = 0; j < h->width; j += 16)
        for (int part = 0; part < VEC16_PARTS; part++) {
            int64_t at = j + part * LS_LANES;
            lanes.part[part] =
                vec_max(known(h, vec_load(row + at) * scale, at, least), lanes.part[part]);
        }
    return vec16_max(lanes);
}

/* row = exp(scale * row - maximum), zeros beyond the keys; returns its sum. */
static float row_exponentials(const attention_head *h, float *row, float maximum)
{
    const vec scale = vec_set(h->a->scale), most = vec_set(maximum);
    vec16 sums = vec16_set(0.0f);
    for (int64_t j = 0; j < h->width; j += 16)
        for (int part = 0; part < VEC16_PARTS; part++) {
            int64_t at = j + part * LS_LANES;
            vec e = known(h, vec_exp(vec_load(row + at) * scale - most), at, vec_set(0.0f));
            vec_store(row + at, e);
            sums.part[part] = sums.part[part] + e;
        }
    return vec16_sum(sums);
}

/* mask[i][j] = 1 / (1 - probability) where the probability of key j for query `query` + i is kept,
 * 0 where it is dropped; for as many queries as there are rows and `count` wants. */
static void draw_masks(const attention_head *h, int64_t query, int64_t count)
{
    const ls_mask_part part = {.row = h->query_row + query,
                               .rows = smaller(count, MASK_ROWS),
                               .first = h->head * h->a->max_positions,
                               .count = h->width,
                               .stride = h->mask_width};
    LS_KERNEL(dropout_factors)(h->mask, &h->a->dropout, &part);
}

/* From scores to probabilities, `mask` NULL: nothing is dropped. */
static void row_forward(const attention_head *h, float *saved, float *row, const float *mask)
{
    saved[0] = row_maximum(h, row);
    saved[1] = 1.0f / row_exponentials(h, row, saved[0]);
    const vec factor = vec_set(saved[1]);
    for (int64_t j = 0; j < h->width; j += LS_LANES) {
        vec probability = vec_load(row + j) * factor;
        vec_store(row + j, mask ? probability * vec_load(mask + j) : probability);
    }
}

void LS_KERNEL(attention_forward)(const ls_attention *a, int64_t sequence, int64_t head,
                                  void *scratch)
{
    attention_head h = head_begin(a, sequence, head, scratch);
    const bool drops = a->dropout.probability > 0.0f;
    for (int64_t begin = 0; begin < h.queries; begin += QUERY_BLOCK) {
        int64_t count = smaller(QUERY_BLOCK, h.queries - begin);
        products_with_keys(&h, h.probability, a->query + query_at(&h, begin), count,
                           a->key + h.key_at);
        for (int64_t i = 0; i < count; i++) {
            if (drops && i % MASK_ROWS == 0) draw_masks(&h, begin + i, count - i);
            row_forward(&h, softmax_at(&h, begin + i), h.probability + i * h.width,
                        drops ? h.mask + i % MASK_ROWS * h.mask_width : NULL);
        }
        sums_over_keys(&h, a->context + query_at(&h, begin), h.probability, count,
                       a->value + h.key_at);
    }
}

/* For one query: `row` holds its scores and becomes the dropped-out probabilities, `gradient` holds
 * the gradient of those and becomes the gradient of the scores before scaling:
 * scale * P * (mask * gradient - D), D = sum over keys of P * mask * gradient. */
static void row_backward(const attention_head *h, const float *saved, float *row, float *gradient,
                         const float *mask)
{
    const vec scale = vec_set(h->a->scale), zero = vec_set(0.0f);
    const vec most = vec_set(saved[0]), factor = vec_set(saved[1]);
    vec16 sums = vec16_set(0.0f);
    for (int64_t j = 0; j < h->width; j += 16)
        for (int part = 0; part < VEC16_PARTS; part++) {
            int64_t at = j + part * LS_LANES;
            vec e = known(h, vec_exp(vec_load(row + at) * scale - most), at, zero);
            vec probability = e * factor, d = known(h, vec_load(gradient + at), at, zero);
            if (mask) d = d * vec_load(mask + at);
            vec_store(row + at, probability);
            vec_store(gradient + at, d);
            sums.part[part] = vec_fma(probability, d, sums.part[part]);
        }
    const vec sum = vec_set(vec16_sum(sums));
    for (int64_t j = 0; j < h->width; j += LS_LANES) {
        vec probability = vec_load(row + j);
        vec_store(gradient + j, probability * (vec_load(gradient + j) - sum) * scale);
        if (mask) vec_store(row + j, probability * vec_load(mask + j));
    }
}

void LS_KERNEL(attention_backward)(const ls_attention *a, int64_t sequence, int64_t head,
                                   void *scratch)
{
    attention_head h = head_begin(a, sequence, head, scratch);
    const bool drops = a->dropout.probability > 0.0f;
    for (int64_t begin = 0; begin < h.queries; begin += QUERY_BLOCK) {
        int64_t count = smaller(QUERY_BLOCK, h.queries - begin), at = query_at(&h, begin);
        products_with_keys(&h, h.probability, a->query + at, count, a->key + h.key_at);
        products_with_keys(&h, h.gradient, a->context_gradient + at, count, a->value + h.key_at);
        for (int64_t i = 0; i < count; i++) {
            if (drops && i % MASK_ROWS == 0) draw_masks(&h, begin + i, count - i);
            row_backward(&h, softmax_at(&h, begin + i), h.probability + i * h.width,
                         h.gradient + i * h.width,
                         drops ? h.mask + i % MASK_ROWS * h.mask_width : NULL);
        }
        sums_over_keys(&h, a->query_gradient + at, h.gradient, count, a->key + h.key_at);
        sums_over_queries(&h, a->key_gradient + h.key_at, h.gradient, count, a->query + at,
                          begin > 0);
        sums_over_queries(&h, a->value_gradient + h.key_at, h.probability, count,
                          a->context_gradient + at, begin > 0);
    }
}

#include "data/sampler.h"

#include <xxhash.h>

#include "base/alloc.h"
#include "base/random.h"
#include "data/sort.h"

struct ls_sampler {
    ls_sampler_options options;
    int32_t capacity; /* samples of the largest batch */
    int64_t shuffled; /* epoch that `order` holds, -1 for none */
    uint32_t *order;  /* [count] */
    /* [capacity] (65535 - length) << 32 | sample id: ascending is longest first, ties by
     * sample id */
    uint64_t *keys, *scratch;
};

ls_status ls_sampler_new(ls_sampler **out, const ls_sampler_options *options, ls_error *error)
{
    if (options->count < 1)
        return ls_fail(error, LS_USAGE, "no samples: a sampler needs at least one");
    if (options->batch_size < 1)
        return ls_fail(error, LS_USAGE, "batch size %d: must be at least 1", options->batch_size);
    if (options->leaf_size < 1)
        return ls_fail(error, LS_USAGE, "leaf size %d: must be at least 1", options->leaf_size);
    ls_sampler *sampler = NULL;
    ls_status status;
    LS_TRY(LS_NEW(sampler, 1, "sampler", error));
    sampler->options = *options;
    sampler->shuffled = -1;
    sampler->capacity = options->count < (uint32_t)options->batch_size ? (int32_t)options->count
                                                                       : options->batch_size;
    if (!options->sequential) {
        LS_TRY_GOTO(status, LS_NEW(sampler->order, options->count, "sample order", error), fail);
        LS_TRY_GOTO(status, LS_NEW(sampler->keys, sampler->capacity, "sampler", error), fail);
        LS_TRY_GOTO(status, LS_NEW(sampler->scratch, sampler->capacity, "sampler", error), fail);
    }
    *out = sampler;
    return LS_OK;
fail:
    ls_sampler_free(sampler);
    return status;
}

void ls_sampler_free(ls_sampler *sampler)
{
    if (!sampler) return;
    ls_free(sampler->order);
    ls_free(sampler->keys);
    ls_free(sampler->scratch);
    ls_free(sampler);
}

int64_t ls_sampler_batches(const ls_sampler *sampler)
{
    int64_t count = sampler->options.count, size = sampler->options.batch_size;
    return (count + size - 1) / size;
}

int32_t ls_sampler_capacity(const ls_sampler *sampler)
{
    return sampler->capacity;
}

/* Uniform in [0, bound), named by (seed, epoch, index): the high half of word x bound; words whose
 * low half falls into the part that would favour some results are thrown away (Lemire, "Fast random
 * integer generation in an interval", ACM TOMACS 29(1), 2019). */
static uint32_t draw_below(uint64_t seed, int64_t epoch, uint32_t index, uint32_t bound)
{
    /* The second key word keeps these draws apart from those that use the seed for dropout. */
    ls_philox_key key = {{(uint32_t)seed, (uint32_t)(seed >> 32) ^ 0x5348554Cu}};
    uint32_t unfair = -bound % bound; /* 2^32 mod bound */
    for (uint32_t attempt = 0;; attempt++) {
        ls_philox_block block =
            ls_philox(key, (ls_philox_block){{index, attempt, (uint32_t)epoch,
                                              (uint32_t)((uint64_t)epoch >> 32)}});
        for (int word = 0; word < 4; word++) {
            uint64_t product = (uint64_t)block.word[word] * bound;
            if ((uint32_t)product >= unfair) return (uint32_t)(product >> 32);
        }
    }
}

/* Fisher-Yates (Durstenfeld, CACM 7(7), 1964, algorithm 235). */
void ls_sampler_order(uint64_t seed, int64_t epoch, uint32_t count, uint32_t *order)
{
    for (uint32_t index = 0; index < count; index++)
        order[index] = index;
    for (uint32_t index = count - 1; index > 0; index--) {
        uint32_t other = draw_below(seed, epoch, index, index + 1);
        uint32_t kept = order[index];
        order[index] = order[other];
        order[other] = kept;
    }
}

uint64_t ls_sample_digest(uint32_t sample)
{
    return XXH3_64bits(&sample, sizeof sample);
}

static void shuffle(ls_sampler *sampler, int64_t epoch)
{
    ls_sampler_order(sampler->options.seed, epoch, sampler->options.count, sampler->order);
    sampler->shuffled = epoch;
}

static uint32_t key_length(uint64_t key)
{
    return UINT16_MAX - (uint32_t)(key >> 32);
}

/* Split keys[0 .. count - 1] (ascending) into the two subtrees below a node: the first holds
 * `first_count` samples. Both stay ascending. Halves of unequal size are compared by tokens a
 * sample of their size, so that every leaf gets its share. */
static void split(uint64_t *keys, int64_t count, int64_t first_count, uint64_t *scratch)
{
    int64_t second_count = count - first_count, first = 0, second = 0;
    uint64_t first_tokens = 0, second_tokens = 0;
    for (int64_t at = 0; at < count; at++) {
        uint32_t length = key_length(keys[at]);
        bool to_first =
            second == second_count ||
            (first < first_count && (unsigned __int128)(first_tokens + length) * second_count <=
                                        (unsigned __int128)(second_tokens + length) * first_count);
        if (to_first) {
            keys[first++] = keys[at];
            first_tokens += length;
        } else {
            scratch[second++] = keys[at];
            second_tokens += length;
        }
    }
    for (int64_t at = 0; at < second_count; at++)
        keys[first_count + at] = scratch[at];
}

/* Deal the samples out over the tree of leaves below one node, see ls_sampler_batch. */
static void deal(uint64_t *keys, int64_t count, int64_t leaf_size, uint64_t *scratch)
{
    while (count > leaf_size) {
        int64_t leaves = (count + leaf_size - 1) / leaf_size;
        int64_t half = (int64_t)1 << (63 - __builtin_clzll((unsigned long long)(leaves - 1)));
        int64_t first_count = half * leaf_size;
        split(keys, count, first_count, scratch);
        deal(keys, first_count, leaf_size, scratch);
        keys += first_count;
        count -= first_count;
    }
}

void ls_sampler_batch(ls_sampler *sampler, int64_t epoch, int64_t index, uint32_t *out,
                      int32_t *count)
{
    uint32_t first = (uint32_t)(index * sampler->options.batch_size);
    uint32_t left = sampler->options.count - first;
    int32_t size = left < (uint32_t)sampler->capacity ? (int32_t)left : sampler->capacity;
    *count = size;
    if (sampler->options.sequential) {
        for (int32_t at = 0; at < size; at++)
            out[at] = first + (uint32_t)at;
        return;
    }
    if (sampler->shuffled != epoch) shuffle(sampler, epoch);
    for (int32_t at = 0; at < size; at++) {
        uint32_t sample = sampler->order[first + (uint32_t)at];
        uint64_t shortness = (uint64_t)(UINT16_MAX - sampler->options.lengths[sample]);
        sampler->keys[at] = shortness << 32 | sample;
    }
    ls_sort_keys(sampler->keys, (size_t)size);
    deal(sampler->keys, size, sampler->options.leaf_size, sampler->scratch);
    for (int32_t at = 0; at < size; at++)
        out[at] = (uint32_t)sampler->keys[at];
}

/* Philox4x32-10 in vectors.
 *
 * A vector holds one word of several blocks, one block a 64-bit lane, the word in its low half;
 * the high half is never read, so a product needs no shuffling: its low word is in place, its high
 * word one shift away. Blocks lie in the lanes in the order that makes two unpacks put the four
 * words of consecutive blocks side by side. Of the counter only the block index differs within a
 * row, so most of the first two rounds is done once a row, in scalars. */
#include "kernels/dropout_factors.h"

#include <string.h>

#define MULTIPLIER_0 0xD2511F53u
#define MULTIPLIER_1 0xCD9E8D57u
#define WEYL_0 0x9E3779B9u
#define WEYL_1 0xBB67AE85u

/* A word is kept when it is >= threshold << 8, exactly where ls_uniform(word) >= probability. */
static int32_t keep_threshold(float probability)
{
    float scaled = probability * 0x1p24f; /* exact */
    int32_t threshold = (int32_t)scaled;
    return (float)threshold < scaled ? threshold + 1 : threshold;
}

static uint32_t row_position(const ls_dropout *dropout, int64_t row)
{
    return dropout->positions ? (uint32_t)dropout->positions[row] : 0;
}

#if LS_LANES == 1

enum { GROUP = 4 }; /* elements made at once */

typedef struct generator {
    ls_philox_key key;
    uint32_t sample, site, position;
    int32_t threshold;
    float scale;
} generator;

static void generator_init(generator *g, const ls_dropout *dropout, int64_t row)
{
    *g = (generator){dropout->key,
                     dropout->samples[row],
                     dropout->site,
                     row_position(dropout, row),
                     keep_threshold(dropout->probability),
                     1.0f / (1.0f - dropout->probability)};
}

static void generate(const generator *g, uint32_t block, float *to)
{
    ls_philox_block words =
        ls_philox(g->key, (ls_philox_block){{g->sample, g->site, g->position, block}});
    for (int i = 0; i < 4; i++)
        to[i] = (int32_t)(words.word[i] >> 8) >= g->threshold ? g->scale : 0.0f;
}

#else

#if defined(LS_ISA_AVX512)
typedef __m512i words;
#define WORDS_SET(x) _mm512_set1_epi32((int)(x))
#define MULTIPLY(a, b) _mm512_mul_epu32(a, b)
#define HIGH_HALF(a) _mm512_srli_epi64(a, 32)
#define XOR3(a, b, c) _mm512_ternarylogic_epi32(a, b, c, 0x96)
#define ADD(a, b) _mm512_add_epi32(a, b)
#define BLOCK_ORDER _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7)
#else
typedef __m256i words;
#define WORDS_SET(x) _mm256_set1_epi32((int)(x))
#define MULTIPLY(a, b) _mm256_mul_epu32(a, b)
#define HIGH_HALF(a) _mm256_srli_epi64(a, 32)
#define XOR3(a, b, c) _mm256_xor_si256(_mm256_xor_si256(a, b), c)
#define ADD(a, b) _mm256_add_epi32(a, b)
#define BLOCK_ORDER _mm256_setr_epi64x(0, 2, 1, 3)
#endif

enum {
    BLOCKS = LS_LANES / 2, /* of one vector */
    GROUP = 8 * BLOCKS,    /* two vectors are under way at a time, to fill the latencies */
};

typedef struct generator {
    words keys[10][2];
    words second_input;   /* word 2 after round 1, before the block index enters */
    words after_round2_0; /* word 0 after round 2, before the high product enters */
    words word2, word3;   /* after round 2: the same in all blocks */
    words threshold, scale;
} generator;

static void generator_init(generator *g, const ls_dropout *dropout, int64_t row)
{
    uint32_t key0 = dropout->key.word[0], key1 = dropout->key.word[1];
    uint64_t first = (uint64_t)MULTIPLIER_0 * dropout->samples[row];
    uint64_t second = (uint64_t)MULTIPLIER_1 * row_position(dropout, row);
    uint32_t word0 = (uint32_t)(second >> 32) ^ dropout->site ^ key0;
    uint64_t next = (uint64_t)MULTIPLIER_0 * word0;
    g->second_input = WORDS_SET((uint32_t)(first >> 32) ^ key1);
    g->after_round2_0 = WORDS_SET((uint32_t)second ^ (key0 + WEYL_0));
    g->word2 = WORDS_SET((uint32_t)(next >> 32) ^ (uint32_t)first ^ (key1 + WEYL_1));
    g->word3 = WORDS_SET((uint32_t)next);
    for (int round = 2; round < 10; round++) {
        g->keys[round][0] = WORDS_SET(key0 + (uint32_t)round * WEYL_0);
        g->keys[round][1] = WORDS_SET(key1 + (uint32_t)round * WEYL_1);
    }
    float scale = 1.0f / (1.0f - dropout->probability);
    uint32_t scale_bits;
    memcpy(&scale_bits, &scale, sizeof scale_bits);
    g->threshold = WORDS_SET(keep_threshold(dropout->probability) - 1);
    g->scale = WORDS_SET(scale_bits);
}

/* 32-bit lanes of words to factors. */
static inline words factors_of(const generator *g, words value)
{
#if defined(LS_ISA_AVX512)
    __mmask16 kept = _mm512_cmpgt_epi32_mask(_mm512_srli_epi32(value, 8), g->threshold);
    return _mm512_maskz_mov_epi32(kept, g->scale);
#else
    __m256i kept = _mm256_cmpgt_epi32(_mm256_srli_epi32(value, 8), g->threshold);
    return _mm256_and_si256(kept, g->scale);
#endif
}

static inline void store_factors(const generator *g, float *to, const words word[4])
{
#if defined(LS_ISA_AVX512)
    words low = _mm512_mask_blend_epi32(0xAAAA, word[0], _mm512_slli_epi64(word[1], 32));
    words high = _mm512_mask_blend_epi32(0xAAAA, word[2], _mm512_slli_epi64(word[3], 32));
    _mm512_storeu_si512(to, factors_of(g, _mm512_unpacklo_epi64(low, high)));
    _mm512_storeu_si512(to + 16, factors_of(g, _mm512_unpackhi_epi64(low, high)));
#else
    words low = _mm256_blend_epi32(word[0], _mm256_slli_epi64(word[1], 32), 0xAA);
    words high = _mm256_blend_epi32(word[2], _mm256_slli_epi64(word[3], 32), 0xAA);
    _mm256_storeu_si256((__m256i *)(void *)to, factors_of(g, _mm256_unpacklo_epi64(low, high)));
    _mm256_storeu_si256((__m256i *)(void *)(to + 8),
                        factors_of(g, _mm256_unpackhi_epi64(low, high)));
#endif
}

/* GROUP factors, of the blocks from `block` on. */
static inline void generate(const generator *g, uint32_t block, float *to)
{
    const words multiplier0 = WORDS_SET(MULTIPLIER_0), multiplier1 = WORDS_SET(MULTIPLIER_1);
    const words zero = WORDS_SET(0);
    words word[2][4];
#pragma GCC unroll 2
    for (uint32_t half = 0; half < 2; half++) {
        words index = ADD(BLOCK_ORDER, WORDS_SET(block + half * BLOCKS));
        words second = MULTIPLY(XOR3(index, g->second_input, zero), multiplier1);
        word[half][0] = XOR3(HIGH_HALF(second), g->after_round2_0, zero);
        word[half][1] = second;
        word[half][2] = g->word2;
        word[half][3] = g->word3;
    }
#pragma GCC unroll 8
    for (int round = 2; round < 10; round++) {
#pragma GCC unroll 2
        for (int half = 0; half < 2; half++) {
            words *w = word[half];
            words first = MULTIPLY(w[0], multiplier0);
            words second = MULTIPLY(w[2], multiplier1);
            w[0] = XOR3(HIGH_HALF(second), w[1], g->keys[round][0]);
            w[1] = second;
            w[2] = XOR3(HIGH_HALF(first), w[3], g->keys[round][1]);
            w[3] = first;
        }
    }
    store_factors(g, to, word[0]);
    store_factors(g, to + GROUP / 2, word[1]);
}

#endif

void LS_KERNEL(dropout_factors)(float *to, const ls_dropout *dropout, int64_t row, int64_t first,
                                int64_t count)
{
    generator g;
    generator_init(&g, dropout, row);
    int64_t done = 0;
    int64_t skip = first % 4; /* elements of the first block that are not wanted */
    for (int64_t block = first / 4; done < count; block += GROUP / 4) {
        if (skip == 0 && count - done >= GROUP) {
            generate(&g, (uint32_t)block, to + done);
            done += GROUP;
            continue;
        }
        float group[GROUP];
        generate(&g, (uint32_t)block, group);
        int64_t wanted = GROUP - skip < count - done ? GROUP - skip : count - done;
        memcpy(to + done, group + skip, (size_t)wanted * sizeof *to);
        done += wanted;
        skip = 0;
    }
}

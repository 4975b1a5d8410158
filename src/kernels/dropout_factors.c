/* Philox4x32-10 in vectors.
 *
 * A vector holds one word of several blocks, one block a 64-bit lane, the word in its low half;
 * the high half is never read, so a product needs no shuffling: its low word is in place, its high
 * word one shift away. Blocks lie in the lanes in the order that makes two unpacks put the four
 * words of consecutive blocks side by side. Of the counter only the block index differs within a
 * row, so most of the first two rounds is done once a row, in scalars. Two vectors are under way at
 * a time, to fill the latencies: of one row, or the last of a row and the first of the next. */
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
    uint32_t site;
    int32_t threshold;
    float scale;
} generator;

typedef struct row_words {
    uint32_t sample, position;
} row_words;

static generator generator_of(const ls_dropout *dropout)
{
    return (generator){dropout->key, dropout->site, keep_threshold(dropout->probability),
                       1.0f / (1.0f - dropout->probability)};
}

static row_words row_words_of(const ls_dropout *dropout, int64_t row)
{
    return (row_words){dropout->samples[row], row_position(dropout, row)};
}

static void generate_one(const generator *g, const row_words *row, uint32_t block, float *to)
{
    ls_philox_block words =
        ls_philox(g->key, (ls_philox_block){{row->sample, g->site, row->position, block}});
    for (int i = 0; i < 4; i++)
        to[i] = (int32_t)(words.word[i] >> 8) >= g->threshold ? g->scale : 0.0f;
}

static void generate(const generator *g, const row_words *const rows[2], const uint32_t block[2],
                     float *const to[2])
{
    generate_one(g, rows[0], block[0], to[0]);
    generate_one(g, rows[1], block[1], to[1]);
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
    GROUP = 4 * BLOCKS,    /* elements of one vector */
};

typedef struct generator {
    words keys[10][2];
    words threshold, scale;
} generator;

typedef struct row_words {
    words second_input;   /* word 2 after round 1, before the block index enters */
    words after_round2_0; /* word 0 after round 2, before the high product enters */
    words word2, word3;   /* after round 2: the same in all blocks */
} row_words;

static row_words row_words_of(const ls_dropout *dropout, int64_t row)
{
    uint32_t key0 = dropout->key.word[0], key1 = dropout->key.word[1];
    uint64_t first = (uint64_t)MULTIPLIER_0 * dropout->samples[row];
    uint64_t second = (uint64_t)MULTIPLIER_1 * row_position(dropout, row);
    uint32_t word0 = (uint32_t)(second >> 32) ^ dropout->site ^ key0;
    uint64_t next = (uint64_t)MULTIPLIER_0 * word0;
    return (row_words){
        .second_input = WORDS_SET((uint32_t)(first >> 32) ^ key1),
        .after_round2_0 = WORDS_SET((uint32_t)second ^ (key0 + WEYL_0)),
        .word2 = WORDS_SET((uint32_t)(next >> 32) ^ (uint32_t)first ^ (key1 + WEYL_1)),
        .word3 = WORDS_SET((uint32_t)next),
    };
}

static generator generator_of(const ls_dropout *dropout)
{
    generator g;
    for (int round = 2; round < 10; round++) {
        g.keys[round][0] = WORDS_SET(dropout->key.word[0] + (uint32_t)round * WEYL_0);
        g.keys[round][1] = WORDS_SET(dropout->key.word[1] + (uint32_t)round * WEYL_1);
    }
    float scale = 1.0f / (1.0f - dropout->probability);
    uint32_t scale_bits;
    memcpy(&scale_bits, &scale, sizeof scale_bits);
    g.threshold = WORDS_SET(keep_threshold(dropout->probability) - 1);
    g.scale = WORDS_SET(scale_bits);
    return g;
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

/* Twice GROUP factors: of the blocks from block[i] on of rows[i]. */
static inline void generate(const generator *g, const row_words *const rows[2],
                            const uint32_t block[2], float *const to[2])
{
    const words multiplier0 = WORDS_SET(MULTIPLIER_0), multiplier1 = WORDS_SET(MULTIPLIER_1);
    const words zero = WORDS_SET(0);
    words word[2][4];
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
        const row_words *row = rows[half];
        words index = ADD(BLOCK_ORDER, WORDS_SET(block[half]));
        words second = MULTIPLY(XOR3(index, row->second_input, zero), multiplier1);
        word[half][0] = XOR3(HIGH_HALF(second), row->after_round2_0, zero);
        word[half][1] = second;
        word[half][2] = row->word2;
        word[half][3] = row->word3;
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
    store_factors(g, to[0], word[0]);
    store_factors(g, to[1], word[1]);
}

#endif

/* A group of a part: `done` elements of `row` come before it, counted from where the first block
 * begins. */
typedef struct mask_group {
    int64_t row, done;
} mask_group;

/* What of a group is wanted but was made elsewhere. */
static void copy_group(float *to, const ls_mask_part *part, mask_group group, const float *from)
{
    const int64_t skip = part->first % 4, end = part->count + skip - group.done;
    const int64_t begin = group.done > 0 ? 0 : skip;
    memcpy(to + group.row * part->stride + group.done + begin - skip, from + begin,
           (size_t)((end < GROUP ? end : GROUP) - begin) * sizeof *to);
}

void LS_KERNEL(dropout_factors)(float *to, const ls_dropout *dropout, const ls_mask_part *part)
{
    const generator g = generator_of(dropout);
    const int64_t skip = part->first % 4; /* elements of the first block that are not wanted */
    const int64_t end = part->count + skip;
    float spare[2][GROUP]; /* for groups that do not lie in a row of the result */
    row_words words_of_row[2];
    int latest = 0; /* row's */
    mask_group next = {0};
    if (part->count <= 0) return;
    while (next.row < part->rows) {
        mask_group group[2];
        const row_words *row[2];
        uint32_t block[2];
        float *target[2];
        for (int half = 0; half < 2; half++) {
            group[half] = next;
            if (next.row == part->rows) { /* nothing is left: once more what the first half makes */
                group[1] = group[0];
            } else if (next.done == 0) {
                latest = 1 - latest;
                words_of_row[latest] = row_words_of(dropout, part->row + next.row);
            }
            row[half] = &words_of_row[latest];
            block[half] = (uint32_t)((part->first + group[half].done) / 4);
            bool fits = skip == 0 && group[half].done + GROUP <= part->stride;
            target[half] =
                fits ? to + group[half].row * part->stride + group[half].done : spare[half];
            if (next.row == part->rows) continue;
            next.done += GROUP;
            if (next.done >= end) next = (mask_group){next.row + 1, 0};
        }
        generate(&g, row, block, target);
        for (int half = 0; half < 2; half++)
            if (target[half] == spare[half]) copy_group(to, part, group[half], spare[half]);
    }
}

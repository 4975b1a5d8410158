/* Transposition of a square block of vectors, for packing. */
#ifndef LS_KERNELS_TRANSPOSE_H
#define LS_KERNELS_TRANSPOSE_H

#include "kernels/vector.h"

/* Row i of the block becomes its column i. */
#if defined(LS_ISA_AVX512)

static inline void vec_transpose(vec row[LS_LANES])
{
    __m512 pair[16], quad[16];
    for (int i = 0; i < 16; i += 2) {
        pair[i] = _mm512_unpacklo_ps((__m512)row[i], (__m512)row[i + 1]);
        pair[i + 1] = _mm512_unpackhi_ps((__m512)row[i], (__m512)row[i + 1]);
    }
    /* quad[4 g + j] holds column 4 l + j of rows 4 g .. 4 g + 3 in its 128-bit part l. */
    for (int i = 0; i < 16; i += 4)
        for (int half = 0; half < 2; half++) {
            __m512d low = (__m512d)pair[i + half], high = (__m512d)pair[i + 2 + half];
            quad[i + 2 * half] = (__m512)_mm512_unpacklo_pd(low, high);
            quad[i + 2 * half + 1] = (__m512)_mm512_unpackhi_pd(low, high);
        }
    for (int j = 0; j < 4; j++) {
        __m512 low02 = _mm512_shuffle_f32x4(quad[j], quad[4 + j], 0x88);
        __m512 low13 = _mm512_shuffle_f32x4(quad[j], quad[4 + j], 0xdd);
        __m512 high02 = _mm512_shuffle_f32x4(quad[8 + j], quad[12 + j], 0x88);
        __m512 high13 = _mm512_shuffle_f32x4(quad[8 + j], quad[12 + j], 0xdd);
        row[j] = (vec)_mm512_shuffle_f32x4(low02, high02, 0x88);
        row[4 + j] = (vec)_mm512_shuffle_f32x4(low13, high13, 0x88);
        row[8 + j] = (vec)_mm512_shuffle_f32x4(low02, high02, 0xdd);
        row[12 + j] = (vec)_mm512_shuffle_f32x4(low13, high13, 0xdd);
    }
}

#elif defined(LS_ISA_AVX2)

static inline void vec_transpose(vec row[LS_LANES])
{
    __m256 pair[8], quad[8];
    for (int i = 0; i < 8; i += 2) {
        pair[i] = _mm256_unpacklo_ps((__m256)row[i], (__m256)row[i + 1]);
        pair[i + 1] = _mm256_unpackhi_ps((__m256)row[i], (__m256)row[i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
        for (int half = 0; half < 2; half++) {
            __m256d low = (__m256d)pair[i + half], high = (__m256d)pair[i + 2 + half];
            quad[i + 2 * half] = (__m256)_mm256_unpacklo_pd(low, high);
            quad[i + 2 * half + 1] = (__m256)_mm256_unpackhi_pd(low, high);
        }
    for (int j = 0; j < 4; j++) {
        row[j] = (vec)_mm256_permute2f128_ps(quad[j], quad[4 + j], 0x20);
        row[4 + j] = (vec)_mm256_permute2f128_ps(quad[j], quad[4 + j], 0x31);
    }
}

#else

static inline void vec_transpose(vec row[LS_LANES])
{
    (void)row; /* one by one */
}

#endif

#endif

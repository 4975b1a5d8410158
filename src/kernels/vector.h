/* One vector type for every instruction set: `vec` holds LS_LANES floats.
 *
 * Each source file in this folder is compiled once per set (Makefile: LS_ISA_REF, LS_ISA_AVX2,
 * LS_ISA_AVX512) and gives the same fp32 bits in each: element-wise steps do not see the lane
 * count, multiply-adds are fused only by vec_fma, and row reductions go through `vec16`, sixteen
 * lanes on every set with one fixed tree. To add a set: a block here, a line in the Makefile, a row
 * in dispatch/dispatch.c. */
#ifndef LS_KERNELS_VECTOR_H
#define LS_KERNELS_VECTOR_H

#include <stdint.h>
#include <string.h>

#if defined(LS_ISA_AVX512)
#include <immintrin.h>
#define LS_LANES 16
#define LS_ISA_NAME avx512
#elif defined(LS_ISA_AVX2)
#include <immintrin.h>
#define LS_LANES 8
#define LS_ISA_NAME avx2
#else
#define LS_LANES 1
#define LS_ISA_NAME ref
#endif

#define LS_PASTE_(a, b) a##__##b
#define LS_PASTE(a, b) LS_PASTE_(a, b)
/* The name of a function of this file for the set it is compiled for: ls_gemm__avx2. */
#define LS_KERNEL(name) LS_PASTE(ls_##name, LS_ISA_NAME)

/* For helpers whose `count` arguments must become constants in each caller's loop. */
#define LS_INLINE static inline __attribute__((always_inline))
/* for (int i = 0; i < count; i++) for a small constant count, written out so that arrays which i
 * indexes become registers. */
#if defined(__clang__)
#define LS_UNROLL(i, count) _Pragma("clang loop unroll(full)") for (int i = 0; i < (count); i++)
#else
#define LS_UNROLL(i, count) _Pragma("GCC unroll 16") for (int i = 0; i < (count); i++)
#endif

#if LS_LANES == 1
typedef float vec;
typedef int32_t ivec;
typedef uint32_t uvec;
#else
typedef float vec __attribute__((vector_size(4 * LS_LANES)));
typedef int32_t ivec __attribute__((vector_size(4 * LS_LANES)));
typedef uint32_t uvec __attribute__((vector_size(4 * LS_LANES)));
#endif
/* +, -, *, / work on vec; +, -, *, &, |, ^, <<, >> on ivec and uvec (>> is arithmetic on ivec). */

static inline vec vec_load(const float *from)
{
    vec value;
    memcpy(&value, from, sizeof value);
    return value;
}

static inline void vec_store(float *to, vec value)
{
    memcpy(to, &value, sizeof value);
}

static inline ivec vec_bits(vec value)
{
    ivec bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline vec vec_from_bits(ivec bits)
{
    vec value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#if defined(LS_ISA_AVX512)

static inline vec vec_set(float value)
{
    return (vec)_mm512_set1_ps(value);
}
static inline ivec ivec_set(int32_t value)
{
    return (ivec)_mm512_set1_epi32(value);
}
/* a * b + c with one rounding. */
static inline vec vec_fma(vec a, vec b, vec c)
{
    return (vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
/* (a > b) ? a : b, so b where either is NaN. Whether a denormal result is flushed differs between
 * sets (arithmetic always flushes it): compute on with the result rather than store it. */
static inline vec vec_max(vec a, vec b)
{
    return (vec)_mm512_max_ps((__m512)a, (__m512)b);
}
static inline vec vec_min(vec a, vec b)
{
    return (vec)_mm512_min_ps((__m512)a, (__m512)b);
}
static inline vec vec_sqrt(vec a)
{
    return (vec)_mm512_sqrt_ps((__m512)a);
}
/* Of |x| < 2^31. */
static inline vec vec_from_int(ivec a)
{
    return (vec)_mm512_cvtepi32_ps((__m512i)a);
}
/* a < b ? yes : no, lane by lane (no for NaN). */
static inline vec vec_select_less(vec a, vec b, vec yes, vec no)
{
    return (vec)_mm512_mask_blend_ps(_mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OQ),
                                     (__m512)no, (__m512)yes);
}
/* The first `count` lanes from memory, zero in the others. 0 <= count <= LS_LANES. */
static inline vec vec_load_first(const float *from, int64_t count)
{
    return (vec)_mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1u), from);
}
static inline void vec_store_first(float *to, vec value, int64_t count)
{
    _mm512_mask_storeu_ps(to, (__mmask16)((1u << count) - 1u), (__m512)value);
}
/* Zero in all lanes but the first `count`. */
static inline vec vec_keep_first(vec value, int64_t count)
{
    return (vec)_mm512_maskz_mov_ps((__mmask16)((1u << count) - 1u), (__m512)value);
}
/* `other` in all lanes but the first `count`. */
static inline vec vec_first_else(vec value, int64_t count, vec other)
{
    return (vec)_mm512_mask_blend_ps((__mmask16)((1u << count) - 1u), (__m512)other, (__m512)value);
}

#elif defined(LS_ISA_AVX2)

static inline vec vec_set(float value)
{
    return (vec)_mm256_set1_ps(value);
}
static inline ivec ivec_set(int32_t value)
{
    return (ivec)_mm256_set1_epi32(value);
}
static inline vec vec_fma(vec a, vec b, vec c)
{
    return (vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
static inline vec vec_max(vec a, vec b)
{
    return (vec)_mm256_max_ps((__m256)a, (__m256)b);
}
static inline vec vec_min(vec a, vec b)
{
    return (vec)_mm256_min_ps((__m256)a, (__m256)b);
}
static inline vec vec_sqrt(vec a)
{
    return (vec)_mm256_sqrt_ps((__m256)a);
}
static inline vec vec_from_int(ivec a)
{
    return (vec)_mm256_cvtepi32_ps((__m256i)a);
}
static inline vec vec_select_less(vec a, vec b, vec yes, vec no)
{
    return (vec)_mm256_blendv_ps((__m256)no, (__m256)yes,
                                 _mm256_cmp_ps((__m256)a, (__m256)b, _CMP_LT_OQ));
}
static inline __m256i first_lanes_mask(int64_t count)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
static inline vec vec_load_first(const float *from, int64_t count)
{
    return (vec)_mm256_maskload_ps(from, first_lanes_mask(count));
}
static inline void vec_store_first(float *to, vec value, int64_t count)
{
    _mm256_maskstore_ps(to, first_lanes_mask(count), (__m256)value);
}
static inline vec vec_keep_first(vec value, int64_t count)
{
    return (vec)_mm256_and_ps((__m256)value, (__m256)first_lanes_mask(count));
}
static inline vec vec_first_else(vec value, int64_t count, vec other)
{
    return (vec)_mm256_blendv_ps((__m256)other, (__m256)value, (__m256)first_lanes_mask(count));
}

#else /* one lane: the portable reference */

static inline vec vec_set(float value)
{
    return value;
}
static inline ivec ivec_set(int32_t value)
{
    return value;
}
static inline vec vec_fma(vec a, vec b, vec c)
{
    return __builtin_fmaf(a, b, c); /* exact on every machine, in hardware or in the C library */
}
static inline vec vec_max(vec a, vec b)
{
    return a > b ? a : b;
}
static inline vec vec_min(vec a, vec b)
{
    return a < b ? a : b;
}
static inline vec vec_sqrt(vec a)
{
    return __builtin_sqrtf(a);
}
static inline vec vec_from_int(ivec a)
{
    return (vec)a;
}
static inline vec vec_select_less(vec a, vec b, vec yes, vec no)
{
    return a < b ? yes : no;
}
static inline vec vec_load_first(const float *from, int64_t count)
{
    return count ? *from : 0.0f;
}
static inline void vec_store_first(float *to, vec value, int64_t count)
{
    if (count) *to = value;
}
static inline vec vec_keep_first(vec value, int64_t count)
{
    return count ? value : 0.0f;
}
static inline vec vec_first_else(vec value, int64_t count, vec other)
{
    return count ? value : other;
}

#endif

/* The lanes of the vector at `done` that a row of `total` elements still fills: 0 .. LS_LANES. */
static inline int64_t lanes_left(int64_t total, int64_t done)
{
    int64_t left = total - done;
    return left < 0 ? 0 : left > LS_LANES ? LS_LANES : left;
}

/* Sixteen accumulators for a row reduction: element e of the row goes to lane e % 16. */
enum { VEC16_PARTS = 16 / LS_LANES };
typedef struct vec16 {
    vec part[VEC16_PARTS];
} vec16;

LS_INLINE vec16 vec16_set(float value)
{
    vec16 all;
    for (int part = 0; part < VEC16_PARTS; part++)
        all.part[part] = vec_set(value);
    return all;
}

/* Lanes i and i + 8 are added, then i and i + 4, i + 2, i + 1: the one tree, on every set. */
#if LS_LANES > 1
#if LS_LANES == 16
#define VEC16_HALVES(a)                                                                            \
    (_mm512_castps512_ps256((__m512)(a).part[0])), (_mm512_extractf32x8_ps((__m512)(a).part[0], 1))
#else
#define VEC16_HALVES(a) ((__m256)(a).part[0]), ((__m256)(a).part[1])
#endif
static inline float vec16_sum(vec16 a)
{
    const __m256 halves[2] = {VEC16_HALVES(a)};
    __m256 eight = _mm256_add_ps(halves[0], halves[1]);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/* The largest of the lanes, by (a > b) ? a : b along the same tree. */
static inline float vec16_max(vec16 a)
{
    const __m256 halves[2] = {VEC16_HALVES(a)};
    __m256 eight = _mm256_max_ps(halves[0], halves[1]);
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
#else
static inline float vec16_sum(vec16 a)
{
    for (int width = 8; width > 0; width /= 2)
        for (int i = 0; i < width; i++)
            a.part[i] = a.part[i] + a.part[i + width];
    return a.part[0];
}

static inline float vec16_max(vec16 a)
{
    for (int width = 8; width > 0; width /= 2)
        for (int i = 0; i < width; i++)
            a.part[i] = vec_max(a.part[i], a.part[i + width]);
    return a.part[0];
}
#endif

#endif

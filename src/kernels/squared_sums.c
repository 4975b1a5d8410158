/* Sums of squares in double, for the gradient norm: blocks of 1,024 elements, element e of a block
 * in lane e % 16, then the tree of vec16_sum. A square of a float is exact in double. */
#include <string.h>

#include "kernels/functions.h"
#include "kernels/vector.h"

enum { BLOCK = 1024 };

#if defined(LS_ISA_AVX512)
typedef struct squares {
    __m512d part[2];
} squares;

static inline squares squares_zero(void)
{
    return (squares){{_mm512_setzero_pd(), _mm512_setzero_pd()}};
}
static inline void squares_add(squares *sum, const float *from)
{
    for (int i = 0; i < 2; i++) {
        __m512d value = _mm512_cvtps_pd(_mm256_loadu_ps(from + 8 * i));
        sum->part[i] = _mm512_add_pd(sum->part[i], _mm512_mul_pd(value, value));
    }
}

#elif defined(LS_ISA_AVX2)
typedef struct squares {
    __m256d part[4];
} squares;

static inline squares squares_zero(void)
{
    const __m256d zero = _mm256_setzero_pd();
    return (squares){{zero, zero, zero, zero}};
}
static inline void squares_add(squares *sum, const float *from)
{
    for (int i = 0; i < 4; i++) {
        __m256d value = _mm256_cvtps_pd(_mm_loadu_ps(from + 4 * i));
        sum->part[i] = _mm256_add_pd(sum->part[i], _mm256_mul_pd(value, value));
    }
}

#else
typedef struct squares {
    double part[16];
} squares;

static inline squares squares_zero(void)
{
    return (squares){{0}};
}
static inline void squares_add(squares *sum, const float *from)
{
    for (int i = 0; i < 16; i++)
        sum->part[i] = sum->part[i] + (double)from[i] * (double)from[i];
}
#endif

static inline double squares_sum(const squares *sum)
{
    double lane[16];
    memcpy(lane, sum, sizeof lane);
    for (int width = 8; width > 0; width /= 2)
        for (int i = 0; i < width; i++)
            lane[i] = lane[i] + lane[i + width];
    return lane[0];
}

/* `count` elements of which the first belongs in lane `lane`; zeros change nothing in the others.
 */
static inline void add_run(squares *sum, const float *from, int64_t count, int64_t lane)
{
    if (lane) {
        float group[16] = {0};
        int64_t head = 16 - lane < count ? 16 - lane : count;
        memcpy(group + lane, from, (size_t)head * sizeof *from);
        squares_add(sum, group);
        from += head;
        count -= head;
    }
    for (; count >= 16; count -= 16, from += 16)
        squares_add(sum, from);
    if (count > 0) {
        float group[16] = {0};
        memcpy(group, from, (size_t)count * sizeof *from);
        squares_add(sum, group);
    }
}

void LS_KERNEL(squared_sums)(double *blocks, const float *values, int64_t count, int64_t begin,
                             int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        squares sum = squares_zero();
        int64_t left = count - i * BLOCK;
        add_run(&sum, values + i * BLOCK, left < BLOCK ? left : BLOCK, 0);
        blocks[i] = squares_sum(&sum);
    }
}

/* The first entry of `rows` that is >= wanted. */
static int64_t find_row(const int32_t *rows, int64_t count, int64_t wanted)
{
    int64_t low = 0, high = count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (rows[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void LS_KERNEL(squared_sums_rows)(double *blocks, const float *values, const int32_t *rows,
                                  int64_t count, int64_t hidden, int64_t begin, int64_t end)
{
    if (begin >= end) return;
    int64_t entry = find_row(rows, count, begin * BLOCK / hidden);
    for (int64_t i = begin; i < end; i++) {
        const int64_t block_begin = i * BLOCK, block_end = block_begin + BLOCK;
        squares sum = squares_zero();
        while (entry < count && rows[entry] * hidden < block_end) {
            const int64_t row_begin = rows[entry] * hidden, row_end = row_begin + hidden;
            const int64_t from = row_begin > block_begin ? row_begin : block_begin;
            const int64_t to = row_end < block_end ? row_end : block_end;
            if (from < to)
                add_run(&sum, values + entry * hidden + (from - row_begin), to - from, from % 16);
            if (row_end > block_end) break; /* the next block has the rest of this row */
            entry++;
        }
        blocks[i] = squares_sum(&sum);
    }
}

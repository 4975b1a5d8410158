/* What tests of kernels share: the sets of this machine, operands in guarded memory, bits. */
#ifndef LS_TESTS_KERNEL_SETS_H
#define LS_TESTS_KERNEL_SETS_H

#include <stdint.h>

#include "kernels/kernels.h"

enum { KERNEL_SETS = 3, OPERANDS = 16 };

/* Set 0 is ref; NULL, with a line that says so, where the machine lacks the set. */
const ls_kernels *kernel_set(int index);

/* Blocks of products as they are cut on some processor, index 0 .. BLOCK_KINDS - 1: the largest
 * (NULL), those of this one, and ones so small that each operand here has several. */
enum { BLOCK_KINDS = 3 };
const ls_cache_blocks *block_kind(const ls_kernels *set, int index, ls_cache_blocks *room);

/* Group fixtures: OPERANDS pieces of guarded memory; denormals flushed, as in every worker. */
int kernel_tests_setup(void **state);
int kernel_tests_teardown(void **state);

/* Operand `index` as `count` floats between guard pages, which end at one (or begin after one in
 * every other call); filled with values spread over [-scale, scale], or left as NaN for scale 0. */
float *operand(int index, int64_t count, float scale, uint32_t seed);
int32_t *operand_ids(int index, int64_t count, int32_t limit, uint32_t seed);

uint32_t random_word(uint32_t *seed);
float random_float(uint32_t *seed); /* [-1, 1) */

/* Fails at the first element whose bits differ. */
void check_bits(const char *what, const char *set, int64_t size, const float *ours,
                const float *wanted, int64_t count);
/* Fails where |ours - wanted| > limit * (|wanted| + scale). */
void check_close(const char *what, int64_t size, const float *ours, const double *wanted,
                 int64_t count, double limit, double scale);

#endif

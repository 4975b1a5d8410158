/* Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
 *
 * A counter-based generator: the same (key, counter) gives the same four words on every rank,
 * thread and device, so a random number is named, never drawn in an order. */
#ifndef LS_BASE_RANDOM_H
#define LS_BASE_RANDOM_H

#include <stdint.h>

typedef struct ls_philox_key {
    uint32_t word[2];
} ls_philox_key;

typedef struct ls_philox_block {
    uint32_t word[4];
} ls_philox_block;

static inline ls_philox_block ls_philox(ls_philox_key key, ls_philox_block counter)
{
    for (int round = 0; round < 10; round++) {
        uint64_t first = (uint64_t)0xD2511F53u * counter.word[0];
        uint64_t second = (uint64_t)0xCD9E8D57u * counter.word[2];
        counter = (ls_philox_block){
            {(uint32_t)(second >> 32) ^ counter.word[1] ^ key.word[0], (uint32_t)second,
             (uint32_t)(first >> 32) ^ counter.word[3] ^ key.word[1], (uint32_t)first}};
        key.word[0] += 0x9E3779B9u;
        key.word[1] += 0xBB67AE85u;
    }
    return counter;
}

/* Uniform in [0, 1) with 24 bits: exact in float. */
static inline float ls_uniform(uint32_t word)
{
    return (float)(word >> 8) * 0x1p-24f;
}

#endif

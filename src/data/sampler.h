/* Which samples make up a batch, and in which order they lie in it.
 *
 * The order of an epoch is a function of (seed, epoch, count) alone; the order inside a batch of
 * its samples' lengths too. Ranks, threads and passes have no part in either. */
#ifndef LS_DATA_SAMPLER_H
#define LS_DATA_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef struct ls_sampler_options {
    uint32_t count; /* samples, at least 1 */
    const uint16_t
        *lengths;       /* [count] tokens; borrowed for the sampler's life. NULL if sequential */
    int32_t batch_size; /* global, at least 1; may be larger than count */
    int32_t leaf_size;  /* at least 1 */
    uint64_t seed;
    bool sequential; /* file order in every epoch (evaluation) */
} ls_sampler_options;

typedef struct ls_sampler ls_sampler;

/* Holds 4 bytes a sample (none if sequential) and a few for each of a batch. A size below 1 is
 * LS_USAGE. */
ls_status ls_sampler_new(ls_sampler **out, const ls_sampler_options *options,
                         ls_error *error) LS_MUST_CHECK;
void ls_sampler_free(ls_sampler *sampler); /* NULL is allowed */

int64_t ls_sampler_batches(const ls_sampler *sampler);  /* in an epoch: count / batch_size, up */
int32_t ls_sampler_capacity(const ls_sampler *sampler); /* samples of the largest batch */

/* Batch `index` (0 .. batches - 1) of `epoch`: its sample ids into `out` [capacity], their number
 * into *count: batch_size but for the epoch's last batch.
 *
 * Shuffled: the batch is `batch_size` consecutive samples of the epoch's order. They are then dealt
 * out over the tree of leaves, from the root down: longest first (ties by sample id) to the half
 * with fewer tokens for its size, the first half if equal, until a half is full. All leaves are
 * full but the last. Thus consecutive groups of leaves hold nearly equal numbers of tokens.
 *
 * Not for several threads at once. A call for another epoch than the last one shuffles anew
 * (O(count)); nothing is allocated. */
void ls_sampler_batch(ls_sampler *sampler, int64_t epoch, int64_t index, uint32_t *out,
                      int32_t *count);

/* What a sample adds to the digest of a step (a sum modulo 2^64): XXH3-64 of its id, 4 bytes
 * little-endian. */
uint64_t ls_sample_digest(uint32_t sample);

/* The order of an epoch, into `order` [count]: what the batches are cut from. */
void ls_sampler_order(uint64_t seed, int64_t epoch, uint32_t count, uint32_t *order);

#endif

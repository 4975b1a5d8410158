/* One global batch in memory, without padding: the rows of a step in the order that all ranks and
 * passes share. */
#ifndef LS_DATA_BATCH_H
#define LS_DATA_BATCH_H

#include <stdint.h>

#include "base/status.h"

/* Samples lie in the batch's order, tokens of sample i at [offsets[i], offsets[i + 1]). Borrowed
 * from whoever made it (see reader.h), until the next batch is asked for. */
typedef struct ls_batch {
    int32_t samples;            /* true count: the last batch of an epoch may be short */
    const int32_t *offsets;     /* [samples + 1] */
    const int32_t *ids;         /* [tokens] */
    const uint8_t *types;       /* [tokens] 0 or 1 */
    const uint32_t *sample_ids; /* [samples] row number in the data file's good rows */
    const int32_t *labels;      /* [samples] class, -1 where the row has none */
} ls_batch;

#endif

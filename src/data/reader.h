/* Reads the next batches in the background while the current one trains. */
#ifndef LS_DATA_READER_H
#define LS_DATA_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/trace.h"
#include "data/batch.h"
#include "data/dataset.h"
#include "data/sampler.h"

typedef struct ls_reader_options {
    const ls_dataset *dataset;
    ls_sampler *sampler; /* the reader's alone while it lives; its count is the dataset's */
    int64_t epoch;       /* position of the first batch: epoch from 0 ... */
    int64_t batch;       /* ... and index in it, 0 .. batches in an epoch (that is: the next) */
    int64_t epochs;      /* the first epoch that is not read; 0: no end */
    ls_track *track;     /* where the thread records what it reads; NULL: nowhere */
} ls_reader_options;

typedef struct ls_reader ls_reader;

/* Takes all memory (three batches) and starts one thread. Dataset and sampler must outlive it. */
ls_status ls_reader_new(ls_reader **out, const ls_reader_options *options,
                        ls_error *error) LS_MUST_CHECK;
void ls_reader_free(ls_reader *reader); /* at any time; joins the thread; NULL is allowed */

/* The next batch, borrowed until the next call; waits for it if need be. *more false: the end, and
 * *batch is NULL. A failed read surfaces here, after the batches before it, and in every call
 * that follows. */
ls_status ls_reader_next(ls_reader *reader, const ls_batch **batch, bool *more,
                         ls_error *error) LS_MUST_CHECK;

/* Position of the batch that ls_reader_next gave last. */
void ls_reader_position(const ls_reader *reader, int64_t *epoch, int64_t *batch);

/* Time that ls_reader_next has waited in all. */
double ls_reader_waited_seconds(const ls_reader *reader);

#endif

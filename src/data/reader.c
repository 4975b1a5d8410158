#include "data/reader.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/calls.h"
#include "base/clock.h"

/* One is with the caller, one is ready, one is being filled. */
enum { READER_BUFFERS = 3 };

struct ls_reader {
    ls_reader_options options;
    uint32_t *rows; /* [capacity] the thread's */
    ls_batch_buffer *buffers[READER_BUFFERS];
    int64_t epoch, batch;           /* of the batch that the caller asks for next */
    int64_t last_epoch, last_batch; /* of the batch that the caller has */
    bool holding;                   /* the caller has a batch */
    double waited;

    pthread_t thread;
    bool started;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    /* Under the mutex: batches filled and given back since the start; batch i is in buffer
     * i % READER_BUFFERS. */
    int64_t filled, returned;
    bool stopping, ended;
    ls_status status; /* why the thread ended */
    ls_error error;
};

/* Waits for a buffer that the caller has given back; false: stop. */
static bool wait_for_buffer(ls_reader *reader)
{
    pthread_mutex_lock(&reader->mutex);
    while (!reader->stopping && reader->filled - reader->returned == READER_BUFFERS)
        pthread_cond_wait(&reader->changed, &reader->mutex);
    bool go_on = !reader->stopping;
    pthread_mutex_unlock(&reader->mutex);
    return go_on;
}

static void step(const ls_reader *reader, int64_t *epoch, int64_t *batch)
{
    if (++*batch < ls_sampler_batches(reader->options.sampler)) return;
    *batch = 0;
    ++*epoch;
}

static void *read_ahead(void *argument)
{
    ls_reader *reader = argument;
    const ls_reader_options *options = &reader->options;
    int64_t epoch = options->epoch, batch = options->batch;
    ls_status status = LS_OK;
    ls_error error = {0};
    for (int64_t number = 0; status == LS_OK; number++) {
        int32_t count = 0;
        if ((options->epochs && epoch >= options->epochs) || !wait_for_buffer(reader)) break;
        ls_span span = {.name = "read batch", .begin = ls_seconds(), .op = LS_TRACE_NO_OP};
        ls_sampler_batch(options->sampler, epoch, batch, reader->rows, &count);
        status = ls_dataset_read_rows(options->dataset, reader->rows, count,
                                      reader->buffers[number % READER_BUFFERS], &error);
        span.end = ls_seconds();
        span.samples = count;
        ls_track_add(options->track, &span);
        if (status != LS_OK) break;
        step(reader, &epoch, &batch);
        pthread_mutex_lock(&reader->mutex);
        reader->filled++;
        pthread_cond_signal(&reader->changed);
        pthread_mutex_unlock(&reader->mutex);
    }
    pthread_mutex_lock(&reader->mutex);
    reader->ended = true;
    reader->status = status;
    reader->error = error;
    pthread_cond_signal(&reader->changed);
    pthread_mutex_unlock(&reader->mutex);
    return NULL;
}

ls_status ls_reader_new(ls_reader **out, const ls_reader_options *options, ls_error *error)
{
    ls_reader *reader = NULL;
    ls_status status;
    LS_TRY(LS_NEW(reader, 1, "batch reader", error));
    reader->options = *options;
    reader->epoch = options->epoch;
    reader->batch = options->batch;
    /* A position after the last batch of an epoch is the start of the next one. */
    if (reader->batch >= ls_sampler_batches(options->sampler)) {
        reader->batch = 0;
        reader->epoch++;
    }
    reader->options.epoch = reader->last_epoch = reader->epoch;
    reader->options.batch = reader->last_batch = reader->batch;
    pthread_mutex_init(&reader->mutex, NULL);
    pthread_cond_init(&reader->changed, NULL);
    int32_t capacity = ls_sampler_capacity(options->sampler);
    LS_TRY_GOTO(status, LS_NEW(reader->rows, capacity, "batch reader", error), fail);
    for (int at = 0; at < READER_BUFFERS; at++)
        LS_TRY_GOTO(status,
                    ls_batch_buffer_new(&reader->buffers[at], options->dataset, capacity, error),
                    fail);
    if (ls_call_thread(&reader->thread, read_ahead, reader) != 0) {
        status = ls_fail(error, LS_NO_MEMORY, "cannot start the thread that reads batches ahead");
        goto fail;
    }
    reader->started = true;
    *out = reader;
    return LS_OK;
fail:
    ls_reader_free(reader);
    return status;
}

void ls_reader_free(ls_reader *reader)
{
    if (!reader) return;
    if (reader->started) {
        pthread_mutex_lock(&reader->mutex);
        reader->stopping = true;
        pthread_cond_signal(&reader->changed);
        pthread_mutex_unlock(&reader->mutex);
        pthread_join(reader->thread, NULL);
    }
    pthread_cond_destroy(&reader->changed);
    pthread_mutex_destroy(&reader->mutex);
    for (int at = 0; at < READER_BUFFERS; at++)
        ls_batch_buffer_free(reader->buffers[at]);
    ls_free(reader->rows);
    ls_free(reader);
}

ls_status ls_reader_next(ls_reader *reader, const ls_batch **batch, bool *more, ls_error *error)
{
    ls_status status = LS_OK;
    *batch = NULL;
    *more = false;
    pthread_mutex_lock(&reader->mutex);
    if (reader->holding) {
        reader->holding = false;
        reader->returned++;
        pthread_cond_signal(&reader->changed);
    }
    if (reader->filled == reader->returned && !reader->ended) {
        double start = ls_seconds();
        while (reader->filled == reader->returned && !reader->ended)
            pthread_cond_wait(&reader->changed, &reader->mutex);
        reader->waited += ls_seconds() - start;
    }
    if (reader->filled > reader->returned) {
        int64_t number = reader->returned % READER_BUFFERS;
        *batch = ls_batch_buffer_batch(reader->buffers[number]);
        *more = true;
        reader->holding = true;
        reader->last_epoch = reader->epoch;
        reader->last_batch = reader->batch;
        step(reader, &reader->epoch, &reader->batch);
    } else if (reader->status != LS_OK) {
        status = reader->status;
        if (error) *error = reader->error;
    }
    pthread_mutex_unlock(&reader->mutex);
    return status;
}

void ls_reader_position(const ls_reader *reader, int64_t *epoch, int64_t *batch)
{
    *epoch = reader->last_epoch;
    *batch = reader->last_batch;
}

double ls_reader_waited_seconds(const ls_reader *reader)
{
    return reader->waited;
}

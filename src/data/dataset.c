#include "data/dataset.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "data/dataset_internal.h"
#include "data/sort.h"

/* Neighbouring rows are read at once up to this many values. */
enum { STAGING_VALUES = 1 << 15 };

struct ls_batch_buffer {
    ls_batch batch;
    int64_t samples, tokens; /* capacities */
    int32_t *offsets, *ids, *labels;
    uint8_t *types;
    uint32_t *sample_ids;
    uint64_t *by_row; /* [samples] row << 32 | index in the batch */
    int32_t *staging; /* [staging_values] rows as they lie in the cache */
    size_t staging_values;
};

void ls_dataset_free(ls_dataset *dataset)
{
    if (!dataset) return;
    ls_token_cache_close(&dataset->cache);
    ls_free(dataset->path);
    ls_free(dataset->text_column);
    ls_free(dataset->text_pair_column);
    ls_free(dataset->label_column);
    ls_free(dataset->lengths);
    ls_free(dataset->classes);
    ls_free(dataset->marks);
    ls_free(dataset);
}

uint32_t ls_dataset_count(const ls_dataset *dataset)
{
    return (uint32_t)dataset->count;
}

uint64_t ls_dataset_skipped(const ls_dataset *dataset)
{
    return dataset->skipped;
}

int32_t ls_dataset_length(const ls_dataset *dataset, uint32_t row)
{
    return dataset->lengths[row];
}

int32_t ls_dataset_label(const ls_dataset *dataset, uint32_t row)
{
    return dataset->classes[row];
}

const uint16_t *ls_dataset_lengths(const ls_dataset *dataset)
{
    return dataset->lengths;
}

int32_t ls_dataset_longest(const ls_dataset *dataset)
{
    return dataset->longest;
}

uint64_t ls_dataset_tokens(const ls_dataset *dataset)
{
    return dataset->tokens;
}

const char *ls_dataset_path(const ls_dataset *dataset)
{
    return dataset->path;
}

const char *ls_dataset_text_column(const ls_dataset *dataset)
{
    return dataset->text_column;
}

const char *ls_dataset_text_pair_column(const ls_dataset *dataset)
{
    return dataset->text_pair_column;
}

const char *ls_dataset_label_column(const ls_dataset *dataset)
{
    return dataset->label_column;
}

void ls_dataset_digest(const ls_dataset *dataset, char text[LS_DIGEST_CHARACTERS])
{
    snprintf(text, LS_DIGEST_CHARACTERS, "%016llx%016llx", (unsigned long long)dataset->digest[0],
             (unsigned long long)dataset->digest[1]);
}

ls_status ls_batch_buffer_new(ls_batch_buffer **out, const ls_dataset *dataset, int64_t samples,
                              ls_error *error)
{
    const char *what = "batch buffer";
    ls_batch_buffer *buffer = NULL;
    ls_status status;
    if (samples > (int64_t)dataset->count) samples = (int64_t)dataset->count;
    uint64_t tokens = (uint64_t)samples * (uint64_t)dataset->longest;
    if (tokens > dataset->tokens) tokens = dataset->tokens;
    if (tokens > INT32_MAX)
        return ls_fail(error, LS_USAGE,
                       "a batch of %lld samples can have %llu tokens, the limit is %d: use a "
                       "smaller batch or maximum length",
                       (long long)samples, (unsigned long long)tokens, INT32_MAX);
    LS_TRY(LS_NEW(buffer, 1, what, error));
    buffer->samples = samples;
    buffer->tokens = (int64_t)tokens;
    buffer->staging_values = STAGING_VALUES;
    if (buffer->staging_values < (size_t)dataset->longest + 1)
        buffer->staging_values = (size_t)dataset->longest + 1;
    LS_TRY_GOTO(status, LS_NEW(buffer->offsets, samples + 1, what, error), fail);
    LS_TRY_GOTO(status, LS_NEW(buffer->ids, tokens, what, error), fail);
    LS_TRY_GOTO(status, LS_NEW(buffer->types, tokens, what, error), fail);
    LS_TRY_GOTO(status, LS_NEW(buffer->sample_ids, samples, what, error), fail);
    LS_TRY_GOTO(status, LS_NEW(buffer->labels, samples, what, error), fail);
    LS_TRY_GOTO(status, LS_NEW(buffer->by_row, samples, what, error), fail);
    LS_TRY_GOTO(status, LS_NEW(buffer->staging, buffer->staging_values, what, error), fail);
    buffer->batch = (ls_batch){
        .offsets = buffer->offsets,
        .ids = buffer->ids,
        .types = buffer->types,
        .sample_ids = buffer->sample_ids,
        .labels = buffer->labels,
    };
    *out = buffer;
    return LS_OK;
fail:
    ls_batch_buffer_free(buffer);
    return status;
}

void ls_batch_buffer_free(ls_batch_buffer *buffer)
{
    if (!buffer) return;
    ls_free(buffer->offsets);
    ls_free(buffer->ids);
    ls_free(buffer->types);
    ls_free(buffer->sample_ids);
    ls_free(buffer->labels);
    ls_free(buffer->by_row);
    ls_free(buffer->staging);
    ls_free(buffer);
}

const ls_batch *ls_batch_buffer_batch(const ls_batch_buffer *buffer)
{
    return &buffer->batch;
}

/* Where a row lies in the cache, in values. */
static uint64_t position_of(const ls_dataset *dataset, uint32_t row)
{
    uint64_t position = dataset->marks[row / ROWS_A_MARK];
    for (uint32_t before = row - row % ROWS_A_MARK; before < row; before++)
        position += (uint64_t)dataset->lengths[before] + 1;
    return position;
}

/* Put one row, as it lies in the cache, into its place in the batch. Values are checked, since ids
 * are used as indices and a disk may fail. */
static ls_status place_row(const ls_dataset *dataset, const int32_t *values, uint32_t row,
                           uint32_t at, ls_batch_buffer *buffer, ls_error *error)
{
    int32_t length = dataset->lengths[row], first_segment = values[0];
    int32_t *ids = buffer->ids + buffer->offsets[at];
    uint8_t *types = buffer->types + buffer->offsets[at];
    bool damaged = first_segment < 0 || first_segment > length;
    for (int32_t token = 0; token < length; token++) {
        ids[token] = values[token + 1];
        types[token] = token >= first_segment;
        damaged |= (uint32_t)ids[token] >= (uint32_t)dataset->vocabulary;
    }
    if (!damaged) return LS_OK;
    return ls_fail(error, LS_IO,
                   "%s: the token cache came back changed at row %u: the disk fails, or another "
                   "process writes to it",
                   dataset->cache.path, row);
}

ls_status ls_dataset_read_rows(const ls_dataset *dataset, const uint32_t *rows, int32_t count,
                               ls_batch_buffer *buffer, ls_error *error)
{
    buffer->batch.samples = count;
    for (int32_t at = 0; at < count; at++) {
        buffer->offsets[at + 1] = buffer->offsets[at] + dataset->lengths[rows[at]];
        buffer->sample_ids[at] = rows[at];
        buffer->labels[at] = dataset->classes[rows[at]];
        buffer->by_row[at] = (uint64_t)rows[at] << 32 | (uint32_t)at;
    }
    ls_sort_keys(buffer->by_row, (size_t)count);

    for (int32_t first = 0, end; first < count; first = end) {
        uint32_t first_row = (uint32_t)(buffer->by_row[first] >> 32), last_row = first_row;
        size_t values = (size_t)dataset->lengths[first_row] + 1;
        for (end = first + 1; end < count; end++) {
            uint32_t row = (uint32_t)(buffer->by_row[end] >> 32);
            size_t more = (size_t)dataset->lengths[row] + 1;
            if (row != last_row + 1 || values + more > buffer->staging_values) break;
            values += more;
            last_row = row;
        }
        LS_TRY(ls_token_cache_read(&dataset->cache, position_of(dataset, first_row),
                                   buffer->staging, values, error));
        const int32_t *from = buffer->staging;
        for (int32_t at = first; at < end; at++) {
            uint32_t row = (uint32_t)(buffer->by_row[at] >> 32);
            LS_TRY(place_row(dataset, from, row, (uint32_t)buffer->by_row[at], buffer, error));
            from += dataset->lengths[row] + 1;
        }
    }
    return LS_OK;
}

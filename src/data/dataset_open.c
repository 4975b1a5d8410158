/* Making a dataset: one stream over the file; chunks of rows are tokenised on all threads, then
 * appended to the cache in file order. */
#define XXH_STATIC_LINKING_ONLY /* the hash state lies in our own memory */

#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "data/dataset_internal.h"

/* A chunk ends at the first of the two limits. A part is what one thread takes at a time. */
enum { CHUNK_ROWS = 1024, CHUNK_BYTES = 1 << 20, PART_ROWS = 16 };
enum { CHUNK_PARTS = CHUNK_ROWS / PART_ROWS };
enum { SHOWN_BAD_ROWS = 3 };
static const double progress_seconds = 0.2;

typedef struct pending_row {
    size_t text, text_length, pair_length; /* text: offset in the chunk's bytes; pair follows it */
    bool has_pair;
    int16_t class_id;
    uint16_t length; /* tokens; filled by the part */
    uint64_t line;
} pending_row;

/* A part's rows as they will lie in the cache. */
typedef struct part_output {
    int32_t *values;
    size_t used, capacity;
    ls_status status;
    ls_error error;
} part_output;

typedef struct opening {
    const ls_dataset_options *options;
    ls_dataset *dataset;
    ls_table *table;
    ls_label_reader *labels;
    ls_tokenizer_scratch **scratches; /* [thread_count] */
    int thread_count;
    XXH3_state_t *hash;
    double reported; /* when progress was told last */
    uint64_t bytes;  /* of the file that lie before the rows to come */

    char *text; /* of the chunk */
    size_t text_used, text_capacity;
    pending_row *rows; /* [CHUNK_ROWS] */
    int row_count;
    part_output *parts; /* [CHUNK_PARTS] */
} opening;

static ls_status encode_row(const opening *work, pending_row *row, ls_tokenizer_scratch *scratch,
                            part_output *part)
{
    const ls_dataset_options *options = work->options;
    ls_error *error = &part->error;
    ls_encoding encoding;
    const char *text = work->text + row->text;
    LS_TRY(ls_tokenizer_encode(options->tokenizer, scratch, text, row->text_length,
                               row->has_pair ? text + row->text_length : NULL, row->pair_length,
                               options->max_length, &encoding, error));
    size_t length = (size_t)encoding.length;
    int first_segment = 0;
    while (first_segment < encoding.length && encoding.types[first_segment] == 0)
        first_segment++;
    for (int at = first_segment; at < encoding.length; at++)
        if (encoding.types[at] != 1)
            return ls_fail(error, LS_UNSUPPORTED,
                           "%s:%llu: the tokenizer gives token types other than 0s, then 1s",
                           options->path, (unsigned long long)row->line);
    LS_TRY(LS_GROW(part->values, part->capacity, part->used + length + 1, "token ids", error));
    part->values[part->used] = first_segment;
    memcpy(part->values + part->used + 1, encoding.ids, length * sizeof *encoding.ids);
    part->used += length + 1;
    row->length = (uint16_t)length;
    return LS_OK;
}

static void encode_part(void *context, int64_t number, int thread)
{
    opening *work = context;
    part_output *part = &work->parts[number];
    int row = (int)number * PART_ROWS, end = row + PART_ROWS;
    part->used = 0;
    part->status = LS_OK;
    for (; row < end && row < work->row_count && part->status == LS_OK; row++)
        part->status = encode_row(work, &work->rows[row], work->scratches[thread], part);
}

static ls_status keep_row(ls_dataset *dataset, const pending_row *row, ls_error *error)
{
    size_t count = dataset->count;
    if (count == UINT32_MAX)
        return ls_fail(error, LS_UNSUPPORTED, "%s:%llu: more than %u rows: split the file",
                       dataset->path, (unsigned long long)row->line, UINT32_MAX);
    LS_TRY(LS_GROW(dataset->lengths, dataset->length_capacity, count + 1, "row lengths", error));
    LS_TRY(LS_GROW(dataset->classes, dataset->class_capacity, count + 1, "row labels", error));
    if (count % ROWS_A_MARK == 0) {
        LS_TRY(LS_GROW(dataset->marks, dataset->mark_capacity, count / ROWS_A_MARK + 1,
                       "row positions", error));
        dataset->marks[count / ROWS_A_MARK] = dataset->tokens + count;
    }
    dataset->lengths[count] = row->length;
    dataset->classes[count] = row->class_id;
    dataset->count++;
    dataset->tokens += row->length;
    if (row->length > dataset->longest) dataset->longest = row->length;
    return LS_OK;
}

static ls_status report_progress(opening *work, bool last, ls_error *error)
{
    const ls_dataset_options *options = work->options;
    double now = ls_seconds();
    if (!options->progress || (!last && now - work->reported < progress_seconds)) return LS_OK;
    work->reported = now;
    uint64_t total = ls_table_bytes(work->table), done = last ? total : work->bytes;
    if (options->progress(options->context, work->dataset->count, done, total)) return LS_OK;
    return ls_fail(error, LS_INTERRUPTED, "%s: reading was stopped", options->path);
}

/* Tokenise the chunk and append it to the dataset. */
static ls_status finish_chunk(opening *work, ls_error *error)
{
    ls_dataset *dataset = work->dataset;
    int parts = (work->row_count + PART_ROWS - 1) / PART_ROWS;
    if (work->options->threads)
        ls_threads_run(work->options->threads, parts, encode_part, work);
    else
        for (int part = 0; part < parts; part++)
            encode_part(work, part, 0);
    for (int number = 0; number < parts; number++) {
        const part_output *part = &work->parts[number];
        if (part->status != LS_OK) {
            if (error) *error = part->error;
            return part->status;
        }
        XXH3_128bits_update(work->hash, part->values, part->used * sizeof *part->values);
        LS_TRY(ls_token_cache_append(&dataset->cache, part->values, part->used, error));
    }
    for (int row = 0; row < work->row_count; row++)
        LS_TRY(keep_row(dataset, &work->rows[row], error));
    work->row_count = 0;
    work->text_used = 0;
    return report_progress(work, false, error);
}

static ls_status add_row(opening *work, const ls_row *row, ls_error *error)
{
    pending_row *pending = &work->rows[work->row_count];
    *pending = (pending_row){
        .text = work->text_used,
        .text_length = row->text_length,
        .pair_length = row->pair_length,
        .has_pair = row->pair != NULL,
        .class_id = -1,
        .line = row->line,
    };
    if (work->labels && row->has_label && (row->label_length || work->options->need_labels))
        LS_TRY(ls_label_reader_class(work->labels, row->label, row->label_length, row->line,
                                     &pending->class_id, error));
    size_t needed = work->text_used + row->text_length + row->pair_length;
    LS_TRY(LS_GROW(work->text, work->text_capacity, needed, "a chunk of rows", error));
    memcpy(work->text + pending->text, row->text, row->text_length);
    if (row->pair)
        memcpy(work->text + pending->text + row->text_length, row->pair, row->pair_length);
    work->text_used = needed;
    work->row_count++;
    return LS_OK;
}

static ls_status read_rows(opening *work, ls_error *error)
{
    ls_dataset *dataset = work->dataset;
    ls_row row;
    for (bool more = true; more;) {
        ls_error bad = {0};
        ls_status status = ls_table_next(work->table, &row, &more, &bad);
        if (status == LS_INVALID && work->options->skip_bad_rows &&
            ls_table_can_skip(work->table)) {
            more = true;
            if (dataset->skipped++ < SHOWN_BAD_ROWS && work->options->left_out)
                work->options->left_out(work->options->context, bad.text);
            continue;
        }
        if (status != LS_OK) {
            if (error) *error = bad;
            return status;
        }
        if (!more) break;
        LS_TRY(add_row(work, &row, error));
        work->bytes = row.offset + row.bytes;
        if (work->row_count == CHUNK_ROWS || work->text_used >= CHUNK_BYTES)
            LS_TRY(finish_chunk(work, error));
    }
    return finish_chunk(work, error);
}

static ls_status copy_optional(char **out, const char *text, ls_error *error)
{
    return text ? ls_copy_string(out, text, error) : LS_OK;
}

static ls_status start(opening *work, ls_error *error)
{
    const ls_dataset_options *options = work->options;
    ls_dataset *dataset = work->dataset;
    ls_table_options table_options = {
        .format = options->format,
        .text_column = options->text_column,
        .text_pair_column = options->text_pair_column,
        .label_column = options->label_column,
        .need_label = options->need_labels,
    };
    LS_TRY(ls_table_open(&work->table, options->path, &table_options, error));
    LS_TRY(ls_copy_string(&dataset->path, options->path, error));
    LS_TRY(copy_optional(&dataset->text_column, ls_table_text_column(work->table), error));
    LS_TRY(
        copy_optional(&dataset->text_pair_column, ls_table_text_pair_column(work->table), error));
    LS_TRY(copy_optional(&dataset->label_column, ls_table_label_column(work->table), error));
    LS_TRY(ls_token_cache_create(&dataset->cache, options->cache_folder, error));
    dataset->vocabulary = ls_tokenizer_vocabulary_size(options->tokenizer);
    if (options->labels)
        LS_TRY(ls_label_reader_new(&work->labels, options->labels, options->path, error));
    work->thread_count = options->threads ? ls_threads_count(options->threads) : 1;
    LS_TRY(LS_NEW(work->scratches, work->thread_count, "tokenizer scratch", error));
    for (int thread = 0; thread < work->thread_count; thread++)
        LS_TRY(ls_tokenizer_scratch_new(&work->scratches[thread], error));
    LS_TRY(LS_NEW(work->rows, CHUNK_ROWS, "a chunk of rows", error));
    LS_TRY(LS_NEW(work->parts, CHUNK_PARTS, "a chunk of rows", error));
    LS_TRY(LS_NEW(work->hash, 1, "a hash", error));
    XXH3_128bits_reset(work->hash);
    work->reported = ls_seconds();
    return LS_OK;
}

static ls_status finish(opening *work, ls_error *error)
{
    ls_dataset *dataset = work->dataset;
    if (dataset->count == 0)
        return ls_fail(error, LS_INVALID, "%s: no good row: all %llu were left out as bad",
                       dataset->path, (unsigned long long)dataset->skipped);
    LS_TRY(ls_token_cache_finish(&dataset->cache, error));
    LS_TRY(report_progress(work, true, error));
    /* Last of what may fail, so that a failed open does not leave labels behind. */
    if (work->labels)
        LS_TRY(ls_label_reader_finish(work->labels, dataset->classes, dataset->count, error));
    XXH3_128bits_update(work->hash, dataset->lengths, dataset->count * sizeof *dataset->lengths);
    XXH3_128bits_update(work->hash, dataset->classes, dataset->count * sizeof *dataset->classes);
    XXH128_hash_t digest = XXH3_128bits_digest(work->hash);
    dataset->digest[0] = digest.high64;
    dataset->digest[1] = digest.low64;
    return LS_OK;
}

static void opening_deinit(opening *work)
{
    for (int thread = 0; work->scratches && thread < work->thread_count; thread++)
        ls_tokenizer_scratch_free(work->scratches[thread]);
    for (int part = 0; work->parts && part < CHUNK_PARTS; part++)
        ls_free(work->parts[part].values);
    ls_table_free(work->table);
    ls_label_reader_free(work->labels);
    ls_free(work->scratches);
    ls_free(work->hash);
    ls_free(work->text);
    ls_free(work->rows);
    ls_free(work->parts);
}

ls_status ls_dataset_open(ls_dataset **out, const ls_dataset_options *options, ls_error *error)
{
    opening work = {.options = options};
    ls_status status;
    if (options->max_length < 1 || options->max_length > LS_DATASET_MAX_LENGTH)
        return ls_fail(error, LS_USAGE, "maximum length %d: must be 1 to %d tokens",
                       options->max_length, LS_DATASET_MAX_LENGTH);
    if (options->need_labels && !options->labels)
        return ls_fail(error, LS_USAGE, "%s: labels are needed, but no label set is given",
                       options->path);
    LS_TRY(LS_NEW(work.dataset, 1, "dataset", error));
    work.dataset->cache.descriptor = -1;
    LS_TRY_GOTO(status, start(&work, error), done);
    LS_TRY_GOTO(status, read_rows(&work, error), done);
    LS_TRY_GOTO(status, finish(&work, error), done);
    *out = work.dataset;
    work.dataset = NULL;
done:
    opening_deinit(&work);
    ls_dataset_free(work.dataset);
    return status;
}

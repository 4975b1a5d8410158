/* A labelled text file, tokenised once: ids lie in a cache file, lengths and labels in memory
 * (about 4 bytes a row), whatever the size of the file. Nothing is mapped. */
#ifndef LS_DATA_DATASET_H
#define LS_DATA_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/threads.h"
#include "data/batch.h"
#include "data/labels.h"
#include "formats/table.h"
#include "tokenizer/tokenizer.h"

enum { LS_DATASET_MAX_LENGTH = 65535 }; /* of a row, in tokens */

/* Called by the thread that opens, a few times a second at most. `bytes` of `total_bytes` of the
 * file are done. False stops: the open fails with LS_INTERRUPTED. */
typedef bool (*ls_dataset_progress)(void *context, uint64_t rows, uint64_t bytes,
                                    uint64_t total_bytes);
/* The same thread: what is wrong with a row that is left out, of the first few of them. */
typedef void (*ls_dataset_left_out)(void *context, const char *why);

/* Strings are used during the open only. */
typedef struct ls_dataset_options {
    const char *path;
    ls_table_format format;                                    /* 0: by extension */
    const char *text_column, *text_pair_column, *label_column; /* NULL: guessed, see table.h */
    const ls_tokenizer *tokenizer;                             /* used during the open only */
    int max_length;     /* 1 .. LS_DATASET_MAX_LENGTH tokens, longer rows are truncated */
    ls_labels *labels;  /* NULL: labels are not read; empty: filled from this file; filled: this
                           file's labels must be in it. Not kept after the open. */
    bool need_labels;   /* a row without label is a bad row (else its class is -1) */
    bool skip_bad_rows; /* leave bad rows (see ls_table_next) out and count them. A label that is
                           not in `labels` is an error all the same: leaving such rows out would
                           flatter every figure */
    const char *cache_folder; /* an existing folder with room for 4 bytes a token; the file in it
                                 has no name once it is open, so that nothing stays after a crash */
    ls_threads *threads;      /* NULL: the caller's thread alone. Never changes a bit */
    ls_dataset_progress progress; /* may be NULL */
    ls_dataset_left_out left_out; /* may be NULL */
    void *context;                /* of both */
} ls_dataset_options;

typedef struct ls_dataset ls_dataset;

/* Reads the whole file. A bad row is LS_INVALID, "FILE:LINE: what; what to do"; so is a file
 * without a good row. A full disk is LS_IO naming the cache file. */
ls_status ls_dataset_open(ls_dataset **out, const ls_dataset_options *options,
                          ls_error *error) LS_MUST_CHECK;
void ls_dataset_free(ls_dataset *dataset); /* NULL is allowed */

/* Rows are the file's good rows in its order, numbered from 0. */
uint32_t ls_dataset_count(const ls_dataset *dataset);
uint64_t ls_dataset_skipped(const ls_dataset *dataset);             /* bad rows left out */
int32_t ls_dataset_length(const ls_dataset *dataset, uint32_t row); /* tokens */
int32_t ls_dataset_label(const ls_dataset *dataset, uint32_t row);  /* class, -1: none */
const uint16_t *ls_dataset_lengths(const ls_dataset *dataset);      /* [count], for the sampler */
int32_t ls_dataset_longest(const ls_dataset *dataset);              /* tokens of the longest row */
uint64_t ls_dataset_tokens(const ls_dataset *dataset);              /* of all rows */

/* As given. The columns in use, NULL where there is none. Live as long as the dataset. */
const char *ls_dataset_path(const ls_dataset *dataset);
const char *ls_dataset_text_column(const ls_dataset *dataset);
const char *ls_dataset_text_pair_column(const ls_dataset *dataset);
const char *ls_dataset_label_column(const ls_dataset *dataset);

/* XXH3-128 over lengths, ids, types and classes of all rows in order, as 32 hexadecimal digits:
 * two datasets with this digest train alike. Little-endian machines only, as all of Lockstep. */
enum { LS_DIGEST_CHARACTERS = 33 };
void ls_dataset_digest(const ls_dataset *dataset, char text[LS_DIGEST_CHARACTERS]);

/* Memory for one batch of up to `samples` rows (no more than the dataset has count). Its token
 * capacity is samples x longest row, or all tokens if that is less. */
typedef struct ls_batch_buffer ls_batch_buffer;
ls_status ls_batch_buffer_new(ls_batch_buffer **out, const ls_dataset *dataset, int64_t samples,
                              ls_error *error) LS_MUST_CHECK;
void ls_batch_buffer_free(ls_batch_buffer *buffer); /* NULL is allowed */

/* Fill `buffer` with `count` rows in the order given. Allocates nothing; safe to call from several
 * threads, each with its own buffer. Fails with LS_IO only. */
ls_status ls_dataset_read_rows(const ls_dataset *dataset, const uint32_t *rows, int32_t count,
                               ls_batch_buffer *buffer, ls_error *error) LS_MUST_CHECK;
/* What was read last; valid until the next read. */
const ls_batch *ls_batch_buffer_batch(const ls_batch_buffer *buffer);

#endif

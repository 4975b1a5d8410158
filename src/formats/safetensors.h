/* One safetensors file: reading with every check of the format, and writing.
 *
 * Layout: 8 bytes little-endian header length N; N bytes of JSON, name -> {dtype, shape,
 * data_offsets [begin, end) from the end of the header}, maybe "__metadata__" -> {text: text}; then
 * the data, row-major, little-endian, without holes. Source: the format section of the README of
 * huggingface/safetensors, and its checks in safetensors/src/tensor.rs. */
#ifndef LS_FORMATS_SAFETENSORS_H
#define LS_FORMATS_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"

enum { LS_SAFETENSORS_MAX_RANK = 8, LS_SAFETENSORS_MAX_HEADER = 100000000 };

/* Name in files and bytes an element, in the order in which the official serializer ranks dtypes
 * (it writes the highest first, so that each tensor is aligned). */
#define LS_SAFETENSORS_DTYPES(X)                                                                   \
    X(BOOL, 1)                                                                                     \
    X(U8, 1)                                                                                       \
    X(I8, 1)                                                                                       \
    X(F8_E5M2, 1)                                                                                  \
    X(F8_E4M3, 1)                                                                                  \
    X(F8_E8M0, 1)                                                                                  \
    X(I16, 2)                                                                                      \
    X(U16, 2)                                                                                      \
    X(F16, 2)                                                                                      \
    X(BF16, 2)                                                                                     \
    X(I32, 4)                                                                                      \
    X(U32, 4)                                                                                      \
    X(F32, 4)                                                                                      \
    X(C64, 8)                                                                                      \
    X(F64, 8)                                                                                      \
    X(I64, 8)                                                                                      \
    X(U64, 8)

typedef enum ls_safetensors_dtype {
#define LS_SAFETENSORS_ENUM(name, bytes) LS_SAFETENSORS_##name,
    LS_SAFETENSORS_DTYPES(LS_SAFETENSORS_ENUM)
#undef LS_SAFETENSORS_ENUM
        LS_SAFETENSORS_DTYPE_COUNT
} ls_safetensors_dtype;

const char *ls_safetensors_dtype_name(ls_safetensors_dtype dtype);
size_t ls_safetensors_dtype_bytes(ls_safetensors_dtype dtype);

typedef struct ls_safetensors_tensor {
    const char *name; /* UTF-8; lives as long as the reader */
    ls_safetensors_dtype dtype;
    int rank; /* 0 is a scalar */
    int64_t shape[LS_SAFETENSORS_MAX_RANK];
    int64_t elements; /* may be 0 */
    uint64_t bytes;
    uint64_t offset; /* of the first byte, from the start of the file */
} ls_safetensors_tensor;

/* "[2, 3]" into `into`, cut if too long; returns `into`. 200 bytes hold every shape. */
const char *ls_safetensors_shape_text(const ls_safetensors_tensor *tensor, char *into,
                                      size_t bytes);

/* --- reading --------------------------------------------------------------------------------- */

/* Holds the file open; reads only with pread, so threads may read at the same time. */
typedef struct ls_safetensors ls_safetensors;

/* Reads and checks the header. LS_INVALID (LS_UNSUPPORTED for a dtype or rank that exists but is
 * not handled) names the file and the tensor or offset. */
ls_status ls_safetensors_open(ls_safetensors **out, const char *path,
                              ls_error *error) LS_MUST_CHECK;
void ls_safetensors_free(ls_safetensors *file); /* NULL is allowed */

const char *ls_safetensors_path(const ls_safetensors *file);
size_t ls_safetensors_count(const ls_safetensors *file);
/* The tensors in the order of their names (bytes compared). */
const ls_safetensors_tensor *ls_safetensors_at(const ls_safetensors *file, size_t index);
/* NULL when there is none. */
const ls_safetensors_tensor *ls_safetensors_find(const ls_safetensors *file, const char *name);
/* The value of a key of __metadata__, or NULL. */
const char *ls_safetensors_metadata(const ls_safetensors *file, const char *key);

/* Elements [first, first + count) as fp32 into `into`: F32 as they are, F16 and BF16 exactly, F64
 * rounded to nearest; signed zeros, denormals, infinities and NaNs are kept. Other dtypes are
 * LS_UNSUPPORTED. Allocates nothing. */
ls_status ls_safetensors_read_float(const ls_safetensors *file, const ls_safetensors_tensor *tensor,
                                    int64_t first, int64_t count, float *into,
                                    ls_error *error) LS_MUST_CHECK;
/* The elements' bytes as they stand in the file. */
ls_status ls_safetensors_read_raw(const ls_safetensors *file, const ls_safetensors_tensor *tensor,
                                  int64_t first, int64_t count, void *into,
                                  ls_error *error) LS_MUST_CHECK;

/* --- writing --------------------------------------------------------------------------------- */

typedef struct ls_safetensors_entry {
    const char *name; /* UTF-8, borrowed until the writer is made */
    ls_safetensors_dtype dtype;
    int rank;
    int64_t shape[LS_SAFETENSORS_MAX_RANK];
} ls_safetensors_entry;

/* Streams a file: the header is written first, then the tensors' bytes in the file's order (the
 * official serializer's: dtype rank falling, then name). Nothing is visible at `path` before finish
 * (see ls_writer). The metadata is {"format": "pt"}, which Transformers asks for. */
typedef struct ls_safetensors_writer ls_safetensors_writer;

ls_status ls_safetensors_writer_new(ls_safetensors_writer **out, const char *path,
                                    const ls_safetensors_entry *entries, size_t count,
                                    ls_error *error) LS_MUST_CHECK;
/* Which entry (an index into `entries`) is to be written next; false when all are. Entries of zero
 * bytes are passed over. */
bool ls_safetensors_writer_next(const ls_safetensors_writer *writer, size_t *entry);
/* The next bytes of `entry`, which must be the one that `next` names; in one piece or in several.
 */
ls_status ls_safetensors_writer_write(ls_safetensors_writer *writer, size_t entry,
                                      const void *bytes, size_t count,
                                      ls_error *error) LS_MUST_CHECK;
/* Fails with LS_INTERNAL if bytes are missing. Free the writer in any case. */
ls_status ls_safetensors_writer_finish(ls_safetensors_writer *writer,
                                       ls_error *error) LS_MUST_CHECK;
void ls_safetensors_writer_free(ls_safetensors_writer *writer); /* unfinished: leaves no file */

/* Bytes of the whole file that the writer makes, header included: to check for space beforehand. */
uint64_t ls_safetensors_writer_bytes(const ls_safetensors_writer *writer);

/* The same file for those who write its tensors in any order, in parts, at their places. */
typedef struct ls_safetensors_layout {
    ls_text header;   /* what the file begins with */
    uint64_t *offset; /* [count] of each entry's bytes, from the start of the file */
    uint64_t bytes;   /* of the file */
} ls_safetensors_layout;
/* `path` is for error texts. */
ls_status ls_safetensors_layout_make(ls_safetensors_layout *layout, const char *path,
                                     const ls_safetensors_entry *entries, size_t count,
                                     ls_error *error) LS_MUST_CHECK;
void ls_safetensors_layout_deinit(ls_safetensors_layout *layout); /* safe on an all-zero one */

#endif

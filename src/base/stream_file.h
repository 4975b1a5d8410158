/* A file that is written from its first byte to its last, past the system's page cache where the
 * file system allows it: the caller fills one block while another is on its way to the disk, and
 * its checksum is made on the way. Costs a copy less than the page cache, and no read back. */
#ifndef LS_BASE_STREAM_FILE_H
#define LS_BASE_STREAM_FILE_H

#include <stddef.h>

#include "base/checksum.h"
#include "base/staging.h"
#include "base/status.h"

typedef struct ls_stream ls_stream;

/* Takes all the memory that it will need; for any number of files, one after the other. */
ls_status ls_stream_new(ls_stream **out, ls_error *error) LS_MUST_CHECK;
void ls_stream_free(ls_stream *stream); /* waits for what is on its way; NULL is allowed */

/* A thread for the writing; without one, or where the system gives none, the caller's does it. */
void ls_stream_start(ls_stream *stream);
void ls_stream_stop(ls_stream *stream); /* ends it; safe without one */

/* `file` is at its beginning and borrowed until ls_stream_end; so are `parts`, see
 * ls_checksum_begin. */
void ls_stream_begin(ls_stream *stream, const ls_sized_file *file, ls_checksum_part *parts,
                     size_t count);
/* Room for the next bytes, at least one and no more than `*bytes`, which is cut to what there is.
 * The room is aligned as the file's bytes are, up to a page. */
ls_status ls_stream_room(ls_stream *stream, void **room, size_t *bytes,
                         ls_error *error) LS_MUST_CHECK;
/* So many of them are filled. */
ls_status ls_stream_filled(ls_stream *stream, size_t bytes, ls_error *error) LS_MUST_CHECK;
/* The same by copying. */
ls_status ls_stream_write(ls_stream *stream, const void *bytes, size_t count,
                          ls_error *error) LS_MUST_CHECK;
/* Wait until everything is written, not synced. In any case; a failure before is told again. */
ls_status ls_stream_end(ls_stream *stream, char text[LS_CHECKSUM_CHARACTERS],
                        ls_error *error) LS_MUST_CHECK;

#endif

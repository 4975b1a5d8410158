#include "base/stream_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/calls.h"
#include "base/queue.h"

enum { PAGE = 4096, BLOCK_BYTES = 1 << 20, BLOCKS = 4 };

typedef struct block {
    unsigned char *data; /* [BLOCK_BYTES] */
    size_t bytes;
    uint64_t offset; /* in the file */
    long number;     /* in the queue, when it was last there */
} block;

struct ls_stream {
    unsigned char *memory;
    block blocks[BLOCKS];
    ls_checksum *checksum;
    ls_queue *queue;
    const ls_sized_file *file;
    int current;     /* the block that is being filled */
    uint64_t offset; /* where it begins */
    bool direct;     /* of the thread that writes */
    _Atomic ls_status status;
    ls_error error; /* of the first write that failed */
};

ls_status ls_stream_new(ls_stream **out, ls_error *error)
{
    ls_stream *stream = NULL;
    LS_TRY(LS_NEW(stream, 1, "writer of checkpoints", error));
    ls_status status = ls_checksum_new(&stream->checksum, error);
    if (status == LS_OK) {
        stream->memory = ls_allocate_pages((size_t)BLOCKS * BLOCK_BYTES, false);
        if (!stream->memory)
            status = ls_fail(error, LS_NO_MEMORY, "out of memory: %d bytes to write checkpoints",
                             BLOCKS * BLOCK_BYTES);
    }
    if (status != LS_OK) {
        ls_stream_free(stream);
        return status;
    }
    for (int i = 0; i < BLOCKS; i++)
        stream->blocks[i].data = stream->memory + (size_t)i * BLOCK_BYTES;
    *out = stream;
    return LS_OK;
}

void ls_stream_free(ls_stream *stream)
{
    if (!stream) return;
    ls_stream_stop(stream);
    ls_checksum_free(stream->checksum);
    if (stream->memory) ls_free_pages(stream->memory, (size_t)BLOCKS * BLOCK_BYTES);
    ls_free(stream);
}

/* --- writing a block -------------------------------------------------------------------------- */

static void set_direct(ls_stream *stream, bool direct)
{
    int descriptor = stream->file->descriptor, flags = fcntl(descriptor, F_GETFL);
    int wanted = direct ? flags | O_DIRECT : flags & ~O_DIRECT;
    stream->direct = flags >= 0 && fcntl(descriptor, F_SETFL, wanted) == 0 && direct;
}

/* How many of the block's bytes from `done` on go to the disk in one call: direct access takes
 * whole pages only, so a file's end takes the other way. */
static size_t next_bytes(ls_stream *stream, const block *b, size_t done)
{
    size_t left = b->bytes - done;
    if (!stream->direct) return left;
    size_t whole = done % PAGE ? 0 : left / PAGE * PAGE;
    if (whole) return whole;
    set_direct(stream, false);
    return left;
}

static ls_status write_block(ls_stream *stream, const block *b, ls_error *error)
{
    for (size_t done = 0; done < b->bytes;) {
        size_t now = next_bytes(stream, b, done);
        ssize_t wrote =
            ls_call_pwrite(stream->file->descriptor, b->data + done, now, b->offset + done);
        if (wrote < 0 && errno == EINTR) continue;
        /* That a file system takes no such blocks may show only here. */
        if (wrote < 0 && errno == EINVAL && stream->direct) {
            set_direct(stream, false);
            continue;
        }
        if (wrote < 0) {
            int code = errno;
            return ls_fail(error, LS_IO, "%s: cannot write: %s (errno %d)", stream->file->path,
                           strerror(code), code);
        }
        done += (size_t)wrote;
    }
    /* What lies in the page cache goes on its way at once; how that ends is told by fsync. */
    if (!stream->direct)
        (void)sync_file_range(stream->file->descriptor, (off_t)b->offset, (off_t)b->bytes,
                              SYNC_FILE_RANGE_WRITE);
    return LS_OK;
}

static void write_queued(void *context, const void *item)
{
    ls_stream *stream = context;
    if (atomic_load(&stream->status) != LS_OK) return;
    ls_status status = write_block(stream, item, &stream->error);
    atomic_store(&stream->status, status);
}

void ls_stream_start(ls_stream *stream)
{
    if (!stream->queue && ls_queue_new(&stream->queue, BLOCKS, write_queued, stream, NULL) != LS_OK)
        stream->queue = NULL;
}

void ls_stream_stop(ls_stream *stream)
{
    ls_queue_free(stream->queue);
    stream->queue = NULL;
    for (int i = 0; i < BLOCKS; i++)
        stream->blocks[i].number = 0;
}

/* --- filling blocks --------------------------------------------------------------------------- */

void ls_stream_begin(ls_stream *stream, const ls_sized_file *file, ls_checksum_part *parts,
                     size_t count)
{
    stream->file = file;
    stream->offset = 0;
    stream->blocks[stream->current].bytes = 0;
    atomic_store(&stream->status, LS_OK);
    ls_checksum_begin(stream->checksum, parts, count);
    set_direct(stream, true);
}

static ls_status told(ls_stream *stream, ls_error *error)
{
    ls_status status = atomic_load(&stream->status);
    if (status != LS_OK && error) *error = stream->error;
    return status;
}

/* Hand the block over and take the next one, once it is free. */
static void hand_over(ls_stream *stream)
{
    block *b = &stream->blocks[stream->current];
    b->offset = stream->offset;
    stream->offset += b->bytes;
    ls_checksum_add(stream->checksum, b->data, b->bytes);
    if (stream->queue)
        b->number = ls_queue_push(stream->queue, b);
    else
        write_queued(stream, b);
    stream->current = (stream->current + 1) % BLOCKS;
    block *next = &stream->blocks[stream->current];
    if (stream->queue && next->number) ls_queue_wait_for(stream->queue, next->number);
    next->bytes = 0;
}

ls_status ls_stream_room(ls_stream *stream, void **room, size_t *bytes, ls_error *error)
{
    const block *b = &stream->blocks[stream->current];
    size_t left = BLOCK_BYTES - b->bytes;
    *room = b->data + b->bytes;
    if (*bytes > left) *bytes = left;
    return told(stream, error);
}

ls_status ls_stream_filled(ls_stream *stream, size_t bytes, ls_error *error)
{
    block *b = &stream->blocks[stream->current];
    b->bytes += bytes;
    if (b->bytes == BLOCK_BYTES) hand_over(stream);
    return told(stream, error);
}

ls_status ls_stream_write(ls_stream *stream, const void *bytes, size_t count, ls_error *error)
{
    const unsigned char *from = bytes;
    while (count) {
        void *room;
        size_t now = count;
        LS_TRY(ls_stream_room(stream, &room, &now, error));
        memcpy(room, from, now);
        LS_TRY(ls_stream_filled(stream, now, error));
        from += now;
        count -= now;
    }
    return LS_OK;
}

ls_status ls_stream_end(ls_stream *stream, char text[LS_CHECKSUM_CHARACTERS], ls_error *error)
{
    if (stream->blocks[stream->current].bytes) hand_over(stream);
    if (stream->queue) ls_queue_wait(stream->queue);
    ls_checksum_end(stream->checksum, text);
    return told(stream, error);
}

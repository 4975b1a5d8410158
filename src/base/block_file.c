#include "base/block_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/files.h"

static ls_status fail(const char *folder, const char *what, int code, ls_error *error)
{
    return ls_fail(error, LS_IO, "%s: %s: %s", folder, what, strerror(code));
}

/* A file that has lost its name is closed, and so removed, by whatever ends the process. */
static ls_status create(ls_block_file *file, ls_error *error)
{
    char *path = NULL;
    LS_TRY(ls_path_join(&path, file->folder, "lockstep-offload-XXXXXX", error));
    ls_status status = LS_OK;
    file->descriptor = mkostemp(path, O_CLOEXEC);
    if (file->descriptor < 0)
        status = fail(file->folder, "cannot make a file there", errno, error);
    else if (unlink(path) != 0)
        status = fail(file->folder, "cannot unlink a file there", errno, error);
    ls_free(path);
    return status;
}

static ls_status take_room(ls_block_file *file, int64_t bytes, ls_error *error)
{
    struct stat taken;
    int code;
    do
        code = posix_fallocate(file->descriptor, 0, bytes);
    while (code == EINTR);
    if (code == 0 && fstat(file->descriptor, &taken) != 0) code = errno;
    file->bytes = code ? 0 : taken.st_size;
    if (code == 0) return LS_OK;
    return ls_fail(error, LS_IO, "%s: cannot take %lld bytes of room there: %s", file->folder,
                   (long long)bytes, strerror(code));
}

/* Whether the file system allows it is known only when it is tried. */
static ls_status choose_access(ls_block_file *file, ls_error *error)
{
    unsigned char *page = ls_allocate_pages(LS_BLOCK_PAGE, false);
    int flags = fcntl(file->descriptor, F_GETFL);
    if (!page)
        return ls_fail(error, LS_NO_MEMORY, "out of memory: %d bytes for a file's page",
                       LS_BLOCK_PAGE);
    file->direct = fcntl(file->descriptor, F_SETFL, flags | O_DIRECT) == 0 &&
                   pread(file->descriptor, page, LS_BLOCK_PAGE, 0) == LS_BLOCK_PAGE;
    if (!file->direct) fcntl(file->descriptor, F_SETFL, flags);
    ls_free_pages(page, LS_BLOCK_PAGE);
    return LS_OK;
}

ls_status ls_block_file_open(ls_block_file *file, const char *folder, int64_t bytes,
                             ls_error *error)
{
    ls_status status;
    *file = (ls_block_file){.descriptor = -1};
    LS_TRY_GOTO(status, ls_copy_string(&file->folder, folder, error), fail);
    LS_TRY_GOTO(status, create(file, error), fail);
    LS_TRY_GOTO(status, take_room(file, bytes, error), fail);
    LS_TRY_GOTO(status, choose_access(file, error), fail);
    return LS_OK;
fail:
    ls_block_file_close(file);
    return status;
}

void ls_block_file_close(ls_block_file *file)
{
    if (file->folder && file->descriptor >= 0) close(file->descriptor);
    ls_free(file->folder);
    *file = (ls_block_file){.descriptor = -1};
}

/* The page cache keeps nothing of what has passed. */
static void drop(const ls_block_file *file, int64_t bytes, int64_t offset, bool written)
{
    if (file->direct) return;
    const unsigned all =
        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    if (written) sync_file_range(file->descriptor, offset, bytes, all);
    posix_fadvise(file->descriptor, offset, bytes, POSIX_FADV_DONTNEED);
}

static ls_status copied_too_little(const ls_block_file *file, const char *what, ssize_t copied,
                                   int64_t offset, ls_error *error)
{
    return ls_fail(error, LS_IO, "%s: cannot %s offloaded memory at offset %lld: %s", file->folder,
                   what, (long long)offset, copied < 0 ? strerror(errno) : "the file ends");
}

ls_status ls_block_file_read(const ls_block_file *file, void *into, int64_t bytes, int64_t offset,
                             ls_error *error)
{
    for (int64_t done = 0; done < bytes;) {
        ssize_t got = pread(file->descriptor, (char *)into + done, (size_t)(bytes - done),
                            (off_t)(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return copied_too_little(file, "read", got, offset + done, error);
        done += got;
    }
    drop(file, bytes, offset, false);
    return LS_OK;
}

ls_status ls_block_file_write(const ls_block_file *file, const void *from, int64_t bytes,
                              int64_t offset, ls_error *error)
{
    for (int64_t done = 0; done < bytes;) {
        ssize_t put = pwrite(file->descriptor, (const char *)from + done, (size_t)(bytes - done),
                             (off_t)(offset + done));
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return copied_too_little(file, "write", put, offset + done, error);
        done += put;
    }
    drop(file, bytes, offset, true);
    return LS_OK;
}

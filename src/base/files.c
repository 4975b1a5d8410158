#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/calls.h"

enum { WRITER_BUFFER_BYTES = 1 << 16 };

static ls_status fail_errno(ls_error *error, const char *action, const char *path)
{
    int code = errno;
    return ls_fail(error, LS_IO, "%s: cannot %s: %s (errno %d)", path, action, strerror(code),
                   code);
}

ls_status ls_path_join(char **out, const char *folder, const char *name, ls_error *error)
{
    size_t length = strlen(folder), bytes = length + strlen(name) + 2;
    LS_TRY(ls_new((void **)out, bytes, 1, "path", error));
    const char *slash = length && folder[length - 1] == '/' ? "" : "/";
    snprintf(*out, bytes, "%s%s%s", folder, slash, name);
    return LS_OK;
}

bool ls_path_exists(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0;
}

bool ls_path_is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

ls_status ls_file_open(ls_file *file, const char *path, ls_error *error)
{
    struct stat status;
    *file = (ls_file){.descriptor = -1};
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return fail_errno(error, "open", path);
    ls_status result = LS_OK;
    if (fstat(descriptor, &status) != 0)
        result = fail_errno(error, "read the size", path);
    else if (S_ISDIR(status.st_mode))
        result = ls_fail(error, LS_IO, "%s: is a folder, a file is needed", path);
    else
        result = ls_copy_string(&file->path, path, error);
    if (result != LS_OK) {
        close(descriptor);
        return result;
    }
    file->descriptor = descriptor;
    file->bytes = (uint64_t)status.st_size;
    return LS_OK;
}

ls_status ls_file_read_at(const ls_file *file, void *into, size_t bytes, uint64_t offset,
                          ls_error *error)
{
    unsigned char *to = into;
    size_t done = 0;
    while (done < bytes) {
        ssize_t got = pread(file->descriptor, to + done, bytes - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_errno(error, "read", file->path);
        if (got == 0)
            return ls_fail(error, LS_IO, "%s: ends after %llu bytes, %llu were expected",
                           file->path, (unsigned long long)(offset + done),
                           (unsigned long long)(offset + bytes));
        done += (size_t)got;
    }
    return LS_OK;
}

void ls_file_close(ls_file *file)
{
    if (file->path && file->descriptor >= 0) close(file->descriptor);
    ls_free(file->path);
    *file = (ls_file){.descriptor = -1};
}

/* Read to the end of file rather than trusting st_size: pipes and /proc files have none. */
static ls_status read_all(ls_file *file, char **out, size_t *bytes, size_t cap, ls_error *error)
{
    char *data = NULL;
    size_t used = 0, capacity = 0;
    for (;;) {
        ls_status status =
            LS_GROW(data, capacity, used + (file->bytes > used ? file->bytes - used : 4096) + 1,
                    file->path, error);
        if (status != LS_OK) {
            ls_free(data);
            return status;
        }
        ssize_t got = read(file->descriptor, data + used, capacity - used - 1);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 || used + (size_t)(got > 0 ? got : 0) > cap) {
            ls_free(data);
            return got < 0 ? fail_errno(error, "read", file->path)
                           : ls_fail(error, LS_INVALID, "%s: larger than the limit of %zu bytes",
                                     file->path, cap);
        }
        used += (size_t)got;
        if (got == 0) break;
    }
    data[used] = '\0';
    *out = data;
    *bytes = used;
    return LS_OK;
}

ls_status ls_file_read(char **out, size_t *bytes, const char *path, size_t cap, ls_error *error)
{
    ls_file file;
    LS_TRY(ls_file_open(&file, path, error));
    ls_status status = LS_OK;
    if (file.bytes > cap)
        status = ls_fail(error, LS_INVALID, "%s: %llu bytes, larger than the limit of %zu", path,
                         (unsigned long long)file.bytes, cap);
    else
        status = read_all(&file, out, bytes, cap, error);
    ls_file_close(&file);
    return status;
}

static ls_status write_fully(int descriptor, const char *path, const void *bytes, size_t count,
                             ls_error *error)
{
    const unsigned char *from = bytes;
    while (count) {
        ssize_t wrote = ls_call_write(descriptor, from, count);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) return fail_errno(error, "write", path);
        from += wrote;
        count -= (size_t)wrote;
    }
    return LS_OK;
}

ls_status ls_writer_open(ls_writer *writer, const char *path, ls_error *error)
{
    ls_status status;
    *writer = (ls_writer){.descriptor = -1};
    size_t length = strlen(path) + 32;
    LS_TRY_GOTO(status, ls_copy_string(&writer->path, path, error), fail);
    LS_TRY_GOTO(status, ls_new((void **)&writer->temporary, length, 1, "path", error), fail);
    snprintf(writer->temporary, length, "%s.tmp-%ld", path, (long)getpid());
    LS_TRY_GOTO(status,
                ls_new((void **)&writer->buffer, WRITER_BUFFER_BYTES, 1, "write buffer", error),
                fail);
    writer->descriptor = ls_call_open(writer->temporary, O_WRONLY | O_CREAT | O_TRUNC);
    if (writer->descriptor < 0) {
        status = fail_errno(error, "create", writer->temporary);
        goto fail;
    }
    writer->open = true;
    return LS_OK;
fail:
    ls_writer_abandon(writer);
    return status;
}

static ls_status writer_flush(ls_writer *writer, ls_error *error)
{
    size_t used = writer->used;
    writer->used = 0;
    return write_fully(writer->descriptor, writer->temporary, writer->buffer, used, error);
}

ls_status ls_writer_write(ls_writer *writer, const void *bytes, size_t count, ls_error *error)
{
    if (count >= WRITER_BUFFER_BYTES) {
        LS_TRY(writer_flush(writer, error));
        return write_fully(writer->descriptor, writer->temporary, bytes, count, error);
    }
    if (writer->used + count > WRITER_BUFFER_BYTES) LS_TRY(writer_flush(writer, error));
    if (count) memcpy(writer->buffer + writer->used, bytes, count);
    writer->used += count;
    return LS_OK;
}

/* Makes the entry of `path` in its folder durable; `path` is cut. Allocates nothing: the file is
 * in place already, so nothing may fail any more but the disk. */
static ls_status sync_parent(char *path, ls_error *error)
{
    char *slash = strrchr(path, '/');
    if (slash) slash[slash == path] = '\0';
    int descriptor = ls_call_open(slash ? path : ".", O_RDONLY | O_DIRECTORY);
    ls_status status = LS_OK;
    if (descriptor < 0 || ls_call_fsync(descriptor) != 0) status = fail_errno(error, "sync", path);
    if (descriptor >= 0 && ls_call_close(descriptor) != 0 && status == LS_OK)
        status = fail_errno(error, "close", path);
    return status;
}

ls_status ls_writer_finish(ls_writer *writer, ls_error *error)
{
    ls_status status = writer_flush(writer, error);
    if (status == LS_OK && ls_call_fsync(writer->descriptor) != 0)
        status = fail_errno(error, "sync", writer->temporary);
    int closed = ls_call_close(writer->descriptor);
    writer->descriptor = -1;
    if (status == LS_OK && closed != 0) status = fail_errno(error, "close", writer->temporary);
    if (status == LS_OK && ls_call_rename(writer->temporary, writer->path) != 0)
        status = fail_errno(error, "rename into place", writer->path);
    if (status == LS_OK) {
        writer->open = false;
        status = sync_parent(writer->temporary, error);
    }
    ls_writer_abandon(writer);
    return status;
}

void ls_writer_abandon(ls_writer *writer)
{
    if (writer->descriptor >= 0 && writer->open) close(writer->descriptor);
    if (writer->open) unlink(writer->temporary);
    ls_free(writer->path);
    ls_free(writer->temporary);
    ls_free(writer->buffer);
    *writer = (ls_writer){.descriptor = -1};
}

ls_status ls_file_write(const char *path, const void *bytes, size_t count, ls_error *error)
{
    ls_writer writer;
    LS_TRY(ls_writer_open(&writer, path, error));
    ls_status status = ls_writer_write(&writer, bytes, count, error);
    if (status == LS_OK) return ls_writer_finish(&writer, error);
    ls_writer_abandon(&writer);
    return status;
}

ls_status ls_file_append(const char *path, const void *bytes, size_t count, ls_error *error)
{
    int descriptor = ls_call_open(path, O_WRONLY | O_CREAT | O_APPEND);
    if (descriptor < 0) return fail_errno(error, "open", path);
    ls_status status = write_fully(descriptor, path, bytes, count, error);
    if (ls_call_close(descriptor) != 0 && status == LS_OK)
        status = fail_errno(error, "close", path);
    return status;
}

static ls_status copy_bytes(const ls_file *from, const char *to, uint64_t bytes, ls_error *error)
{
    ls_writer writer;
    unsigned char *piece = NULL;
    LS_TRY(LS_NEW(piece, WRITER_BUFFER_BYTES, "copy of a file", error));
    ls_status status = ls_writer_open(&writer, to, error);
    for (uint64_t done = 0; done < bytes && status == LS_OK;) {
        uint64_t left = bytes - done;
        size_t count = left < WRITER_BUFFER_BYTES ? (size_t)left : WRITER_BUFFER_BYTES;
        status = ls_file_read_at(from, piece, count, done, error);
        if (status == LS_OK) status = ls_writer_write(&writer, piece, count, error);
        done += count;
    }
    if (status == LS_OK) status = ls_writer_finish(&writer, error);
    ls_writer_abandon(&writer);
    ls_free(piece);
    return status;
}

ls_status ls_file_copy(const char *from, const char *to, ls_error *error)
{
    ls_file file;
    LS_TRY(ls_file_open(&file, from, error));
    ls_status status = copy_bytes(&file, to, file.bytes, error);
    ls_file_close(&file);
    return status;
}

ls_status ls_file_copy_start(const char *from, const char *to, uint64_t bytes, ls_error *error)
{
    ls_file file;
    LS_TRY(ls_file_open(&file, from, error));
    ls_status status = copy_bytes(&file, to, bytes, error);
    ls_file_close(&file);
    return status;
}

ls_status ls_folder_make(const char *path, ls_error *error)
{
    char *partial = NULL;
    LS_TRY(ls_copy_string(&partial, path, error));
    ls_status status = LS_OK;
    for (char *at = partial + (*partial == '/'); status == LS_OK; at++) {
        if (*at != '/' && *at != '\0') continue;
        char kept = *at;
        *at = '\0';
        if (mkdir(partial, 0777) != 0 && errno != EEXIST)
            status = fail_errno(error, "make the folder", partial);
        else if (!ls_path_is_folder(partial))
            status = ls_fail(error, LS_IO, "%s: exists and is not a folder", partial);
        *at = kept;
        if (kept == '\0') break;
    }
    ls_free(partial);
    return status;
}

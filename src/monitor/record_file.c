#include "monitor/record_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/alloc.h"

static ls_status fail_errno(const ls_record_file *file, const char *action, int code,
                            ls_error *error)
{
    return ls_fail(error, LS_IO, "%s: cannot %s: %s (errno %d)", file->path, action, strerror(code),
                   code);
}

ls_status ls_record_file_open(ls_record_file *file, char *path, bool keep, ls_error *error)
{
    int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (keep ? 0 : O_TRUNC);
    *file = (ls_record_file){.path = path};
    file->descriptor = open(path, flags, 0666);
    if (file->descriptor < 0) return fail_errno(file, "open", errno, error);
    file->open = true;
    file->bytes = lseek(file->descriptor, 0, SEEK_END);
    if (file->bytes < 0) return fail_errno(file, "find the end", errno, error);
    return LS_OK;
}

ls_status ls_record_file_write(ls_record_file *file, const void *record, size_t bytes,
                               ls_error *error)
{
    const char *from = record;
    size_t done = 0;
    while (done < bytes) {
        ssize_t wrote = write(file->descriptor, from + done, bytes - done);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) {
            int code = errno;
            if (done && ftruncate(file->descriptor, (off_t)file->bytes) != 0)
                return fail_errno(file, "take back half a record", errno, error);
            return fail_errno(file, "write", code, error);
        }
        done += (size_t)wrote;
    }
    file->bytes += (int64_t)done;
    return LS_OK;
}

ls_status ls_record_file_finish(ls_record_file *file, ls_error *error)
{
    if (!file->open) return LS_OK;
    file->open = false;
    if (close(file->descriptor) != 0) return fail_errno(file, "close", errno, error);
    return LS_OK;
}

void ls_record_file_deinit(ls_record_file *file)
{
    if (file->open) close(file->descriptor);
    ls_free(file->path);
    *file = (ls_record_file){0};
}

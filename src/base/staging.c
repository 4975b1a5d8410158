#include "base/staging.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/calls.h"
#include "base/files.h"

static ls_status fail_errno(ls_error *error, const char *action, const char *path)
{
    int code = errno;
    return ls_fail(error, LS_IO, "%s: cannot %s: %s (errno %d)", path, action, strerror(code),
                   code);
}

ls_status ls_staging_name(char **out, const char *path, long process, ls_error *error)
{
    size_t length = strlen(path) + 32;
    LS_TRY(ls_new((void **)out, length, 1, "path", error));
    snprintf(*out, length, "%s.tmp-%ld", path, process);
    return LS_OK;
}

/* The files of a folder, then the folder. Takes no memory of ours: it tidies up where that is gone.
 */
static ls_status remove_all(const char *path, ls_error *error)
{
    ls_status status = LS_OK;
    DIR *folder = opendir(path);
    if (!folder && errno == ENOENT) return LS_OK;
    if (!folder) return fail_errno(error, "read the folder", path);
    for (const struct dirent *entry; status == LS_OK && (entry = readdir(folder));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (ls_call_unlink(dirfd(folder), entry->d_name) != 0)
            status = fail_errno(error, "remove a file of the folder", path);
    }
    closedir(folder);
    if (status == LS_OK && ls_call_rmdir(path) != 0)
        status = fail_errno(error, "remove the folder", path);
    return status;
}

ls_status ls_staging_remove_leftover(const char *temporary, ls_error *error)
{
    return remove_all(temporary, error);
}

ls_status ls_folder_remove(const char *path, ls_error *error)
{
    char *temporary = NULL;
    LS_TRY(ls_staging_name(&temporary, path, (long)getpid(), error));
    ls_status status = remove_all(temporary, error);
    if (status == LS_OK && ls_call_rename(path, temporary) != 0 && errno != ENOENT)
        status = fail_errno(error, "rename the folder before it is removed", path);
    if (status == LS_OK) status = remove_all(temporary, error);
    ls_free(temporary);
    return status;
}

ls_status ls_staging_open(ls_staging *staging, const char *path, ls_error *error)
{
    ls_status status;
    *staging = (ls_staging){0};
    LS_TRY_GOTO(status, ls_copy_string(&staging->path, path, error), fail);
    LS_TRY_GOTO(status, ls_staging_name(&staging->temporary, path, (long)getpid(), error), fail);
    LS_TRY_GOTO(status, remove_all(staging->temporary, error), fail);
    if (ls_call_mkdir(staging->temporary) != 0) {
        status = fail_errno(error, "make the folder", staging->temporary);
        goto fail;
    }
    staging->made = true;
    return LS_OK;
fail:
    ls_staging_deinit(staging);
    return status;
}

static ls_status sync_folder(const char *path, ls_error *error)
{
    int descriptor = ls_call_open(path, O_RDONLY | O_DIRECTORY);
    if (descriptor < 0) return fail_errno(error, "open the folder", path);
    ls_status status = LS_OK;
    if (ls_call_fsync(descriptor) != 0) status = fail_errno(error, "sync the folder", path);
    if (ls_call_close(descriptor) != 0 && status == LS_OK)
        status = fail_errno(error, "close the folder", path);
    return status;
}

static ls_status sync_parent(const char *path, ls_error *error)
{
    char *parent = NULL;
    LS_TRY(ls_copy_string(&parent, path, error));
    char *slash = strrchr(parent, '/');
    if (slash) slash[slash == parent] = '\0';
    ls_status status = sync_folder(slash ? parent : ".", error);
    ls_free(parent);
    return status;
}

ls_status ls_staging_commit(ls_staging *staging, ls_error *error)
{
    LS_TRY(sync_folder(staging->temporary, error));
    if (!ls_path_exists(staging->path)) {
        if (ls_call_rename(staging->temporary, staging->path) != 0)
            return fail_errno(error, "rename into place", staging->path);
        staging->made = false;
    } else if (ls_call_exchange(staging->temporary, staging->path) != 0) {
        int code = errno;
        return ls_fail(error, LS_IO,
                       "%s: is there already and cannot be exchanged for the new one: %s (errno "
                       "%d)%s",
                       staging->path, strerror(code), code,
                       code == EINVAL ? ": this file system cannot exchange folders: remove it"
                                      : "");
    }
    /* From here on the temporary name holds what was there before, if anything did. It may go only
     * once the disk knows the new one. */
    bool exchanged = staging->made;
    staging->made = false;
    LS_TRY(sync_parent(staging->path, error));
    return exchanged ? remove_all(staging->temporary, error) : LS_OK;
}

void ls_staging_deinit(ls_staging *staging)
{
    if (staging->made) (void)remove_all(staging->temporary, NULL);
    ls_free(staging->path);
    ls_free(staging->temporary);
    *staging = (ls_staging){0};
}

ls_status ls_sized_file_create(ls_sized_file *file, const char *path, uint64_t bytes,
                               ls_error *error)
{
    *file = (ls_sized_file){.descriptor = -1};
    LS_TRY(ls_copy_string(&file->path, path, error));
    file->descriptor = ls_call_open(path, O_WRONLY | O_CREAT | O_EXCL);
    ls_status status = LS_OK;
    if (file->descriptor < 0)
        status = fail_errno(error, "create", path);
    else if (ls_call_allocate(file->descriptor, bytes) != 0)
        status = fail_errno(error, "make room for all of it", path);
    if (status != LS_OK) ls_sized_file_deinit(file);
    return status;
}

ls_status ls_sized_file_open(ls_sized_file *file, const char *path, uint64_t bytes, ls_error *error)
{
    struct stat found;
    *file = (ls_sized_file){.descriptor = -1};
    LS_TRY(ls_copy_string(&file->path, path, error));
    file->descriptor = ls_call_open(path, O_WRONLY);
    ls_status status = LS_OK;
    if (file->descriptor < 0)
        status = fail_errno(error, "open", path);
    else if (fstat(file->descriptor, &found) != 0)
        status = fail_errno(error, "find the size", path);
    else if ((uint64_t)found.st_size != bytes)
        status = ls_fail(error, LS_IO, "%s: has %lld bytes here, and was made with %llu", path,
                         (long long)found.st_size, (unsigned long long)bytes);
    if (status != LS_OK) ls_sized_file_deinit(file);
    return status;
}

ls_status ls_sized_file_write(const ls_sized_file *file, const void *bytes, size_t count,
                              uint64_t offset, ls_error *error)
{
    const unsigned char *from = bytes;
    while (count) {
        ssize_t wrote = ls_call_pwrite(file->descriptor, from, count, offset);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) return fail_errno(error, "write", file->path);
        from += wrote;
        offset += (uint64_t)wrote;
        count -= (size_t)wrote;
    }
    return LS_OK;
}

ls_status ls_sized_file_finish(ls_sized_file *file, ls_error *error)
{
    ls_status status = LS_OK;
    if (ls_call_fsync(file->descriptor) != 0) status = fail_errno(error, "sync", file->path);
    int descriptor = file->descriptor;
    file->descriptor = -1;
    if (ls_call_close(descriptor) != 0 && status == LS_OK)
        status = fail_errno(error, "close", file->path);
    return status;
}

void ls_sized_file_deinit(ls_sized_file *file)
{
    if (file->path && file->descriptor >= 0) close(file->descriptor);
    ls_free(file->path);
    *file = (ls_sized_file){.descriptor = -1};
}

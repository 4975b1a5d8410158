#include "base/folder_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/files.h"

static const char file_name[] = ".lockstep-lock";

enum { HOLDER_BYTES = 128 };

bool ls_folder_lock_is_name(const char *name)
{
    return strcmp(name, file_name) == 0;
}

/* Whoever held the lock before may have removed the file between our opening and our locking: then
 * the name is another file's, or nobody's. */
static bool is_there(const ls_folder_lock *lock)
{
    struct stat held, named;
    return fstat(lock->descriptor, &held) == 0 && stat(lock->path, &named) == 0 &&
           held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

static ls_status refuse(const ls_folder_lock *lock, const char *folder, ls_error *error)
{
    char holder[HOLDER_BYTES];
    ssize_t bytes = pread(lock->descriptor, holder, sizeof holder - 1, 0);
    holder[bytes > 0 ? bytes : 0] = '\0';
    holder[strcspn(holder, "\n")] = '\0';
    return ls_fail(error, LS_INVALID,
                   "%s: another run is at work in this folder%s%s%s: wait for its end, stop it, or "
                   "take another folder",
                   folder, *holder ? " (" : "", holder, *holder ? ")" : "");
}

/* For the text of those who are refused; a full disk is no reason to stop here. */
static void write_holder(const ls_folder_lock *lock)
{
    char host[HOLDER_BYTES / 2] = "", holder[HOLDER_BYTES];
    if (gethostname(host, sizeof host - 1) != 0) *host = '\0';
    int length = snprintf(holder, sizeof holder, "process %ld on %s\n", (long)getpid(), host);
    if (ftruncate(lock->descriptor, 0) != 0) return;
    if (pwrite(lock->descriptor, holder, (size_t)length, 0) != length)
        (void)!ftruncate(lock->descriptor, 0);
}

/* One try; *held is false if the file has lost its name meanwhile. */
static ls_status take(ls_folder_lock *lock, const char *folder, bool *held, ls_error *error)
{
    lock->descriptor = open(lock->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock->descriptor < 0)
        return ls_fail(error, LS_IO, "%s: cannot write to the folder: %s", folder, strerror(errno));
    int result;
    do
        result = flock(lock->descriptor, LOCK_EX | LOCK_NB);
    while (result != 0 && errno == EINTR);
    ls_status status = LS_OK;
    *held = true;
    if (result != 0 && errno == EWOULDBLOCK)
        status = refuse(lock, folder, error);
    else if (result == 0)
        *held = is_there(lock);
    if (status == LS_OK && *held) {
        write_holder(lock);
        return LS_OK;
    }
    close(lock->descriptor);
    return status;
}

ls_status ls_folder_lock_take(ls_folder_lock *lock, const char *folder, ls_error *error)
{
    bool held = false;
    *lock = (ls_folder_lock){0};
    LS_TRY(ls_path_join(&lock->path, folder, file_name, error));
    ls_status status = LS_OK;
    while (status == LS_OK && !held)
        status = take(lock, folder, &held, error);
    if (status == LS_OK) return LS_OK;
    ls_free(lock->path);
    lock->path = NULL;
    return status;
}

void ls_folder_lock_release(ls_folder_lock *lock)
{
    if (!lock->path) return;
    /* Before the lock ends, so that it is never another's file. */
    unlink(lock->path);
    close(lock->descriptor);
    ls_free(lock->path);
    *lock = (ls_folder_lock){0};
}

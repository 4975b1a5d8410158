#include "base/calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail_point.h"

/* errno as asked for; short writes are for those who write. */
static bool fails(const char *site)
{
    int code = ls_fail_point(site);
    if (code <= 0) return false;
    errno = code;
    return true;
}

int ls_call_open(const char *path, int flags)
{
    return fails("open") ? -1 : open(path, flags | O_CLOEXEC, 0666);
}

int ls_call_allocate(int descriptor, uint64_t bytes)
{
    if (fails("allocate")) return -1;
    if (bytes == 0 || fallocate(descriptor, 0, 0, (off_t)bytes) == 0) return 0;
    if (errno != EOPNOTSUPP && errno != ENOSYS) return -1;
    return ftruncate(descriptor, (off_t)bytes);
}

/* 0: fail; else how many bytes to write. */
static size_t piece(const char *site, size_t count)
{
    int code = ls_fail_point(site);
    if (code > 0) errno = code;
    if (code > 0) return 0;
    return code == LS_FAIL_SHORT && count > 1 ? count / 2 : count;
}

ssize_t ls_call_write(int descriptor, const void *bytes, size_t count)
{
    size_t now = piece("write", count);
    return now || !count ? write(descriptor, bytes, now) : -1;
}

ssize_t ls_call_pwrite(int descriptor, const void *bytes, size_t count, uint64_t offset)
{
    size_t now = piece("write", count);
    return now || !count ? pwrite(descriptor, bytes, now, (off_t)offset) : -1;
}

int ls_call_fsync(int descriptor)
{
    return fails("fsync") ? -1 : fsync(descriptor);
}

/* The descriptor is gone in any case, as it is where close() itself reports what came of a write.
 */
int ls_call_close(int descriptor)
{
    bool failed = fails("close");
    int code = errno, result = close(descriptor);
    if (failed) errno = code;
    return failed ? -1 : result;
}

int ls_call_rename(const char *from, const char *to)
{
    return fails("rename") ? -1 : rename(from, to);
}

int ls_call_exchange(const char *one, const char *two)
{
    return fails("exchange") ? -1 : renameat2(AT_FDCWD, one, AT_FDCWD, two, RENAME_EXCHANGE);
}

int ls_call_mkdir(const char *path)
{
    return fails("mkdir") ? -1 : mkdir(path, 0777);
}

int ls_call_rmdir(const char *path)
{
    return fails("rmdir") ? -1 : rmdir(path);
}

int ls_call_unlink(int folder, const char *name)
{
    return fails("unlink") ? -1 : unlinkat(folder, name, 0);
}

void *ls_call_map(size_t bytes)
{
    if (fails("map")) return NULL;
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

int ls_call_thread(pthread_t *thread, void *(*function)(void *), void *context)
{
    /* Ours need little; the default of eight MiB counts in full where addresses are limited. */
    enum { STACK_BYTES = 2 << 20 };
    pthread_attr_t attributes;
    int code = ls_fail_point("thread");
    if (code > 0) return code;
    code = pthread_attr_init(&attributes);
    if (code != 0) return code;
    code = pthread_attr_setstacksize(&attributes, STACK_BYTES);
    if (code == 0) code = pthread_create(thread, &attributes, function, context);
    pthread_attr_destroy(&attributes);
    return code;
}

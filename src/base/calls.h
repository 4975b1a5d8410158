/* The system calls by which anything is written, and those that ask for memory and threads, each
 * behind a fail point of its name ("write", "fsync", ...): the fault tests make every one of them
 * fail in turn. As the calls themselves: -1 and errno on failure. */
#ifndef LS_BASE_CALLS_H
#define LS_BASE_CALLS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

int ls_call_open(const char *path, int flags); /* mode 0666 where it makes a file */
/* Space for that many bytes, so that a full disk shows here and not in the middle. */
int ls_call_allocate(int descriptor, uint64_t bytes);
ssize_t ls_call_write(int descriptor, const void *bytes, size_t count);
ssize_t ls_call_pwrite(int descriptor, const void *bytes, size_t count, uint64_t offset);
int ls_call_fsync(int descriptor);
int ls_call_close(int descriptor);
int ls_call_rename(const char *from, const char *to);
int ls_call_exchange(const char *one, const char *two); /* both exist: each gets the other's name */
int ls_call_mkdir(const char *path);
int ls_call_rmdir(const char *path);
int ls_call_unlink(int folder, const char *name); /* a file of an open folder */
void *ls_call_map(size_t bytes);                  /* pages of zeros; NULL on failure */
/* As pthread_create, with a stack of two MiB: an error's number. */
int ls_call_thread(pthread_t *thread, void *(*function)(void *), void *context);

#endif

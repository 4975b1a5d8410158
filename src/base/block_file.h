/* A file without a name for working memory on a disk: room for it is taken at once, and blocks of
 * whole pages are read and written past the system's page cache. */
#ifndef LS_BASE_BLOCK_FILE_H
#define LS_BASE_BLOCK_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum { LS_BLOCK_PAGE = 4096 }; /* offsets, sizes and addresses are multiples of it */

typedef struct ls_block_file {
    int descriptor;
    int64_t bytes;
    bool direct;  /* false: the file system has no direct access, pages are dropped after use */
    char *folder; /* for error texts */
} ls_block_file;

/* `bytes` bytes of zeros in `folder`; what is written there is gone when the file is closed, and
 * nothing stays however the process ends. LS_IO names the folder and says what is wrong: it cannot
 * be written, or has not enough room. */
ls_status ls_block_file_open(ls_block_file *file, const char *folder, int64_t bytes,
                             ls_error *error) LS_MUST_CHECK;
void ls_block_file_close(ls_block_file *file); /* safe on an all-zero file and twice */

/* Exactly `bytes` bytes, or LS_IO. */
ls_status ls_block_file_read(const ls_block_file *file, void *into, int64_t bytes, int64_t offset,
                             ls_error *error) LS_MUST_CHECK;
ls_status ls_block_file_write(const ls_block_file *file, const void *from, int64_t bytes,
                              int64_t offset, ls_error *error) LS_MUST_CHECK;

#endif

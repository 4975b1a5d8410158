/* Files: whole reads with a cap, writes whose every result is checked, paths. No stdio here. */
#ifndef LS_BASE_FILES_H
#define LS_BASE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* "folder/name" in fresh memory; free with ls_free. */
ls_status ls_path_join(char **out, const char *folder, const char *name,
                       ls_error *error) LS_MUST_CHECK;

bool ls_path_exists(const char *path);
bool ls_path_is_folder(const char *path);

/* Whole file plus a NUL byte after it (not counted). More than `cap` bytes is an error naming the
 * file. Free *out with ls_free. */
ls_status ls_file_read(char **out, size_t *bytes, const char *path, size_t cap,
                       ls_error *error) LS_MUST_CHECK;

/* An open file for positioned reads; errors name the path. */
typedef struct ls_file {
    int descriptor;
    uint64_t bytes; /* size at open */
    char *path;
} ls_file;
ls_status ls_file_open(ls_file *file, const char *path, ls_error *error) LS_MUST_CHECK;
/* Exactly `bytes` bytes, or an error ("ends after N bytes"). */
ls_status ls_file_read_at(const ls_file *file, void *into, size_t bytes, uint64_t offset,
                          ls_error *error) LS_MUST_CHECK;
void ls_file_close(ls_file *file); /* safe on an all-zero file and twice */

/* A file being written, through one buffer. Nothing is visible at `path` until finish, which
 * flushes, fsyncs and renames; abandon removes the temporary. Each result is checked. */
typedef struct ls_writer {
    int descriptor;
    bool open;
    char *path, *temporary;
    unsigned char *buffer;
    size_t used;
} ls_writer;
ls_status ls_writer_open(ls_writer *writer, const char *path, ls_error *error) LS_MUST_CHECK;
ls_status ls_writer_write(ls_writer *writer, const void *bytes, size_t count,
                          ls_error *error) LS_MUST_CHECK;
ls_status ls_writer_finish(ls_writer *writer, ls_error *error) LS_MUST_CHECK;
void ls_writer_abandon(ls_writer *writer); /* after finish, or twice: does nothing */

/* Write a whole small file as above. */
ls_status ls_file_write(const char *path, const void *bytes, size_t count,
                        ls_error *error) LS_MUST_CHECK;
/* Append bytes to a file in one write (metrics.jsonl: whole lines only). */
ls_status ls_file_append(const char *path, const void *bytes, size_t count,
                         ls_error *error) LS_MUST_CHECK;
ls_status ls_file_copy(const char *from, const char *to, ls_error *error) LS_MUST_CHECK;
/* Its first `bytes` bytes. */
ls_status ls_file_copy_start(const char *from, const char *to, uint64_t bytes,
                             ls_error *error) LS_MUST_CHECK;

/* mkdir -p. */
ls_status ls_folder_make(const char *path, ls_error *error) LS_MUST_CHECK;

#endif

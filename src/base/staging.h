/* A folder of files that appears whole or not at all, whatever happens to the process or the disk.
 *
 * It is filled under another name, PATH.tmp-PID, each file synced; then the folder is synced,
 * renamed (one that is there under the name is exchanged for it and removed), and its parent
 * synced. Source of the order: Pillai et al., "All File Systems Are Not Created Equal", OSDI 2014.
 */
#ifndef LS_BASE_STAGING_H
#define LS_BASE_STAGING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct ls_staging {
    char *path, *temporary;
    bool made; /* the temporary folder is there */
} ls_staging;

/* PATH.tmp-PROCESS in fresh memory, for others that help to fill it. */
ls_status ls_staging_name(char **out, const char *path, long process,
                          ls_error *error) LS_MUST_CHECK;
/* Make the temporary folder; what a killed process left under its name goes first. */
ls_status ls_staging_open(ls_staging *staging, const char *path, ls_error *error) LS_MUST_CHECK;
/* Put it in its place. After a failure either the old folder or the new one is at `path`. */
ls_status ls_staging_commit(ls_staging *staging, ls_error *error) LS_MUST_CHECK;
/* Remove what is not committed and free; after commit it only frees. Safe on an all-zero one. */
void ls_staging_deinit(ls_staging *staging);

/* Remove a folder of files (no folders below it): renamed first, so that half of it never stands
 * under its name. A folder that is not there is no error. */
ls_status ls_folder_remove(const char *path, ls_error *error) LS_MUST_CHECK;
/* The temporary folder of a process that is gone. */
ls_status ls_staging_remove_leftover(const char *temporary, ls_error *error) LS_MUST_CHECK;

/* A file of known size that several threads write at offsets of their own. */
typedef struct ls_sized_file {
    int descriptor;
    char *path;
} ls_sized_file;
/* Made with room for all bytes: a full disk shows here. */
ls_status ls_sized_file_create(ls_sized_file *file, const char *path, uint64_t bytes,
                               ls_error *error) LS_MUST_CHECK;
/* One that another process has made; LS_IO if it does not have that size. */
ls_status ls_sized_file_open(ls_sized_file *file, const char *path, uint64_t bytes,
                             ls_error *error) LS_MUST_CHECK;
ls_status ls_sized_file_write(const ls_sized_file *file, const void *bytes, size_t count,
                              uint64_t offset, ls_error *error) LS_MUST_CHECK;
/* Sync and close. */
ls_status ls_sized_file_finish(ls_sized_file *file, ls_error *error) LS_MUST_CHECK;
void ls_sized_file_deinit(ls_sized_file *file); /* safe on an all-zero one and after finish */

#endif

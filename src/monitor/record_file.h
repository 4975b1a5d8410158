/* A file that grows by whole records, each one write: what does not fit on the disk is taken back,
 * so that a reader never meets half of one. */
#ifndef LS_MONITOR_RECORD_FILE_H
#define LS_MONITOR_RECORD_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct ls_record_file {
    bool open;
    int descriptor;
    int64_t bytes; /* whole records in the file */
    char *path;
} ls_record_file;

/* Takes `path`, from base/alloc.h, also when it fails. `keep`: write after what is there instead of
 * dropping it. */
ls_status ls_record_file_open(ls_record_file *file, char *path, bool keep,
                              ls_error *error) LS_MUST_CHECK;
ls_status ls_record_file_write(ls_record_file *file, const void *record, size_t bytes,
                               ls_error *error) LS_MUST_CHECK;
/* Close, reporting what the file system kept back until then. */
ls_status ls_record_file_finish(ls_record_file *file, ls_error *error) LS_MUST_CHECK;
void ls_record_file_deinit(ls_record_file *file); /* safe on an all-zero one and twice */

#endif

/* manifest.json of a folder: size and XXH3-128 of each file, and of each tensor of safetensors
 * files, so that a damaged file is found and what is damaged in it is named.
 *
 *   {"format_version": 1, "step": 20, "files": {"model.safetensors":
 *     {"bytes": 1234, "xxh3_128": "...", "tensors": {"classifier.bias": "...", ...}}, ...}} */
#ifndef LS_FORMATS_MANIFEST_H
#define LS_FORMATS_MANIFEST_H

#include <stddef.h>
#include <stdint.h>

#include "base/checksum.h"
#include "base/status.h"
#include "base/threads.h"

#define LS_MANIFEST_NAME "manifest.json"
enum { LS_MANIFEST_VERSION = 1 };

/* A file whose checksums were made when it was written. */
typedef struct ls_manifest_file {
    const char *name;
    uint64_t bytes;
    const char *checksum;
    const char *const *tensors; /* [count] names, in the order of their offsets */
    const ls_checksum_part *parts;
    size_t count;
} ls_manifest_file;

/* Read those of the `count` files that are not in `known` and write the manifest, durably. */
ls_status ls_manifest_write(const char *folder, int64_t step, const char *const *files,
                            size_t count, const ls_manifest_file *known, size_t known_count,
                            ls_error *error) LS_MUST_CHECK;

typedef struct ls_manifest_report {
    int64_t step;
    size_t files, tensors;
    uint64_t bytes;
} ls_manifest_report;

/* Everything that the manifest names is there, has its size and its checksum; `needed` names that
 * it must list. LS_INVALID names the first file, and the tensor where it is one, and the reason;
 * files that the manifest does not list are not looked at. The files are read by `threads` at the
 * same time (NULL: one after the other). `report` may be NULL. */
ls_status ls_manifest_check(const char *folder, const char *const *needed, size_t count,
                            ls_threads *threads, ls_manifest_report *report,
                            ls_error *error) LS_MUST_CHECK;

#endif

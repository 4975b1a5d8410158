/* The folder of a comparison: compare.json, compare.csv, report.html and runs/. While it goes on,
 * the runs lie in `running`/, which becomes runs/ at the end, so that a former comparison stays
 * whole until then and an interrupted one leaves nothing. */
#ifndef LS_COMPARE_FOLDER_H
#define LS_COMPARE_FOLDER_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct ls_compare_folder {
    const char *path; /* borrowed */
    char *running;    /* "PATH/running" */
    size_t made;      /* bytes at the end of `path` that name folders made for this comparison */
} ls_compare_folder;

/* The folder must be new, empty, or hold nothing but a comparison (a killed one, too); else it is
 * refused and stays as it is. Makes it and `running`, with `command` in running/command.txt. */
ls_status ls_compare_folder_open(ls_compare_folder *folder, const char *path, const char *command,
                                 ls_error *error) LS_MUST_CHECK;

/* The folder of a row's full run: "zero3+offload-batch32-seed1". */
enum { LS_COMPARE_FOLDER_BYTES = 160 };
void ls_compare_folder_name(char into[LS_COMPARE_FOLDER_BYTES], const char *row, int64_t batch_size,
                            int64_t seed);

/* "PATH/running/NAME" in fresh memory. */
ls_status ls_compare_folder_run(const ls_compare_folder *folder, const char *name, char **out,
                                ls_error *error) LS_MUST_CHECK;

/* Put the runs and the three documents into place. Where they cannot be written, a former
 * comparison stays whole. */
typedef struct ls_compare_documents {
    const char *json, *csv, *report;
} ls_compare_documents;
ls_status ls_compare_folder_finish(ls_compare_folder *folder, const ls_compare_documents *documents,
                                   ls_error *error) LS_MUST_CHECK;

/* Take `running` away if it is still there, and folders that were made and are empty. */
void ls_compare_folder_close(ls_compare_folder *folder);

/* rm -r, without following links; a path that is not there is well. */
ls_status ls_remove_tree(const char *path, ls_error *error) LS_MUST_CHECK;

#endif

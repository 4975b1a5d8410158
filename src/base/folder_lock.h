/* One process at a time in a folder: a lock on a file in it that ends with the process, however
 * that ends. It is advisory: it keeps out those who ask for it. */
#ifndef LS_BASE_FOLDER_LOCK_H
#define LS_BASE_FOLDER_LOCK_H

#include <stdbool.h>

#include "base/status.h"

typedef struct ls_folder_lock {
    char *path; /* of the file; NULL: nothing is held */
    int descriptor;
} ls_folder_lock;

/* LS_INVALID if another holds it: names the folder and, where the file says so, process and host. A
 * file system that knows no locks is no failure: then nobody is kept out. */
ls_status ls_folder_lock_take(ls_folder_lock *lock, const char *folder,
                              ls_error *error) LS_MUST_CHECK;
/* Removes the file. Safe on an all-zero one and twice. */
void ls_folder_lock_release(ls_folder_lock *lock);

/* The name of the file, which a killed process leaves behind. */
bool ls_folder_lock_is_name(const char *name);

#endif

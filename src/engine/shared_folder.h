/* Do all processes see the same folder? Those of several hosts need one that they share. */
#ifndef LS_ENGINE_SHARED_FOLDER_H
#define LS_ENGINE_SHARED_FOLDER_H

#include "comm/processes.h"

/* The first process writes a file of random text into it, all read it, and it is gone again. The
 * folder must exist for the first process. A collective call; LS_INVALID, naming the process that
 * does not see it, for all. */
ls_status ls_shared_folder_check(ls_processes *processes, const char *folder,
                                 ls_error *error) LS_MUST_CHECK;

/* The name of the file that this takes, or of a part of it: a process that is killed leaves one. */
bool ls_shared_folder_is_token(const char *name);

#endif
